/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One path of one session from open to close: its worker and all who ask
 * something of it (rtrs-clt-path.c, rtrs-clt-set.c), the removal of its HCA
 * (rtrs-clt-dev.c), link events (rtrs-clt-event.c), and a caller whose link
 * event handler waits for a permit.
 *
 * What the code does under one lock is one step.
 *
 *	RECONNECT, DISCONNECT, REMOVE	writers of these attributes
 *	ERRORS		times that something breaks the path
 *	FAILED		attempts to connect that fail by themselves
 *	MAX_ATTEMPTS	automatic attempts until the path is closed
 *	REQUESTS	requests of the caller, one at a time, on its only permit
 *	NUDGES		link-is-back events and changes of the heartbeat
 *	HCA_GOES	1: the HCA is removed
 *	CLOSE		1: the session is closed, some time
 *
 * Mutations (MUT_...) break one rule each. See README.md.
 */
#include "states.pml"

/* The rules, see README.md */
hidden byte I4_freed_when_nobody_can_see_it;
hidden byte posts_find_their_queues;
hidden byte I5_nothing_is_queued_for_a_dead_path;
hidden byte I7_events_alternate;
hidden byte I7_no_event_before_open_or_after_close;
hidden byte I7_last_event_tells_the_truth;
hidden byte event_tells_what_happened;
hidden byte one_teardown_at_a_time;
hidden byte down_is_counted_after_the_last_request;
hidden byte HCA_is_not_used_after_its_removal;
hidden byte reconnect_gets_its_own_result;
hidden byte disconnect_waits_until_closed;
hidden byte removed_path_is_DEAD;
hidden byte worker_rests_only_when_there_is_nothing_to_do;
hidden byte states_change_as_drawn;

/* Who waits on path->wait, and the value of a set of bits when nobody does */
#define W_OPEN 1
#define W_RECONNECT(n) (2 << (n))
#define W_DISCONNECT 8
#define W_REMOVE(n) (16 << (n))
#define W_HCA 64
#define NOBODY 255

/* struct rtrs_clt_path */
mtype:path_state state = RTRS_CLT_CONNECTING;
bit kicked;
bit RTRS_WISH_MANUAL;
bit RTRS_WISH_NOW;
bit RTRS_WISH_SETTINGS;
bit RTRS_WISH_REMOVE;
bit result_ok;
/*
 * A counter and the value that a waiter has seen are a bit for each waiter here:
 * the counter has changed since
 */
byte results = NOBODY;
byte closes = NOBODY;
bit in_future;		/* due is later than now */
bit published = 1;
bit shown;
bit torn_down = 1;
bit was_up;
bit ever_up;
bit retry;
byte reconnect_attempts;
bit queues;
bit ids;		/* CM ids */
bit accepted;		/* RTRS_CON_CONNECTED */
bit old_id;		/* an id of the path's former life, whose peer was not told */
bit hca;		/* path->hca */

/* its work: queued, waiting for its timer, running */
bit queued;
bit timer;
bit running;

/* struct rtrs_clt_sess */
bit opened;
bit closing;
byte paths_up;
byte ev_pending;
bit ev_up;
bit ev_queued;
bit ev_running;
bit paths_mutex;
bit permit_taken;

/* The world */
bit hca_goes;		/* its client data is gone */
bit hca_freed;
bit inflight;		/* the caller's request is on the path */
bit reading;		/* the caller is in an RCU read section */
byte writers;		/* inside the files of the path */
byte refs = 1;
bit freed;
bit closed;		/* rtrs_clt_close() has returned */
byte errors = ERRORS;
byte failures = FAILED;
byte nudges = NUDGES;

/* What has happened since a waiter has asked, for the rules; a bit for each */
byte begun = NOBODY;	/* an attempt */
byte own = NOBODY;	/* the last result is of an attempt that began since, or of a close */
byte was_closed = NOBODY;

byte downs;		/* times that the path has left CONNECTED and the caller was not told */
bit told_up = 1;	/* the caller knows that it is up when open has succeeded */
byte teardowns;

/* path->wait: a bit for each waiter, set by wake_up_all() */
byte woken = NOBODY;

#define wake_up_all() woken = NOBODY

/* wait_event(): who is not woken does not look again */
inline wait_event(me, condition)
{
	do
	:: atomic {
		woken = woken & ~(me);
		if
		:: condition -> woken = woken | (me); break
		:: else
		fi
	   };
		woken & (me)
	od;
	skip	/* spin does not let a break jump into a d_step */
}

/* Steps of these are inside of the path's lock */

inline change_state(to, ok)
{
	ok = MAY_CHANGE(state, to);
	if
	:: ok ->
		downs = downs + (state == RTRS_CLT_CONNECTED && opened);
		was_closed = (to == RTRS_CLT_CLOSED -> NOBODY : was_closed);
		state = to;
		wake_up_all()
	:: else
	fi
}

inline kick()
{
	RULE(I5_nothing_is_queued_for_a_dead_path, state != RTRS_CLT_DEAD && !freed);
#ifndef MUT_KICK_ONLY_QUEUES
	kicked = 1;
#endif
#ifndef MUT_KICK_DOES_NOT_QUEUE
	timer = 0;
	queued = 1
#endif
}

#ifdef MUT_KICK_OUTSIDE_LOCK
#define KICK_OUTSIDE d_step { kick() }
#define KICK_INSIDE skip
#else
#define KICK_OUTSIDE skip
#define KICK_INSIDE kick()
#endif

/* rtrs_clt_path_error() */
inline path_error(ok)
{
	d_step {
		if
		:: state == RTRS_CLT_CONNECTED -> change_state(RTRS_CLT_RECONNECTING, ok)
		:: else -> change_state(RTRS_CLT_CONNECTING_ERR, ok)
		fi;
		if
		:: ok -> in_future = 1; KICK_INSIDE
		:: else
		fi
	};
	if
	:: ok -> ok = 0; KICK_OUTSIDE
	:: else
	fi
}

#define IS_CLOSED (state == RTRS_CLT_CLOSED || state == RTRS_CLT_DEAD)

/* rtrs_clt_path_begin_close() */
inline begin_close(me, ok)
{
#ifdef MUT_CLOSES_READ_OUTSIDE_LOCK
	closes = closes & ~(me);
#endif
	d_step {
#ifndef MUT_CLOSES_READ_OUTSIDE_LOCK
		closes = closes & ~(me);
#endif
		was_closed = (IS_CLOSED -> was_closed : was_closed & ~(me));
		change_state(RTRS_CLT_CLOSING, ok);
		if
		:: ok -> kick()
		:: else
		fi;
		ok = 0
	}
}

/* rtrs_clt_path_close() */
inline path_close(me, ok)
{
	begin_close(me, ok);
	wait_event(me, closes & (me) || IS_CLOSED);
	d_step {
		RULE(disconnect_waits_until_closed, was_closed & (me));
		closes = closes | (me);
		was_closed = was_closed | (me)
	}
}

/* Who waits looks without the lock, and sees the new state before the new result */
#ifdef MUT_RESULT_AFTER_STATE
#define STATE_IN_FRONT
#endif
#ifdef MUT_RESULT_WAKES_NOBODY
#define STATE_IN_FRONT
#endif

/* rtrs_clt_path_end_attempt() and, for CONNECTED, the counting of the path */
inline end_attempt(to, good, ok)
{
#ifdef MUT_CLOSES_BEFORE_CLOSED
	closes = (to == RTRS_CLT_CLOSED -> NOBODY : closes);
#endif
#ifdef STATE_IN_FRONT
	change_state(to, ok);
#endif
	d_step {
#ifndef STATE_IN_FRONT
		change_state(to, ok);
#endif
		if
		:: ok ->
			result_ok = good;
			results = NOBODY;
			own = (to == RTRS_CLT_CLOSED -> NOBODY : begun);
#ifndef MUT_CLOSES_BEFORE_CLOSED
#ifndef MUT_CLOSES_NOT_COUNTED
			closes = (to == RTRS_CLT_CLOSED -> NOBODY : closes);
#endif
#endif
#ifndef MUT_COUNTED_UP_LATER
			if
			:: to == RTRS_CLT_CONNECTED -> count_up()
			:: else
			fi;
#endif
#ifndef MUT_RESULT_WAKES_NOBODY
			wake_up_all()
#endif
		:: else
		fi
	}
}

inline count_up()
{
	was_up = 1;
	paths_up++;
	if
#ifdef MUT_EVENTS_BEFORE_OPEN
	:: paths_up == 1 -> ev_pending++; ev_queued = 1
#else
	:: paths_up == 1 && opened -> ev_pending++; ev_queued = 1
#endif
	:: else
	fi
}

inline count_down()
{
	d_step {
		if
		:: was_up ->
			RULE(down_is_counted_after_the_last_request, !inflight);
			was_up = 0;
			paths_up--;
			if
			:: !paths_up && opened -> ev_pending++; ev_queued = 1
			:: else
			fi
		:: else
		fi
	}
}

/*
 * The caller's link_ev(): waits for a permit, and puts it
 */
inline link_ev()
{
	d_step {
		RULE(I7_events_alternate, ev_up != told_up);
		RULE(I7_no_event_before_open_or_after_close, opened && !closed);
		told_up = ev_up;
		RULE(event_tells_what_happened, ev_up || downs);
		downs = downs - !ev_up
	};
	atomic { !permit_taken -> permit_taken = 1 };
	permit_taken = 0
}

inline ev_work(done)
{
	do
	:: d_step {
		done = !ev_pending;
		if
		:: done ->
			RULE(I7_last_event_tells_the_truth, !opened || ev_up == (paths_up > 0))
		:: else ->
#ifdef MUT_EVENTS_COALESCE_TO_ONE
			ev_pending = 1;
#else
			if
			:: ev_pending > 2 ->
				downs = downs - (ev_pending - (2 - (ev_pending & 1))) / 2;
				ev_pending = 2 - (ev_pending & 1)
			:: else
			fi;
#endif
			ev_pending--;
#ifdef MUT_EVENT_TELLS_THE_COUNT
			ev_up = paths_up > 0
#else
			ev_up = !ev_up
#endif
		fi
	   };
		if
		:: done -> break
		:: else -> link_ev()
		fi
	od;
	done = 0
}

#ifndef MUT_EVENTS_IN_THE_WORKER
active proctype events()
{
	bit done;

end:	do
	:: atomic { ev_queued -> ev_queued = 0; ev_running = 1 };
		ev_work(done);
		ev_running = 0
	od
}
#endif

/*
 * The worker
 */

#define USE_HCA RULE(HCA_is_not_used_after_its_removal, !hca_freed)

/* rtrs_clt_path_release_device() */
inline release_hca()
{
	if
	:: hca ->
#ifdef MUT_HCA_CLEARED_BEFORE_PUT
		hca = 0;
		USE_HCA
#else
		atomic { USE_HCA; hca = 0 }
#endif
	:: else
	fi
}

inline teardown(release)
{
	d_step {
		RULE(one_teardown_at_a_time, !teardowns);
		teardowns++
	};
	if
	:: !torn_down ->
#ifndef MUT_NO_GRACE_BEFORE_DRAIN
		!reading;
#endif
#ifdef MUT_TEARDOWN_TAKES_PATHS_MUTEX
		atomic { !paths_mutex -> paths_mutex = 1 };
		paths_mutex = 0;
#endif
#ifdef MUT_DOWN_BEFORE_REQUESTS_END
		count_down();
#endif
		/* drain; rtrs_clt_path_fail_reqs(); rtrs_clt_path_down() */
		atomic {
			inflight = 0;
			count_down();
			if
			:: queues -> USE_HCA; queues = 0
			:: else
			fi
		}
	:: else
	fi;
	if
	:: release -> release_hca()
	:: else
	fi;
	d_step {
		if
		:: ids && accepted && state == RTRS_CLT_RECONNECTING -> old_id = 1
		:: else
		fi;
		ids = 0;
		accepted = 0
	};
#ifndef MUT_OLD_ID_KEPT_WHEN_CLOSED
	old_id = old_id && !(release);
#endif
	d_step { torn_down = 1; teardowns-- }
}

/* rtrs_clt_use_device(), in the CM handler of cid 0; "use" is false if it may not */
inline use_device(use)
{
	if
	:: hca -> use = 1
	:: else ->
#ifdef MUT_HCA_LOOKED_AT_FIRST
		use = !hca_goes;
		if
		:: use -> hca = 1
		:: else
		fi
#else
		hca = 1;
		use = !hca_goes;
		if
		:: use -> USE_HCA
		:: else -> hca = 0
		fi
#endif
	fi
}

/* rtrs_clt_step_connecting() */
inline step_connecting(use, ok)
{
	d_step { torn_down = 0; ids = 1 };
	use_device(use);
	if
	:: use && state == RTRS_CLT_CONNECTING -> atomic { USE_HCA; queues = 1; accepted = 1 }
	:: use && state != RTRS_CLT_CONNECTING
	:: !use -> path_error(ok)
	fi;
	if
	/* no answer, or a refusal */
	:: atomic { queues && failures > 0 -> failures-- }; path_error(ok)
	:: queues ->
		RTRS_WISH_NOW = 0;
		end_attempt(RTRS_CLT_CONNECTED, 1, ok);
		atomic {
			if
			:: ok ->
				ok = 0;
#ifdef MUT_COUNTED_UP_LATER
				count_up();
#endif
				USE_HCA;
				ever_up = 1;
				reconnect_attempts = 0;
				old_id = 0
			:: else
			fi
		}
	:: !queues
	fi;
	use = 0
}

/* rtrs_clt_step_connecting_err() */
inline step_connecting_err(ok)
{
	teardown(0);
	if
	/* the server has refused: once more */
	:: atomic { failures > 0 && !closing -> failures-- };
		d_step {
			old_id = 0;
			retry = 1;
			in_future = 1;
			change_state(RTRS_CLT_RECONNECTING, ok);
			ok = 0
		}
	:: !ever_up -> begin_close(0, ok)
	:: ever_up ->
		in_future = 1;
		end_attempt(RTRS_CLT_RECONNECTING, 0, ok);
		ok = 0
	fi
}

/* rtrs_clt_step_reconnecting() with rtrs_clt_begin_attempt() */
inline step_reconnecting(again, delay, ok)
{
	if
	:: !torn_down -> teardown(0)
	:: else
	fi;
	d_step {
		again = 1;
		delay = 0;
		if
		:: RTRS_WISH_MANUAL || RTRS_WISH_NOW -> in_future = 0
		:: else
		fi;
		if
		:: RTRS_WISH_MANUAL -> reconnect_attempts = 0; retry = 0
		:: else
		fi;
		if
		:: in_future -> again = 0; delay = 1
		:: !in_future && (RTRS_WISH_MANUAL || retry || reconnect_attempts < MAX_ATTEMPTS) ->
			change_state(RTRS_CLT_CONNECTING, ok);
			if
			:: ok && !retry -> begun = NOBODY; reconnect_attempts++
			:: else
			fi;
			ok = 0
		:: else -> again = 0
		fi;
		RTRS_WISH_MANUAL = 0;
		RTRS_WISH_NOW = 0
	};
	if
	:: again -> retry = 0
	:: delay
	:: !again && !delay -> again = 1; begin_close(0, ok)
	fi
}

/* rtrs_clt_step_closing() */
inline step_closing(ok)
{
	teardown(1);
	d_step { reconnect_attempts = 0; retry = 0 };
	end_attempt(RTRS_CLT_CLOSED, 0, ok);
	d_step {
		RULE(states_change_as_drawn, ok);
		ok = 0
	}
}

active proctype worker()
{
	mtype:path_state now;
	bit again, delay, ok, use, done;

end:	do
	:: atomic { queued -> queued = 0; running = 1; again = 1 };
		do
		:: again ->
			d_step {
				kicked = 0;
				now = state;
				again = 0;
				delay = 0
			};
			if
			:: now == RTRS_CLT_CONNECTING -> step_connecting(use, ok); again = state != RTRS_CLT_CONNECTED
			:: now == RTRS_CLT_CONNECTING_ERR -> step_connecting_err(ok); again = 1
			:: now == RTRS_CLT_RECONNECTING -> step_reconnecting(again, delay, ok)
			:: now == RTRS_CLT_CONNECTED ->
				if
				:: RTRS_WISH_SETTINGS -> RTRS_WISH_SETTINGS = 0; USE_HCA
				:: else
				fi
			:: now == RTRS_CLT_CLOSING -> step_closing(ok)
			:: now == RTRS_CLT_CLOSED || now == RTRS_CLT_DEAD
			fi;
			d_step {
				now = 0;
				if
#ifndef MUT_KICKED_NOT_LOOKED_AT
				:: kicked -> again = 1
#endif
				:: else ->
					if
					:: delay && !again ->
						RULE(worker_rests_only_when_there_is_nothing_to_do,
						     !RTRS_WISH_MANUAL && !RTRS_WISH_NOW &&
						     state == RTRS_CLT_RECONNECTING);
						queued = 0;
						timer = 1
					:: else
					fi;
					RULE(worker_rests_only_when_there_is_nothing_to_do,
					     again || delay || queued ||
					     state == RTRS_CLT_CONNECTED ||
					     state == RTRS_CLT_CLOSED || state == RTRS_CLT_DEAD)
				fi
			}
		:: !again -> break
		od;
#ifdef MUT_EVENTS_IN_THE_WORKER
		if
		:: ev_queued -> ev_queued = 0; ev_work(done)
		:: else
		fi;
#endif
		running = 0
	od
}

/*
 * Those who ask
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

/* Errors, the timer, the server's answer; the link is back; another heartbeat */
active proctype world()
{
	bit ok;

end:	do
	:: atomic { errors > 0 && ids && (state == RTRS_CLT_CONNECTED || state == RTRS_CLT_CONNECTING) ->
		errors--;
		path_error(ok)
	   }
	:: d_step { timer -> timer = 0; in_future = 0; queued = 1 }
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

proctype requests()
{
	byte left = REQUESTS;
	bit sent;

end:	do
	:: atomic { left > 0 && opened && !closing && !permit_taken -> permit_taken = 1; left-- };
		reading = 1;
		if
		:: published ->
			RULE(I4_freed_when_nobody_can_see_it, !freed);
			if
			:: state == RTRS_CLT_CONNECTED ->
				d_step {
					RULE(posts_find_their_queues, queues);
					inflight = 1
				};
				sent = 1
			:: else
			fi
		:: else
		fi;
		reading = 0;
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

init
{
	byte i;

	atomic {
		do
		:: i < RECONNECT -> run reconnect(i); i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < REMOVE -> run remove(i); i++
		:: else -> break
		od;
		if
		:: DISCONNECT -> run disconnect()
		:: else
		fi;
		if
		:: HCA_GOES -> run remove_hca()
		:: else
		fi;
		if
		:: REQUESTS -> run requests()
		:: else
		fi
	}
}
