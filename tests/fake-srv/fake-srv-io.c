// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A scriptable RTRS server for tests: what is sent and received
 *
 * Receives are handled by a work per connection, so steps may sleep. Each send
 * is signalled and is an object of its own, freed when it completes.
 */
#include <linux/delay.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <rdma/ib_cm.h>

#include "fake-srv-priv.h"

/* How long a step waits for room in the send queue, or for the CM */
#define ROOM_MS 2000

#define MSG_MIN ((size_t)8192)

struct fs_send {
	struct ib_cqe cqe;
	struct fs_con *con;
	u64 dma;
	u32 len;
	u8 buf[];
};

/* A list of steps that is being done */
struct fs_run {
	struct fs_con *con;
	struct fs_req *req;
	bool held;
	struct fs_step step[FS_STEPS];
};

static u32 bits(u32 n)
{
	return n > 1 ? ilog2(n - 1) + 1 : 0;
}

/*
 * Sends
 */

static void fs_send_failed(struct fs_con *con, const struct ib_wc *wc)
{
	struct fake_srv *srv = con->srv;
	bool keep;

	spin_lock(&srv->lock);
	keep = srv->script.keep;
	if (wc->status == IB_WC_REM_ACCESS_ERR)
		srv->stats.access_errors++;
	spin_unlock(&srv->lock);
	if (!keep && !READ_ONCE(con->path->silent))
		fs_path_close(con->path);
}

static void fs_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct fs_send *send = container_of(wc->wr_cqe, struct fs_send, cqe);
	struct fs_con *con = send->con;

	if (wc->status != IB_WC_SUCCESS && wc->status != IB_WC_WR_FLUSH_ERR)
		fs_send_failed(con, wc);
	if (send->dma)
		ib_dma_unmap_single(con->id->device, send->dma, send->len, DMA_TO_DEVICE);
	kfree(send);
}

/* Registrations and local invalidations */
void fs_area_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct fs_con *con = wc->qp->qp_context;

	if (wc->status != IB_WC_SUCCESS && wc->status != IB_WC_WR_FLUSH_ERR)
		fs_send_failed(con, wc);
}

/* A flood is as fast as the queue. */
static int fs_post(struct fs_con *con, struct ib_send_wr *wr)
{
	unsigned int ms;
	int err;

	for (ms = 0; ms < ROOM_MS; ms++) {
		err = ib_post_send(con->qp, wr, NULL);
		if (err != -ENOMEM || READ_ONCE(con->path->closing))
			return err;
		usleep_range(500, 1000);
	}
	return err;
}

static struct fs_send *fs_send_new(struct fs_con *con, const void *msg, u32 len)
{
	struct fs_send *send = kzalloc(struct_size(send, buf, len), GFP_KERNEL);

	if (!send)
		return NULL;
	send->con = con;
	send->cqe.done = fs_send_done;
	send->len = len;
	if (len) {
		memcpy(send->buf, msg, len);
		send->dma = ib_dma_map_single(con->id->device, send->buf, len, DMA_TO_DEVICE);
	}
	return send;
}

/* Posts @wr, with @msg as its data if it has a length */
static int fs_send(struct fs_con *con, struct ib_rdma_wr *wr, const void *msg, u32 len)
{
	struct fs_send *send = fs_send_new(con, msg, len);
	struct ib_sge sge;
	int err;

	if (!send)
		return -ENOMEM;
	wr->wr.wr_cqe = &send->cqe;
	wr->wr.send_flags = IB_SEND_SIGNALED;
	if (len) {
		sge = (struct ib_sge) {
			.addr = send->dma,
			.length = len,
			.lkey = con->path->pd->local_dma_lkey,
		};
		wr->wr.sg_list = &sge;
		wr->wr.num_sge = 1;
	}
	err = fs_post(con, &wr->wr);
	if (err) {
		if (send->dma)
			ib_dma_unmap_single(con->id->device, send->dma, len, DMA_TO_DEVICE);
		kfree(send);
	}
	return err;
}

static int fs_send_imm(struct fs_con *con, u32 imm)
{
	struct ib_rdma_wr wr = {
		.wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM,
		.wr.ex.imm_data = cpu_to_be32(imm),
	};

	return fs_send(con, &wr, NULL, 0);
}

/*
 * Areas
 */

static int fs_area_invalidate(struct fs_con *con, struct fs_area *area)
{
	struct ib_send_wr wr = {
		.wr_cqe = &area->cqe,
		.opcode = IB_WR_LOCAL_INV,
		.send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = area->mr->rkey,
	};

	if (!area->valid)
		return 0;
	area->valid = false;
	return fs_post(con, &wr);
}

static int fs_area_register(struct fs_con *con, struct fs_area *area)
{
	struct ib_reg_wr wr = {
		.wr.wr_cqe = &area->cqe,
		.wr.opcode = IB_WR_REG_MR,
		.wr.send_flags = IB_SEND_SIGNALED,
		.mr = area->mr,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	};

	if (area->valid)
		return 0;
	area->valid = true;
	ib_update_fast_reg_key(area->mr, ib_inc_rkey(area->mr->rkey));
	wr.key = area->mr->rkey;
	return fs_post(con, &wr.wr);
}

static struct fs_area *fs_area_of(struct fs_path *path, u32 id)
{
	return &path->areas[id / path->sess->per_desc];
}

static void *fs_chunk(struct fs_path *path, u32 id)
{
	return fs_area_of(path, id)->mem + id % path->sess->per_desc * path->sess->chunk_size;
}

/*
 * Steps
 */

static void fs_patch_msg(void *msg, size_t size, const struct fs_step *s)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(s->patch); i++) {
		const struct fs_patch *p = &s->patch[i];
		__le64 val = cpu_to_le64(p->val);

		if (p->off + p->width <= size)
			memcpy(msg + p->off, &val, min_t(size_t, p->width, sizeof(val)));
	}
}

static u32 step_len(const struct fs_step *s, u32 right)
{
	return s->len ? s->len - 1 : right;
}

/* The same, of a message of which there are no more than so many bytes */
static u32 step_len_max(const struct fs_step *s, u32 right, u32 max)
{
	return min(step_len(s, right), max);
}

static void fs_fill_conn_rsp(const struct fs_con *con, struct wire_conn_rsp *rsp)
{
	const struct fs_sess *sess = con->path->sess;

	*rsp = (struct wire_conn_rsp) {
		.magic = cpu_to_le16(WIRE_MAGIC),
		.version = cpu_to_le16(WIRE_VERSION),
		.queue_depth = cpu_to_le16(sess->queue_depth),
		.max_io_size = cpu_to_le32(sess->max_io_size),
		.max_hdr_size = cpu_to_le32(sess->max_hdr_size),
		.flags = cpu_to_le32(sess->new_rkey ? WIRE_RENEWS_KEYS : 0),
	};
}

static int fs_do_accept(struct fs_run *run, const struct fs_step *s, struct fs_con *con)
{
	struct wire_conn_rsp rsp;
	struct rdma_conn_param param = {
		.rnr_retry_count = 7,
		.initiator_depth = con->srv->cfg.reads,
		.private_data = &rsp,
		.private_data_len = step_len_max(s, sizeof(rsp), sizeof(rsp)),
	};
	int err;

	fs_fill_conn_rsp(con, &rsp);
	fs_patch_msg(&rsp, sizeof(rsp), s);
	rdma_lock_handler(con->id);
	err = rdma_accept(con->id, &param);
	rdma_unlock_handler(con->id);
	return err;
}

static int fs_do_reject(struct fs_run *run, const struct fs_step *s, struct fs_con *con)
{
	struct wire_conn_rsp rsp = {
		.magic = cpu_to_le16(WIRE_MAGIC),
		.version = cpu_to_le16(WIRE_VERSION),
		.err = cpu_to_le16(s->err ? 1 - s->err : -ECONNRESET),
	};

	fs_patch_msg(&rsp, sizeof(rsp), s);
	/* who comes again must find the place free; the others are told by the client */
	if (!con->cid)
		fs_path_close(con->path);
	return rdma_reject(con->id, &rsp, step_len_max(s, sizeof(rsp), sizeof(rsp)),
			   IB_CM_REJ_CONSUMER_DEFINED);
}

static int fs_do_cm_reject(struct fs_run *run, const struct fs_step *s, struct fs_con *con)
{
	fs_path_close(con->path);
	return rdma_reject(con->id, NULL, 0, s->err ? s->err - 1 : IB_CM_REJ_NO_RESOURCES);
}

static int fs_do_info_rsp(struct fs_run *run, const struct fs_step *s, struct fs_con *con)
{
	struct fs_path *path = con->path;
	const struct fs_sess *sess = path->sess;
	struct ib_rdma_wr wr = { .wr.opcode = IB_WR_SEND };
	size_t right = struct_size_t(struct wire_info_rsp, desc, sess->nr_desc);
	size_t len = step_len(s, right);
	/* a step may send more than is right, and write there */
	size_t size = max3(right, len, MSG_MIN);
	struct wire_info_rsp *rsp = kzalloc(size, GFP_KERNEL);
	u32 i, left = sess->queue_depth;
	int err;

	if (!rsp)
		return -ENOMEM;
	rsp->type = cpu_to_le16(WIRE_INFO_RSP);
	rsp->nr = cpu_to_le16(sess->nr_desc);
	for (i = 0; i < sess->nr_desc; i++) {
		u32 nr = min(left, sess->per_desc);

		rsp->desc[i].addr = cpu_to_le64(path->areas[i].mr->iova);
		rsp->desc[i].key = cpu_to_le32(path->areas[i].mr->rkey);
		rsp->desc[i].len = cpu_to_le32(nr * sess->chunk_size);
		left -= nr;
	}
	fs_patch_msg(rsp, size, s);
	path->up = true;
	err = fs_send(con, &wr, rsp, len);
	kfree(rsp);
	return err;
}

static int fs_do_hb(struct fs_run *run, const struct fs_step *s, struct fs_con *con)
{
	return fs_send_imm(con, WIRE_IMM_HB << WIRE_IMM_BITS);
}

static int fs_do_hb_ack(struct fs_run *run, const struct fs_step *s, struct fs_con *con)
{
	return fs_send_imm(con, WIRE_IMM_HB_ACK << WIRE_IMM_BITS);
}

static u32 step_key(const struct fs_run *run, const struct fs_step *s)
{
	struct fake_srv *srv = run->con->srv;
	/* without a request there is no right one */
	u32 key = run->req ? run->req->key : 0x00a5a500;

	if (s->key == FS_KEY_NEXT)
		return ib_inc_rkey(key);
	if (s->key == FS_KEY_NONE)
		return key ^ 0x00a5a500;
	if (s->key == FS_KEY_HELD) {
		struct fs_req *held;

		mutex_lock(&srv->mutex);
		held = list_first_entry_or_null(&srv->held, struct fs_req, entry);
		key = held ? held->key : key;
		mutex_unlock(&srv->mutex);
	}
	return key;
}

static u32 step_chunk(const struct fs_run *run, const struct fs_step *s, unsigned int part)
{
	u32 id = run->req ? run->req->id : 0;

	return s->other & part ? (id + 1) % run->con->path->sess->queue_depth : id;
}

static u32 step_imm(const struct fs_run *run, const struct fs_step *s)
{
	u32 type = run->req && run->req->inval ? WIRE_IMM_RSP_INV : WIRE_IMM_RSP;
	u32 id = step_chunk(run, s, FS_OTHER_IMM) + s->id;
	u32 err = run->req ? run->req->err : 0;

	if (s->type)
		type = s->type - 1;
	if (s->err)
		err = s->err - 1;
	return type << WIRE_IMM_BITS | (err & 0x1ff) << 19 | (id & 0x7ffff);
}

/* From the start of the chunk to the client's buffer, or the other way */
static int fs_rdma(struct fs_run *run, const struct fs_step *s, struct fs_con *con,
		   enum ib_wr_opcode opcode)
{
	struct fs_req *req = run->req;
	struct fs_area *area;
	struct fs_send *send;
	struct ib_sge sge;
	struct ib_rdma_wr wr = {
		.wr.opcode = opcode,
		.wr.send_flags = IB_SEND_SIGNALED,
		.wr.sg_list = &sge,
		.wr.num_sge = 1,
	};
	int err;

	if (!req || !req->len || (opcode == IB_WR_RDMA_READ && !con->srv->cfg.reads))
		return 0;
	area = fs_area_of(con->path, req->id);
	send = fs_send_new(con, NULL, 0);
	if (!send)
		return -ENOMEM;
	sge = (struct ib_sge) {
		.addr = sg_dma_address(&area->sg) +
			req->id % con->path->sess->per_desc * con->path->sess->chunk_size,
		.length = step_len(s, req->len),
		.lkey = con->path->pd->local_dma_lkey,
	};
	wr.wr.wr_cqe = &send->cqe;
	wr.wr.ex.imm_data = cpu_to_be32(step_imm(run, s));
	wr.remote_addr = req->addr;
	wr.rkey = step_key(run, s);
	err = fs_post(con, &wr.wr);
	if (err)
		kfree(send);
	return err;
}

static int fs_do_data(struct fs_run *run, const struct fs_step *s, struct fs_con *con)
{
	return fs_rdma(run, s, con, IB_WR_RDMA_WRITE);
}

static int fs_do_steal(struct fs_run *run, const struct fs_step *s, struct fs_con *con)
{
	return fs_rdma(run, s, con, IB_WR_RDMA_READ);
}

static int fs_do_new_key(struct fs_run *run, const struct fs_step *s, struct fs_con *con)
{
	if (!run->req || !con->path->sess->new_rkey)
		return 0;
	return fs_area_register(con, fs_area_of(con->path, run->req->id));
}

static int fs_do_inv(struct fs_run *run, const struct fs_step *s, struct fs_con *con)
{
	static const u8 junk[16];
	struct ib_rdma_wr wr = { .wr.opcode = IB_WR_SEND_WITH_INV };

	wr.wr.ex.invalidate_rkey = step_key(run, s);
	return fs_send(con, &wr, junk, step_len_max(s, 0, sizeof(junk)));
}

static int fs_do_imm(struct fs_run *run, const struct fs_step *s, struct fs_con *con)
{
	if (s->len)
		return fs_rdma(run, s, con, IB_WR_RDMA_WRITE_WITH_IMM);
	return fs_send_imm(con, step_imm(run, s));
}

static int fs_do_msg(struct fs_run *run, const struct fs_step *s, struct fs_con *con)
{
	u32 id = run->req ? run->req->id : 0;
	u32 key = fs_area_of(con->path, id)->mr->rkey;
	struct wire_new_key msg[2] = {
		{
			.type = cpu_to_le16(WIRE_NEW_KEY),
			.id = cpu_to_le16(step_chunk(run, s, FS_OTHER_MSG)),
			.key = cpu_to_le32(s->key ? ib_inc_rkey(key) : key),
		},
	};
	struct ib_rdma_wr wr = {
		.wr.opcode = IB_WR_SEND_WITH_IMM,
		.wr.ex.imm_data = cpu_to_be32(step_imm(run, s)),
	};

	fs_patch_msg(msg, sizeof(msg), s);
	return fs_send(con, &wr, msg, step_len_max(s, sizeof(*msg), sizeof(msg)));
}

static int fs_do_answer(struct fs_run *run, const struct fs_step *s, struct fs_con *con)
{
	struct fs_req *req = run->req;
	struct fs_step part = { .id = s->id, .type = s->type, .err = s->err };
	int err = 0;

	if (req && req->r.read && req->len && !req->err && !s->err)
		err = fs_do_data(run, &part, con);
	err = err ?: fs_do_new_key(run, &part, con);
	if (req && req->inval)
		err = err ?: fs_do_inv(run, &part, con);
	if (con->path->sess->new_rkey)
		return err ?: fs_do_msg(run, &part, con);
	return err ?: fs_do_imm(run, &part, con);
}

static int fs_do_send(struct fs_run *run, const struct fs_step *s, struct fs_con *con)
{
	static const u8 junk[64] = { 0xa5 };
	struct ib_rdma_wr wr = { .wr.opcode = IB_WR_SEND };

	return fs_send(con, &wr, junk, step_len_max(s, 8, sizeof(junk)));
}

static int fs_do_wait(struct fs_run *run, const struct fs_step *s, struct fs_con *con)
{
	unsigned long end = jiffies + msecs_to_jiffies(s->ms);

	while (time_before(jiffies, end) && !READ_ONCE(con->path->closing))
		usleep_range(1000, 2000);
	return 0;
}

static int fs_do_hold(struct fs_run *run, const struct fs_step *s, struct fs_con *con)
{
	if (!run->req)
		return 0;
	mutex_lock(&con->srv->mutex);
	list_add_tail(&run->req->entry, &con->srv->held);
	mutex_unlock(&con->srv->mutex);
	run->held = true;
	return -EINPROGRESS;
}

/* Before the CM has seen the client's last message it would not say anything. */
static int fs_do_disconnect(struct fs_run *run, const struct fs_step *s, struct fs_con *con)
{
	unsigned int ms;

	for (ms = 0; ms < ROOM_MS && !READ_ONCE(con->established); ms++)
		usleep_range(500, 1000);
	return rdma_disconnect(con->id);
}

static int fs_do_kill_qp(struct fs_run *run, const struct fs_step *s, struct fs_con *con)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	WRITE_ONCE(con->path->silent, true);
	return ib_modify_qp(con->qp, &attr, IB_QP_STATE);
}

static int fs_do_silence(struct fs_run *run, const struct fs_step *s, struct fs_con *con)
{
	WRITE_ONCE(con->path->silent, true);
	return 0;
}

static int (*const fs_ops[])(struct fs_run *run, const struct fs_step *s, struct fs_con *con) = {
	[FS_ACCEPT] = fs_do_accept,
	[FS_REJECT] = fs_do_reject,
	[FS_CM_REJECT] = fs_do_cm_reject,
	[FS_INFO_RSP] = fs_do_info_rsp,
	[FS_HB] = fs_do_hb,
	[FS_HB_ACK] = fs_do_hb_ack,
	[FS_ANSWER] = fs_do_answer,
	[FS_DATA] = fs_do_data,
	[FS_NEW_KEY] = fs_do_new_key,
	[FS_INV] = fs_do_inv,
	[FS_IMM] = fs_do_imm,
	[FS_MSG] = fs_do_msg,
	[FS_SEND] = fs_do_send,
	[FS_STEAL] = fs_do_steal,
	[FS_WAIT] = fs_do_wait,
	[FS_HOLD] = fs_do_hold,
	[FS_DISCONNECT] = fs_do_disconnect,
	[FS_KILL_QP] = fs_do_kill_qp,
	[FS_SILENCE] = fs_do_silence,
};

/* The connection that a step uses; *other is a path to leave afterwards. */
static struct fs_con *fs_pick_con(struct fs_con *con, enum fs_on on, struct fs_path **other)
{
	struct fs_path *path = con->path;
	unsigned int cid = con->cid;

	*other = NULL;
	if (on == FS_ON_CID0)
		return path->con[0];
	if (on == FS_ON_NEXT_CON)
		return path->con[cid % (path->nr_cons - 1) + 1];
	if (on == FS_ON_SAME)
		return con;
	*other = fs_other_path(path, on == FS_ON_OTHER_PATH);
	return *other && cid < (*other)->nr_cons ? (*other)->con[cid] : NULL;
}

static int fs_run_step(struct fs_run *run, const struct fs_step *s)
{
	struct fs_path *other;
	struct fs_con *con = fs_pick_con(run->con, s->on, &other);
	unsigned int i;
	int err = 0;

	for (i = 0; con && con->qp && i < (s->nr ?: 1) && !err; i++)
		err = fs_ops[s->op](run, s, con);
	if (other)
		fs_path_leave(other);
	spin_lock(&run->con->srv->lock);
	run->con->srv->stats.steps += i;
	spin_unlock(&run->con->srv->lock);
	return err;
}

static void fs_run_steps(struct fs_run *run)
{
	unsigned int i;

	for (i = 0; i < FS_STEPS && run->step[i].op != FS_END; i++) {
		if (READ_ONCE(run->con->path->closing))
			return;
		if (fs_run_step(run, &run->step[i]))
			return;
	}
}

static const enum fs_op fs_good[] = {
	[FS_AT_CONN_REQ] = FS_ACCEPT,
	[FS_AT_INFO_REQ] = FS_INFO_RSP,
	[FS_AT_REQUEST] = FS_ANSWER,
	[FS_AT_HB] = FS_HB_ACK,
};

/* The third byte of the address that the client has connected to */
static unsigned int fs_link(const struct fs_con *con)
{
	const struct sockaddr_in *addr = (const void *)&con->id->route.addr.src_addr;

	return ntohl(addr->sin_addr.s_addr) >> 8 & 0xff;
}

/* Takes the script's steps if it has its say here. */
static bool fs_match(struct fs_con *con, enum fs_at at, struct fs_step *step)
{
	struct fake_srv *srv = con->srv;
	struct fs_script *s = &srv->script;
	bool match;

	spin_lock(&srv->lock);
	match = s->at == at && (!s->cid || s->cid == FS_CID(con->cid)) &&
		(!s->path || s->path == con->path->index) &&
		(!s->link || s->link == FS_LINK(fs_link(con)));
	if (match && s->skip) {
		s->skip--;
		match = false;
	}
	if (match && s->times && !--s->times)
		s->at = FS_NEVER;
	if (match) {
		srv->stats.hits++;
		memcpy(step, s->step, sizeof(s->step));
	}
	spin_unlock(&srv->lock);
	return match;
}

/* Does what is to be done at this point; frees @req unless it is held. */
void fs_phase(struct fs_con *con, enum fs_at at, struct fs_req *req)
{
	struct fs_run *run = kzalloc(sizeof(*run), GFP_KERNEL);

	if (run) {
		run->con = con;
		run->req = req;
		if (!fs_match(con, at, run->step))
			run->step[0].op = at < ARRAY_SIZE(fs_good) ? fs_good[at] : FS_END;
		fs_run_steps(run);
		if (run->held)
			req = NULL;
	}
	kfree(run);
	kfree(req);
}

/**
 * fake_srv_release() - go on with the requests that FS_HOLD has kept
 * @srv: the server
 * @step: FS_STEPS steps, done for each of them, the oldest first
 *
 * Return: how many there were, or -ENOMEM.
 */
int fake_srv_release(struct fake_srv *srv, const struct fs_step *step)
{
	struct fs_run *run = kzalloc(sizeof(*run), GFP_KERNEL);
	struct fs_req *req;
	int nr = 0;

	if (!run)
		return -ENOMEM;
	memcpy(run->step, step, sizeof(run->step));
	for (;;) {
		mutex_lock(&srv->mutex);
		req = list_first_entry_or_null(&srv->held, struct fs_req, entry);
		if (req && fs_path_enter(req->con->path))
			list_del(&req->entry);
		else
			req = NULL;
		mutex_unlock(&srv->mutex);
		if (!req)
			break;
		run->con = req->con;
		run->req = req;
		fs_run_steps(run);
		fs_path_leave(req->con->path);
		kfree(req);
		nr++;
	}
	kfree(run);
	return nr;
}

void fs_hb_work(struct work_struct *work)
{
	struct fs_path *path = container_of(to_delayed_work(work), struct fs_path, hb);

	if (!fs_path_enter(path))
		return;
	if (!READ_ONCE(path->silent))
		fs_send_imm(path->con[0], WIRE_IMM_HB << WIRE_IMM_BITS);
	queue_delayed_work(path->srv->wq, &path->hb, msecs_to_jiffies(path->srv->cfg.hb_ms));
	fs_path_leave(path);
}

/*
 * Receives
 */

static int fs_post_recv(struct fs_con *con)
{
	struct ib_recv_wr wr = { .wr_cqe = &con->recv_cqe };

	return ib_post_recv(con->qp, &wr, NULL);
}

int fs_con_post_recvs(struct fs_con *con)
{
	u32 nr = 2 * con->path->sess->queue_depth + FS_RQ_EXTRA - 1;
	struct ib_sge sge = { .length = sizeof(*con->info) };
	struct ib_recv_wr wr = { .wr_cqe = &con->info_cqe, .sg_list = &sge, .num_sge = 1 };
	int err = 0;

	if (!con->cid) {
		con->info = kzalloc(sizeof(*con->info), GFP_KERNEL);
		if (!con->info)
			return -ENOMEM;
		con->info_dma = ib_dma_map_single(con->id->device, con->info, sizeof(*con->info),
						  DMA_FROM_DEVICE);
		sge.addr = con->info_dma;
		sge.lkey = con->path->pd->local_dma_lkey;
		err = ib_post_recv(con->qp, &wr, NULL);
	}
	while (nr-- && !err)
		err = fs_post_recv(con);
	return err;
}

/* Reads a request out of its chunk. NULL, or what is wrong with it. */
static const char *fs_parse_req(struct fs_con *con, u32 payload, struct fs_req *req)
{
	const struct fs_sess *sess = con->path->sess;
	u32 off_bits = WIRE_IMM_BITS - bits(sess->queue_depth);
	u32 off = payload & (BIT(off_bits) - 1);
	struct wire_read msg = {};
	struct wire_desc desc;
	void *chunk;

	req->id = payload >> off_bits;
	if (req->id >= sess->queue_depth || off > sess->chunk_size - sizeof(struct wire_write))
		return "request for a chunk that does not exist";
	chunk = fs_chunk(con->path, req->id);
	memcpy(&msg, chunk + off, min_t(u32, sizeof(msg), sess->chunk_size - off));
	if (le16_to_cpu(msg.usr_len) > off)
		return "user message longer than the request";
	req->r.usr_len = le16_to_cpu(msg.usr_len);
	req->r.data = chunk;
	req->r.data_len = off - req->r.usr_len;
	req->r.usr = chunk + req->r.data_len;
	if (le16_to_cpu(msg.type) == WIRE_WRITE)
		return NULL;
	if (le16_to_cpu(msg.type) != WIRE_READ)
		return "request of unknown type";
	req->r.read = true;
	if (!msg.nr)
		return req->r.data_len ? "read of data without a place for them" : NULL;
	if (le16_to_cpu(msg.nr) != 1 || off + sizeof(msg) + sizeof(desc) > sess->chunk_size)
		return "read with several descriptors, or beyond the chunk";
	memcpy(&desc, chunk + off + sizeof(msg), sizeof(desc));
	req->addr = le64_to_cpu(desc.addr);
	req->key = le32_to_cpu(desc.key);
	req->len = le32_to_cpu(desc.len);
	req->inval = le16_to_cpu(msg.flags) & WIRE_NEED_INVAL;
	return req->len == req->r.data_len ? NULL : "descriptor does not fit the data";
}

static void fs_request(struct fs_con *con, u32 payload)
{
	const struct fs_config *cfg = &con->srv->cfg;
	struct fs_req *req = kzalloc(sizeof(*req), GFP_KERNEL);
	const char *complaint;

	if (!req)
		return;
	req->con = con;
	complaint = fs_parse_req(con, payload, req);
	if (complaint) {
		fs_complain(con->srv, complaint);
		kfree(req);
		fs_path_close(con->path);
		return;
	}
	spin_lock(&con->srv->lock);
	con->srv->stats.requests++;
	spin_unlock(&con->srv->lock);
	if (con->path->sess->new_rkey)
		fs_area_invalidate(con, fs_area_of(con->path, req->id));
	if (cfg->request)
		req->err = cfg->request(cfg->priv, &req->r);
	fs_phase(con, FS_AT_REQUEST, req);
}

static void fs_imm(struct fs_con *con, u32 imm)
{
	struct fake_srv *srv = con->srv;
	u32 type = imm >> WIRE_IMM_BITS;

	if (type == WIRE_IMM_REQ) {
		fs_request(con, imm & (BIT(WIRE_IMM_BITS) - 1));
		return;
	}
	if ((type != WIRE_IMM_HB && type != WIRE_IMM_HB_ACK) || con->cid)
		fs_complain(srv, "immediate that is none of a client, or on the wrong connection");
	spin_lock(&srv->lock);
	srv->stats.hbs += type == WIRE_IMM_HB;
	srv->stats.hb_acks += type == WIRE_IMM_HB_ACK;
	spin_unlock(&srv->lock);
	if (type == WIRE_IMM_HB)
		fs_phase(con, FS_AT_HB, NULL);
}

void fs_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct fs_con *con = wc->qp->qp_context;
	struct fs_path *path = con->path;

	if (wc->status != IB_WC_SUCCESS)
		return;
	if (!fs_path_enter(path))
		return;
	fs_post_recv(con);
	if (READ_ONCE(path->silent))
		goto leave;
	if (!READ_ONCE(path->up))
		fs_complain(con->srv, "message before the info request");
	else if (wc->opcode != IB_WC_RECV_RDMA_WITH_IMM)
		fs_complain(con->srv, "message that is no write with an immediate");
	else
		fs_imm(con, be32_to_cpu(wc->ex.imm_data));
leave:
	fs_path_leave(path);
}

static const char *fs_check_info_req(const struct fs_con *con, const struct ib_wc *wc)
{
	unsigned int i;

	if (wc->opcode != IB_WC_RECV || wc->byte_len != sizeof(*con->info))
		return "first message is no info request";
	if (con->info->type != cpu_to_le16(WIRE_INFO_REQ))
		return "info request with bad type";
	if (!con->info->name[0] || !memchr(con->info->name, 0, sizeof(con->info->name)))
		return "info request without a name";
	for (i = 0; i < con->path->nr_cons; i++)
		if (!con->path->con[i])
			return "info request before all connections are there";
	return NULL;
}

void fs_info_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct fs_con *con = wc->qp->qp_context;
	struct fs_path *path = con->path;
	const char *complaint;
	u32 i;

	if (wc->status != IB_WC_SUCCESS || !fs_path_enter(path))
		return;
	ib_dma_sync_single_for_cpu(con->id->device, con->info_dma, sizeof(*con->info),
				   DMA_FROM_DEVICE);
	complaint = fs_check_info_req(con, wc);
	if (complaint) {
		fs_complain(con->srv, complaint);
		fs_path_close(path);
	} else if (!READ_ONCE(path->silent)) {
		for (i = 0; i < path->sess->nr_desc; i++)
			fs_area_register(con, &path->areas[i]);
		fs_phase(con, FS_AT_INFO_REQ, NULL);
		fs_phase(con, FS_AT_UP, NULL);
		queue_delayed_work(path->srv->wq, &path->hb,
				   msecs_to_jiffies(path->srv->cfg.hb_ms));
	}
	fs_path_leave(path);
}
