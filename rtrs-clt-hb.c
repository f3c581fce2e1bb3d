// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RDMA Transport client: is the server there, and does it answer?
 *
 * Three ways to find out, from the slowest: the heartbeat, for paths that have
 * nothing to do. The probe: a request that the server has acknowledged and not
 * answered leaves the HCA nothing to repeat, and so nothing by which it would
 * notice that the server is gone, so when a request is old we ask. Both show that
 * the server lives, not that it answers what it was asked; for that there may be
 * a limit (request_timeout_sec).
 *
 * While there are requests the path's worker looks at them every now and then.
 * rtrs_clt_path.watched says whether it does; without requests it sleeps.
 */
#include "rtrs-clt.h"

/* Age of a request at which we ask whether the server's HCA is there, and how often */
#define PROBE_AGE_MS 1000U

/*
 * Heartbeat
 */

static void rtrs_clt_hb_error(struct rtrs_con *con)
{
	rtrs_clt_path_error(to_clt_path(con->path), -ETIMEDOUT, "no heartbeat from the server");
}

static void rtrs_clt_hb_sent(struct ib_wc *wc)
{
	struct rtrs_con *con = wc->qp->qp_context;

	if (rtrs_clt_wc_failed(to_clt_con(con), wc, "a heartbeat could not be sent"))
		return;
	atomic_inc(&con->sq_wr_avail);
	rtrs_clt_stats_completion(to_clt_con(con));
}

static void rtrs_clt_hb_done(struct ib_cq *cq, struct ib_wc *wc)
{
	rtrs_clt_hb_sent(wc);
}

static void rtrs_clt_hb_ack_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_con *con = wc->qp->qp_context;

	clear_bit(RTRS_CON_HB_ACK, &to_clt_con(con)->flags);
	rtrs_clt_hb_sent(wc);
}

static void rtrs_clt_probe_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_con *con = wc->qp->qp_context;

	if (rtrs_clt_wc_failed(to_clt_con(con), wc, "the server's HCA does not answer"))
		return;
	atomic_inc(&con->sq_wr_avail);
	clear_bit(RTRS_CON_PROBE, &to_clt_con(con)->flags);
}

/**
 * rtrs_clt_init_hb() - prepare heartbeat and probe of a new path
 * @path: the path
 */
void rtrs_clt_init_hb(struct rtrs_clt_path *path)
{
	path->hb_cqe.done = rtrs_clt_hb_done;
	path->hb_ack_cqe.done = rtrs_clt_hb_ack_done;
	path->probe_cqe.done = rtrs_clt_probe_done;
	path->s.hb_ack_cqe = &path->hb_ack_cqe;
	/* every send is signalled, what counts them needs no interval */
	path->s.signal_interval = 1;
	rtrs_init_hb(&path->s, &path->hb_cqe, RTRS_HB_INTERVAL_MS, RTRS_HB_MISSED_MAX,
		     rtrs_clt_hb_error, rtrs_clt_wq);
}

/**
 * rtrs_clt_path_start_hb() - start the heartbeat as the session wants it now
 * @path: path in its worker, just CONNECTED
 *
 * The first tick comes an interval later.
 */
void rtrs_clt_path_start_hb(struct rtrs_clt_path *path)
{
	WRITE_ONCE(path->s.hb_interval_ms, READ_ONCE(path->clt->hb_interval_ms));
	/* the core gives up one tick after this many */
	WRITE_ONCE(path->s.hb_missed_max, READ_ONCE(path->clt->hb_missed_max) - 1);
	rtrs_start_hb(&path->s);
}

/*
 * Requests
 */

/*
 * How long have requests been with the HCA, in jiffies: the oldest, and the oldest
 * of those without an answer (0 if there is none)? False if there is no request.
 */
static bool rtrs_clt_req_ages(const struct rtrs_clt_path *path, unsigned long *oldest,
			      unsigned long *unanswered)
{
	unsigned long now = jiffies;
	bool found = false;
	unsigned int i;

	*oldest = 0;
	*unanswered = 0;
	for (i = 0; i < path->nr_slots; i++) {
		const struct rtrs_clt_io_req *req = &path->reqs[i];
		/* pairs with the release in rtrs_clt_post_req(): no time of a former life */
		unsigned int state = atomic_read_acquire(&req->state) & RTRS_REQ_STATE_MASK;
		unsigned long posted = READ_ONCE(req->posted);

		if (state < RTRS_REQ_POSTED)
			continue;
		found = true;
		/* posted after we looked at the clock */
		if (time_after(posted, now))
			continue;
		*oldest = max(*oldest, now - posted);
		if (state == RTRS_REQ_POSTED)
			*unanswered = max(*unanswered, now - posted);
	}
	return found;
}

/*
 * Has the HCA find out whether the server's is there: an RDMA write of nothing on
 * the service connection. The server's HCA acknowledges it, its software does not
 * hear of it. If nobody does, the connection breaks within its short timeout, and
 * the path with it. False if the one before is still under way, so that there is
 * no other.
 */
static bool rtrs_clt_probe(struct rtrs_clt_path *path)
{
	struct rtrs_clt_con *con = to_clt_con(path->s.con[0]);
	struct ib_rdma_wr wr = {
		.wr.wr_cqe = &path->probe_cqe,
		.wr.opcode = IB_WR_RDMA_WRITE,
		.wr.send_flags = IB_SEND_SIGNALED,
	};
	int err;

	if (test_and_set_bit(RTRS_CON_PROBE, &con->flags))
		return false;
	atomic_dec(&con->c.sq_wr_avail);
	err = ib_post_send(con->c.qp, &wr.wr, NULL);
	if (err)
		rtrs_clt_path_error(path, err, "a probe could not be posted");
	return true;
}

/*
 * Is there a request, and how old are they? If there is none, looking ends until
 * rtrs_clt_path_watch() is called.
 */
static bool rtrs_clt_watch(struct rtrs_clt_path *path, unsigned long *oldest,
			   unsigned long *unanswered)
{
	if (rtrs_clt_req_ages(path, oldest, unanswered))
		return true;
	if (!READ_ONCE(path->watched))
		return false;
	WRITE_ONCE(path->watched, false);
	/* who has not seen that yet has posted by now */
	synchronize_rcu();
	if (!rtrs_clt_req_ages(path, oldest, unanswered))
		return false;
	WRITE_ONCE(path->watched, true);
	return true;
}

/**
 * rtrs_clt_watch_requests() - look at the requests of a path, and act on their age
 * @path: path in its worker, CONNECTED
 *
 * The next look is not at once for each of many requests that are nearly old
 * enough.
 *
 * Context: process, sleeps.
 * Return: jiffies until the next look, STEP_IDLE if there is nothing to look at,
 * STEP_AGAIN if the path has failed.
 */
long rtrs_clt_watch_requests(struct rtrs_clt_path *path)
{
	unsigned long limit = READ_ONCE(path->clt->request_timeout_sec) * HZ;
	unsigned long probe = msecs_to_jiffies(PROBE_AGE_MS);
	unsigned long pause = probe / 16;
	unsigned long oldest, unanswered, next;

	if (!rtrs_clt_watch(path, &oldest, &unanswered))
		return STEP_IDLE;
	if (limit && unanswered > limit) {
		rtrs_clt_path_error(path, -ETIMEDOUT, "a request was not answered in time");
		return STEP_AGAIN;
	}
	/* nobody was told of the last probe's end, nor of heartbeats that were sent */
	rtrs_clt_reap_sends(to_clt_con(path->s.con[0]), INT_MAX);
	if (oldest < probe)
		next = max(probe - oldest, pause);
	else
		next = rtrs_clt_probe(path) ? probe : pause;
	return limit ? min(next, max(limit - unanswered, pause)) : next;
}
