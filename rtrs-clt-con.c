// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RDMA Transport client: one connection of a path
 *
 * A connection comes up in steps that the RDMA CM reports: address, route,
 * established. Each event looks under con->lock whether teardown has begun,
 * after which it means nothing. The path's worker starts connections, waits
 * for them under one deadline, and is the only one to take them down: stop,
 * drain, destroy the queues, destroy the id. Each of these steps may be called
 * for a connection that never got so far.
 */
#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME " L" __stringify(__LINE__) ": " fmt

#include <linux/sched/mm.h>
#include <net/net_namespace.h>
#include <rdma/ib_cm.h>

#include "rtrs-clt.h"
#include "rtrs-clt-trace.h"
#include "rtrs-log.h"

/*
 * The local ACK timeout, 4.096 us * 2^n (InfiniBand Architecture, 9.7.6.1.3), for
 * the first try and each retry. 7 retries mean for ever to rxe.
 *
 * IO connections: 537 ms, what the RDMA CM takes for RoCE. Not less: on rxe a
 * queue pair with registered memory does not survive to repeat a request that
 * was just slow. Many retries: on a link that loses 1 % of the packets, three
 * tries are used up every few thousand requests.
 *
 * The service connection: 0.5 s in all, since what goes over it is what a user
 * waits for who unmaps a disk whose server is gone; and since a probe on it is
 * how soon requests fail over from a link that has gone silent.
 *
 * These are rxe's times. Other HCAs may take up to four times as long. The CM
 * tells the server, which takes the same for its ends.
 */
#define IO_ACK_TIMEOUT 17
#define IO_RETRIES 6
#define SERVICE_ACK_TIMEOUT 15
#define SERVICE_RETRIES 3

/*
 * The RDMA core may miss the answer of a neighbour, and then sleeps until the
 * time it was given is over. So it is given little, and asked again.
 */
#define ADDR_TIMEOUT_MS 400U

/* Longest time that draining a queue of the local HCA may take */
#define DRAIN_TIMEOUT_MS 5000

/* Whether a completion queue that polls this many at a time is done is seen at once */
#define SEND_POLL_BUDGET 64

/*
 * Waits in the worker for something that the CM or the server does. Ends early
 * if the attempt has failed or the path shall close. 0 or negative errno.
 */
static int rtrs_clt_wait(struct rtrs_clt_path *path,
			 bool (*met)(struct rtrs_clt_path *path, int arg), int arg)
{
	long left = path->deadline - jiffies;
	int err;

	if (left > 0)
		wait_event_timeout(path->wait, met(path, arg) ||
				   rtrs_clt_path_state(path) != RTRS_CLT_CONNECTING, left);
	if (rtrs_clt_path_state(path) != RTRS_CLT_CONNECTING)
		return READ_ONCE(path->last_err) ?: -ECONNABORTED;
	if (met(path, arg))
		return 0;
	/* what an earlier try of this attempt met says more than this */
	err = path->retry_err ?: -ETIMEDOUT;
	rtrs_clt_path_error(path, err, path->retry_err ? path->retry_why :
			    "no answer within the time limit");
	return err;
}

static bool rtrs_clt_more_cons_up(struct rtrs_clt_path *path, int seen)
{
	return atomic_read(&path->cons_up) > seen;
}

static bool rtrs_clt_has_info_rsp(struct rtrs_clt_path *path, int unused)
{
	/* pairs with the release in rtrs_clt_info_rsp_done() */
	return smp_load_acquire(&path->info_rsp);
}

static unsigned int rtrs_clt_ms_left(const struct rtrs_clt_path *path)
{
	long left = path->deadline - jiffies;

	return left > 0 ? jiffies_to_msecs(left) : 1;
}

/**
 * rtrs_clt_con_alloc() - make a connection object
 * @path: its path
 * @cid: its number in the path
 *
 * The object lives as long as the path, its queues only while the path is up.
 *
 * Context: process, sleeps.
 * Return: the connection, NULL if there is no memory.
 */
struct rtrs_clt_con *rtrs_clt_con_alloc(struct rtrs_clt_path *path, unsigned int cid)
{
	struct rtrs_clt_con *con = kzalloc_obj(*con);

	if (!con)
		return NULL;
	con->c.path = &path->s;
	con->c.cid = cid;
	con->cpu = (cid ? cid - 1 : 0) % nr_cpu_ids;
	con->recv_cqe.done = rtrs_clt_recv_done;
	mutex_init(&con->lock);
	init_completion(&con->drained);
	return con;
}

/**
 * rtrs_clt_con_free_msgs() - free the receive buffers of a connection
 * @con: connection without queues, its path still has the device
 */
void rtrs_clt_con_free_msgs(struct rtrs_clt_con *con)
{
	if (!con->msgs)
		return;
	ib_dma_unmap_single(con_to_path(con)->s.dev->ib_dev, con->msgs_dma,
			    con->nr_msgs * sizeof(*con->msgs), DMA_FROM_DEVICE);
	kfree(con->msgs);
	kvfree(con->msg_cqe);
	con->msgs = NULL;
	con->msg_cqe = NULL;
}

/**
 * rtrs_clt_con_free() - free a connection object
 * @con: connection without queues and buffers, or NULL
 */
void rtrs_clt_con_free(struct rtrs_clt_con *con)
{
	kfree(con);
}

/* One allocation and one mapping for all rkey messages of a connection */
static int rtrs_clt_con_alloc_msgs(struct rtrs_clt_con *con)
{
	struct ib_device *dev = con_to_path(con)->s.dev->ib_dev;
	u32 nr = rtrs_clt_nr_recvs(con);
	u32 i;

	if (con->msgs && con->nr_msgs == nr)
		return 0;
	rtrs_clt_con_free_msgs(con);
	con->msgs = kzalloc_objs(*con->msgs, nr);
	con->msg_cqe = kvzalloc_objs(*con->msg_cqe, nr);
	if (!con->msgs || !con->msg_cqe)
		goto free;
	con->msgs_dma = ib_dma_map_single(dev, con->msgs, nr * sizeof(*con->msgs),
					  DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(dev, con->msgs_dma))
		goto free;
	for (i = 0; i < nr; i++)
		con->msg_cqe[i].done = rtrs_clt_msg_done;
	con->nr_msgs = nr;
	return 0;

free:
	kfree(con->msgs);
	kvfree(con->msg_cqe);
	con->msgs = NULL;
	con->msg_cqe = NULL;
	return -ENOMEM;
}

/*
 * Queues
 */

/*
 * cid 0 is created before the queue depth is known; one entry less than a
 * power of two is what rxe rounds up to.
 */
static void rtrs_clt_queue_sizes(const struct rtrs_clt_con *con, u32 *send, u32 *recv)
{
	u32 qd = con_to_path(con)->prm.queue_depth;

	if (!con->c.cid) {
		*send = 2 * SERVICE_CON_QUEUE_DEPTH - 1;
		*recv = SERVICE_CON_QUEUE_DEPTH - 1;
		/* see rtrs_clt_nr_recvs(); and one for the drain marker */
		static_assert(RTRS_CLT_ADMIN_MAX + RTRS_CLT_SQ_SLACK + RTRS_CLT_RECV_BATCH +
			      RTRS_CLT_INFO_RECVS + 1 <= SERVICE_CON_QUEUE_DEPTH - 1);
		return;
	}
	*send = RTRS_CLT_WR_PER_REQ * qd + RTRS_CLT_SQ_SLACK;
	/* one for the drain marker */
	*recv = rtrs_clt_nr_recvs(con) + 1;
}

static int rtrs_clt_create_send_cq(struct rtrs_clt_con *con, struct ib_device *dev, u32 nr)
{
	struct ib_cq_init_attr attr = {
		.cqe = nr,
		.comp_vector = con->cpu % dev->num_comp_vectors,
	};
	struct ib_cq *cq;

	irq_poll_init(&con->iop, SEND_POLL_BUDGET, rtrs_clt_send_cq_poll);
	cq = ib_create_cq(dev, rtrs_clt_send_cq_event, NULL, con, &attr);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	con->c.send_cq = cq;
	return 0;
}

static void rtrs_clt_destroy_send_cq(struct rtrs_clt_con *con)
{
	if (!con->c.send_cq)
		return;
	if (!test_bit(RTRS_CON_UNDRAINED, &con->flags))
		irq_poll_disable(&con->iop);
	ib_destroy_cq(con->c.send_cq);
	con->c.send_cq = NULL;
}

static bool rtrs_clt_queues_fit(const struct rtrs_clt_con *con, u32 nr)
{
	const struct ib_device *dev = con_to_path(con)->s.dev->ib_dev;

	if (nr <= dev->attrs.max_qp_wr && nr <= dev->attrs.max_cqe)
		return true;
	rtrs_err(con->c.path,
		 "%s: queues of %d (max_qp_wr) and %d (max_cqe) entries, %u are needed\n",
		 dev_name(&dev->dev), dev->attrs.max_qp_wr, dev->attrs.max_cqe, nr);
	return false;
}

static int rtrs_clt_create_queues(struct rtrs_clt_con *con)
{
	struct rtrs_clt_path *path = con_to_path(con);
	struct ib_device *dev = path->s.dev->ib_dev;
	enum ib_poll_context ctx = IB_POLL_SOFTIRQ;
	u32 send, recv;
	int err;

	rtrs_clt_queue_sizes(con, &send, &recv);
	if (!rtrs_clt_queues_fit(con, max(send, recv)))
		return -EOPNOTSUPP;
	con->max_sge = min_t(u32, con->c.cid ? RTRS_CLT_SEND_SGE : RTRS_CLT_SERVICE_SGE,
			     dev->attrs.max_send_sge);
	if (con->c.cid >= path->s.irq_con_num)
		ctx = IB_POLL_DIRECT;

	err = rtrs_clt_create_send_cq(con, dev, send);
	if (err)
		return err;
	err = rtrs_cq_qp_create(&path->s, &con->c, con->max_sge,
				con->cpu % dev->num_comp_vectors, recv, send, recv, ctx);
	if (err) {
		rtrs_clt_destroy_send_cq(con);
		return err;
	}
	/* what was asked for is in the CQ too, what was granted beyond is not */
	atomic_set(&con->c.sq_wr_avail, min(send, con->c.max_send_wr));
	atomic_set(&con->c.wr_cnt, 0);
	return 0;
}

/*
 * CM events. Each handler returns 0 or a negative errno with the reason set.
 */

/* Why an event is a failure; and whether that may be over in moments */
struct rtrs_clt_failure {
	const char *why;
	bool passes;
};

static int rtrs_clt_addr_resolved(struct rtrs_clt_con *con, struct rdma_cm_event *ev,
				  struct rtrs_clt_failure *f)
{
	struct rtrs_clt_path *path = con_to_path(con);
	struct rdma_cm_id *id = con->c.cm_id;
	int err;

	if (!con->c.cid) {
		if (rtrs_clt_path_is_twin(path, &id->route.addr.src_addr)) {
			f->why = "the session has another path of the same addresses";
			path->give_up = true;
			return -EEXIST;
		}
		f->why = "the HCA cannot be used";
		err = rtrs_clt_use_device(path, id);
		if (err)
			return err;
	} else if (id->device != path->s.dev->ib_dev) {
		f->why = "the connections of the path lead over different HCAs";
		return -EHOSTUNREACH;
	}
	f->why = "the queues cannot be created";
	err = rtrs_clt_create_queues(con);
	if (err)
		return err;
	set_bit(RTRS_CON_RESOLVED, &con->flags);
	f->why = "the route cannot be resolved";
	return rdma_resolve_route(id, rtrs_clt_ms_left(path));
}

static int rtrs_clt_route_resolved(struct rtrs_clt_con *con, struct rdma_cm_event *ev,
				   struct rtrs_clt_failure *f)
{
	struct rtrs_clt_path *path = con_to_path(con);
	struct rtrs_msg_conn_req msg;
	struct rdma_conn_param param = {
		.retry_count = con->c.cid ? IO_RETRIES : SERVICE_RETRIES,
		.rnr_retry_count = 7,
		.private_data = &msg,
		.private_data_len = sizeof(msg),
	};

	rtrs_conn_req_fill(&msg, con->c.cid, path->s.con_num, path->s.recon_cnt, &path->s.uuid,
			   &path->clt->paths_uuid, path->first_conn);
	f->why = "the connection request cannot be sent";
	return rdma_connect_locked(con->c.cm_id, &param);
}

/* cid 0 settles what the path is: sizes, mode, source address, HCA. */
static int rtrs_clt_cid0_accepted(struct rtrs_clt_con *con, const struct rtrs_conn_params *prm,
				  const char **why)
{
	struct rtrs_clt_path *path = con_to_path(con);
	struct rdma_cm_id *id = con->c.cm_id;
	int err;

	path->prm = *prm;
	err = rtrs_clt_sess_accept_limits(path);
	if (err) {
		*why = "the server's limits are not those that the session promised";
		path->give_up = true;
		return err;
	}
	spin_lock_irq(&path->lock);
	memcpy(&path->s.src_addr, &id->route.addr.src_addr,
	       rdma_addr_size((struct sockaddr *)&id->route.addr.src_addr));
	strscpy(path->hca_name, id->device->name, sizeof(path->hca_name));
	path->hca_port = id->port_num;
	spin_unlock_irq(&path->lock);
	path->first_conn = true;
	WRITE_ONCE(path->cid0_up, true);
	return 0;
}

static int rtrs_clt_established(struct rtrs_clt_con *con, struct rdma_cm_event *ev,
				struct rtrs_clt_failure *f)
{
	struct rtrs_clt_path *path = con_to_path(con);
	struct rtrs_conn_params prm;
	int err;

	err = rtrs_conn_rsp_parse(ev->param.conn.private_data, ev->param.conn.private_data_len,
				  &prm, &f->why);
	if (err)
		return err;
	if (!con->c.cid) {
		err = rtrs_clt_cid0_accepted(con, &prm, &f->why);
		if (err)
			return err;
	} else if (!rtrs_conn_params_equal(&prm, &path->prm)) {
		f->why = "the server contradicts what it said on connection 0";
		return -ECONNRESET;
	}
	set_bit(RTRS_CON_CONNECTED, &con->flags);
	/* pairs with the acquire in rtrs_clt_connect_cons() */
	atomic_inc_return_release(&path->cons_up);
	rtrs_clt_path_progress(path);
	return 0;
}

/*
 * What the errno of a reject means. It passes if what the server refuses us for
 * may be a leftover of our former life, or a session that the first path of an
 * open is about to make again.
 */
static const struct {
	int err;
	struct rtrs_clt_failure f;
} rtrs_clt_reject_reasons[] = {
	{ -ENXIO,
	  { "the server does not know the session: restarted, or another server", true } },
	{ -EEXIST,
	  { "the server has a path of these addresses, or one of another family", true } },
	{ -ECONNRESET,
	  { "the server refused: the old path is still there, or it speaks another version",
	    true } },
	{ -EBUSY, { "the server is busy", true } },
	{ -ENOMEM, { "the server has no memory" } },
};

static int rtrs_clt_rejected(struct rtrs_clt_con *con, struct rdma_cm_event *ev,
			     struct rtrs_clt_failure *f)
{
	const void *data;
	unsigned int i;
	u8 len;
	int err;

	data = rdma_consumer_reject_data(con->c.cm_id, ev, &len);
	if (!data) {
		f->why = rdma_reject_msg(con->c.cm_id, ev->status);
		return -ECONNRESET;
	}
	err = rtrs_conn_rej_errno(data, len);
	if (!err && !memchr_inv(data, 0, len)) {
		f->why = "the server's host refused: nothing listens, or it finds no way back";
		/* to a path that was up it may find one any moment */
		f->passes = con_to_path(con)->ever_up;
		return -ECONNRESET;
	}
	if (!err) {
		f->why = "refused by what is no RTRS server";
		return -ECONNRESET;
	}
	f->why = "the server refused the connection";
	for (i = 0; i < ARRAY_SIZE(rtrs_clt_reject_reasons); i++)
		if (rtrs_clt_reject_reasons[i].err == err)
			*f = rtrs_clt_reject_reasons[i].f;
	return err;
}

/* What an event does: either a step forward, or an error of this kind */
static const struct rtrs_clt_cm_reaction {
	int (*step)(struct rtrs_clt_con *con, struct rdma_cm_event *ev,
		    struct rtrs_clt_failure *f);
	int err;
	struct rtrs_clt_failure f;
} rtrs_clt_cm_events[] = {
	[RDMA_CM_EVENT_ADDR_RESOLVED] = { .step = rtrs_clt_addr_resolved },
	[RDMA_CM_EVENT_ROUTE_RESOLVED] = { .step = rtrs_clt_route_resolved },
	[RDMA_CM_EVENT_ESTABLISHED] = { .step = rtrs_clt_established },
	[RDMA_CM_EVENT_REJECTED] = { .step = rtrs_clt_rejected },
	[RDMA_CM_EVENT_ADDR_ERROR] = { .err = -EHOSTUNREACH, .f = { "no such address", true } },
	[RDMA_CM_EVENT_ROUTE_ERROR] = { .err = -EHOSTUNREACH, .f = { "no route" } },
	[RDMA_CM_EVENT_CONNECT_ERROR] = { .err = -ECONNRESET, .f = { "the connection failed" } },
	[RDMA_CM_EVENT_UNREACHABLE] = { .err = -ECONNRESET, .f = { "the server is unreachable" } },
	/* in the info exchange it may mean that the session's name is still taken */
	[RDMA_CM_EVENT_DISCONNECTED] = { .err = -ECONNRESET,
					 .f = { "the server disconnected", true } },
	[RDMA_CM_EVENT_ADDR_CHANGE] = { .err = -ECONNRESET, .f = { "the address has changed" } },
	[RDMA_CM_EVENT_TIMEWAIT_EXIT] = { .err = -ECONNRESET, .f = { "the connection is gone" } },
};

static void rtrs_clt_cm_event(struct rtrs_clt_con *con, struct rdma_cm_event *ev)
{
	struct rtrs_clt_path *path = con_to_path(con);
	struct rtrs_clt_failure f = { "unknown CM event" };
	const struct rtrs_clt_cm_reaction *reaction;
	int err = -ECONNRESET;

	if (ev->event < ARRAY_SIZE(rtrs_clt_cm_events)) {
		reaction = &rtrs_clt_cm_events[ev->event];
		if (reaction->step) {
			err = reaction->step(con, ev, &f);
		} else if (reaction->err) {
			err = reaction->err;
			f = reaction->f;
		}
	}
	if (err)
		rtrs_clt_path_fail(path, err, f.why, f.passes);
}

/*
 * Always 0: ids are destroyed by the worker, never by the CM. An id that was
 * kept from an earlier attempt has nothing to say but that its HCA goes.
 */
static int rtrs_clt_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	struct rtrs_clt_con *con = id->context;
	unsigned int noio = memalloc_noio_save();

	trace_rtrs_clt_cm_event(con_to_path(con), con->c.cid, ev->event, ev->status);
	mutex_lock(&con->lock);
	if (ev->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		rtrs_clt_path_close_async(con_to_path(con), -ENODEV, "the HCA was removed");
	else if (id == con->c.cm_id && !test_bit(RTRS_CON_DEAD, &con->flags))
		rtrs_clt_cm_event(con, ev);
	mutex_unlock(&con->lock);
	memalloc_noio_restore(noio);
	return 0;
}

/*
 * Coming up, in the worker
 */

static void rtrs_clt_clear_port(struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET)
		((struct sockaddr_in *)addr)->sin_port = 0;
	else if (addr->ss_family == AF_INET6)
		((struct sockaddr_in6 *)addr)->sin6_port = 0;
}

static int rtrs_clt_con_start(struct rtrs_clt_con *con)
{
	struct rtrs_clt_path *path = con_to_path(con);
	struct sockaddr *dst = (struct sockaddr *)&path->s.dst_addr;
	struct sockaddr_storage src = path->s.src_addr;
	struct rtrs_clt_failure f = { "a CM id cannot be had" };
	struct rdma_cm_id *id;
	int err;

	con->flags = 0;
	id = rdma_create_id(&init_net, rtrs_clt_cm_handler, con,
			    dst->sa_family == AF_IB ? RDMA_PS_IB : RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id)) {
		err = PTR_ERR(id);
		goto err;
	}
	/* under the lock: events of the id before may still come */
	mutex_lock(&con->lock);
	con->c.cm_id = id;
	mutex_unlock(&con->lock);
	set_bit(RTRS_CON_ALLOCATED, &con->flags);
	/* cid 0 is given a port, which the other connections of the path share */
	if (!con->c.cid)
		rtrs_clt_clear_port(&src);
	rdma_set_ack_timeout(id, con->c.cid ? IO_ACK_TIMEOUT : SERVICE_ACK_TIMEOUT);
	f.why = "the source address cannot be shared";
	err = rdma_set_reuseaddr(id, 1);
	if (err)
		goto err;
	f.why = "the address cannot be resolved";
	/* of a path that was up the route may come back any moment */
	f.passes = path->ever_up;
	err = rdma_resolve_addr(id, src.ss_family ? (struct sockaddr *)&src : NULL, dst,
				min(rtrs_clt_ms_left(path), ADDR_TIMEOUT_MS));
	if (!err)
		return 0;
err:
	rtrs_clt_path_fail(path, err, f.why, f.passes);
	return err;
}

/**
 * rtrs_clt_connect_cons() - bring up all connections of a path, and its slots
 * @path: path in its worker, CONNECTING
 *
 * First cid 0, then all others, a few of them at a time, under path->deadline.
 *
 * Context: process, sleeps.
 * Return: 0 or negative errno, which is path->last_err then.
 */
int rtrs_clt_connect_cons(struct rtrs_clt_path *path)
{
	int up, next = 0, err;

	atomic_set(&path->cons_up, 0);
	WRITE_ONCE(path->cid0_up, false);
	for (up = 0; up < path->s.con_num; up = atomic_read_acquire(&path->cons_up)) {
		int parallel = up ? RTRS_CLT_CONNECT_PARALLEL : 1;

		while (next < path->s.con_num && next - up < parallel) {
			err = rtrs_clt_con_start(to_clt_con(path->s.con[next]));
			if (err)
				return err;
			next++;
		}
		/* only cid 0 is up, which is seen once: while the others are on their way */
		err = up == 1 ? rtrs_clt_alloc_reqs(path) : 0;
		if (err) {
			rtrs_clt_path_error(path, err, "no memory for request slots");
			return err;
		}
		err = rtrs_clt_wait(path, rtrs_clt_more_cons_up, up);
		if (err)
			return err;
	}
	return 0;
}

/*
 * Info exchange
 */

static void rtrs_clt_info_rsp_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_iu *iu = container_of(wc->wr_cqe, struct rtrs_iu, cqe);
	struct rtrs_con *c = wc->qp->qp_context;
	struct rtrs_clt_path *path = to_clt_path(c->path);

	if (rtrs_clt_recv_failed(to_clt_con(c), wc))
		return;
	ib_dma_sync_single_for_cpu(path->s.dev->ib_dev, iu->dma_addr, iu->size, DMA_FROM_DEVICE);
	if (!path->info_rsp && wc->opcode == IB_WC_RECV &&
	    !(wc->wc_flags & (IB_WC_WITH_IMM | IB_WC_WITH_INVALIDATE))) {
		rtrs_clt_stats_completion(to_clt_con(c));
		path->info_rsp_len = wc->byte_len;
		/* pairs with the acquire in rtrs_clt_has_info_rsp() */
		smp_store_release(&path->info_rsp, iu);
		rtrs_clt_path_progress(path);
		return;
	}
	/*
	 * Something else came first, a heartbeat if the server is slow. Once
	 * the response is there this is a receive like others.
	 */
	rcu_read_lock();
	rtrs_clt_recv_wc(to_clt_con(c), wc, iu->buf);
	if (!path->info_rsp && rtrs_clt_path_state(path) == RTRS_CLT_CONNECTING) {
		ib_dma_sync_single_for_device(path->s.dev->ib_dev, iu->dma_addr, iu->size,
					      DMA_FROM_DEVICE);
		rtrs_iu_post_recv(c, iu);
	}
	rcu_read_unlock();
}

static void rtrs_clt_info_req_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_con *c = wc->qp->qp_context;

	if (rtrs_clt_wc_failed(to_clt_con(c), wc, "the info request could not be sent"))
		return;
	atomic_inc(&c->sq_wr_avail);
	rtrs_clt_stats_completion(to_clt_con(c));
}

static int rtrs_clt_info_alloc(struct rtrs_clt_path *path)
{
	struct ib_device *dev = path->s.dev->ib_dev;
	size_t len = struct_size_t(struct rtrs_msg_info_rsp, desc, path->prm.queue_depth);

	path->info_rsp = NULL;
	path->nr_info_ius = min_t(u32, 2 + rtrs_clt_ms_left(path) / RTRS_HB_INTERVAL_MS,
				  RTRS_CLT_INFO_RECVS);
	path->info_ius = rtrs_iu_alloc(path->nr_info_ius, len, GFP_KERNEL, dev, DMA_FROM_DEVICE,
				       rtrs_clt_info_rsp_done);
	path->info_req = rtrs_iu_alloc(1, sizeof(struct rtrs_msg_info_req), GFP_KERNEL, dev,
				       DMA_TO_DEVICE, rtrs_clt_info_req_done);
	/* what is there is freed with the queues of cid 0 */
	return path->info_ius && path->info_req ? 0 : -ENOMEM;
}

static void rtrs_clt_info_free(struct rtrs_clt_path *path)
{
	if (!path->s.dev)
		return;
	rtrs_iu_free(path->info_ius, path->s.dev->ib_dev, path->nr_info_ius);
	rtrs_iu_free(path->info_req, path->s.dev->ib_dev, 1);
	path->info_ius = NULL;
	path->info_req = NULL;
	path->info_rsp = NULL;
}

/* The info response takes the first receive on cid 0, so its buffers lead. */
static int rtrs_clt_post_all_recvs(struct rtrs_clt_path *path)
{
	unsigned int i;
	int err;

	for (i = 0; i < path->nr_info_ius; i++) {
		err = rtrs_iu_post_recv(path->s.con[0], &path->info_ius[i]);
		if (err)
			return err;
	}
	for (i = 0; i < path->s.con_num; i++) {
		struct rtrs_clt_con *con = to_clt_con(path->s.con[i]);

		if (path->prm.new_rkey)
			err = rtrs_clt_con_alloc_msgs(con);
		else
			rtrs_clt_con_free_msgs(con);
		err = err ?: rtrs_clt_post_recvs(con);
		if (err)
			return err;
	}
	return 0;
}

static int rtrs_clt_send_info_req(struct rtrs_clt_path *path)
{
	struct rtrs_msg_info_req *msg = path->info_req->buf;
	struct rtrs_iu *iu = path->info_req;

	memset(msg, 0, sizeof(*msg));
	msg->type = cpu_to_le16(RTRS_MSG_INFO_REQ);
	strscpy(msg->pathname, path->clt->sessname, sizeof(msg->pathname));
	ib_dma_sync_single_for_device(path->s.dev->ib_dev, iu->dma_addr, iu->size, DMA_TO_DEVICE);
	atomic_dec(&path->s.con[0]->sq_wr_avail);
	return rtrs_iu_post_send(path->s.con[0], iu, sizeof(*msg), NULL);
}

/**
 * rtrs_clt_exchange_info() - tell the server our name and learn its chunks
 * @path: path in its worker, all connections up, slots there
 *
 * All receives are posted before, so the path may go CONNECTED at once.
 *
 * Context: process, sleeps.
 * Return: 0 or negative errno; the path is not CONNECTING any more then.
 */
int rtrs_clt_exchange_info(struct rtrs_clt_path *path)
{
	const char *why = "the info exchange cannot be prepared";
	int err;

	err = rtrs_clt_info_alloc(path);
	err = err ?: rtrs_clt_post_all_recvs(path);
	err = err ?: rtrs_clt_send_info_req(path);
	if (err)
		goto err;
	err = rtrs_clt_wait(path, rtrs_clt_has_info_rsp, 0);
	if (err)
		return err;
	err = rtrs_info_rsp_parse(path->info_rsp->buf, path->info_rsp_len, &path->prm, path->rbufs,
				  &why);
	if (!err)
		return 0;
err:
	rtrs_clt_path_error(path, err, why);
	return err;
}

/*
 * Going down, in the worker
 */

/*
 * Shall the peer be told later? If the link has failed the message would often
 * be lost, and the peer refuse us until its own heartbeat gives up. Worse, rxe's
 * queue pair for such messages does not survive one that finds no route. So a
 * path that shall come back keeps quiet, and rtrs_clt_con_tell_peer() tells the
 * peer when it is heard again. If a user wants to reconnect the link is good as
 * far as we know; connection 0 keeps the last word in case it is not.
 */
static bool rtrs_clt_con_is_quiet(const struct rtrs_clt_con *con)
{
	const struct rtrs_clt_path *path = con_to_path(con);

	return test_bit(RTRS_CON_CONNECTED, &con->flags) &&
	       rtrs_clt_path_state(path) == RTRS_CLT_RECONNECTING &&
	       (READ_ONCE(path->link_failed) || !con->c.cid);
}

/**
 * rtrs_clt_con_stop() - first step of teardown: no CM event counts any more
 * @con: connection, in any state
 *
 * Takes the queue pair to the error state and tells the peer, whose answer
 * nobody waits for; or tells it later.
 *
 * Context: process, sleeps.
 */
void rtrs_clt_con_stop(struct rtrs_clt_con *con)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	mutex_lock(&con->lock);
	set_bit(RTRS_CON_DEAD, &con->flags);
	mutex_unlock(&con->lock);
	if (con->c.qp)
		ib_modify_qp(con->c.qp, &attr, IB_QP_STATE);
	con->quiet = rtrs_clt_con_is_quiet(con);
	if (test_bit(RTRS_CON_CONNECTED, &con->flags) && !con->quiet)
		rdma_disconnect(con->c.cm_id);
}

static void rtrs_clt_drain_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_clt_con *con = container_of(wc->wr_cqe, struct rtrs_clt_con, drain_cqe);

	complete(&con->drained);
}

/* Sends complete in order, so the marker comes when all others have come. */
static void rtrs_clt_drain_sends(struct rtrs_clt_con *con)
{
	struct ib_rdma_wr wr = {
		.wr.wr_cqe = &con->drain_cqe,
		.wr.opcode = IB_WR_RDMA_WRITE,
		.wr.send_flags = IB_SEND_SIGNALED,
	};
	int err;

	reinit_completion(&con->drained);
	con->drain_cqe.done = rtrs_clt_drain_done;
	/* keeps the CQ armed until the marker is seen */
	atomic_inc(&con->late);
	err = ib_post_send(con->c.qp, &wr.wr, NULL);
	if (!err) {
		rtrs_clt_arm_sends(con);
		if (!wait_for_completion_timeout(&con->drained,
						 msecs_to_jiffies(DRAIN_TIMEOUT_MS)))
			err = -ETIMEDOUT;
	}
	atomic_dec(&con->late);
	/* waits for whoever still handles completions that came before */
	irq_poll_disable(&con->iop);
	if (!err) {
		irq_poll_enable(&con->iop);
		return;
	}
	/* and nobody looks at those that may come yet */
	set_bit(RTRS_CON_UNDRAINED, &con->flags);
	con_to_path(con)->undrained = true;
	rtrs_err(con->c.path, "HCA does not drain the queue of connection %u: %pe\n",
		 con->c.cid, ERR_PTR(err));
}

/**
 * rtrs_clt_con_drain() - wait until the HCA has given back everything posted
 * @con: stopped connection; a grace period has passed since the path left
 *	 CONNECTED, so nobody posts behind the markers
 *
 * Receives first: their handler may have posted invalidations.
 *
 * Context: process, sleeps for what the local HCA needs.
 */
void rtrs_clt_con_drain(struct rtrs_clt_con *con)
{
	/*
	 * A polled connection carries no requests, and nobody polls it any more,
	 * so nothing of it is handled until it is destroyed.
	 */
	if (!con->c.qp || con->c.cid >= con->c.path->irq_con_num)
		return;
	ib_drain_rq(con->c.qp);
	rtrs_clt_drain_sends(con);
}

/**
 * rtrs_clt_con_destroy_queues() - free queue pair and completion queues
 * @con: connection that was to be drained; a grace period has passed since
 *
 * May be called again without effect. Context: process, sleeps.
 */
void rtrs_clt_con_destroy_queues(struct rtrs_clt_con *con)
{
	rtrs_cq_qp_destroy(&con->c);
	rtrs_clt_destroy_send_cq(con);
	if (!con->c.cid)
		rtrs_clt_info_free(con_to_path(con));
}

/**
 * rtrs_clt_con_tell_peer() - disconnect what is left of a connection's former life
 * @con: connection of a path in its worker
 *
 * Once the peer answers again, even if it refuses, it hears us.
 *
 * Context: process, sleeps until a running CM handler has ended.
 */
void rtrs_clt_con_tell_peer(struct rtrs_clt_con *con)
{
	if (!con->old_id)
		return;
	rdma_disconnect(con->old_id);
	rdma_destroy_id(con->old_id);
	con->old_id = NULL;
}

/**
 * rtrs_clt_con_destroy_id() - free the CM id, which has held the HCA until now
 * @con: connection without queues
 *
 * It is kept if the peer has not been told yet.
 *
 * Context: process, sleeps until a running CM handler has ended.
 */
void rtrs_clt_con_destroy_id(struct rtrs_clt_con *con)
{
	struct rdma_cm_id *id = con->c.cm_id;

	if (!id)
		return;
	mutex_lock(&con->lock);
	con->c.cm_id = NULL;
	mutex_unlock(&con->lock);
	if (con->quiet) {
		rtrs_clt_con_tell_peer(con);
		con->old_id = id;
	} else {
		rdma_destroy_id(id);
	}
	con->flags = 0;
}
