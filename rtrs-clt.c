// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RDMA Transport client: the session as its caller sees it
 *
 * In reading order: permits, path states, choice of path, requests and
 * failover, bringing a path up, open and close, request and query, module.
 *
 * Only the fourteen functions whose man pages we promise carry kernel-doc here.
 */
#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME " L" __stringify(__LINE__) ": " fmt

#include <linux/blk_types.h>
#include <linux/cache.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/rculist.h>

#include "rtrs-clt.h"
#include "rtrs-clt-trace.h"
#include "rtrs-log.h"

/* Reported when close has waited so long for permits */
#define PERMITS_WARN_MS 30000

/* How long what was sent on a path that is down may be on its way to the server */
#define LATE_PACKETS_MS 20

MODULE_DESCRIPTION("RDMA Transport Client");
MODULE_LICENSE("GPL");

struct workqueue_struct *rtrs_clt_wq;
struct workqueue_struct *rtrs_clt_ev_wq;

/* sessions not released yet; the release may come after the last close */
static atomic_t rtrs_clt_live;

/* protects rtrs_clt_sess_list, and keeps its members while an HCA goes */
DEFINE_MUTEX(rtrs_clt_sess_mutex);
LIST_HEAD(rtrs_clt_sess_list);

static bool register_always = true;
module_param(register_always, bool, 0444);
MODULE_PARM_DESC(register_always,
		 "Register the memory of one-segment reads too; N lets the server reach all memory, for trusted fabrics only (default Y)");

/*
 * Permits
 */

static struct rtrs_permit *__rtrs_clt_get_permit(struct rtrs_clt_sess *clt)
{
	struct rtrs_permit *permit;
	int id;

	id = sbitmap_get(&clt->permits_map);
	if (id < 0)
		return NULL;
	permit = rtrs_clt_nth_permit(clt, id);
	/* I1 */
	WARN_ON_ONCE(permit->held);
	permit->held = true;
	return permit;
}

/**
 * rtrs_clt_get_permit() - take the right to have one request under way
 * @clt: session
 * @con_type: %RTRS_IO_CON for the connection that belongs to this CPU,
 *	      %RTRS_ADMIN_CON for the service connection
 * @can_wait: %RTRS_PERMIT_WAIT to wait for a permit if all are given out,
 *	      %RTRS_PERMIT_NOWAIT not to
 *
 * A session has as many permits as its server has chunks. Permits are there
 * whether or not a path is up. The permit remembers the CPU of the caller.
 *
 * Context: With %RTRS_PERMIT_NOWAIT any. With %RTRS_PERMIT_WAIT process
 * context; sleeps, not interruptible, until a permit is put back, however
 * long that takes.
 * Return: the permit; NULL if there is none and @can_wait forbids to wait.
 */
struct rtrs_permit *rtrs_clt_get_permit(struct rtrs_clt_sess *clt,
					enum rtrs_clt_con_type con_type,
					enum wait_type can_wait)
{
	struct rtrs_permit *permit;

	permit = __rtrs_clt_get_permit(clt);
	if (!permit) {
		if (can_wait == RTRS_PERMIT_NOWAIT)
			return NULL;
		io_wait_event(clt->permits_wait, (permit = __rtrs_clt_get_permit(clt)));
	}
	permit->con_type = con_type;
	permit->cpu_id = raw_smp_processor_id();
	return permit;
}
EXPORT_SYMBOL(rtrs_clt_get_permit);

/**
 * rtrs_clt_put_permit() - give a permit back
 * @clt: session
 * @permit: permit from rtrs_clt_get_permit() without a request under way
 *
 * Wakes who waits for a permit. May be called from within the confirmation of
 * the request that used the permit. To put a permit twice is a bug of the
 * caller, and is warned of.
 *
 * Context: Any. Does not sleep.
 */
void rtrs_clt_put_permit(struct rtrs_clt_sess *clt, struct rtrs_permit *permit)
{
	if (WARN_ON_ONCE(!permit->held))
		return;
	/* rtrs_clt_close() waits for this section after it saw the last bit go */
	rcu_read_lock();
	permit->held = false;
	/* we are done with the permit before somebody else gets it */
	smp_mb__before_atomic();
	sbitmap_put(&clt->permits_map, permit->mem_id);
	/* full barrier; pairs with the one of prepare_to_wait() in the waiter */
	if (wq_has_sleeper(&clt->permits_wait))
		wake_up_all(&clt->permits_wait);
	rcu_read_unlock();
}
EXPORT_SYMBOL(rtrs_clt_put_permit);

/**
 * rtrs_permit_to_clt_con() - find the connection that a permit means
 * @clt_path: path
 * @permit: permit
 *
 * Requests of an %RTRS_IO_CON permit go to the connection of the CPU that took
 * the permit, those of an %RTRS_ADMIN_CON permit to connection 0. Connections
 * whose completions are polled carry no requests.
 *
 * Context: Any.
 * Return: the connection.
 */
struct rtrs_clt_con *rtrs_permit_to_clt_con(struct rtrs_clt_path *clt_path,
					    const struct rtrs_permit *permit)
{
	unsigned int cid = 0;

	if (likely(permit->con_type == RTRS_IO_CON))
		cid = permit->cpu_id % (clt_path->s.irq_con_num - 1) + 1;
	return to_clt_con(clt_path->s.con[cid]);
}

static int rtrs_clt_alloc_permits(struct rtrs_clt_sess *clt)
{
	size_t stride = rtrs_clt_permit_stride(clt);
	unsigned int i;
	int err;

	clt->permits = kvcalloc(clt->queue_depth, stride, GFP_KERNEL);
	if (!clt->permits)
		return -ENOMEM;
	err = sbitmap_init_node(&clt->permits_map, clt->queue_depth, -1, GFP_KERNEL,
				NUMA_NO_NODE, false, true);
	if (err) {
		kvfree(clt->permits);
		clt->permits = NULL;
		return err;
	}
	for (i = 0; i < clt->queue_depth; i++)
		rtrs_clt_nth_permit(clt, i)->mem_id = i;
	return 0;
}

static void rtrs_clt_free_permits(struct rtrs_clt_sess *clt)
{
	if (!clt->permits)
		return;
	sbitmap_free(&clt->permits_map);
	kvfree(clt->permits);
}

/* Back are the permits, and done are those who put them. */
static void rtrs_clt_wait_permits(struct rtrs_clt_sess *clt)
{
	unsigned long limit = msecs_to_jiffies(PERMITS_WARN_MS);

	if (!clt->permits)
		return;
	while (!wait_event_timeout(clt->permits_wait, !sbitmap_any_bit_set(&clt->permits_map),
				   limit))
		rtrs_wrn(clt, "close still waits for %u permits\n",
			 sbitmap_weight(&clt->permits_map));
	synchronize_rcu();
}

/*
 * Path states
 */

#define TO(state) BIT(RTRS_CLT_##state)

static const u8 rtrs_clt_transitions[RTRS_CLT_STATE_NR] = {
	[RTRS_CLT_CONNECTING] = TO(CONNECTING_ERR) | TO(CONNECTED) | TO(CLOSING),
	[RTRS_CLT_CONNECTING_ERR] = TO(RECONNECTING) | TO(CLOSING),
	[RTRS_CLT_RECONNECTING] = TO(CONNECTING) | TO(CLOSING),
	[RTRS_CLT_CONNECTED] = TO(RECONNECTING) | TO(CLOSING),
	[RTRS_CLT_CLOSING] = TO(CLOSED),
	[RTRS_CLT_CLOSED] = TO(RECONNECTING) | TO(DEAD),
	[RTRS_CLT_DEAD] = 0,
};

/**
 * rtrs_clt_change_state() - take a path from one state to another
 * @clt_path: path
 * @new_state: the state wanted
 *
 * The only writer of the state. Wakes who waits for a change.
 *
 * Context: Any; the caller holds the path's lock.
 * Return: true if the path has changed to @new_state, false if there is no way
 * to it from the state the path is in, which is left alone then.
 */
bool rtrs_clt_change_state(struct rtrs_clt_path *clt_path, enum rtrs_clt_state new_state)
{
	enum rtrs_clt_state old_state = clt_path->state;

	lockdep_assert_held(&clt_path->lock);
	if (!(rtrs_clt_transitions[old_state] & BIT(new_state)))
		return false;
	/* pairs with the acquire in rtrs_clt_path_is_connected() */
	smp_store_release(&clt_path->state, new_state);
	clt_path->since = ktime_get();
	trace_rtrs_clt_state_change(clt_path, old_state, new_state);
	wake_up_all(&clt_path->wait);
	return true;
}

/*
 * Choice of path
 */

static void path_it_init(struct path_it *it, struct rtrs_clt_sess *clt)
{
	it->clt = clt;
	it->set = rcu_dereference(clt->paths);
	it->next_path = rtrs_mp_policies[READ_ONCE(clt->policy)].next_path;
	it->i = 0;
	bitmap_zero(it->tried, MAX_PATHS_NUM);
}

/**
 * get_next_path_rr() - choose the path after the one used last
 * @it: iteration over the paths of a session
 *
 * Each CPU goes round on its own, in the order in which the paths were added.
 * Paths that are not connected are passed over, but count as tried.
 *
 * Context: Any, in the RCU read section in which the iteration began.
 * Return: a connected path; NULL if each path has had its turn.
 */
static struct rtrs_clt_path *get_next_path_rr(struct path_it *it)
{
	unsigned int nr = it->set->nr;
	int *last = raw_cpu_ptr(it->clt->rr_pos);

	/* others on this CPU move it too: look once, then go round from there */
	if (!it->i)
		it->pos = READ_ONCE(*last);
	while (it->i < nr) {
		it->pos = (it->pos + 1) % nr;
		it->i++;
		WRITE_ONCE(*last, it->pos);
		if (rtrs_clt_path_is_connected(it->set->path[it->pos]))
			return it->set->path[it->pos];
	}
	return NULL;
}

/*
 * The path with the smallest value of those connected and not tried yet; of
 * equals the one that was added first.
 */
static struct rtrs_clt_path *path_it_min(struct path_it *it,
					 u64 (*value)(const struct rtrs_clt_path *path))
{
	unsigned int i, best = MAX_PATHS_NUM;
	u64 val, min = U64_MAX;

	for (i = 0; i < it->set->nr; i++) {
		if (test_bit(i, it->tried) || !rtrs_clt_path_is_connected(it->set->path[i]))
			continue;
		/* a session of one path needs no comparison */
		val = it->set->nr > 1 ? value(it->set->path[i]) : 0;
		if (best == MAX_PATHS_NUM || val < min) {
			best = i;
			min = val;
		}
	}
	if (best == MAX_PATHS_NUM)
		return NULL;
	__set_bit(best, it->tried);
	it->i++;
	return it->set->path[best];
}

static u64 path_inflight(const struct rtrs_clt_path *path)
{
	return rtrs_clt_stats_inflight(path);
}

/* What was never measured comes after what was. */
static u64 path_latency(const struct rtrs_clt_path *path)
{
	return READ_ONCE(path->s.hb_cur_latency) ?: S64_MAX;
}

/**
 * get_next_path_min_inflight() - choose the path with the fewest requests
 * @it: iteration over the paths of a session
 *
 * Counted are requests that were issued while this policy was in force.
 *
 * Context: Any, in the RCU read section in which the iteration began.
 * Return: of the connected paths not tried yet the one with the fewest requests
 * in flight, of equals the one added first; NULL if there is none.
 */
static struct rtrs_clt_path *get_next_path_min_inflight(struct path_it *it)
{
	return path_it_min(it, path_inflight);
}

/**
 * get_next_path_min_latency() - choose the path with the shortest round trip
 * @it: iteration over the paths of a session
 *
 * The time is that of the last heartbeat. A path that has none yet comes after
 * those that have.
 *
 * Context: Any, in the RCU read section in which the iteration began.
 * Return: of the connected paths not tried yet the one with the smallest
 * latency, of equals the one added first; NULL if there is none.
 */
static struct rtrs_clt_path *get_next_path_min_latency(struct path_it *it)
{
	return path_it_min(it, path_latency);
}

const struct rtrs_mp_policy_row rtrs_mp_policies[MP_POLICY_NR] = {
	[MP_POLICY_RR] = { "round-robin", "RR", get_next_path_rr },
	[MP_POLICY_MIN_INFLIGHT] = { "min-inflight", "MI", get_next_path_min_inflight },
	[MP_POLICY_MIN_LATENCY] = { "min-latency", "ML", get_next_path_min_latency },
};

/*
 * Requests and failover
 */

/* What a caller of rtrs_clt_request() wants, whichever path carries it */
struct rtrs_clt_want {
	struct rtrs_permit *permit;
	void *priv;
	void (*conf)(void *priv, int errno);
	const struct kvec *vec;
	size_t nr;
	size_t usr_len;
	struct scatterlist *sg;
	unsigned int sg_cnt;
	size_t data_len;
	enum dma_data_direction dir;
};

/**
 * rtrs_clt_init_req() - prepare the slot that a permit has on a path
 * @path: connected path
 * @want: what the caller wants; fits what the server of the path offers
 *
 * Copies the user message, so the caller's vector is free afterwards.
 *
 * Context: Any, in an RCU read section.
 * Return: the slot, in state PREPARING; NULL if it serves a request already,
 * which is a bug and warned of.
 */
static struct rtrs_clt_io_req *rtrs_clt_init_req(struct rtrs_clt_path *path,
						 const struct rtrs_clt_want *want)
{
	struct rtrs_clt_io_req *req = &path->reqs[want->permit->mem_id];
	void *msg = req->iu->buf;
	size_t i;

	/* I1 */
	if (WARN_ON_ONCE(atomic_cmpxchg(&req->state, RTRS_REQ_FREE, RTRS_REQ_PREPARING) !=
			 RTRS_REQ_FREE))
		return NULL;
	req->con = rtrs_permit_to_clt_con(path, want->permit);
	req->permit = want->permit;
	req->priv = want->priv;
	req->conf = want->conf;
	req->sg = want->sg;
	req->sg_cnt = want->sg_cnt;
	req->data_len = want->data_len;
	req->usr_len = want->usr_len;
	req->dir = want->dir;
	req->start = trace_rtrs_clt_req_done_enabled() ? ktime_get() : 0;
	for (i = 0; i < want->nr; i++) {
		memcpy(msg, want->vec[i].iov_base, want->vec[i].iov_len);
		msg += want->vec[i].iov_len;
	}
	return req;
}

static int rtrs_clt_try_path(struct rtrs_clt_path *path, const struct rtrs_clt_want *want)
{
	struct rtrs_clt_io_req *req;
	int err;

	err = rtrs_req_check_size(&path->prm, want->dir == DMA_FROM_DEVICE, want->sg_cnt,
				  want->usr_len, want->data_len);
	if (err)
		return err;
	if (want->sg_cnt > path->max_pages_per_mr)
		return -EMSGSIZE;
	req = rtrs_clt_init_req(path, want);
	if (!req)
		return -EBUSY;
	err = rtrs_clt_io_submit(req);
	if (err)
		atomic_set_release(&req->state, RTRS_REQ_FREE);
	return err;
}

/* The first path that takes the request, NULL and *err of the last one tried */
static struct rtrs_clt_path *rtrs_clt_issue(struct rtrs_clt_sess *clt,
					    const struct rtrs_clt_want *want, int *err)
{
	struct path_it it __uninitialized;
	struct rtrs_clt_path *path;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "the path must not go");
	*err = -ECONNABORTED;
	path_it_init(&it, clt);
	while ((path = it.next_path(&it))) {
		*err = rtrs_clt_try_path(path, want);
		if (!*err)
			break;
	}
	return path;
}

/**
 * rtrs_clt_failover_req() - issue a request again that its path has lost
 * @clt: session
 * @fail_req: slot on the path that is torn down; nothing of it is mapped, its
 *	      header buffer still holds the user message
 *
 * Context: Process, in the worker of the path that is torn down.
 * Return: 0 if another path took the request, which will confirm it; the error
 * for the caller otherwise: -ECONNABORTED if no path is connected, or what the
 * last path tried has said.
 */
static int rtrs_clt_failover_req(struct rtrs_clt_sess *clt, struct rtrs_clt_io_req *fail_req)
{
	struct kvec vec = { .iov_base = fail_req->iu->buf, .iov_len = fail_req->usr_len };
	struct rtrs_clt_want want = {
		.permit = fail_req->permit,
		.priv = fail_req->priv,
		.conf = fail_req->conf,
		.vec = &vec,
		.nr = 1,
		.usr_len = fail_req->usr_len,
		.sg = fail_req->sg,
		.sg_cnt = fail_req->sg_cnt,
		.data_len = fail_req->data_len,
		.dir = fail_req->dir,
	};
	u32 mem_id = fail_req->permit->mem_id;
	struct rtrs_clt_path *path;
	int err;

	rcu_read_lock();
	path = rtrs_clt_issue(clt, &want, &err);
	if (path)
		rtrs_clt_stats_failover(path);
	trace_rtrs_clt_failover(con_to_path(fail_req->con), path, mem_id, err);
	rcu_read_unlock();
	return err;
}

/* The key may still be good at the HCA, so the MR goes before the pages do. */
static void rtrs_clt_drop_mr(struct rtrs_clt_io_req *req)
{
	if (!(req->flags & RTRS_REQ_REGISTERED))
		return;
	ib_dereg_mr(req->mr);
	req->mr = NULL;
	req->flags &= ~RTRS_REQ_REGISTERED;
}

/* Answered: confirmed with the answer. Otherwise it goes to another path, or fails. */
static void rtrs_clt_end_req(struct rtrs_clt_path *path, struct rtrs_clt_io_req *req,
			     bool answered)
{
	int err = req->errno;

	rtrs_clt_drop_mr(req);
	rtrs_clt_req_release(req);
	if (!answered) {
		err = rtrs_clt_failover_req(path->clt, req);
		if (!err) {
			atomic_set_release(&req->state, RTRS_REQ_FREE);
			return;
		}
	}
	atomic_set(&req->holds, 0);
	atomic_set(&req->state, RTRS_REQ_ANSWERED);
	rtrs_clt_req_finish(req, err);
}

/* Ends those that are answered, or the rest. Returns whether there is a rest. */
static bool rtrs_clt_end_reqs(struct rtrs_clt_path *path, bool answered)
{
	bool others = false;
	unsigned int i;

	for (i = 0; path->reqs && i < path->nr_slots; i++) {
		struct rtrs_clt_io_req *req = &path->reqs[i];
		unsigned int state = atomic_read(&req->state) & RTRS_REQ_STATE_MASK;

		if (state == RTRS_REQ_FREE)
			continue;
		if (answered && state == RTRS_REQ_POSTED)
			others = true;
		else
			rtrs_clt_end_req(path, req, answered);
	}
	return others;
}

/*
 * Ends all requests of a path whose queues are drained. One that goes to another
 * path keeps its chunk, and what was sent on this path may still be on its way to
 * it: if it lands on what came over the other path meanwhile, the server is misled,
 * and writes with a key that is none there, or to where it should not. There is no
 * message that would prevent that, so the network gets the time to deliver.
 */
void rtrs_clt_path_fail_reqs(struct rtrs_clt_path *path)
{
	if (!rtrs_clt_end_reqs(path, true))
		return;
	msleep(LATE_PACKETS_MS);
	rtrs_clt_end_reqs(path, false);
}

/*
 * Bringing a path up
 */

/* I8 */
int rtrs_clt_sess_accept_limits(struct rtrs_clt_path *path)
{
	const struct rtrs_conn_params *prm = &path->prm;
	struct rtrs_clt_sess *clt = path->clt;
	int err = 0;

	spin_lock(&clt->lock);
	if (!clt->queue_depth)
		clt->queue_depth = prm->queue_depth;
	if (!clt->promised) {
		clt->max_io_size = min(clt->max_io_size, prm->max_io_size);
		clt->max_hdr_size = min(clt->max_hdr_size, prm->max_hdr_size);
		clt->max_segments = min(clt->max_segments, path->max_pages_per_mr);
	}
	if (prm->queue_depth != clt->queue_depth || prm->max_io_size < clt->max_io_size ||
	    prm->max_hdr_size < clt->max_hdr_size || path->max_pages_per_mr < clt->max_segments)
		err = -ECONNRESET;
	spin_unlock(&clt->lock);
	if (err)
		rtrs_err(clt, "server offers depth %u, IO %u, header %u, %u segments; the session has %u, %u, %u, %u\n",
			 prm->queue_depth, prm->max_io_size, prm->max_hdr_size,
			 path->max_pages_per_mr, clt->queue_depth, clt->max_io_size,
			 clt->max_hdr_size, clt->max_segments);
	return err;
}

/**
 * init_path() - bring a path up
 * @clt_path: path in state CONNECTING, without queues
 *
 * Connects all connections, sees to the request slots, exchanges the info
 * messages, all within the path's deadline, and goes CONNECTED.
 *
 * Context: Process, in the path's worker. Sleeps, never beyond the deadline.
 * Return: 0, the path carries requests then. Negative errno, the path is not
 * CONNECTING any more and is to be torn down: -ETIMEDOUT, -EHOSTUNREACH,
 * -ECONNRESET, -ECONNABORTED if the path was closed meanwhile, -ENOMEM, what
 * the server has refused a connection with, what the HCA says.
 */
static int init_path(struct rtrs_clt_path *clt_path)
{
	int err;

	clt_path->s.recon_cnt++;
	err = rtrs_clt_connect_cons(clt_path);
	if (err)
		return err;
	err = rtrs_clt_exchange_info(clt_path);
	if (err)
		return err;
	err = rtrs_clt_path_set_connected(clt_path);
	if (err)
		return err;
	rtrs_clt_path_up(clt_path);
	rtrs_clt_path_start_hb(clt_path);
	return 0;
}

/* init_path() for the worker in the other file */
int rtrs_clt_path_connect(struct rtrs_clt_path *path)
{
	return init_path(path);
}

/*
 * Open and close
 */

static void rtrs_clt_dev_release(struct device *dev)
{
	struct rtrs_clt_sess *clt = container_of(dev, struct rtrs_clt_sess, dev);

	rtrs_clt_free_permits(clt);
	rtrs_rdma_dev_pd_deinit(&clt->dev_pd);
	kfree(rcu_dereference_protected(clt->paths, true));
	free_percpu(clt->rr_pos);
	mutex_destroy(&clt->paths_mutex);
	kfree(clt);
	if (atomic_dec_and_test(&rtrs_clt_live))
		wake_up_var(&rtrs_clt_live);
}

/* not const: older kernels write to a class when it is registered */
static struct class rtrs_clt_dev_class __ro_after_init = {
	.name = "rtrs-client",
	.dev_release = rtrs_clt_dev_release,
};

static struct rtrs_clt_sess *rtrs_clt_alloc_sess(const struct rtrs_clt_ops *ops, const char *name)
{
	struct rtrs_clt_path_set *set;
	struct rtrs_clt_sess *clt;
	int cpu;

	clt = kzalloc_obj(*clt);
	set = kzalloc_obj(*set);
	if (!clt || !set)
		goto free;
	clt->rr_pos = alloc_percpu(int);
	if (!clt->rr_pos)
		goto free;
	for_each_possible_cpu(cpu) {
		int *pos = per_cpu_ptr(clt->rr_pos, cpu);

		*pos = -1;
	}

	RCU_INIT_POINTER(clt->paths, set);
	clt->ops = *ops;
	strscpy(clt->sessname, name, sizeof(clt->sessname));
	uuid_gen(&clt->paths_uuid);
	INIT_LIST_HEAD(&clt->entry);
	mutex_init(&clt->paths_mutex);
	spin_lock_init(&clt->lock);
	init_waitqueue_head(&clt->permits_wait);
	rtrs_clt_init_events(clt);
	clt->policy = MP_POLICY_MIN_INFLIGHT;
	clt->hb_interval_ms = RTRS_HB_INTERVAL_MS;
	clt->hb_missed_max = RTRS_HB_MISSED_MAX;
	clt->max_io_size = U32_MAX;
	clt->max_hdr_size = U32_MAX;
	clt->max_segments = RTRS_MAX_SEGMENTS;
	clt->register_always = register_always;
	rtrs_clt_sess_init_dev_pd(clt);
	atomic_inc(&rtrs_clt_live);
	clt->dev.class = &rtrs_clt_dev_class;
	device_initialize(&clt->dev);
	return clt;

free:
	kfree(set);
	kfree(clt);
	return NULL;
}

/* Names are unique among the sessions of this host. */
static int rtrs_clt_list_sess(struct rtrs_clt_sess *clt)
{
	struct rtrs_clt_sess *other;
	int err = 0;

	mutex_lock(&rtrs_clt_sess_mutex);
	list_for_each_entry(other, &rtrs_clt_sess_list, entry)
		if (!strcmp(other->sessname, clt->sessname))
			err = -EEXIST;
	if (!err)
		list_add_tail(&clt->entry, &rtrs_clt_sess_list);
	mutex_unlock(&rtrs_clt_sess_mutex);
	return err;
}

static void rtrs_clt_unlist_sess(struct rtrs_clt_sess *clt)
{
	mutex_lock(&rtrs_clt_sess_mutex);
	list_del_init(&clt->entry);
	mutex_unlock(&rtrs_clt_sess_mutex);
}

/* The device is announced once everything in its folder is there. */
static int rtrs_clt_register_sess(struct rtrs_clt_sess *clt)
{
	int err;

	err = rtrs_clt_list_sess(clt);
	if (err)
		return err;
	dev_set_uevent_suppress(&clt->dev, true);
	err = dev_set_name(&clt->dev, "%s", clt->sessname);
	err = err ?: device_add(&clt->dev);
	if (err)
		goto unlist;
	clt->kobj_paths = kobject_create_and_add("paths", &clt->dev.kobj);
	if (!clt->kobj_paths) {
		err = -ENOMEM;
		goto del;
	}
	err = sysfs_create_group(&clt->dev.kobj, &rtrs_clt_sess_group);
	if (err)
		goto put_paths;
	dev_set_uevent_suppress(&clt->dev, false);
	kobject_uevent(&clt->dev.kobj, KOBJ_ADD);
	return 0;

put_paths:
	kobject_put(clt->kobj_paths);
del:
	device_del(&clt->dev);
unlist:
	rtrs_clt_unlist_sess(clt);
	return err;
}

/* The first path of the set, with a reference; NULL if there is none */
static struct rtrs_clt_path *rtrs_clt_first_path(struct rtrs_clt_sess *clt)
{
	struct rtrs_clt_path *path = NULL;
	struct rtrs_clt_path_set *set;

	mutex_lock(&clt->paths_mutex);
	set = rcu_dereference_protected(clt->paths, lockdep_is_held(&clt->paths_mutex));
	if (set->nr) {
		path = set->path[0];
		kobject_get(&path->kobj);
	}
	mutex_unlock(&clt->paths_mutex);
	return path;
}

/* From here on nothing starts, and what is under way ends soon. */
static void rtrs_clt_begin_closing(struct rtrs_clt_sess *clt)
{
	struct rtrs_clt_path_set *set;
	unsigned int i;

	mutex_lock(&clt->paths_mutex);
	WRITE_ONCE(clt->closing, true);
	set = rcu_dereference_protected(clt->paths, lockdep_is_held(&clt->paths_mutex));
	for (i = 0; i < set->nr; i++)
		rtrs_clt_path_close_async(set->path[i], -ECONNABORTED, "the session is closed");
	mutex_unlock(&clt->paths_mutex);
}

/*
 * Takes a registered session down, whether or not it was opened. All paths go
 * at once; somebody else may be removing one of them by sysfs.
 */
static void rtrs_clt_destroy_sess(struct rtrs_clt_sess *clt)
{
	struct rtrs_clt_path *path;

	rtrs_clt_begin_closing(clt);
	sysfs_remove_group(&clt->dev.kobj, &rtrs_clt_sess_group);
	while ((path = rtrs_clt_first_path(clt))) {
		if (rtrs_clt_path_remove(path))
			wait_event(clt->permits_wait, !READ_ONCE(path->published));
		kobject_put(&path->kobj);
	}
	flush_work(&clt->ev_work);
	rtrs_clt_wait_permits(clt);
	kobject_put(clt->kobj_paths);
	device_del(&clt->dev);
	rtrs_clt_unlist_sess(clt);
	put_device(&clt->dev);
}

static int rtrs_clt_make_paths(struct rtrs_clt_sess *clt, const struct rtrs_addr *addr,
			       struct rtrs_clt_path **paths, size_t nr)
{
	struct rtrs_clt_path *path;
	unsigned int i;
	int err;

	for (i = 0; i < nr; i++) {
		path = rtrs_clt_path_alloc(clt, &addr[i]);
		if (IS_ERR(path))
			return PTR_ERR(path);
		err = rtrs_clt_path_publish(path);
		if (err) {
			rtrs_clt_path_put(path);
			return err;
		}
		paths[i] = path;
	}
	return 0;
}

/*
 * The first path creates the session at the server and settles the queue depth;
 * as soon as its cid 0 is accepted the others follow, all under one deadline.
 */
static int rtrs_clt_connect_paths(struct rtrs_clt_path **paths, size_t nr)
{
	unsigned long deadline = rtrs_clt_connect_deadline();
	int err = 0, ret;
	unsigned int i;

	rtrs_clt_path_start(paths[0], deadline);
	if (wait_event_interruptible(paths[0]->wait, READ_ONCE(paths[0]->cid0_up) ||
				     READ_ONCE(paths[0]->results)))
		return -EINTR;
	if (READ_ONCE(paths[0]->results)) {
		err = rtrs_clt_path_wait_result(paths[0], 0);
		if (err)
			return err;
	}
	for (i = 1; i < nr; i++)
		rtrs_clt_path_start(paths[i], deadline);
	for (i = 0; i < nr; i++) {
		ret = rtrs_clt_path_wait_result(paths[i], 0);
		err = err ?: ret;
	}
	return err;
}

static int rtrs_clt_bring_up(struct rtrs_clt_sess *clt, const struct rtrs_addr *addr, size_t nr)
{
	struct rtrs_clt_path **paths;
	unsigned int i;
	int err;

	paths = kzalloc_objs(*paths, nr);
	if (!paths)
		return -ENOMEM;
	err = rtrs_clt_make_paths(clt, addr, paths, nr);
	err = err ?: rtrs_clt_connect_paths(paths, nr);
	for (i = 0; i < nr && !err; i++)
		err = rtrs_clt_create_path_files(paths[i]);
	kfree(paths);
	return err ?: rtrs_clt_alloc_permits(clt);
}

static int rtrs_clt_check_args(const char *pathname, size_t paths_num, u32 nr_poll_queues)
{
	size_t len = strnlen(pathname, NAME_MAX);

	if (!len || len == NAME_MAX || strpbrk(pathname, "/.")) {
		pr_err("session name '%.*s' is empty, too long, or has a '/' or '.'\n",
		       (int)len, pathname);
		return -EINVAL;
	}
	if (!paths_num || paths_num > MAX_PATHS_NUM) {
		pr_err("session '%s': %zu paths, 1 to %d are possible\n", pathname, paths_num,
		       MAX_PATHS_NUM);
		return -EINVAL;
	}
	if (nr_poll_queues > RTRS_MAX_CON_NUM - 1 - min(nr_cpu_ids, RTRS_MAX_CON_NUM - 1)) {
		pr_err("session '%s': %u poll queues, a path has up to %d connections\n",
		       pathname, nr_poll_queues, RTRS_MAX_CON_NUM);
		return -EINVAL;
	}
	return 0;
}

/**
 * rtrs_clt_open() - open a path to an RTRS server
 * @ops: callback for link events with its argument; copied
 * @pathname: name of the session, 1 to 254 characters, no '/' and no '.'; no
 *	      other session of this host, nor of that server, has it
 * @paths: addresses of the paths, each a dst and a src, which may be NULL for
 *	   any source. All of them are connected; the addresses are copied
 * @paths_num: how many there are in @paths, 1 to 128
 * @port: destination port of paths that are added later; those in @paths carry
 *	  their own
 * @pdu_sz: bytes of payload of the caller's own behind each permit
 * @reconnect_delay_sec: seconds from the loss of a path to the next try, and
 *			 from one try to the next, 20 % more or less
 * @max_reconnect_attempts: tries until a lost path is given up; 0 for none,
 *			    -1 for no limit
 * @nr_poll_queues: connections in addition, on completion queues that only
 *		    rtrs_clt_rdma_cq_direct() polls (IB_POLL_DIRECT)
 *
 * Starts session establishment with the RTRS server. All paths must come up.
 * The function can block up to ~2000ms before it returns; the limit is the
 * module parameter connect_timeout_ms. The session's folder in sysfs appears
 * before the first path is connected. No link event comes before the function
 * has succeeded, and none at all if it fails.
 *
 * Context: Process. Sleeps.
 * Return: a valid pointer on success, otherwise PTR_ERR: -EINVAL for bad
 * arguments, -EEXIST if the name or a path is there already, -ENOMEM,
 * -ETIMEDOUT, -EHOSTUNREACH without address or route, -ECONNRESET if the server
 * refuses or answers nonsense, -ECONNABORTED or -ENODEV if the HCA was removed,
 * -EOPNOTSUPP if the HCA cannot carry RTRS, -EINTR on a signal, or the errno
 * that the server has rejected a connection with.
 */
struct rtrs_clt_sess *rtrs_clt_open(struct rtrs_clt_ops *ops, const char *pathname,
				    const struct rtrs_addr *paths, size_t paths_num, u16 port,
				    size_t pdu_sz, u8 reconnect_delay_sec,
				    s16 max_reconnect_attempts, u32 nr_poll_queues)
{
	struct rtrs_clt_sess *clt;
	int err;

	err = rtrs_clt_check_args(pathname, paths_num, nr_poll_queues);
	if (err)
		return ERR_PTR(err);
	clt = rtrs_clt_alloc_sess(ops, pathname);
	if (!clt)
		return ERR_PTR(-ENOMEM);
	clt->port = port;
	clt->pdu_sz = pdu_sz;
	clt->reconnect_delay_sec = reconnect_delay_sec;
	clt->max_reconnect_attempts = max(max_reconnect_attempts, -1);
	clt->nr_poll_queues = nr_poll_queues;
	err = rtrs_clt_register_sess(clt);
	if (err) {
		rtrs_err(clt, "the session cannot be registered: %pe\n", ERR_PTR(err));
		put_device(&clt->dev);
		return ERR_PTR(err);
	}
	err = rtrs_clt_bring_up(clt, paths, paths_num);
	if (err) {
		rtrs_err(clt, "the session cannot be opened: %pe\n", ERR_PTR(err));
		rtrs_clt_destroy_sess(clt);
		return ERR_PTR(err);
	}
	rtrs_clt_start_events(clt);
	return clt;
}
EXPORT_SYMBOL(rtrs_clt_open);

/**
 * rtrs_clt_close() - close a session
 * @clt: session; not valid any more when this returns
 *
 * Closes all paths. Requests under way are confirmed with -ECONNABORTED, and
 * if a path was up the link event callback hears of the disconnect. Then waits
 * for all permits to be put back. Only rtrs_clt_put_permit() may be called
 * for this session while this runs.
 *
 * Context: Process. Sleeps until the last permit is back.
 */
void rtrs_clt_close(struct rtrs_clt_sess *clt)
{
	rtrs_clt_destroy_sess(clt);
}
EXPORT_SYMBOL(rtrs_clt_close);

/*
 * Request and query
 */

/**
 * rtrs_clt_request() - request data transfer to/from server via RDMA
 * @dir: READ/WRITE
 * @ops: callback for the confirmation with its argument; copied
 * @clt: session
 * @permit: preallocated permit, without a request under way
 * @vec: message that is sent to the server together with the request. The sum
 *	 of len of all @vec elements is limited to what the server takes as
 *	 header, less the protocol's own 24 bytes. The message is copied
 *	 internally, so it can be allocated on the stack
 * @nr: number of elements in @vec
 * @data_len: length in bytes of data sent to/from the server, the sum of the
 *	      lengths in @sg
 * @sg: pages to be sent/received to/from the server, untouched by the caller
 *	until the confirmation
 * @sg_cnt: number of elements in @sg, 0 for no data
 *
 * On dir=READ the client asks the server for data, which is in @sg when the
 * confirmation comes. On dir=WRITE the client writes the data in @sg to the
 * server. Paths are tried in the order of the session's policy. If the path
 * that took the request breaks, the request goes to another one.
 *
 * The confirmation comes exactly once for each accepted request, with 0 or a
 * negative errno, perhaps before this function returns, from any context that
 * does not sleep or from a kernel thread. It may put the permit.
 *
 * Context: Any in which work requests may be posted. Does not sleep.
 * Return: 0 success, the confirmation will come; < 0 error, it will not:
 * -ECONNABORTED if no path is connected, -EMSGSIZE if a path's limits do not
 * allow the request, -EINVAL if the data cannot be mapped or @data_len is wrong,
 * -EAGAIN if the connection has no room now, or an error of the HCA.
 */
int rtrs_clt_request(int dir, struct rtrs_clt_req_ops *ops, struct rtrs_clt_sess *clt,
		     struct rtrs_permit *permit, const struct kvec *vec, size_t nr,
		     size_t data_len, struct scatterlist *sg, unsigned int sg_cnt)
{
	struct rtrs_clt_want want = {
		.permit = permit,
		.priv = ops->priv,
		.conf = ops->conf_fn,
		.vec = vec,
		.nr = nr,
		.sg = sg,
		.sg_cnt = sg_cnt,
		.data_len = data_len,
		.dir = dir == READ ? DMA_FROM_DEVICE : DMA_TO_DEVICE,
	};
	size_t i;
	int err;

	for (i = 0; i < nr; i++)
		want.usr_len += vec[i].iov_len;
	rcu_read_lock();
	rtrs_clt_issue(clt, &want, &err);
	rcu_read_unlock();
	return err;
}
EXPORT_SYMBOL(rtrs_clt_request);

/* One poller per connection; a second one would find nothing either. */
static int rtrs_clt_poll_path(struct rtrs_clt_path *path, unsigned int cid)
{
	struct rtrs_clt_con *con;
	int n;

	if (cid < path->s.irq_con_num || cid >= path->s.con_num)
		return 0;
	con = to_clt_con(path->s.con[cid]);
	if (test_and_set_bit_lock(RTRS_CON_POLLING, &con->flags))
		return 0;
	n = ib_process_cq_direct(con->c.cq, -1);
	clear_bit_unlock(RTRS_CON_POLLING, &con->flags);
	return n;
}

/*
 * Polls connection index + 1 of the connected paths, in the order of the
 * policy, until one of them has something. Connections that complete by
 * interrupt are not polled. Returns the number of completions handled, -1 if
 * no path is connected. Does not sleep.
 */
int rtrs_clt_rdma_cq_direct(struct rtrs_clt_sess *clt, unsigned int index)
{
	struct rtrs_clt_path *path;
	struct path_it it;
	int n = -1;

	rcu_read_lock();
	path_it_init(&it, clt);
	while ((path = it.next_path(&it))) {
		n = rtrs_clt_poll_path(path, index + 1);
		if (n)
			break;
	}
	rcu_read_unlock();
	return n;
}
EXPORT_SYMBOL(rtrs_clt_rdma_cq_direct);

static bool rtrs_clt_is_connected(struct rtrs_clt_sess *clt)
{
	const struct rtrs_clt_path_set *set;
	bool connected = false;
	unsigned int i;

	rcu_read_lock();
	set = rcu_dereference(clt->paths);
	for (i = 0; i < set->nr && !connected; i++)
		connected = rtrs_clt_path_is_connected(set->path[i]);
	rcu_read_unlock();
	return connected;
}

/**
 * rtrs_clt_query() - learn what a session can do
 * @clt: session
 * @attr: filled: queue_depth is the number of permits, max_io_size the bytes
 *	  of data and max_segments the elements of a scatterlist that a request
 *	  may have
 *
 * The values stay the same for the life of the session.
 *
 * Context: Any. Does not sleep.
 * Return: 0; -ECOMM if no path is connected, @attr is untouched then.
 */
int rtrs_clt_query(struct rtrs_clt_sess *clt, struct rtrs_attrs *attr)
{
	if (!rtrs_clt_is_connected(clt))
		return -ECOMM;
	*attr = (struct rtrs_attrs) {
		.queue_depth = clt->queue_depth,
		.max_io_size = min_t(u32, clt->max_io_size,
				     clt->max_segments * RTRS_CLT_MR_PAGE_SIZE),
		.max_segments = clt->max_segments,
	};
	return 0;
}
EXPORT_SYMBOL(rtrs_clt_query);

/*
 * Module
 */

static int __init rtrs_client_init(void)
{
	int err = -ENOMEM;

	/* workers sleep, and the block device above may be what frees memory */
	rtrs_clt_wq = alloc_workqueue("rtrs_client_wq", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!rtrs_clt_wq)
		return err;
	/* the caller's handler may wait for what only a path's worker can free */
	rtrs_clt_ev_wq = alloc_workqueue("rtrs_client_ev_wq", WQ_UNBOUND, 0);
	if (!rtrs_clt_ev_wq)
		goto destroy_wq;
	err = class_register(&rtrs_clt_dev_class);
	if (err)
		goto destroy_ev_wq;
	err = rtrs_clt_ib_client_register();
	if (err)
		goto unregister_class;
	return 0;

unregister_class:
	class_unregister(&rtrs_clt_dev_class);
destroy_ev_wq:
	destroy_workqueue(rtrs_clt_ev_wq);
destroy_wq:
	destroy_workqueue(rtrs_clt_wq);
	return err;
}

static void __exit rtrs_client_exit(void)
{
	wait_var_event(&rtrs_clt_live, !atomic_read(&rtrs_clt_live));
	rtrs_clt_ib_client_unregister();
	class_unregister(&rtrs_clt_dev_class);
	destroy_workqueue(rtrs_clt_ev_wq);
	destroy_workqueue(rtrs_clt_wq);
}

module_init(rtrs_client_init);
module_exit(rtrs_client_exit);

#if IS_ENABLED(CONFIG_INFINIBAND_RTRS_CLIENT_KUNIT_TEST)
#include "tests/kunit/rtrs_clt_kunit.c"
#endif
