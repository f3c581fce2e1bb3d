// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A scriptable RTRS server for tests: sessions, paths, connections
 *
 * A path is closed as a whole and by one work: flush what sets connections up,
 * wait for steps that run, disconnect, drain, free.
 */
#include <linux/delay.h>
#include <linux/inet.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/net_namespace.h>
#include <rdma/ib_cm.h>

#include "fake-srv-priv.h"

#define DEFAULT_QUEUE_DEPTH 8
#define DEFAULT_IO_SIZE 28672
#define DEFAULT_HDR_SIZE 4096
#define DEFAULT_HB_MS 5000
#define BACKLOG 64

/*
 * 1 s until something is sent again (4.096 us * 2^18): on rxe that breaks a queue
 * pair on which memory was registered meanwhile, and a busy machine may be slow.
 */
#define ACK_TIMEOUT 18

/* Remembers the first thing that a client did wrong. */
void fs_complain(struct fake_srv *srv, const char *what)
{
	spin_lock(&srv->lock);
	if (!srv->stats.complaint)
		srv->stats.complaint = what;
	spin_unlock(&srv->lock);
}

/*
 * Sessions
 */

static struct fs_sess *fs_sess_new(struct fake_srv *srv, const uuid_t *uuid)
{
	const struct fs_config *cfg = &srv->cfg;
	struct fs_sess *sess = kzalloc(sizeof(*sess), GFP_KERNEL);

	if (!sess)
		return NULL;
	INIT_LIST_HEAD(&sess->paths);
	sess->srv = srv;
	uuid_copy(&sess->uuid, uuid);
	sess->queue_depth = cfg->queue_depth;
	sess->max_io_size = cfg->max_io_size;
	sess->max_hdr_size = cfg->max_hdr_size;
	sess->chunk_size = cfg->max_io_size + cfg->max_hdr_size;
	sess->new_rkey = cfg->new_rkey;
	sess->per_desc = cfg->new_rkey ? 1 : cfg->chunks_per_desc ?: cfg->queue_depth;
	sess->nr_desc = DIV_ROUND_UP(sess->queue_depth, sess->per_desc);
	list_add_tail(&sess->entry, &srv->sessions);
	return sess;
}

static struct fs_sess *fs_sess_find(struct fake_srv *srv, const uuid_t *uuid)
{
	struct fs_sess *sess;

	list_for_each_entry(sess, &srv->sessions, entry)
		if (uuid_equal(&sess->uuid, uuid) && !list_empty(&sess->paths))
			return sess;
	return NULL;
}

static void fs_sess_put(struct fs_sess *sess)
{
	if (--sess->refs)
		return;
	list_del(&sess->entry);
	kfree(sess);
}

/*
 * Paths
 */

/* False: the path is being closed. Else the caller may use it until it leaves. */
bool fs_path_enter(struct fs_path *path)
{
	atomic_inc(&path->users);
	/* pairs with the barrier of fs_path_close_work() */
	smp_mb__after_atomic();
	if (!READ_ONCE(path->closing))
		return true;
	fs_path_leave(path);
	return false;
}

void fs_path_leave(struct fs_path *path)
{
	struct fake_srv *srv = path->srv;

	if (atomic_dec_and_test(&path->users))
		wake_up_all(&srv->wait);
}

static void fs_con_free(struct fs_con *con)
{
	if (!con)
		return;
	if (con->qp) {
		ib_drain_qp(con->qp);
		rdma_destroy_qp(con->id);
	}
	if (con->scq)
		ib_free_cq(con->scq);
	if (con->rcq)
		ib_free_cq(con->rcq);
	if (con->info_dma)
		ib_dma_unmap_single(con->id->device, con->info_dma, sizeof(*con->info),
				    DMA_FROM_DEVICE);
	kfree(con->info);
	rdma_destroy_id(con->id);
	atomic_dec(&con->srv->cons);
	kfree(con);
}

static void fs_areas_free(struct fs_path *path)
{
	u32 i;

	for (i = 0; path->areas && i < path->sess->nr_desc; i++) {
		struct fs_area *area = &path->areas[i];

		if (area->mr)
			ib_dereg_mr(area->mr);
		if (area->mapped)
			ib_dma_unmap_sg(path->pd->device, &area->sg, 1, DMA_BIDIRECTIONAL);
		if (area->mem)
			free_pages_exact(area->mem, path->sess->per_desc * path->sess->chunk_size);
	}
	kfree(path->areas);
	path->areas = NULL;
}

static int fs_area_init(struct fs_path *path, struct fs_area *area)
{
	u32 len = path->sess->per_desc * path->sess->chunk_size;

	area->cqe.done = fs_area_done;
	area->mem = alloc_pages_exact(len, GFP_KERNEL | __GFP_ZERO);
	if (!area->mem)
		return -ENOMEM;
	area->mr = ib_alloc_mr(path->pd, IB_MR_TYPE_MEM_REG, len >> PAGE_SHIFT);
	if (IS_ERR(area->mr)) {
		int err = PTR_ERR(area->mr);

		area->mr = NULL;
		return err;
	}
	sg_init_one(&area->sg, area->mem, len);
	if (ib_dma_map_sg(path->pd->device, &area->sg, 1, DMA_BIDIRECTIONAL) != 1)
		return -ENOMEM;
	area->mapped = true;
	if (ib_map_mr_sg(area->mr, &area->sg, 1, NULL, PAGE_SIZE) != 1)
		return -EINVAL;
	return 0;
}

/* The device is known with the first connection. */
static int fs_path_use_device(struct fs_path *path, struct ib_device *dev)
{
	int err = 0;
	u32 i;

	if (path->pd)
		return 0;
	path->pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(path->pd)) {
		err = PTR_ERR(path->pd);
		path->pd = NULL;
		return err;
	}
	path->areas = kcalloc(path->sess->nr_desc, sizeof(*path->areas), GFP_KERNEL);
	if (!path->areas)
		return -ENOMEM;
	for (i = 0; i < path->sess->nr_desc && !err; i++)
		err = fs_area_init(path, &path->areas[i]);
	return err;
}

static void fs_drop_held(struct fs_path *path)
{
	struct fake_srv *srv = path->srv;
	struct fs_req *req, *next;

	mutex_lock(&srv->mutex);
	list_for_each_entry_safe(req, next, &srv->held, entry) {
		if (req->con->path != path)
			continue;
		list_del(&req->entry);
		kfree(req);
	}
	mutex_unlock(&srv->mutex);
}

static void fs_path_close_work(struct work_struct *work)
{
	struct fs_path *path = container_of(work, struct fs_path, close);
	struct fake_srv *srv = path->srv;
	unsigned int i;

	for (i = 0; i < path->nr_cons; i++)
		if (path->con[i])
			cancel_work_sync(&path->con[i]->setup);
	/* steps that run end, and none begins any more; see fs_path_enter() */
	smp_mb();
	wait_event(srv->wait, !atomic_read(&path->users));
	cancel_delayed_work_sync(&path->hb);
	for (i = 0; i < path->nr_cons && !path->silent; i++)
		if (path->con[i])
			rdma_disconnect(path->con[i]->id);
	for (i = 0; i < path->nr_cons; i++)
		if (path->con[i] && path->con[i]->qp)
			ib_drain_qp(path->con[i]->qp);
	fs_drop_held(path);
	for (i = 0; i < path->nr_cons; i++)
		fs_con_free(path->con[i]);
	fs_areas_free(path);
	if (path->pd)
		ib_dealloc_pd(path->pd);

	mutex_lock(&srv->mutex);
	fs_sess_put(path->sess);
	kfree(path);
	srv->stats.paths--;
	mutex_unlock(&srv->mutex);
	wake_up_all(&srv->wait);
}

static void __fs_path_close(struct fs_path *path)
{
	lockdep_assert_held(&path->srv->mutex);
	if (path->closing)
		return;
	WRITE_ONCE(path->closing, true);
	uuid_copy(&path->srv->gone[path->srv->nr_gone++ % FS_GONE], &path->uuid);
	list_del_init(&path->entry);
	queue_work(path->srv->wq, &path->close);
}

/* From here on the path is unknown; a client may come with the same one. */
void fs_path_close(struct fs_path *path)
{
	mutex_lock(&path->srv->mutex);
	__fs_path_close(path);
	mutex_unlock(&path->srv->mutex);
}

static struct fs_path *fs_path_find(struct fs_sess *sess, const uuid_t *uuid)
{
	struct fs_path *path;

	list_for_each_entry(path, &sess->paths, entry)
		if (uuid_equal(&path->uuid, uuid))
			return path;
	return NULL;
}

static struct fs_path *fs_path_new(struct fs_sess *sess, const uuid_t *uuid, unsigned int nr_cons)
{
	struct fs_path *path = kzalloc(struct_size(path, con, nr_cons), GFP_KERNEL);

	if (!path)
		return NULL;
	path->srv = sess->srv;
	path->sess = sess;
	path->index = ++sess->srv->paths_seen;
	path->nr_cons = nr_cons;
	uuid_copy(&path->uuid, uuid);
	INIT_WORK(&path->close, fs_path_close_work);
	INIT_DELAYED_WORK(&path->hb, fs_hb_work);
	list_add_tail(&path->entry, &sess->paths);
	sess->refs++;
	sess->srv->stats.paths++;
	return path;
}

/* Another path that is up: of the session, or of another session */
struct fs_path *fs_other_path(struct fs_path *path, bool same_sess)
{
	struct fs_path *other, *found = NULL;
	struct fs_sess *sess;

	mutex_lock(&path->srv->mutex);
	list_for_each_entry(sess, &path->srv->sessions, entry) {
		bool same = sess == path->sess;

		if (same != same_sess)
			continue;
		list_for_each_entry(other, &sess->paths, entry)
			if (other != path && other->up)
				found = other;
	}
	/* keeps it there; who closes it waits */
	if (found && !fs_path_enter(found))
		found = NULL;
	mutex_unlock(&path->srv->mutex);
	return found;
}

/*
 * Connections
 */

static const char *fs_check_conn_req(const struct fs_con *con)
{
	static const u8 zero[11];
	const struct wire_conn_req *req = &con->req;

	if (con->req_len < sizeof(*req))
		return "short connection request";
	if (le16_to_cpu(req->magic) != WIRE_MAGIC)
		return "connection request with bad magic";
	if (le16_to_cpu(req->version) != WIRE_VERSION)
		return "connection request with another version";
	if (!req->cid_num || le16_to_cpu(req->cid_num) > WIRE_MAX_CONS ||
	    le16_to_cpu(req->cid) >= le16_to_cpu(req->cid_num))
		return "connection request with bad cid";
	if (req->cma[0] || req->cma[1] || req->first > 1 || memcmp(req->zero, zero, sizeof(zero)))
		return "connection request with reserved bits";
	return NULL;
}

static bool fs_path_is_gone(const struct fake_srv *srv, const uuid_t *uuid)
{
	unsigned int i;

	for (i = 0; i < FS_GONE; i++)
		if (uuid_equal(&srv->gone[i], uuid))
			return true;
	return false;
}

/*
 * Gives a connection its path. 0, or the errno to reject it with; -EINPROGRESS:
 * the path does not answer any more, neither to a new request.
 */
static int fs_con_find_path(struct fs_con *con)
{
	const struct wire_conn_req *req = &con->req;
	struct fake_srv *srv = con->srv;
	unsigned int nr_cons = le16_to_cpu(req->cid_num);
	struct fs_sess *sess;
	struct fs_path *path;

	con->cid = le16_to_cpu(req->cid);
	sess = fs_sess_find(srv, &req->session);
	/* the rest of a path that we have just closed */
	if (con->cid && fs_path_is_gone(srv, &req->path) &&
	    !(sess && fs_path_find(sess, &req->path)))
		return -ECONNRESET;
	if (!sess) {
		if (!req->first)
			return -ENXIO;
		sess = fs_sess_new(srv, &req->session);
		if (!sess)
			return -ENOMEM;
	}
	path = fs_path_find(sess, &req->path);
	if (!path) {
		path = fs_path_new(sess, &req->path, nr_cons);
		if (!path) {
			if (!sess->refs) {
				list_del(&sess->entry);
				kfree(sess);
			}
			return -ENOMEM;
		}
		if (con->cid)
			fs_complain(srv, "first connection of a path is not cid 0");
	} else if (READ_ONCE(path->silent)) {
		list_add_tail(&con->stray, &srv->strays);
		return -EINPROGRESS;
	} else if (path->up || path->nr_cons != nr_cons || path->con[con->cid]) {
		return -ECONNRESET;
	}
	path->con[con->cid] = con;
	con->path = path;
	return 0;
}

static int fs_con_create_qp(struct fs_con *con)
{
	struct fs_path *path = con->path;
	struct ib_device *dev = con->id->device;
	u32 nr_send = 4 * path->sess->queue_depth + FS_SQ_EXTRA;
	u32 nr_recv = 2 * path->sess->queue_depth + FS_RQ_EXTRA;
	struct ib_qp_init_attr attr = {
		.qp_context = con,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = IB_QPT_RC,
		.cap = {
			.max_send_wr = nr_send,
			.max_recv_wr = nr_recv,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	int err;

	/* one for the drain marker */
	con->scq = ib_alloc_cq(dev, con, nr_send + 1, 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(con->scq)) {
		err = PTR_ERR(con->scq);
		con->scq = NULL;
		return err;
	}
	con->rcq = ib_alloc_cq(dev, con, nr_recv + 1, 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(con->rcq)) {
		err = PTR_ERR(con->rcq);
		con->rcq = NULL;
		return err;
	}
	attr.send_cq = con->scq;
	attr.recv_cq = con->rcq;
	err = rdma_set_ack_timeout(con->id, ACK_TIMEOUT);
	err = err ?: rdma_create_qp(con->id, path->pd, &attr);
	if (err)
		return err;
	con->qp = con->id->qp;
	return fs_con_post_recvs(con);
}

static void fs_con_reject(struct fs_con *con, int err)
{
	struct wire_conn_rsp rsp = {
		.magic = cpu_to_le16(WIRE_MAGIC),
		.version = cpu_to_le16(WIRE_VERSION),
		.err = cpu_to_le16(err),
	};

	rdma_reject(con->id, &rsp, sizeof(rsp), IB_CM_REJ_CONSUMER_DEFINED);
}

static void fs_con_setup(struct work_struct *work)
{
	struct fs_con *con = container_of(work, struct fs_con, setup);
	struct fake_srv *srv = con->srv;
	const char *complaint = fs_check_conn_req(con);
	int err = -ECONNRESET;

	con->recv_cqe.done = fs_recv_done;
	con->info_cqe.done = fs_info_done;
	if (complaint) {
		fs_complain(srv, complaint);
	} else {
		mutex_lock(&srv->mutex);
		err = fs_con_find_path(con);
		mutex_unlock(&srv->mutex);
	}
	if (err == -EINPROGRESS)
		return;
	if (err) {
		fs_con_reject(con, err);
		fs_con_free(con);
		return;
	}
	if (!fs_path_enter(con->path))
		return;
	mutex_lock(&srv->mutex);
	err = fs_path_use_device(con->path, con->id->device);
	mutex_unlock(&srv->mutex);
	err = err ?: fs_con_create_qp(con);
	if (err) {
		fs_con_reject(con, err);
		fs_path_close(con->path);
	} else {
		fs_phase(con, FS_AT_CONN_REQ, NULL);
	}
	fs_path_leave(con->path);
}

static int fs_new_con(struct fake_srv *srv, struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	struct fs_con *con = kzalloc(sizeof(*con), GFP_KERNEL);

	if (!con)
		return -ENOMEM;
	con->srv = srv;
	con->id = id;
	con->req_len = min_t(u8, ev->param.conn.private_data_len, sizeof(con->req));
	memcpy(&con->req, ev->param.conn.private_data, con->req_len);
	INIT_WORK(&con->setup, fs_con_setup);
	id->context = con;
	atomic_inc(&srv->cons);
	queue_work(srv->wq, &con->setup);
	return 0;
}

static int fs_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	struct fs_con *con = id->context;
	struct fs_path *path;

	if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return fs_new_con(con->srv, id, ev);
	path = READ_ONCE(con->path);
	if (!path)
		return 0;
	if (ev->event == RDMA_CM_EVENT_ESTABLISHED) {
		WRITE_ONCE(con->established, true);
		if (fs_path_enter(path)) {
			fs_phase(con, FS_AT_ESTABLISHED, NULL);
			fs_path_leave(path);
		}
	} else if (!READ_ONCE(path->silent)) {
		fs_path_close(path);
	}
	return 0;
}

/*
 * The server
 */

/**
 * fake_srv_script() - have a server misbehave
 * @srv: the server
 * @script: when and how, copied; NULL: not at all
 *
 * Takes the place of the script before. Starts the counting of hits anew.
 */
void fake_srv_script(struct fake_srv *srv, const struct fs_script *script)
{
	static const struct fs_script none;

	spin_lock(&srv->lock);
	srv->script = script ? *script : none;
	srv->stats.hits = 0;
	spin_unlock(&srv->lock);
}

/**
 * fake_srv_stats() - what a server has seen until now
 * @srv: the server
 * @stats: filled
 */
void fake_srv_stats(struct fake_srv *srv, struct fs_stats *stats)
{
	spin_lock(&srv->lock);
	*stats = srv->stats;
	spin_unlock(&srv->lock);
}

static void fs_close_paths(struct fake_srv *srv, bool all)
{
	struct fs_path *path, *next;
	struct fs_con *con, *tmp;
	struct fs_sess *sess;
	LIST_HEAD(strays);

	mutex_lock(&srv->mutex);
	list_splice_init(&srv->strays, &strays);
	list_for_each_entry(sess, &srv->sessions, entry)
		list_for_each_entry_safe(path, next, &sess->paths, entry)
			if (all || READ_ONCE(path->silent))
				__fs_path_close(path);
	mutex_unlock(&srv->mutex);
	flush_workqueue(srv->wq);
	list_for_each_entry_safe(con, tmp, &strays, stray)
		fs_con_free(con);
}

/**
 * fake_srv_heal() - have a server behave well from now on
 * @srv: the server
 *
 * No script any more, and what has fallen silent is gone when this returns.
 */
void fake_srv_heal(struct fake_srv *srv)
{
	fake_srv_script(srv, NULL);
	fs_close_paths(srv, false);
}

/**
 * fake_srv_stop() - take a server down
 * @srv: the server, not valid any more when this returns
 */
void fake_srv_stop(struct fake_srv *srv)
{
	fake_srv_script(srv, NULL);
	/* no connection request comes after that */
	rdma_destroy_id(srv->listener.id);
	flush_workqueue(srv->wq);
	fs_close_paths(srv, true);
	wait_event(srv->wait, !atomic_read(&srv->cons));
	destroy_workqueue(srv->wq);
	kfree(srv);
}

static int fs_listen(struct fake_srv *srv)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(srv->cfg.port),
		.sin_addr.s_addr = htonl(INADDR_ANY),
	};
	struct rdma_cm_id *id;
	int err;

	id = rdma_create_id(&init_net, fs_cm_handler, &srv->listener, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	srv->listener.srv = srv;
	srv->listener.id = id;
	err = rdma_set_reuseaddr(id, 1);
	err = err ?: rdma_bind_addr(id, (struct sockaddr *)&addr);
	err = err ?: rdma_listen(id, BACKLOG);
	if (err)
		rdma_destroy_id(id);
	return err;
}

/**
 * fake_srv_start() - bring a server up
 * @cfg: what it is like, copied
 *
 * Return: the server, or an error pointer.
 */
struct fake_srv *fake_srv_start(const struct fs_config *cfg)
{
	struct fake_srv *srv = kzalloc(sizeof(*srv), GFP_KERNEL);
	int err = -ENOMEM;

	if (!srv)
		return ERR_PTR(-ENOMEM);
	srv->cfg = *cfg;
	srv->cfg.queue_depth = cfg->queue_depth ?: DEFAULT_QUEUE_DEPTH;
	srv->cfg.max_io_size = cfg->max_io_size ?: DEFAULT_IO_SIZE;
	srv->cfg.max_hdr_size = cfg->max_hdr_size ?: DEFAULT_HDR_SIZE;
	srv->cfg.hb_ms = cfg->hb_ms ?: DEFAULT_HB_MS;
	mutex_init(&srv->mutex);
	spin_lock_init(&srv->lock);
	init_waitqueue_head(&srv->wait);
	INIT_LIST_HEAD(&srv->sessions);
	INIT_LIST_HEAD(&srv->held);
	INIT_LIST_HEAD(&srv->strays);
	srv->wq = alloc_workqueue("fake_srv", WQ_UNBOUND, 0);
	if (!srv->wq)
		goto free;
	err = fs_listen(srv);
	if (err)
		goto destroy;
	return srv;

destroy:
	destroy_workqueue(srv->wq);
free:
	kfree(srv);
	return ERR_PTR(err);
}
