/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Those who ask something of the path of path.pml: writers of its files
 * (rtrs-clt-path.c, rtrs-clt-set.c), the removal of its HCA (rtrs-clt-dev.c),
 * errors, timers and events, the caller's requests, open and close.
 */

/* Enters a file of the path; false if there is none, or nothing may be done */
inline enter_file(inside)
{
	atomic {
		shown -> writers++;
		inside = opened && !closing;
		if
		:: inside
		:: else -> writers--
		fi
	}
}

proctype reconnect(byte n)
{
	bit inside, ok, busy;

end:	enter_file(inside);
	if
	:: inside ->
		/* rtrs_clt_path_reconnect() */
#ifdef MUT_STATE_SET_WITHOUT_TABLE
		if
		:: state != RTRS_CLT_DEAD -> state = RTRS_CLT_RECONNECTING
		:: else
		fi;
#endif
		d_step {
			busy = closing ||
#ifndef MUT_RECONNECT_WHILE_REMOVED
			       RTRS_WISH_REMOVE ||
#endif
			       !(state == RTRS_CLT_CONNECTED || state == RTRS_CLT_RECONNECTING ||
				 state == RTRS_CLT_CLOSED);
			if
			:: !busy ->
				change_state(RTRS_CLT_RECONNECTING, ok);
				RTRS_WISH_MANUAL = 1;
				results = results & ~W_RECONNECT(n);
				begun = begun & ~W_RECONNECT(n);
				own = own & ~W_RECONNECT(n);
				KICK_INSIDE
			:: else
			fi
		};
		if
		:: !busy ->
			KICK_OUTSIDE;
			wait_event(W_RECONNECT(n), results & W_RECONNECT(n));
			d_step {
				RULE(I4_freed_when_nobody_can_see_it, !freed);
				RULE(reconnect_gets_its_own_result, own & W_RECONNECT(n));
				begun = begun | W_RECONNECT(n);
				own = own | W_RECONNECT(n)
			}
		:: else
		fi;
		writers--
	:: else
	fi
}

proctype disconnect()
{
	bit inside, ok;

end:	enter_file(inside);
	if
	:: inside ->
#ifdef MUT_DISCONNECT_TEARS_DOWN
		begin_close(0, ok);
		teardown(1);
#else
		path_close(W_DISCONNECT, ok);
#endif
		RULE(I4_freed_when_nobody_can_see_it, !freed);
		writers--
	:: else
	fi
}

inline path_put()
{
	d_step {
		refs--;
		if
		:: !refs ->
			RULE(I4_freed_when_nobody_can_see_it, !published && !hca && !queued &&
			     !timer && !running && !writers);
			freed = 1
		:: else
		fi
	}
}

/* rtrs_clt_path_remove(): "taken" if somebody else is removing the path */
inline path_remove(me, taken, ok)
{
	d_step {
#ifdef MUT_REMOVED_BY_EACH
		taken = 0;
#else
		taken = RTRS_WISH_REMOVE;
#endif
		RTRS_WISH_REMOVE = 1
	};
	if
	:: !taken ->
		/* rtrs_clt_path_kill() */
		path_close(me, ok);
		d_step {
			change_state(RTRS_CLT_DEAD, ok);
			RULE(removed_path_is_DEAD, ok);
			ok = 0
		};
#ifndef MUT_WORK_NOT_CANCELLED
		d_step { queued = 0; timer = 0 };
		!running;
#endif
		/* rtrs_clt_destroy_path_files() */
		shown = 0;
		!writers;
		/* rtrs_clt_path_unpublish() */
		atomic { !paths_mutex -> published = 0 };
#ifndef MUT_NO_GRACE_BEFORE_FREE
		!reading;
#endif
		path_put()
	:: else
	fi
}

/* Steps out of its file first, so that it does not wait for itself */
proctype remove(byte n)
{
	bit inside, taken, ok;

end:	enter_file(inside);
	if
	:: inside ->
		d_step { refs++; writers-- };
		path_remove(W_REMOVE(n), taken, ok);
		path_put()
	:: else
	fi
}

/* rtrs_clt_ib_remove(), and the RDMA CM after it */
proctype remove_hca()
{
	bit ok;

	hca_goes = 1;
	atomic { !paths_mutex -> paths_mutex = 1 };
	if
	:: published && hca ->
#ifdef MUT_HCA_REMOVAL_DOES_NOT_WAIT
		begin_close(0, ok)
#else
		path_close(W_HCA, ok)
#endif
	:: else
	fi;
	paths_mutex = 0;
	/* RDMA_CM_EVENT_DEVICE_REMOVAL goes to each id that there is; then they are waited for */
	if
	:: ids || old_id -> begin_close(0, ok)
	:: else
	fi;
	!ids && !old_id;
	hca_freed = 1
}

/*
 * A server may take any time to answer, and the worker looks again and again. In a
 * search for what never ends (NP) that is progress, and nothing else is.
 */
#ifdef NP
#define MAY_GO_ON (state == RTRS_CLT_CONNECTED)
#else
#define MAY_GO_ON false
#endif

inline fire_timer()
{
	NOT_DEAD;
	timer = 0;
	in_future = 0;
	queued = 1
}

/* Errors, the timer, the server's answer; the link is back; another heartbeat */
active proctype world()
{
	bit ok;

end:	do
	:: atomic { errors > 0 && ids && (state == RTRS_CLT_CONNECTED || state == RTRS_CLT_CONNECTING) ->
		errors--;
		path_error(ok)
	   }
	:: d_step { timer && !MAY_GO_ON -> fire_timer() }
#ifdef NP
	:: d_step { timer && MAY_GO_ON -> fire_timer() };
progress:	skip
#endif
	:: d_step { inflight && state == RTRS_CLT_CONNECTED -> inflight = 0 }
	/* rtrs_clt_path_try_now() */
	:: atomic { nudges > 0 && published && hca ->
		nudges--;
		if
		:: state == RTRS_CLT_CONNECTING || state == RTRS_CLT_CONNECTING_ERR -> RTRS_WISH_NOW = 1
		:: state == RTRS_CLT_RECONNECTING -> RTRS_WISH_NOW = 1; KICK_INSIDE; ok = 1
		:: else
		fi
	   };
		if
		:: ok -> ok = 0; KICK_OUTSIDE
		:: else
		fi
	/* rtrs_clt_path_settings_changed() */
	:: d_step { nudges > 0 && published && !paths_mutex && state == RTRS_CLT_CONNECTED ->
		nudges--;
		RTRS_WISH_SETTINGS = 1;
		kick()
	   }
	od
}

/*
 * The caller: requests, open, close
 */

inline post()
{
	d_step {
		RULE(posts_find_their_queues, queues);
		inflight = 1
	}
}

/* rtrs_clt_path_watch() */
inline path_watch()
{
	d_step {
		RULE(I4_freed_when_nobody_can_see_it, !freed);
		if
		:: state == RTRS_CLT_CONNECTED && !watched ->
			watched = 1;
#ifndef MUT_WATCH_DOES_NOT_KICK
			kick()
#endif
		:: else
		fi
	}
}

/*
 * rtrs_clt_io_submit(). Nothing keeps the CPU from looking at path->watched before
 * others see the request, but for the grace period that the worker waits for.
 */
inline submit(unwatched)
{
	if
	:: unwatched = !watched; post()
	:: post(); unwatched = !watched
	fi;
#ifndef MUT_WATCH_OUTSIDE_RCU
	if
	:: unwatched -> path_watch()
	:: else
	fi
#endif
}

proctype requests()
{
	byte left = REQUESTS;
	bit sent, unwatched;

end:	do
	:: atomic { left > 0 && opened && !closing && !permit_taken -> permit_taken = 1; left-- };
		reading = 1;
		if
		:: published ->
			RULE(I4_freed_when_nobody_can_see_it, !freed);
			if
			:: state == RTRS_CLT_CONNECTED -> submit(unwatched); sent = 1
			:: else
			fi
		:: else
		fi;
		d_step {
			RULE(a_posted_request_is_watched, !inflight || queued || timer || running ||
			     state != RTRS_CLT_CONNECTED);
			reading = 0
		};
#ifdef MUT_WATCH_OUTSIDE_RCU
		if
		:: unwatched -> path_watch()
		:: else
		fi;
#endif
		unwatched = 0;
		if
		:: sent -> sent = 0; !inflight
		:: else
		fi;
		permit_taken = 0
	od
}

/* rtrs_clt_destroy_sess() */
inline destroy_session(taken, ok)
{
	atomic {
		!paths_mutex ->
		closing = 1;
		if
		:: published -> begin_close(0, ok)
		:: else
		fi
	};
	if
	:: atomic { published && !paths_mutex -> refs++ };
		path_remove(W_OPEN, taken, ok);
#ifndef MUT_CLOSE_DOES_NOT_WAIT_FOR_REMOVER
		if
		:: taken -> !published
		:: else
		fi;
#endif
		path_put()
	:: !published
	fi;
#ifndef MUT_EVENTS_NOT_FLUSHED
	!ev_queued && !ev_running;
#endif
	!permit_taken;
	d_step {
		RULE(I4_freed_when_nobody_can_see_it, !published);
		RULE(I7_last_event_tells_the_truth, !opened || !told_up);
		closed = 1
	}
}

active proctype session()
{
	bit taken, ok;

	/* rtrs_clt_path_start(), the opener waits */
	d_step { results = results & ~W_OPEN; kick() };
	wait_event(W_OPEN, results & W_OPEN);
	if
	:: result_ok ->
		shown = 1;
		/* rtrs_clt_start_events() */
		d_step {
			opened = 1;
			ev_up = 1;
			downs = state != RTRS_CLT_CONNECTED;
			if
			:: !paths_up -> ev_pending = 1; ev_queued = 1
			:: else
			fi
		};
		if
		:: CLOSE
		:: true -> goto stays_open
		fi
	:: else
	fi;
	destroy_session(taken, ok);
stays_open:
	skip
}
