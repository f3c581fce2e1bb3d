/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The life of a request slot: rtrs-clt-io.c, and rtrs_clt_path_fail_reqs() and
 * rtrs_clt_failover_req() of rtrs-clt.c.
 *
 * Each step of the model is what the code does in one atomic operation, under one
 * lock, or alone.
 *
 *	PATHS	paths; 2 for failover
 *	SLOTS	permits, so slots of each path, all on one connection
 *	ROUNDS	requests on each permit, one after the other
 *	ERRORS	times that something breaks a path, or a queue pair breaks by itself
 *	LIES	wrong messages of the servers
 *	REFUSED	requests that find no room
 *	FAILS	posts that the queue refuses though there was room
 *	LIVES	times that a path comes back
 *	POLLERS	CPUs that run irq_poll, 1 or 2
 *	SERVICE	1: it is the service connection, whose sends others reap, too
 *
 * Mutations (MUT_...) break one rule each, see README.md.
 */
#include "states.pml"

#define OUR_CID 1
#define OTHER_CID 0

/* The rules, see README.md */
hidden byte I1_slot_serves_one_request;
hidden byte I2_buffers_are_not_with_the_hca;
hidden byte I3_confirmed_once;
hidden byte I3_refused_is_not_confirmed;
hidden byte answer_only_from_its_connection;
hidden byte answered_is_not_sent_again;
hidden byte slot_touched_by_its_holder;
hidden byte queues_not_used_after_their_end;
hidden byte late_is_balanced;

mtype:wr = { WRITE, INV, MARKER };

/* How a send has ended: the first to fail has its own status, what is behind it is flushed */
mtype:status = { SUCCESS, FAILED, FLUSH_ERR };

/* What is on its way to the handler of a receive CQ */
mtype:message = { ANSWER, FLUSHED };

typedef slot {
	mtype:req_state state;
	byte cid;
	byte holds;
	byte req;	/* number of the request, stands for all its fields */
	bit mr;		/* its data must be registered */
	bit registered;	/* RTRS_REQ_REGISTERED */
	bit late;
	/* at the HCA: it may read the buffers; the key lets the server in */
	bit uses;
	bit key;
	/* at the server: it has to answer */
	bit got;
};

typedef path {
	mtype:path_state state;
	bit destroyed;	/* the queues do not exist */
	/* the connection of the slots */
	byte late;
	bit drained;
	bit iop;	/* IRQ_POLL_F_SCHED: scheduled, or running */
	bit polled;	/* running */
	/* the HCA */
	bit broken;	/* queue pair in the error state */
	bit sent;	/* the write at the head of the queue is under way */
	bit armed;
};

slot s[PATHS * SLOTS];
path p[PATHS];

#define SLOT(path, permit) ((path) * SLOTS + (permit))

chan sq[PATHS] = [2 * SLOTS + 1] of { mtype:wr, byte /* permit */ };
chan send_cq[PATHS] = [2 * SLOTS + 1] of { mtype:wr, byte, mtype:status };
/* receive CQs: [2 * path] of the other connection, [2 * path + 1] of ours */
chan recv_cq[2 * PATHS] = [SLOTS + 1] of { mtype:message, byte };

/* RCU readers: submitters; per path: two receive handlers, irq_poll, the worker */
#define RCU_PATH (3 + POLLERS)
#define RCU_CALLER(permit) (permit)
#define RCU_RECV(path, cid) (SLOTS + RCU_PATH * (path) + (cid))
#define RCU_POLL(path, n) (SLOTS + RCU_PATH * (path) + 3 + (n))
#define RCU_WORKER(path) (SLOTS + RCU_PATH * (path) + 2)
#define RCU_NR (SLOTS + RCU_PATH * PATHS)
bit reading[RCU_NR];
bit recv_busy[2 * PATHS];

/* per request, from 1 */
#define REQUEST(permit, round) ((permit) * ROUNDS + (round))
bit confirmed[SLOTS * ROUNDS + 1];
bit refused[SLOTS * ROUNDS + 1];
bit answered[SLOTS * ROUNDS + 1];

byte errors = ERRORS;
byte lies = LIES;
byte refusals = REFUSED;
byte fails = FAILS;
byte lives = LIVES;

/* rtrs_clt_change_state() */
inline change_state(i, to)
{
	assert(MAY_CHANGE(p[i].state, to));
	p[i].state = to
}

/* rtrs_clt_path_fail() */
inline path_error(i)
{
	d_step {
		if
		:: p[i].state == RTRS_CLT_CONNECTED -> change_state(i, RTRS_CLT_RECONNECTING)
		:: else
		fi
	}
}

/*
 * The end of a request
 */

/* rtrs_clt_req_release() */
inline req_release(i, j)
{
	d_step {
		RULE(I2_buffers_are_not_with_the_hca, !s[j].uses && !s[j].key);
		if
		:: s[j].late ->
			RULE(late_is_balanced, p[i].late > 0);
			p[i].late--;
			s[j].late = 0
		:: else
		fi;
		s[j].registered = 0
	}
}

inline confirm(r)
{
	d_step {
		RULE(I3_confirmed_once, !confirmed[r]);
		RULE(I3_refused_is_not_confirmed, !refused[r]);
		confirmed[r] = 1
	}
}

/* rtrs_clt_req_finish() */
inline req_finish(i, j, r)
{
	r = s[j].req;
	RULE(I2_buffers_are_not_with_the_hca, !s[j].holds && !s[j].registered);
	req_release(i, j);
#ifdef MUT_CONFIRMED_BEFORE_FREE
	confirm(r);
#endif
	d_step {
		RULE(I3_confirmed_once, s[j].state == RTRS_REQ_ANSWERED);
		s[j].state = RTRS_REQ_FREE
	};
#ifndef MUT_CONFIRMED_BEFORE_FREE
	confirm(r);
#endif
	r = 0
}

inline drop_hold(j, last)
{
	d_step {
		RULE(slot_touched_by_its_holder, s[j].holds > 0);
		s[j].holds--;
		last = !s[j].holds
	}
}

inline req_put(i, j, r, last)
{
	drop_hold(j, last);
	if
	:: last -> last = 0; req_finish(i, j, r)
	:: else
	fi
}

/*
 * The CQ of the sends
 */

inline iop_sched(i)
{
	RULE(queues_not_used_after_their_end, !p[i].destroyed);
	p[i].iop = 1
}

/* rtrs_clt_arm_sends(); missed events are reported */
inline arm_sends(i)
{
	d_step {
		RULE(queues_not_used_after_their_end, !p[i].destroyed);
		p[i].armed = 1;
#ifndef MUT_MISSED_EVENTS_NOT_REPORTED
		if
#ifdef MUT_ARMING_ALWAYS_POLLS
		:: true -> iop_sched(i)
#endif
		:: len(send_cq[i]) > 0 -> iop_sched(i)
		:: else
		fi
#endif
	}
}

/* Who is the first to be late arms the CQ, irq_poll does it again and again */
inline count_late(i, j, arm)
{
#ifdef MUT_LATE_READ_BEFORE_COUNTED
	arm = !p[i].late;
#endif
	d_step {
		RULE(slot_touched_by_its_holder, s[j].state == RTRS_REQ_ANSWERED && s[j].holds > 0);
#ifndef MUT_LATE_READ_BEFORE_COUNTED
		arm = !p[i].late;
#endif
#ifndef MUT_LATE_NOT_COUNTED
		s[j].late = 1;
		p[i].late++
#endif
	}
}

/* What the HCA does when it completes a send */
inline complete_send(i, what, k, how)
{
	send_cq[i]!what,k,how;
	if
	:: p[i].armed -> p[i].armed = 0; iop_sched(i)
	:: else
	fi
}

/*
 * rtrs_clt_reap_sends(): takes a completion, and handles it. rtrs_clt_wc_failed()
 * leaves what was flushed to the receive that is flushed with it.
 */
inline reap_sends(i, k, what, how, r, last)
{
	do
	:: send_cq[i]?what,k,how ->
		if
		:: what == MARKER -> p[i].drained = 1
#ifdef MUT_FAILED_SEND_LETS_GO
		:: what != MARKER ->
#else
		:: what != MARKER && how == FLUSH_ERR
		:: what != MARKER && how == FAILED -> path_error(i)
		:: what != MARKER && how == SUCCESS ->
#endif
			if
			:: what == INV -> s[SLOT(i, k)].registered = 0
			:: else
			fi;
			req_put(i, SLOT(i, k), r, last)
		fi;
		d_step { what = 0; how = 0; k = 0 }
	:: len(send_cq[i]) == 0 -> break
	od
}

/*
 * rtrs_clt_send_cq_poll(), in softirq. When one has given up SCHED the next may
 * begin on another CPU.
 */
proctype irq_poll(byte i; byte n)
{
	mtype:wr what;
	mtype:status how;
	bit last;
	byte k, r;

end:	do
	:: atomic { p[i].iop && !p[i].polled -> p[i].polled = 1; reading[RCU_POLL(i, n)] = 1 };
		reap_sends(i, k, what, how, r, last);
#ifdef MUT_LATE_READ_BEFORE_COMPLETE
		last = p[i].late > 0;
#endif
		atomic { p[i].iop = 0; p[i].polled = 0 };
#ifndef MUT_LATE_READ_BEFORE_COMPLETE
		last = p[i].late > 0;
#endif
#ifndef MUT_NOT_ARMED_AGAIN
		if
		:: last -> arm_sends(i)
		:: else
		fi;
#endif
		atomic { last = 0; reading[RCU_POLL(i, n)] = 0 }
	od
}

/*
 * Way back: rtrs_clt_answer() and rtrs_clt_answered()
 */

/* Who comes last, submitter or answer; if the path goes down teardown ends the request */
inline invalidate(i, j, k, arm)
{
	if
#ifdef MUT_INVALIDATED_WHEN_DOWN
	:: true ->
#else
	:: p[i].state != RTRS_CLT_CONNECTED
	:: p[i].state == RTRS_CLT_CONNECTED ->
#endif
		s[j].holds = 1;
		count_late(i, j, arm);
#ifdef MUT_INVALIDATION_NOT_HELD
		s[j].holds = 0;
#endif
		if
		:: d_step {
			RULE(queues_not_used_after_their_end, !p[i].destroyed);
			sq[i]!INV,k
		   };
#ifdef MUT_INVALIDATION_NOT_HELD
			req_finish(i, j, k);
#endif
			if
			:: arm -> arm_sends(i)
			:: else
			fi
		/* the key stays good, so teardown has to end the request */
		:: atomic { fails > 0 -> fails-- };
#ifndef MUT_FAILED_INVALIDATION_IGNORED
			path_error(i)
#endif
#ifdef MUT_FAILED_INVALIDATION_LETS_GO
			req_put(i, j, k, arm)
#endif
		fi;
		arm = 0
	fi
}

/* The answer of a request that is not registered */
inline answered_plain(i, j, k, what, how, r, last, arm)
{
	if
	:: s[j].holds > 1 -> reap_sends(i, k, what, how, r, last)
	:: else
	fi;
	if
	:: s[j].holds > 1 ->
#ifdef MUT_PUT_BEFORE_LATE
		req_put(i, j, r, last);
		count_late(i, j, arm);
#else
		count_late(i, j, arm);
		req_put(i, j, r, last);
#endif
#ifndef MUT_LATE_NOT_ARMED
		if
		:: arm -> arm_sends(i)
		:: else
		fi;
#endif
		arm = 0
	:: s[j].holds <= 1 -> req_put(i, j, r, last)
	fi
}

proctype receive(byte i; byte cid)
{
	mtype:message kind;
	mtype:wr what;
	mtype:status how;
	bit last, match, arm;
	byte k, j, r, other;

end:	do
#ifdef MUT_RECEIVE_OUTSIDE_RCU
	:: atomic { recv_cq[2 * i + cid]?kind,k -> recv_busy[2 * i + cid] = 1 };
#else
	:: atomic {
		recv_cq[2 * i + cid]?kind,k ->
		recv_busy[2 * i + cid] = 1;
		reading[RCU_RECV(i, cid)] = 1
	   };
#endif
		if
		:: kind == FLUSHED ->
#ifndef MUT_FLUSH_IGNORED
			if
			/* rtrs_clt_recv_failed() */
			:: p[i].state == RTRS_CLT_CONNECTED ->
				reap_sends(i, other, what, how, r, last);
				path_error(i)
			:: else
			fi
#else
			skip
#endif
		:: kind == ANSWER ->
			/* rtrs_clt_heartbeat(), rtrs_clt_recv_wc(): the handlers of a path do that */
			if
			:: SERVICE && cid == OTHER_CID ->
				reap_sends(i, other, what, how, r, last);
				skip	/* spin does not let a break jump into a d_step */
			:: else
			fi;
			d_step {
				j = SLOT(i, k);
				match = s[j].state == RTRS_REQ_POSTED && s[j].cid == cid;
#ifdef MUT_STATE_NOT_COMPARED
				match = s[j].state != RTRS_REQ_FREE && s[j].cid == cid;
#endif
#ifdef MUT_CID_NOT_COMPARED
				match = s[j].state == RTRS_REQ_POSTED;
#endif
				if
				:: match ->
					RULE(answer_only_from_its_connection, cid == s[j].cid);
					s[j].state = RTRS_REQ_ANSWERED;
					answered[s[j].req] = 1
				:: else
				fi
			};
			if
			:: !match -> path_error(i)
			:: match && !s[j].registered ->
				answered_plain(i, j, other, what, how, r, last, arm)
			:: match && s[j].registered ->
				drop_hold(j, last);
				if
				:: last -> last = 0; invalidate(i, j, k, arm)
				:: else
				fi
			fi
		fi;
		atomic {
			reading[RCU_RECV(i, cid)] = 0;
			recv_busy[2 * i + cid] = 0;
			kind = 0;
			match = 0;
			j = 0;
			k = 0
		}
	od
}

/*
 * Way out: rtrs_clt_issue(), rtrs_clt_try_path(), rtrs_clt_io_submit()
 */

/* The answer; and the send's completion or, if registered, the submitter until it has posted */
#ifdef MUT_SUBMITTER_DOES_NOT_HOLD
#define HOLDS(is_mr) (is_mr -> 1 : 2)
#else
#ifdef MUT_SEND_DOES_NOT_HOLD
#define HOLDS(is_mr) (is_mr -> 2 : 1)
#else
#define HOLDS(is_mr) 2
#endif
#endif

/* rtrs_clt_post_req(): "taken" if the request was accepted */
inline post_req(i, j, k, r, is_mr, taken, last, arm)
{
#ifndef MUT_HOLDS_AFTER_POSTED
	s[j].holds = HOLDS(is_mr);
#endif
	d_step { s[j].state = RTRS_REQ_POSTED; s[j].cid = OUR_CID };
#ifdef MUT_HOLDS_AFTER_POSTED
	s[j].holds = HOLDS(is_mr);
#endif
	if
	:: d_step {
		RULE(queues_not_used_after_their_end, !p[i].destroyed);
		sq[i]!WRITE,k;
		s[j].uses = 1
	   };
		taken = 1;
#ifndef MUT_SUBMITTER_DOES_NOT_HOLD
		if
		:: is_mr ->
			drop_hold(j, last);
			if
			:: last -> last = 0; invalidate(i, j, k, arm)
			:: else
			fi
		:: else
		fi
#endif
	/* rtrs_clt_post_failed(): a registration may have been taken */
	:: atomic { fails > 0 -> fails--; s[j].key = is_mr };
		path_error(i);
#ifndef MUT_FAILED_POST_GIVES_BACK_MR
		taken = is_mr;
#endif
		if
		:: !taken ->
#ifdef MUT_FAILED_POST_FORGETS_ANSWER
			s[j].state = RTRS_REQ_PREPARING
#else
			d_step {
				if
				:: s[j].state == RTRS_REQ_POSTED -> s[j].state = RTRS_REQ_PREPARING
				:: else -> taken = 1
				fi
			}
#endif
		:: else
		fi
	fi
}

inline try_path(i, k, r, is_mr, taken, last, arm)
{
	/* rtrs_clt_init_req() */
	d_step {
		RULE(I1_slot_serves_one_request, s[SLOT(i, k)].state == RTRS_REQ_FREE);
		RULE(answered_is_not_sent_again, !answered[r]);
		s[SLOT(i, k)].state = RTRS_REQ_PREPARING;
		s[SLOT(i, k)].req = r;
		s[SLOT(i, k)].mr = is_mr;
		s[SLOT(i, k)].registered = is_mr
	};
	if
	:: atomic { refusals > 0 -> refusals-- }
	:: true -> post_req(i, SLOT(i, k), k, r, is_mr, taken, last, arm)
	fi;
	if
	:: !taken ->
		req_release(i, SLOT(i, k));
#ifndef MUT_REFUSED_IS_NOT_FREED
		s[SLOT(i, k)].state = RTRS_REQ_FREE
#endif
	:: else
	fi
}

inline issue(k, r, is_mr, n, taken, last, arm)
{
	taken = 0;
	n = 0;
	do
	:: n < PATHS && !taken ->
		if
		:: p[n].state == RTRS_CLT_CONNECTED -> try_path(n, k, r, is_mr, taken, last, arm)
		:: else
		fi;
		n++
	:: else -> break
	od;
	n = 0
}

proctype caller(byte k)
{
	byte r, round = 1, n;
	bit taken, is_mr, last, arm;

	do
	:: round <= ROUNDS ->
		atomic {
			r = REQUEST(k, round);
			if
			:: is_mr = 0
			:: is_mr = 1
			fi;
			reading[RCU_CALLER(k)] = 1
		};
		issue(k, r, is_mr, n, taken, last, arm);
		reading[RCU_CALLER(k)] = 0;
		if
		:: taken -> confirmed[r]
		:: else ->
			d_step {
				RULE(I3_refused_is_not_confirmed, !confirmed[r]);
				refused[r] = 1
			}
		fi;
		taken = 0;
		round++
	:: else -> break
	od
}

/*
 * Going down: rtrs_clt_path_teardown()
 */

/* Each reader was seen outside of its section once */
inline grace_period(i, n)
{
	n = 0;
	do
	:: n < RCU_NR ->
		if
		:: n == RCU_WORKER(i)
		:: n != RCU_WORKER(i) && !reading[n]
		fi;
		n++
	:: else -> break
	od;
	n = 0
}

inline drain_recvs(i)
{
	empty(recv_cq[2 * i]) && !recv_busy[2 * i];
	empty(recv_cq[2 * i + 1]) && !recv_busy[2 * i + 1]
}

inline drain_sends(i)
{
	p[i].drained = 0;
#ifndef MUT_MARKER_NOT_LATE
	p[i].late++;
#endif
	sq[i]!MARKER,0;
	arm_sends(i);
	p[i].drained;
#ifndef MUT_MARKER_NOT_LATE
	p[i].late--;
#endif
#ifndef MUT_IRQ_POLL_NOT_DISABLED
	!p[i].iop
#endif
}

/* rtrs_clt_path_fail_reqs() */
inline fail_req(i, j, k, seen, n, taken, is_mr, last, arm, r)
{
	seen = s[j].state;
	if
	:: seen == RTRS_REQ_FREE
	:: else ->
		RULE(I1_slot_serves_one_request, seen != RTRS_REQ_PREPARING);
#ifndef MUT_MR_NOT_DROPPED
		d_step {
			s[j].key = (s[j].registered -> 0 : s[j].key);
			s[j].registered = 0
		};
#endif
		req_release(i, j);
		if
#ifdef MUT_ANSWERED_FAILS_OVER
		:: true ->
#else
		:: seen != RTRS_REQ_POSTED
		:: seen == RTRS_REQ_POSTED ->
#endif
			atomic {
				r = s[j].req;
				is_mr = s[j].mr;
				reading[RCU_WORKER(i)] = 1
			};
			issue(k, r, is_mr, n, taken, last, arm);
			atomic {
				reading[RCU_WORKER(i)] = 0;
				is_mr = 0;
				r = 0
			}
		fi;
#ifdef MUT_FAILED_OVER_IS_CONFIRMED
		taken = 0;
#endif
		if
		:: taken -> s[j].state = RTRS_REQ_FREE
		:: else ->
			s[j].holds = 0;
			s[j].state = RTRS_REQ_ANSWERED;
			req_finish(i, j, r)
		fi
	fi;
	seen = 0;
	taken = 0
}

inline fail_reqs(i, k, seen, n, taken, is_mr, last, arm, r)
{
	k = 0;
	do
	:: k < SLOTS -> fail_req(i, SLOT(i, k), k, seen, n, taken, is_mr, last, arm, r); k++
	:: else -> break
	od;
	k = 0
}

inline destroy_queues(i, k, n)
{
	/* who is just arming the CQ */
#ifndef MUT_NO_GRACE_BEFORE_DESTROY
	grace_period(i, n);
#endif
#ifndef MUT_IRQ_POLL_NOT_DISABLED
	!p[i].iop;
#endif
	d_step {
		RULE(queues_not_used_after_their_end,
		     empty(sq[i]) && empty(send_cq[i]) && empty(recv_cq[2 * i + OUR_CID]));
		RULE(late_is_balanced, !p[i].late);
		p[i].destroyed = 1;
		p[i].armed = 0;
		k = 0;
		do
		:: k < SLOTS -> s[SLOT(i, k)].got = 0; k++
		:: else -> break
		od;
		k = 0
	}
}

/* A new life: other queues, nothing in them */
inline come_back(i)
{
	d_step {
		p[i].destroyed = 0;
		p[i].broken = 0;
		change_state(i, RTRS_CLT_CONNECTING);
		change_state(i, RTRS_CLT_CONNECTED)
	}
}

proctype worker(byte i)
{
	mtype:req_state seen;
	mtype:wr what;
	mtype:status how;
	bit taken, is_mr, last, arm;
	byte k, n, r;

end:	do
	/* rtrs_clt_watch_requests(): it has no RCU read section, but tears down itself */
	:: SERVICE && p[i].state == RTRS_CLT_CONNECTED && len(send_cq[i]) > 0 ->
		RULE(queues_not_used_after_their_end, !p[i].destroyed);
		reap_sends(i, k, what, how, r, last)
	:: p[i].state == RTRS_CLT_RECONNECTING ->
#ifndef MUT_NO_GRACE_PERIOD
		grace_period(i, n);
#endif
		p[i].broken = 1;
#ifdef MUT_REQUESTS_END_BEFORE_DRAIN
		fail_reqs(i, k, seen, n, taken, is_mr, last, arm, r);
#endif
#ifdef MUT_SENDS_DRAINED_FIRST
		drain_sends(i);
		drain_recvs(i);
#else
#ifndef MUT_RECVS_NOT_DRAINED
		drain_recvs(i);
#endif
#ifndef MUT_SENDS_NOT_DRAINED
		drain_sends(i);
#endif
#endif
#ifdef MUT_UP_BEFORE_REQUESTS_END
		destroy_queues(i, k, n);
		come_back(i);
		fail_reqs(i, k, seen, n, taken, is_mr, last, arm, r)
#else
		fail_reqs(i, k, seen, n, taken, is_mr, last, arm, r);
		destroy_queues(i, k, n);
		if
		:: atomic { lives > 0 -> lives-- };
			come_back(i)
		:: d_step {
			change_state(i, RTRS_CLT_CLOSING);
			change_state(i, RTRS_CLT_CLOSED)
		   };
			break
		fi
#endif
	od
}

/*
 * The world: the HCA and the server of a path. Each action is one step.
 */

#define MAY_ARRIVE(i, cid) (!p[i].broken && !p[i].destroyed && nfull(recv_cq[2 * i + cid]))

proctype world(byte i)
{
	mtype:wr what;
	byte k;

end:	do
	/* the write at the head leaves; the server gets it */
	:: d_step {
		!p[i].broken && !p[i].sent && sq[i]?[WRITE,_] ->
		sq[i]?<what,k>;
		p[i].sent = 1;
		s[SLOT(i, k)].key = s[SLOT(i, k)].mr;
		s[SLOT(i, k)].got = 1;
		what = 0;
		k = 0
	   }
	/* and is acknowledged; that of a registered request is not signalled */
	:: d_step {
		!p[i].broken && p[i].sent ->
		sq[i]?what,k;
		p[i].sent = 0;
		s[SLOT(i, k)].uses = 0;
		if
		:: !s[SLOT(i, k)].mr -> complete_send(i, WRITE, k, SUCCESS)
		:: else
		fi;
		what = 0;
		k = 0
	   }
	:: d_step {
		!p[i].broken && sq[i]?[INV,_] ->
		sq[i]?what,k;
		s[SLOT(i, k)].key = 0;
		complete_send(i, INV, k, SUCCESS);
		what = 0;
		k = 0
	   }
	/* a queue pair in the error state gives everything back */
	:: d_step {
		p[i].broken && nempty(sq[i]) ->
		sq[i]?what,k;
		p[i].sent = 0;
		s[SLOT(i, k)].uses = (what == WRITE -> 0 : s[SLOT(i, k)].uses);
		complete_send(i, what, k, FLUSH_ERR);
		what = 0;
		k = 0
	   }
	:: d_step {
		MAY_ARRIVE(i, OUR_CID) && s[SLOT(i, 0)].got ->
		s[SLOT(i, 0)].got = 0;
		recv_cq[2 * i + OUR_CID]!ANSWER,0
	   }
	:: d_step {
		MAY_ARRIVE(i, OUR_CID) && s[SLOT(i, SLOTS - 1)].got ->
		s[SLOT(i, SLOTS - 1)].got = 0;
		recv_cq[2 * i + OUR_CID]!ANSWER,(SLOTS - 1)
	   }
	/* an answer too many, too early, too late, or on another connection */
	:: d_step {
		lies > 0 && MAY_ARRIVE(i, OUR_CID) ->
		lies--;
		recv_cq[2 * i + OUR_CID]!ANSWER,0
	   }
	:: d_step {
		lies > 0 && MAY_ARRIVE(i, OTHER_CID) ->
		lies--;
		recv_cq[2 * i + OTHER_CID]!ANSWER,0
	   }
	/* the heartbeat or the CM finds the path broken */
	:: d_step {
		errors > 0 && p[i].state == RTRS_CLT_CONNECTED ->
		errors--;
		change_state(i, RTRS_CLT_RECONNECTING)
	   }
	/* a send fails, and with it the queue pair */
	:: d_step {
		errors > 0 && MAY_ARRIVE(i, OUR_CID) && nempty(sq[i]) ->
		errors--;
		sq[i]?what,k;
		p[i].broken = 1;
		p[i].sent = 0;
		s[SLOT(i, k)].uses = (what == WRITE -> 0 : s[SLOT(i, k)].uses);
		complete_send(i, what, k, FAILED);
		recv_cq[2 * i + OUR_CID]!FLUSHED,0;
		what = 0;
		k = 0
	   }
	/* the queue pair breaks by itself, receives are flushed, and sends */
	:: d_step {
		errors > 0 && MAY_ARRIVE(i, OUR_CID) && p[i].state == RTRS_CLT_CONNECTED ->
		errors--;
		p[i].broken = 1;
		recv_cq[2 * i + OUR_CID]!FLUSHED,0
	   }
	od
}

init
{
	byte i;

	atomic {
		do
		:: i < PATHS * SLOTS -> s[i].state = RTRS_REQ_FREE; i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < PATHS ->
			p[i].state = RTRS_CLT_CONNECTED;
			run world(i);
			run irq_poll(i, 0);
			if
			:: POLLERS > 1 -> run irq_poll(i, 1)
			:: else
			fi;
			run receive(i, OUR_CID);
			if
			:: LIES > 0 -> run receive(i, OTHER_CID)
			:: else
			fi;
			run worker(i);
			i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < SLOTS -> run caller(i); i++
		:: else -> break
		od
	}
}
