// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RDMA Transport client: one request on the wire
 *
 * Way out: the scatterlist is mapped, registered if it must be, and goes out
 * with one RDMA write whose immediate makes the server look at it. A write
 * request of few segments takes its data straight from the mapped memory; the
 * local key covers them and there is nothing to invalidate later. Reads are
 * registered, since the server writes to them, and so are longer writes.
 *
 * Way back: each receive tells by its completion object what was posted. An
 * answer is matched by chunk number and connection in one compare-and-exchange.
 *
 * The end: a request is done when its answer is there, and its send has
 * completed, since until then the HCA may read the buffers once more to repeat
 * a lost packet, and its key is invalid. We invalidate ourselves: one local work
 * request costs less than the message by which the server would do it, and
 * nothing depends on what the server says. It stands behind the send in the
 * queue, so its completion speaks for both.
 *
 * Sends complete on a CQ of their own that is not armed, and which is polled
 * when an answer comes: by then the acknowledgment nearly always was there
 * first. If it was not, or an invalidation is under way, the CQ is armed. What is
 * no request's, heartbeats and probes on the service connection, is polled for by
 * the path's worker while there are requests, and when the peer was heard.
 */
#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME " L" __stringify(__LINE__) ": " fmt

#include <linux/rcupdate.h>

#include "rtrs-clt.h"
#include "rtrs-clt-trace.h"
#include "rtrs-log.h"

/* Completions taken from a CQ at a time */
#define REAP_BATCH 8

static struct rtrs_clt_io_req *iu_to_req(struct rtrs_clt_path *path, struct rtrs_iu *iu)
{
	return &path->reqs[iu - path->ius];
}

static struct rtrs_clt_con *wc_to_con(const struct ib_wc *wc)
{
	struct rtrs_con *c = wc->qp->qp_context;

	return to_clt_con(c);
}

static void req_put(struct rtrs_clt_io_req *req)
{
	if (atomic_dec_and_test(&req->holds))
		rtrs_clt_req_finish(req, req->errno);
}

/*
 * We flush receives only after the path has left these states. Before that a
 * flush means that the HCA took the queue pair down by itself: the reason lies
 * on the CQ of the sends, which is not armed. If it does not, that may be how an
 * HCA takes a disconnect, which is worth one more try.
 */
bool rtrs_clt_recv_failed(struct rtrs_clt_con *con, const struct ib_wc *wc)
{
	struct rtrs_clt_path *path = con_to_path(con);
	bool flushed = wc->status == IB_WC_WR_FLUSH_ERR;
	enum rtrs_clt_state state;

	if (likely(wc->status == IB_WC_SUCCESS))
		return false;
	state = rtrs_clt_path_state(path);
	if (state != RTRS_CLT_CONNECTED && state != RTRS_CLT_CONNECTING)
		return true;
	rtrs_clt_reap_sends(con, INT_MAX);
	rtrs_clt_path_fail(path, -ECONNRESET, flushed ? "the queue pair broke" :
			   "a receive failed", flushed);
	return true;
}

static void rtrs_clt_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_iu *iu = container_of(wc->wr_cqe, struct rtrs_iu, cqe);
	struct rtrs_clt_con *con = wc_to_con(wc);

	if (rtrs_clt_wc_failed(con, wc, "a request could not be sent"))
		return;
	rtrs_clt_stats_completion(con);
	req_put(iu_to_req(con_to_path(con), iu));
}

static void rtrs_clt_reg_done(struct ib_cq *cq, struct ib_wc *wc)
{
	rtrs_clt_wc_failed(wc_to_con(wc), wc, "a registration failed");
}

static void rtrs_clt_inv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_clt_io_req *req = container_of(wc->wr_cqe, struct rtrs_clt_io_req, inv_cqe);

	if (rtrs_clt_wc_failed(req->con, wc, "an invalidation failed"))
		return;
	req->flags &= ~RTRS_REQ_REGISTERED;
	req_put(req);
}

/*
 * Slots
 */

static void rtrs_clt_free_slots(struct rtrs_clt_path *path)
{
	unsigned int i;

	for (i = 0; i < path->nr_slots; i++) {
		/* I2: nothing is mapped or counted any more */
		WARN_ON_ONCE(path->reqs[i].flags || path->reqs[i].nr_wr);
		if (path->reqs[i].mr)
			ib_dereg_mr(path->reqs[i].mr);
	}
	kvfree(path->reqs);
	path->reqs = NULL;
}

/**
 * rtrs_clt_free_reqs() - free the request slots of a path and what they hold
 * @path: path without queues; the device is still there
 *
 * Context: process, sleeps. Nothing happens if there are none.
 */
void rtrs_clt_free_reqs(struct rtrs_clt_path *path)
{
	if (!path->reqs)
		return;
	rtrs_clt_free_slots(path);
	rtrs_iu_free(path->ius, path->s.dev->ib_dev, path->nr_slots);
	path->ius = NULL;
	kvfree(path->rbufs);
	path->rbufs = NULL;
	path->nr_slots = 0;
}

static bool rtrs_clt_has_gaps_reg(const struct rtrs_clt_path *path)
{
	return path->s.dev->ib_dev->attrs.kernel_cap_flags & IBK_SG_GAPS_REG;
}

/*
 * Pages of an MR. If no segment but the first and the last may begin or end
 * inside of a page, the largest data that the session has promised take one
 * page more than their length, however many segments they are. It is memory of
 * the HCA's driver, for each slot.
 */
static u32 rtrs_clt_mr_pages(const struct rtrs_clt_path *path)
{
	u32 pages = DIV_ROUND_UP(path->prm.max_io_size - 1, RTRS_CLT_MR_PAGE_SIZE) + 1;

	return rtrs_clt_has_gaps_reg(path) ? path->max_pages_per_mr :
	       min(pages, path->max_pages_per_mr);
}

/* Each slot has its MR, also those that had to give it up during teardown. */
static int rtrs_clt_alloc_mrs(struct rtrs_clt_path *path)
{
	enum ib_mr_type type = rtrs_clt_has_gaps_reg(path) ? IB_MR_TYPE_SG_GAPS :
			       IB_MR_TYPE_MEM_REG;
	unsigned int i;

	for (i = 0; i < path->nr_slots; i++) {
		struct ib_mr *mr;

		if (path->reqs[i].mr)
			continue;
		mr = ib_alloc_mr(path->s.dev->ib_pd, type, path->mr_pages);
		if (IS_ERR(mr))
			return PTR_ERR(mr);
		path->reqs[i].mr = mr;
	}
	return 0;
}

/**
 * rtrs_clt_alloc_reqs() - see that a path has the request slots it needs
 * @path: path in its worker, its cid 0 accepted
 *
 * Slots survive a reconnect if the server still wants the same sizes and the
 * path leads over the same HCA, which has freed them otherwise.
 *
 * Context: process, sleeps.
 * Return: 0, -ENOMEM, or what the device says to the allocation of an MR.
 */
int rtrs_clt_alloc_reqs(struct rtrs_clt_path *path)
{
	u32 mr_pages = rtrs_clt_mr_pages(path);
	u32 nr = path->prm.queue_depth;
	unsigned int i;

	if (path->reqs && (path->nr_slots != nr || path->mr_pages != mr_pages ||
			   path->ius->size != path->prm.max_hdr_size))
		rtrs_clt_free_reqs(path);
	if (path->reqs)
		return rtrs_clt_alloc_mrs(path);

	path->mr_pages = mr_pages;
	path->rbufs = kvzalloc_objs(*path->rbufs, nr);
	path->reqs = kvzalloc_objs(*path->reqs, nr);
	path->ius = rtrs_iu_alloc(nr, path->prm.max_hdr_size, GFP_KERNEL, path->s.dev->ib_dev,
				  DMA_TO_DEVICE, rtrs_clt_send_done);
	if (!path->rbufs || !path->reqs || !path->ius)
		goto free;
	path->nr_slots = nr;
	for (i = 0; i < nr; i++) {
		path->reqs[i].iu = &path->ius[i];
		path->reqs[i].reg_cqe.done = rtrs_clt_reg_done;
		path->reqs[i].inv_cqe.done = rtrs_clt_inv_done;
	}
	return rtrs_clt_alloc_mrs(path);

free:
	rtrs_iu_free(path->ius, path->s.dev->ib_dev, nr);
	kvfree(path->reqs);
	kvfree(path->rbufs);
	path->ius = NULL;
	path->reqs = NULL;
	path->rbufs = NULL;
	return -ENOMEM;
}

/*
 * Way out
 */

static int rtrs_clt_map_data(struct rtrs_clt_path *path, struct rtrs_clt_io_req *req)
{
	int nents;

	req->nents = 0;
	if (!req->sg_cnt)
		return req->data_len ? -EINVAL : 0;
	nents = ib_dma_map_sg(path->s.dev->ib_dev, req->sg, req->sg_cnt, req->dir);
	if (nents <= 0)
		return -EINVAL;
	req->nents = nents;
	req->flags |= RTRS_REQ_MAPPED;
	return 0;
}

static bool rtrs_clt_needs_mr(const struct rtrs_clt_path *path, const struct rtrs_clt_io_req *req)
{
	if (!req->nents)
		return false;
	if (req->dir == DMA_TO_DEVICE)
		return req->nents + 1 > req->con->max_sge;
	return req->nents > 1 || !(path->s.dev->ib_pd->flags & IB_PD_UNSAFE_GLOBAL_RKEY);
}

static int rtrs_clt_map_mr(struct rtrs_clt_io_req *req, struct ib_reg_wr *reg)
{
	struct ib_mr *mr = req->mr;
	int nr;

	nr = ib_map_mr_sg(mr, req->sg, req->nents, NULL, RTRS_CLT_MR_PAGE_SIZE);
	if (nr < 0)
		return nr;
	if (nr != req->nents || mr->length != req->data_len)
		return -EINVAL;
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	*reg = (struct ib_reg_wr) {
		.wr.wr_cqe = &req->reg_cqe,
		.wr.opcode = IB_WR_REG_MR,
		.mr = mr,
		.key = mr->rkey,
		.access = IB_ACCESS_LOCAL_WRITE,
	};
	if (req->dir == DMA_FROM_DEVICE)
		reg->access |= IB_ACCESS_REMOTE_WRITE;
	return 0;
}

/* Data of a write as SGEs; returns their number, or -EINVAL. */
static int rtrs_clt_fill_sges(const struct rtrs_clt_path *path, struct rtrs_clt_io_req *req,
			      bool reg, struct ib_sge *sge)
{
	struct scatterlist *sg;
	size_t len = 0;
	int i;

	if (!req->nents)
		return 0;
	if (req->dir == DMA_FROM_DEVICE)
		return reg || sg_dma_len(req->sg) == req->data_len ? 0 : -EINVAL;
	if (reg) {
		*sge = (struct ib_sge) {
			.addr = req->mr->iova,
			.length = req->mr->length,
			.lkey = req->mr->lkey,
		};
		return 1;
	}
	for_each_sg(req->sg, sg, req->nents, i) {
		sge[i] = (struct ib_sge) {
			.addr = sg_dma_address(sg),
			.length = sg_dma_len(sg),
			.lkey = path->s.dev->ib_pd->local_dma_lkey,
		};
		if (!sge[i].length)
			return -EINVAL;
		len += sge[i].length;
	}
	return len == req->data_len ? req->nents : -EINVAL;
}

/* Places the protocol header behind the user message; returns its length. */
static size_t rtrs_clt_fill_hdr(const struct rtrs_clt_path *path,
				const struct rtrs_clt_io_req *req, bool reg)
{
	void *hdr = req->iu->buf + req->usr_len;

	if (req->dir == DMA_TO_DEVICE)
		return rtrs_write_hdr_fill(hdr, req->usr_len);
	if (reg)
		return rtrs_read_hdr_fill(hdr, req->usr_len, false, req->mr->iova,
					  req->mr->rkey, req->mr->length);
	if (req->nents)
		return rtrs_read_hdr_fill(hdr, req->usr_len, false, sg_dma_address(req->sg),
					  path->s.dev->ib_pd->unsafe_global_rkey,
					  sg_dma_len(req->sg));
	return rtrs_read_hdr_fill(hdr, req->usr_len, false, 0, 0, 0);
}

/*
 * Room for the whole chain, the invalidation that may follow included. The
 * service connection has a limit besides, that of the server's receives.
 */
static int rtrs_clt_reserve(struct rtrs_clt_con *con, struct rtrs_clt_io_req *req, bool reg)
{
	int nr = reg ? RTRS_CLT_WR_PER_REQ : 1;
	int avail;

	if (!con->c.cid) {
		if (!atomic_add_unless(&con_to_path(con)->admin_inflight, 1, RTRS_CLT_ADMIN_MAX))
			return -EAGAIN;
		req->flags |= RTRS_REQ_ADMIN;
	}
	avail = atomic_read(&con->c.sq_wr_avail);
	do {
		if (avail - nr < RTRS_CLT_SQ_SLACK)
			return -EAGAIN;
	} while (!atomic_try_cmpxchg(&con->c.sq_wr_avail, &avail, avail - nr));
	req->nr_wr = nr;
	return 0;
}

/*
 * The queue has refused a chain for which there was room, so the connection is
 * of no use any more. If a registration may have been taken the request stays
 * with the HCA, accepted, until teardown has drained the queue.
 */
static int rtrs_clt_post_failed(struct rtrs_clt_io_req *req, int err, bool reg)
{
	int posted = RTRS_REQ_STATE(RTRS_REQ_POSTED, req->con->c.cid);

	rtrs_clt_path_error(con_to_path(req->con), err, "a request could not be posted");
	if (reg)
		return 0;
	if (atomic_cmpxchg(&req->state, posted, RTRS_REQ_PREPARING) != posted)
		return 0;
	return err;
}

/*
 * Counts a request that is answered and waits for a completion. True: arm the
 * CQ; who was counted before has armed it, or is about to.
 */
static bool rtrs_clt_count_late(struct rtrs_clt_con *con, struct rtrs_clt_io_req *req)
{
	req->late = true;
	return atomic_inc_return(&con->late) == 1;
}

/*
 * Makes the key of an answered request invalid. By then its registration lies in
 * the queue, so this comes behind it. If the path is going down nothing is
 * posted any more, and teardown ends the request.
 */
static void rtrs_clt_invalidate(struct rtrs_clt_con *con, struct rtrs_clt_io_req *req)
{
	struct ib_send_wr wr = {
		.wr_cqe = &req->inv_cqe,
		.opcode = IB_WR_LOCAL_INV,
		.send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = req->mr->rkey,
	};
	bool arm;
	int err;

	if (!rtrs_clt_path_is_connected(con_to_path(con)))
		return;
	atomic_set(&req->holds, 1);
	arm = rtrs_clt_count_late(con, req);
	err = ib_post_send(con->c.qp, &wr, NULL);
	if (err)
		rtrs_clt_path_error(con_to_path(con), err, "an invalidation could not be posted");
	else if (arm)
		rtrs_clt_arm_sends(con);
}

static int rtrs_clt_post_req(struct rtrs_clt_io_req *req, struct ib_sge *sge, int nr_sge,
			     struct ib_reg_wr *reg)
{
	struct rtrs_clt_con *con = req->con;
	struct rtrs_clt_path *path = con_to_path(con);
	u32 id = req->permit->mem_id;
	u32 off = req->data_len + req->usr_len;
	u64 addr = path->rbufs[id].addr;
	u32 imm;
	int err;

	imm = rtrs_to_io_req_imm(rtrs_io_req_payload(id, off, path->prm.queue_depth));
	if (req->dir == DMA_FROM_DEVICE)
		addr += req->data_len;
	/* I6: the reservation left room for heartbeats and the drain marker */
	WARN_ON_ONCE(atomic_read(&con->c.sq_wr_avail) < 0);

	WRITE_ONCE(req->posted, jiffies);
	/* the answer; and the completion of the send, or we, if it has to be invalidated */
	atomic_set(&req->holds, 2);
	/* pairs with the exchange in rtrs_clt_answer(): the slot is complete */
	atomic_set_release(&req->state, RTRS_REQ_STATE(RTRS_REQ_POSTED, con->c.cid));
	err = rtrs_iu_post_rdma_write_imm(&con->c, req->iu, sge, nr_sge,
					  READ_ONCE(path->rbufs[id].rkey), addr, imm,
					  reg ? 0 : IB_SEND_SIGNALED, reg ? &reg->wr : NULL, NULL);
	if (unlikely(err))
		return rtrs_clt_post_failed(req, err, reg);
	if (reg && atomic_dec_and_test(&req->holds))
		rtrs_clt_invalidate(con, req);
	return 0;
}

/**
 * rtrs_clt_io_submit() - send a prepared request to the server
 * @req: slot in state PREPARING, of a path that was CONNECTED in the RCU read
 *	 section in which this is called
 *
 * Context: any in which the HCA's post functions may be called. Does not sleep.
 * Return: 0 if the request was accepted, it may be finished already; a negative
 * errno if not, with nothing left mapped or counted: -EINVAL for data that
 * cannot be mapped, or whose length is not what was said; -EAGAIN if the
 * connection has no room now; what the device says to the post.
 */
int rtrs_clt_io_submit(struct rtrs_clt_io_req *req)
{
	struct rtrs_clt_con *con = req->con;
	struct rtrs_clt_path *path = con_to_path(con);
	/* most of these are not used, so they are not cleared for each request */
	struct ib_sge sge[RTRS_CLT_SEND_SGE] __uninitialized;
	struct ib_reg_wr reg_wr __uninitialized;
	size_t hdr_len;
	int err, nr;
	bool reg;

	rtrs_clt_stats_request(path, req->dir == DMA_FROM_DEVICE ? READ : WRITE,
			       req->data_len + req->usr_len);
	if (READ_ONCE(path->clt->policy) == MP_POLICY_MIN_INFLIGHT) {
		atomic_inc(&con->inflight);
		req->flags |= RTRS_REQ_COUNTED;
	}
	err = rtrs_clt_map_data(path, req);
	if (err)
		goto release;
	reg = rtrs_clt_needs_mr(path, req);
	err = rtrs_clt_reserve(con, req, reg);
	if (err)
		goto release;
	if (reg) {
		err = rtrs_clt_map_mr(req, &reg_wr);
		if (err)
			goto release;
		req->flags |= RTRS_REQ_REGISTERED;
	}
	nr = rtrs_clt_fill_sges(path, req, reg, sge);
	if (nr < 0) {
		err = nr;
		goto release;
	}
	hdr_len = rtrs_clt_fill_hdr(path, req, reg);
	sge[nr] = (struct ib_sge) {
		.addr = req->iu->dma_addr,
		.length = req->usr_len + hdr_len,
		.lkey = path->s.dev->ib_pd->local_dma_lkey,
	};
	ib_dma_sync_single_for_device(path->s.dev->ib_dev, req->iu->dma_addr,
				      req->usr_len + hdr_len, DMA_TO_DEVICE);
	err = rtrs_clt_post_req(req, sge, nr + 1, reg ? &reg_wr : NULL);
	if (err)
		goto release;
	/* pairs with the grace period in rtrs_clt_watch(), behind this request */
	if (unlikely(!READ_ONCE(path->watched)))
		rtrs_clt_path_watch(path);
	return 0;
release:
	req->flags &= ~RTRS_REQ_REGISTERED;
	rtrs_clt_req_release(req);
	return err;
}

/*
 * The end
 */

/**
 * rtrs_clt_req_release() - give back what a request holds
 * @req: slot whose buffers the HCA does not need any more
 *
 * May be called again without effect. Context: any.
 */
void rtrs_clt_req_release(struct rtrs_clt_io_req *req)
{
	struct rtrs_clt_con *con = req->con;
	struct rtrs_clt_path *path = con_to_path(con);

	if (req->flags & RTRS_REQ_MAPPED)
		ib_dma_unmap_sg(path->s.dev->ib_dev, req->sg, req->sg_cnt, req->dir);
	if (req->flags & RTRS_REQ_COUNTED)
		atomic_dec(&con->inflight);
	if (req->late)
		atomic_dec(&con->late);
	if (req->flags & RTRS_REQ_ADMIN)
		atomic_dec(&path->admin_inflight);
	req->flags = 0;
	req->late = false;
	if (req->nr_wr)
		atomic_add(req->nr_wr, &con->c.sq_wr_avail);
	req->nr_wr = 0;
}

/* A request that began before the event was enabled has no start: 0 ns. */
static void rtrs_clt_trace_req(const struct rtrs_clt_io_req *req, int err)
{
	s64 ns = req->start ? ktime_to_ns(ktime_sub(ktime_get(), req->start)) : 0;

	trace_rtrs_clt_req_done(con_to_path(req->con), req->con->c.cid, req->permit->mem_id,
				req->dir == DMA_FROM_DEVICE ? READ : WRITE,
				req->data_len + req->usr_len, err, ns);
}

/**
 * rtrs_clt_req_finish() - confirm a request to its owner
 * @req: slot in state ANSWERED without holds
 * @err: for the caller: 0 or negative errno
 *
 * The slot may be in use again when this returns. Context: any; calls conf_fn.
 */
void rtrs_clt_req_finish(struct rtrs_clt_io_req *req, int err)
{
	void (*conf)(void *priv, int errno) = req->conf;
	void *priv = req->priv;

	/* I2 */
	WARN_ON_ONCE(atomic_read(&req->holds) || req->flags & RTRS_REQ_REGISTERED);
	if (trace_rtrs_clt_req_done_enabled())
		rtrs_clt_trace_req(req, err);
	rtrs_clt_req_release(req);
	/* I3 */
	if (WARN_ON_ONCE((atomic_xchg(&req->state, RTRS_REQ_FREE) & RTRS_REQ_STATE_MASK) !=
			 RTRS_REQ_ANSWERED))
		return;
	conf(priv, err);
}

/**
 * rtrs_clt_reap_sends() - handle completions of sends that are there
 * @con: connection
 * @budget: handle so many at the most
 *
 * Context: any in which conf_fn may be called. May run on several CPUs at once.
 * Return: number of completions handled.
 */
int rtrs_clt_reap_sends(struct rtrs_clt_con *con, int budget)
{
	struct ib_wc wc[REAP_BATCH] __uninitialized;
	int done = 0, i, n;

	do {
		n = ib_poll_cq(con->c.send_cq, min(REAP_BATCH, budget - done), wc);
		for (i = 0; i < n; i++)
			wc[i].wr_cqe->done(con->c.send_cq, &wc[i]);
		if (n > 0)
			done += n;
	} while (n == REAP_BATCH && done < budget);
	return done;
}

/**
 * rtrs_clt_arm_sends() - be told of the next completion of a send
 * @con: connection
 *
 * Context: any.
 */
void rtrs_clt_arm_sends(struct rtrs_clt_con *con)
{
	if (ib_req_notify_cq(con->c.send_cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS))
		irq_poll_sched(&con->iop);
}

/* The armed CQ speaks; drivers call this with their locks held. */
void rtrs_clt_send_cq_event(struct ib_cq *cq, void *con)
{
	irq_poll_sched(&((struct rtrs_clt_con *)con)->iop);
}

int rtrs_clt_send_cq_poll(struct irq_poll *iop, int budget)
{
	struct rtrs_clt_con *con = container_of(iop, struct rtrs_clt_con, iop);
	int done;

	done = rtrs_clt_reap_sends(con, budget);
	if (done == budget)
		return done;
	/* teardown waits for this section, irq_poll_disable() does not */
	rcu_read_lock();
	irq_poll_complete(iop);
	/*
	 * Pairs with the full barrier of test_and_set_bit() in irq_poll_sched():
	 * who found us scheduled has counted itself.
	 */
	smp_mb();
	if (atomic_read(&con->late))
		rtrs_clt_arm_sends(con);
	rcu_read_unlock();
	return done;
}

/*
 * Way back
 */

/*
 * The answer holds an unregistered request until the end of this function, so
 * nobody else finishes it while we look.
 */
static void rtrs_clt_answered(struct rtrs_clt_con *con, struct rtrs_clt_io_req *req)
{
	bool arm = false;

	if (req->flags & RTRS_REQ_REGISTERED) {
		if (atomic_dec_and_test(&req->holds))
			rtrs_clt_invalidate(con, req);
		return;
	}
	if (atomic_read(&req->holds) > 1)
		rtrs_clt_reap_sends(con, INT_MAX);
	if (atomic_read(&req->holds) > 1)
		arm = rtrs_clt_count_late(con, req);
	req_put(req);
	if (arm)
		rtrs_clt_arm_sends(con);
}

/*
 * These return NULL, or what is wrong with the peer. We never ask the server to
 * invalidate a key; if it says it did, or does, that changes nothing.
 */

static const char *rtrs_clt_answer(struct rtrs_clt_con *con, u32 payload)
{
	struct rtrs_clt_path *path = con_to_path(con);
	int posted = RTRS_REQ_STATE(RTRS_REQ_POSTED, con->c.cid);
	struct rtrs_clt_io_req *req;
	u32 id;
	int err;

	rtrs_from_io_rsp_imm(payload, &id, &err);
	if (id >= path->prm.queue_depth)
		return "answer with a chunk number that does not exist";
	req = &path->reqs[id];
	if (atomic_cmpxchg(&req->state, posted, RTRS_REQ_STATE(RTRS_REQ_ANSWERED, con->c.cid)) !=
	    posted)
		return "answer to no request of this connection";
	req->errno = err;
	rtrs_clt_answered(con, req);
	return NULL;
}

static const char *rtrs_clt_heartbeat(struct rtrs_clt_con *con, u32 type)
{
	struct rtrs_clt_path *path = con_to_path(con);

	if (con->c.cid)
		return "heartbeat on a connection other than 0";
	rtrs_clt_reap_sends(con, INT_MAX);
	if (type == RTRS_HB_ACK_IMM) {
		/* pairs with the heartbeat work: only one answer per heartbeat */
		if (atomic_xchg(&path->s.hb_outstanding, 0))
			WRITE_ONCE(path->s.hb_cur_latency,
				   ktime_sub(ktime_get(), path->s.hb_last_sent));
		return NULL;
	}
	/* A flood of heartbeats is answered as fast as the answers get away. */
	if (rtrs_clt_path_is_connected(path) && !test_and_set_bit(RTRS_CON_HB_ACK, &con->flags))
		rtrs_send_hb_ack(&path->s);
	return NULL;
}

static const char *rtrs_clt_recv_imm(struct rtrs_clt_con *con, u32 imm)
{
	struct rtrs_clt_path *path = con_to_path(con);
	u32 type, payload;

	rtrs_from_imm(imm, &type, &payload);
	if (type == RTRS_HB_MSG_IMM || type == RTRS_HB_ACK_IMM)
		return rtrs_clt_heartbeat(con, type);
	if (type != RTRS_IO_RSP_IMM && type != RTRS_IO_RSP_W_INV_IMM)
		return "immediate of unknown type";
	if (path->prm.new_rkey)
		return "answer without the new key of its chunk";
	return rtrs_clt_answer(con, payload);
}

static const char *rtrs_clt_recv_rkey(struct rtrs_clt_con *con, const struct ib_wc *wc,
				      const struct rtrs_msg_rkey_rsp *msg)
{
	struct rtrs_clt_path *path = con_to_path(con);
	u32 type, payload, id, msg_id, rkey;
	int err;

	if (!path->prm.new_rkey || !msg)
		return "message with data, but the server said it sends none";
	if (rtrs_rkey_rsp_parse(msg, wc->byte_len, path->prm.queue_depth, &id, &rkey))
		return "malformed message with a new key";
	rtrs_from_imm(be32_to_cpu(wc->ex.imm_data), &type, &payload);
	if (type != RTRS_IO_RSP_IMM && type != RTRS_IO_RSP_W_INV_IMM)
		return "new key with an immediate that is no answer";
	rtrs_from_io_rsp_imm(payload, &msg_id, &err);
	if (msg_id != id)
		return "new key of another chunk than the one answered";
	/* before the confirmation: the chunk may be written to at once */
	WRITE_ONCE(path->rbufs[id].rkey, rkey);
	return rtrs_clt_answer(con, payload);
}

static const char *rtrs_clt_recv_send(struct rtrs_clt_con *con, const struct ib_wc *wc,
				      const struct rtrs_msg_rkey_rsp *msg)
{
	if (wc->wc_flags & IB_WC_WITH_IMM)
		return rtrs_clt_recv_rkey(con, wc, msg);
	if (!(wc->wc_flags & IB_WC_WITH_INVALIDATE))
		return "message that is neither an answer nor an invalidation";
	if (wc->byte_len)
		return "invalidation with data";
	return NULL;
}

/**
 * rtrs_clt_recv_wc() - handle what has arrived on a path that has its slots
 * @con: connection
 * @wc: successful completion of a receive
 * @msg: its buffer, ready for the CPU; NULL if it had none
 *
 * What breaks the protocol brings the path down.
 *
 * Context: handler of the receive CQ, in an RCU read section.
 */
void rtrs_clt_recv_wc(struct rtrs_clt_con *con, const struct ib_wc *wc,
		      const struct rtrs_msg_rkey_rsp *msg)
{
	struct rtrs_clt_path *path = con_to_path(con);
	const char *why;

	rtrs_clt_stats_completion(con);
	if (READ_ONCE(path->s.hb_missed_cnt)) {
		/* the next tick posts a heartbeat: those before it must not pile up */
		rtrs_clt_reap_sends(to_clt_con(path->s.con[0]), INT_MAX);
		WRITE_ONCE(path->s.hb_missed_cnt, 0);
	}
	if (wc->opcode == IB_WC_RECV_RDMA_WITH_IMM)
		why = rtrs_clt_recv_imm(con, be32_to_cpu(wc->ex.imm_data));
	else if (wc->opcode == IB_WC_RECV)
		why = rtrs_clt_recv_send(con, wc, msg);
	else
		why = "receive of unknown kind";
	if (why)
		rtrs_clt_path_error(path, -EPROTO, why);
}

/*
 * Receives
 */

/* Posts nr receives; if the connection has buffers, those of these numbers. */
static int rtrs_clt_post_chain(struct rtrs_clt_con *con, const u32 *msgs, unsigned int nr)
{
	struct rtrs_clt_path *path = con_to_path(con);
	struct ib_recv_wr wr[RTRS_CLT_RECV_BATCH] __uninitialized;
	struct ib_sge sge[RTRS_CLT_RECV_BATCH] __uninitialized;
	unsigned int i, m;

	for (i = 0; i < nr; i++) {
		wr[i] = (struct ib_recv_wr) {
			.next = i + 1 < nr ? &wr[i + 1] : NULL,
			.wr_cqe = &con->recv_cqe,
		};
		if (!con->msgs)
			continue;
		m = msgs[i];
		sge[i] = (struct ib_sge) {
			.addr = con->msgs_dma + m * sizeof(*con->msgs),
			.length = sizeof(*con->msgs),
			.lkey = path->s.dev->ib_pd->local_dma_lkey,
		};
		wr[i].wr_cqe = &con->msg_cqe[m];
		wr[i].sg_list = &sge[i];
		wr[i].num_sge = 1;
	}
	return ib_post_recv(con->c.qp, wr, NULL);
}

static void rtrs_clt_repost(struct rtrs_clt_con *con, u32 msg)
{
	int err;

	con->free_msgs[con->nr_free++] = msg;
	if (con->nr_free < RTRS_CLT_RECV_BATCH)
		return;
	con->nr_free = 0;
	if (!rtrs_clt_path_is_connected(con_to_path(con))) {
		rtrs_clt_path_error(con_to_path(con), -EPROTO, "messages before the path is up");
		return;
	}
	err = rtrs_clt_post_chain(con, con->free_msgs, RTRS_CLT_RECV_BATCH);
	if (err)
		rtrs_clt_path_error(con_to_path(con), err, "receives could not be posted");
}

/* A receive without a buffer */
void rtrs_clt_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_clt_con *con = wc_to_con(wc);

	if (rtrs_clt_recv_failed(con, wc))
		return;
	rcu_read_lock();
	rtrs_clt_repost(con, 0);
	rtrs_clt_recv_wc(con, wc, NULL);
	rcu_read_unlock();
}

/* A receive with one of the buffers of con->msgs */
void rtrs_clt_msg_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_clt_con *con = wc_to_con(wc);
	struct rtrs_clt_path *path = con_to_path(con);
	u32 i = wc->wr_cqe - con->msg_cqe;
	struct rtrs_msg_rkey_rsp msg;

	if (rtrs_clt_recv_failed(con, wc))
		return;
	rcu_read_lock();
	ib_dma_sync_single_for_cpu(path->s.dev->ib_dev, con->msgs_dma + i * sizeof(msg),
				   sizeof(msg), DMA_FROM_DEVICE);
	msg = con->msgs[i];
	ib_dma_sync_single_for_device(path->s.dev->ib_dev, con->msgs_dma + i * sizeof(msg),
				      sizeof(msg), DMA_FROM_DEVICE);
	rtrs_clt_repost(con, i);
	rtrs_clt_recv_wc(con, wc, &msg);
	rcu_read_unlock();
}

/**
 * rtrs_clt_nr_recvs() - receives that a connection keeps posted at the most
 * @con: connection of a path whose queue depth is known
 *
 * An answer takes one, since we ask for no invalidation. The service connection
 * has heartbeats besides. One batch more may wait to be posted.
 *
 * Return: the number.
 */
u32 rtrs_clt_nr_recvs(const struct rtrs_clt_con *con)
{
	u32 qd = con_to_path(con)->prm.queue_depth;

	if (!con->c.cid)
		return min_t(u32, qd, RTRS_CLT_ADMIN_MAX) + RTRS_CLT_SQ_SLACK +
			RTRS_CLT_RECV_BATCH;
	return qd + RTRS_CLT_RECV_BATCH;
}

/**
 * rtrs_clt_post_recvs() - fill the receive queue of a new connection
 * @con: connection in the worker of its path
 *
 * Return: 0 or what the device says to the post.
 */
int rtrs_clt_post_recvs(struct rtrs_clt_con *con)
{
	u32 msgs[RTRS_CLT_RECV_BATCH];
	u32 nr = rtrs_clt_nr_recvs(con);
	u32 i, n;
	int err;

	con->nr_free = 0;
	for (i = 0; i < nr; i += n) {
		n = min_t(u32, nr - i, RTRS_CLT_RECV_BATCH);
		for (u32 k = 0; k < n; k++)
			msgs[k] = i + k;
		err = rtrs_clt_post_chain(con, msgs, n);
		if (err)
			return err;
	}
	return 0;
}
