/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One path of one session from open to close: its worker (rtrs-clt-path.c), which
 * looks at the requests, too (rtrs-clt-hb.c), and link events (rtrs-clt-event.c).
 * All who ask something of it are in path-asks.pml.
 *
 * What the code does under one lock is one step.
 *
 *	RECONNECT, DISCONNECT, REMOVE	writers of these attributes
 *	ERRORS		times that something breaks the path, or its worker gives it up
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
hidden byte a_posted_request_is_watched;
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
hidden byte who_gave_up_does_not_connect;
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
bit watched;		/* the worker looks at the requests */
bit torn_down = 1;
bit was_up;
bit ever_up;
bit retry;
bit give_up;
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

/* rtrs_clt_change_state() */
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

#define NOT_DEAD RULE(I5_nothing_is_queued_for_a_dead_path, state != RTRS_CLT_DEAD && !freed)

/* rtrs_clt_path_kick() */
inline kick()
{
	NOT_DEAD;
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

/* rtrs_clt_path_fail() */
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

/* rtrs_clt_path_begin_close(): if the path is closed there is nothing to wait for */
inline begin_close(me, ok)
{
#ifdef MUT_CLOSES_READ_OUTSIDE_LOCK
	closes = closes & ~(me);
#endif
	d_step {
#ifndef MUT_CLOSES_READ_OUTSIDE_LOCK
		closes = closes & ~(me);
#endif
#ifndef MUT_CLOSED_LOOKED_AT_LATER
		closes = (IS_CLOSED -> closes | (me) : closes);
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

#ifdef MUT_CLOSED_LOOKED_AT_LATER
#define IS_OVER(me) (closes & (me) || IS_CLOSED)
#else
#define IS_OVER(me) (closes & (me))
#endif

/* rtrs_clt_path_close() */
inline path_close(me, ok)
{
	begin_close(me, ok);
	wait_event(me, IS_OVER(me));
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

/* rtrs_clt_path_end_attempt() and, for CONNECTED, rtrs_clt_path_set_connected() */
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

/* rtrs_clt_count_up() */
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

/* rtrs_clt_path_down() */
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

/* rtrs_clt_ev_work() */
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

/* rtrs_clt_path_teardown() */
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
#ifndef MUT_WATCHED_UNTIL_IT_IS_BACK
		watched = 0;
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
	/* no answer, or a refusal; or another server, which path->give_up says */
	:: atomic {
		queues && failures > 0 ->
		failures--;
		if
		:: true
		:: ever_up -> give_up = 1
		fi
	   };
		path_error(ok)
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

#ifdef MUT_GIVE_UP_IGNORED
#define GIVES_UP 0
#else
#define GIVES_UP give_up
#endif

/* rtrs_clt_step_connecting_err() */
inline step_connecting_err(ok)
{
	teardown(0);
	if
	/* rtrs_clt_path_retry(): the server has refused, once more */
	:: atomic { failures > 0 && !closing && !GIVES_UP -> failures-- };
		d_step {
			old_id = 0;
			retry = 1;
			in_future = 1;
			change_state(RTRS_CLT_RECONNECTING, ok);
			ok = 0
		}
	:: !ever_up || GIVES_UP -> begin_close(0, ok)
	/* rtrs_clt_path_failed() */
	:: ever_up && !GIVES_UP ->
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
		:: RTRS_WISH_MANUAL ->
			reconnect_attempts = 0;
			retry = 0;
#ifndef MUT_GIVE_UP_KEPT
			give_up = 0
#endif
		:: else
		fi;
		if
		:: in_future -> again = 0; delay = 1
		:: !in_future && (RTRS_WISH_MANUAL || retry || reconnect_attempts < MAX_ATTEMPTS) ->
			RULE(who_gave_up_does_not_connect, !give_up);
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

/* rtrs_clt_watch(): a request is "found" */
inline watch(found)
{
	found = inflight;
	if
	:: !found && watched ->
		watched = 0;
#ifndef MUT_NO_GRACE_IN_WATCH
		!reading;
#endif
#ifndef MUT_NO_SECOND_LOOK
		found = inflight;
#endif
		watched = watched || found
	:: else
	fi
}

/* rtrs_clt_step_connected() with rtrs_clt_watch_requests() */
inline step_connected(again, delay, found, ok)
{
	if
	:: RTRS_WISH_SETTINGS -> RTRS_WISH_SETTINGS = 0; USE_HCA
	:: else
	fi;
	watch(found);
	if
	:: found ->
		/* the worker's own post needs no RCU */
		RULE(posts_find_their_queues, queues);
		if
		:: true
		/* the request was not answered in time, or rtrs_clt_probe() cannot post */
		:: atomic { errors > 0 -> errors-- };
			path_error(ok);
			if
			:: again = 1
			:: true
			fi
		fi;
#ifndef MUT_LOOKED_AT_ONCE
		delay = 1
#endif
	:: else
	fi
}

/* rtrs_clt_step_closing() */
inline step_closing(again, ok)
{
	teardown(1);
	d_step { reconnect_attempts = 0; retry = 0 };
#ifdef MUT_WORKER_SPINS
	again = 1
#else
	end_attempt(RTRS_CLT_CLOSED, 0, ok);
	d_step {
		RULE(states_change_as_drawn, ok);
		ok = 0
	}
#endif
}

/*
 * rtrs_clt_path_work() decides, under the lock: look again, wait, or rest. A wait
 * ends sooner if somebody kicks, so nothing may have been wished since the step.
 */
inline next_look(again, delay)
{
	if
#ifndef MUT_KICKED_NOT_LOOKED_AT
	:: kicked -> again = 1
#endif
	:: else ->
		if
		:: delay && !again ->
			NOT_DEAD;
			RULE(worker_rests_only_when_there_is_nothing_to_do, !RTRS_WISH_MANUAL &&
			     (state == RTRS_CLT_RECONNECTING && !RTRS_WISH_NOW ||
			      state == RTRS_CLT_CONNECTED && !RTRS_WISH_SETTINGS));
			queued = 0;
			timer = 1
		:: else
		fi;
		RULE(worker_rests_only_when_there_is_nothing_to_do,
		     again || delay || queued || state == RTRS_CLT_CONNECTED ||
		     state == RTRS_CLT_CLOSED || state == RTRS_CLT_DEAD);
		/* who is still in its read section may be about to say so */
		RULE(a_posted_request_is_watched, again || delay || queued ||
		     state != RTRS_CLT_CONNECTED || !watched && (!inflight || reading))
	fi
}

#ifdef MUT_NO_LOOK_WHEN_UP
#define LOOKS_AT_ONCE (state != RTRS_CLT_CONNECTED)
#else
#define LOOKS_AT_ONCE 1
#endif

active proctype worker()
{
	mtype:path_state now;
	bit again, delay, found, ok, use, done;

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
			:: now == RTRS_CLT_CONNECTING -> step_connecting(use, ok); again = LOOKS_AT_ONCE
			:: now == RTRS_CLT_CONNECTING_ERR -> step_connecting_err(ok); again = 1
			:: now == RTRS_CLT_RECONNECTING -> step_reconnecting(again, delay, ok)
			:: now == RTRS_CLT_CONNECTED -> step_connected(again, delay, found, ok)
			:: now == RTRS_CLT_CLOSING -> step_closing(again, ok)
			:: now == RTRS_CLT_CLOSED || now == RTRS_CLT_DEAD ->
#ifdef MUT_CLOSED_PATH_WAITS
				delay = 1
#endif
			fi;
			d_step {
				now = 0;
				found = 0;
				next_look(again, delay)
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

#include "path-asks.pml"

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
