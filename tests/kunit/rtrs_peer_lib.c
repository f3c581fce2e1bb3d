// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The client under test as its user sees it; see rtrs_peer.h
 */
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/fs_struct.h>
#include <linux/in.h>
#include <linux/inet.h>
#include <linux/path.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uio.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <rdma/restrack.h>

#include "rtrs_peer.h"

#define CONNECT_TIMEOUT "/sys/module/rtrs_client/parameters/connect_timeout_ms"
#define FREED_MS 3000
#define HOSTILE_MS 300U
#define FILL 0x5a
#define BURST 8

/* The user message of our requests: what the server shall write or find */
struct peer_msg {
	__le32 tag;
	__le32 len;
	u8 pad[24];
};

/* What a path says it has done, since it is there */
struct peer_counts {
	unsigned int reads;
	unsigned int writes;
	unsigned int inflight;
};

static struct rdma_cm_id *peer_id[PEER_LINKS];
static struct path peer_root;
static unsigned int peer_tag;
/* What a good attempt to connect takes; at first a guess, since the first is slow */
static unsigned int peer_good_ms = 100 * PEER_SCALE;

/* 10.0.LINK.1, where client and server are */
static void peer_addr(struct sockaddr_storage *ss, unsigned int link, u16 port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)ss;

	memset(ss, 0, sizeof(*ss));
	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	in->sin_addr.s_addr = htonl(0x0a000001 | link << 8);
}

/* Length of the user message of all requests here */
const size_t peer_msg_len = sizeof(struct peer_msg);

static u8 pattern(u32 tag, size_t i)
{
	return tag * 31 + i * 7 + (i >> 8);
}

/*
 * Files. Tests run in kernel threads, whose root folder is empty; modprobe's is
 * the one that user space has mounted sysfs into.
 */

static int file_write(const char *name, const char *val)
{
	struct file *file = file_open_root(&peer_root, name, O_WRONLY, 0);
	loff_t pos = 0;
	ssize_t n;

	if (IS_ERR(file))
		return PTR_ERR(file);
	n = kernel_write(file, val, strlen(val), &pos);
	filp_close(file, NULL);
	return n < 0 ? n : 0;
}

/* Without the newline. 0 or negative errno. */
static int file_read(const char *name, char *buf, size_t len)
{
	struct file *file = file_open_root(&peer_root, name, O_RDONLY, 0);
	loff_t pos = 0;
	ssize_t n;

	if (IS_ERR(file))
		return PTR_ERR(file);
	n = kernel_read(file, buf, len - 1, &pos);
	filp_close(file, NULL);
	buf[max_t(ssize_t, n, 0)] = 0;
	strim(buf);
	return n < 0 ? n : 0;
}

/* Time limit of each attempt to connect from now on */
void peer_connect_ms(struct kunit *test, unsigned int ms)
{
	char val[16];

	snprintf(val, sizeof(val), "%u", ms);
	KUNIT_ASSERT_EQ(test, 0, file_write(CONNECT_TIMEOUT, val));
}

static char *sess_file(struct peer *p, const char *attr)
{
	return kasprintf(GFP_KERNEL, "/sys/class/rtrs-client/%s/%s", p->name, attr);
}

static char *path_file(struct peer *p, unsigned int path, const char *attr)
{
	return kasprintf(GFP_KERNEL,
			 "/sys/class/rtrs-client/%s/paths/ip:10.0.%u.1@ip:10.0.%u.1/%s", p->name,
			 path, path, attr);
}

int peer_path_read(struct peer *p, unsigned int path, const char *attr, char *buf, size_t len)
{
	char *name = path_file(p, path, attr);
	int err;

	KUNIT_ASSERT_NOT_NULL(p->test, name);
	err = file_read(name, buf, len);
	kfree(name);
	return err;
}

int peer_path_write(struct peer *p, unsigned int path, const char *attr, const char *val)
{
	char *name = path_file(p, path, attr);
	int err;

	KUNIT_ASSERT_NOT_NULL(p->test, name);
	err = file_write(name, val);
	kfree(name);
	return err;
}

int peer_sess_write(struct peer *p, const char *attr, const char *val)
{
	char *name = sess_file(p, attr);
	int err;

	KUNIT_ASSERT_NOT_NULL(p->test, name);
	err = file_write(name, val);
	kfree(name);
	return err;
}

/* So that a path which is silent is given up soon */
void peer_short_hb(struct peer *p, const char *interval_ms)
{
	KUNIT_EXPECT_EQ(p->test, 0, peer_sess_write(p, "hb_interval_ms", interval_ms));
	KUNIT_EXPECT_EQ(p->test, 0, peer_sess_write(p, "hb_missed_max", "1"));
}

/*
 * Suites
 */

static int no_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	return 0;
}

/* An id bound to the address of a link knows, and keeps, its device. */
static struct rdma_cm_id *link_id(unsigned int link)
{
	struct sockaddr_storage addr;
	struct rdma_cm_id *id;
	int err;

	id = rdma_create_id(&init_net, no_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return NULL;
	peer_addr(&addr, link, 0);
	err = rdma_bind_addr(id, (struct sockaddr *)&addr);
	if (!err && id->device)
		return id;
	rdma_destroy_id(id);
	return NULL;
}

int peer_suite_init(struct kunit_suite *suite)
{
	unsigned int i;

	get_fs_root(current->fs, &peer_root);
	for (i = 0; i < PEER_LINKS; i++)
		peer_id[i] = link_id(i);
	return 0;
}

void peer_suite_exit(struct kunit_suite *suite)
{
	unsigned int i;

	for (i = 0; i < PEER_LINKS; i++) {
		if (peer_id[i])
			rdma_destroy_id(peer_id[i]);
		peer_id[i] = NULL;
	}
	path_put(&peer_root);
}

/* The HCA of a link */
struct ib_device *peer_hca(unsigned int link)
{
	return peer_id[link]->device;
}

static const struct peer_res {
	const char *what;
	enum rdma_restrack_type type;
} peer_res[] = {
	{ "PDs", RDMA_RESTRACK_PD },
	{ "CQs", RDMA_RESTRACK_CQ },
	{ "QPs", RDMA_RESTRACK_QP },
	{ "CM ids", RDMA_RESTRACK_CM_ID },
	{ "MRs", RDMA_RESTRACK_MR },
	/* not an object of its own */
	{ "entries of shared CQs", RDMA_RESTRACK_MAX },
};

static_assert(ARRAY_SIZE(peer_res) <= PEER_RES);

/* The core keeps shared CQs for later users, so not they count but who uses them. */
static void shared_cqs(struct ib_device *dev, unsigned int *cqs, unsigned int *entries)
{
	struct ib_cq *cq;
	unsigned int i;

	*cqs = 0;
	*entries = 0;
	spin_lock_irq(&dev->cq_pools_lock);
	for (i = 0; i < ARRAY_SIZE(dev->cq_pools); i++) {
		list_for_each_entry(cq, &dev->cq_pools[i], pool_entry) {
			++*cqs;
			*entries += cq->cqe_used;
		}
	}
	spin_unlock_irq(&dev->cq_pools_lock);
}

static unsigned int res_count(unsigned int link, unsigned int kind)
{
	struct ib_device *dev = peer_id[link]->device;
	enum rdma_restrack_type type = peer_res[kind].type;
	unsigned int cqs, entries;

	shared_cqs(dev, &cqs, &entries);
	if (type == RDMA_RESTRACK_MAX)
		return entries;
	return rdma_restrack_count(dev, type, true) - (type == RDMA_RESTRACK_CQ ? cqs : 0);
}

static void peer_count_resources(struct peer *p)
{
	unsigned int i, k;

	for (i = 0; i < PEER_LINKS; i++)
		for (k = 0; k < ARRAY_SIZE(peer_res); k++)
			p->res[i][k] = res_count(i, k);
}

static bool resources_are_back(struct peer *p)
{
	unsigned int i, k;

	for (i = 0; i < PEER_LINKS; i++)
		for (k = 0; k < ARRAY_SIZE(peer_res); k++)
			if (res_count(i, k) != p->res[i][k])
				return false;
	return true;
}

/* The HCAs have as much as before the test: nothing of it is left behind. */
static void peer_expect_no_leak(struct peer *p)
{
	unsigned long end = jiffies + msecs_to_jiffies(FREED_MS * PEER_SCALE);
	unsigned int i, k;

	while (!resources_are_back(p) && time_before(jiffies, end))
		msleep(20);
	for (i = 0; i < PEER_LINKS; i++)
		for (k = 0; k < ARRAY_SIZE(peer_res); k++)
			KUNIT_EXPECT_EQ_MSG(p->test, res_count(i, k), p->res[i][k],
					    "rxe%u: %s leaked", i, peer_res[k].what);
}

/* Server side of a request: fills what is read, checks what was written. */
static int peer_serve(void *priv, const struct fs_request *req)
{
	struct peer *p = priv;
	struct peer_msg msg;
	u8 *data = req->data;
	u32 tag, i;

	if (req->usr_len != sizeof(msg) + p->msg_more) {
		atomic_inc(&p->bad_data);
		return 0;
	}
	memcpy(&msg, req->usr, sizeof(msg));
	tag = le32_to_cpu(msg.tag);
	if (le32_to_cpu(msg.len) != req->data_len) {
		atomic_inc(&p->bad_data);
		return 0;
	}
	for (i = 0; i < req->data_len; i++) {
		if (req->read)
			data[i] = pattern(tag, i);
		else if (data[i] != pattern(tag, i))
			break;
	}
	if (i < req->data_len)
		atomic_inc(&p->bad_data);
	return 0;
}

/* Also when the test was broken off */
static void peer_stop_action(void *p)
{
	peer_stop(p);
}

/* A server that is like that */
static void peer_serve_as(struct peer *p, const struct peer_mode *mode)
{
	struct fs_config cfg = {
		.port = PEER_PORT,
		.new_rkey = mode->new_rkey,
		.reads = mode->reads,
		.queue_depth = mode->queue_depth,
		.chunks_per_desc = mode->chunks_per_desc,
		.max_io_size = mode->max_io_size,
		.max_hdr_size = mode->max_hdr_size,
		.hb_ms = mode->hb_ms,
		.request = peer_serve,
		.priv = p,
	};
	struct fake_srv *srv = fake_srv_start(&cfg);

	KUNIT_ASSERT_FALSE_MSG(p->test, IS_ERR(srv), "no server: %pe", srv);
	p->srv = srv;
}

/* The client has kept to the protocol. */
static void peer_stop_serving(struct peer *p)
{
	struct fake_srv *srv = p->srv;
	struct fs_stats stats;

	p->srv = NULL;
	fake_srv_stats(srv, &stats);
	fake_srv_stop(srv);
	KUNIT_EXPECT_PTR_EQ_MSG(p->test, stats.complaint, NULL, "the client: %s",
				stats.complaint ?: "");
}

/* The server is taken down, and comes back as another one. */
void peer_restart(struct peer *p, const struct peer_mode *mode)
{
	peer_stop_serving(p);
	peer_serve_as(p, mode);
}

/* Needs a machine with two links; anywhere else the test is skipped. */
struct peer *peer_start(struct kunit *test, const struct peer_mode *mode)
{
	struct peer *p;

	if (!peer_id[0] || !peer_id[1])
		kunit_skip(test, "no RDMA devices at 10.0.0.1 and 10.0.1.1");
	p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, p);
	p->test = test;
	INIT_LIST_HEAD(&p->reqs);
	spin_lock_init(&p->lock);
	peer_count_resources(p);
	peer_serve_as(p, mode);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, peer_stop_action, p));
	peer_connect_ms(test, PEER_CONNECT_MS * PEER_SCALE);
	return p;
}

/*
 * The end of each test: every request was confirmed once, the client has kept
 * to the protocol, no data were wrong, nothing is left behind.
 */
void peer_stop(struct peer *p)
{
	if (!p->srv)
		return;
	if (p->clt)
		peer_close(p);
	while (!list_empty(&p->reqs))
		peer_free(list_first_entry(&p->reqs, struct peer_req, entry));
	peer_stop_serving(p);
	KUNIT_EXPECT_EQ(p->test, atomic_read(&p->bad_data), 0);
	peer_expect_no_leak(p);
}

/*
 * Sessions
 */

static void peer_link_ev(void *priv, enum rtrs_clt_link_ev ev)
{
	struct peer *p = priv;

	atomic_inc(ev == RTRS_CLT_LINK_EV_RECONNECTED ? &p->up_events : &p->down_events);
}

/* A new name, so that nobody looks at the files of a session before */
void peer_prepare(struct peer *p, unsigned int paths)
{
	static unsigned int nr;

	snprintf(p->name, sizeof(p->name), "peer%u", ++nr);
	p->paths = paths;
}

/* rtrs_clt_open() and nothing else */
struct rtrs_clt_sess *peer_open_raw(struct peer *p, unsigned int paths)
{
	struct rtrs_clt_ops ops = { .priv = p, .link_ev = peer_link_ev };
	struct sockaddr_storage src[PEER_LINKS], dst[PEER_LINKS];
	struct rtrs_addr addr[PEER_LINKS];
	unsigned int i;

	for (i = 0; i < PEER_LINKS; i++) {
		peer_addr(&src[i], i, 0);
		peer_addr(&dst[i], i, PEER_PORT);
		addr[i].src = &src[i];
		addr[i].dst = &dst[i];
	}
	/* a path that has failed stays down until the test says otherwise */
	return rtrs_clt_open(&ops, p->name, addr, paths, PEER_PORT, 0, 60, -1, 0);
}

/*
 * Limit of an attempt to connect that shall fail: short, but several times what
 * a good one takes now, whatever the machine has to do besides.
 */
unsigned int peer_hostile_ms(void)
{
	return max(HOSTILE_MS, 6 * peer_good_ms);
}

/* 0 or the errno of rtrs_clt_open() */
int peer_open(struct peer *p, unsigned int paths, unsigned int connect_ms)
{
	struct rtrs_clt_sess *clt;
	unsigned int took;
	ktime_t begin;

	peer_prepare(p, paths);
	peer_connect_ms(p->test, connect_ms);
	begin = ktime_get();
	clt = peer_open_raw(p, paths);
	took = ktime_ms_delta(ktime_get(), begin);
	peer_connect_ms(p->test, PEER_CONNECT_MS * PEER_SCALE);
	if (IS_ERR(clt))
		return PTR_ERR(clt);
	p->clt = clt;
	peer_good_ms = max(took, peer_good_ms * 3 / 4);
	return 0;
}

static void peer_put(struct peer_req *req)
{
	struct rtrs_permit *permit = xchg(&req->permit, NULL);

	if (permit)
		rtrs_clt_put_permit(req->peer->clt, permit);
}

/* Close waits for all permits: those not yet back come with the confirmation. */
void peer_close(struct peer *p)
{
	struct peer_req *req;

	spin_lock_irq(&p->lock);
	p->closing = true;
	spin_unlock_irq(&p->lock);
	list_for_each_entry(req, &p->reqs, entry)
		if (completion_done(&req->done))
			peer_put(req);
	rtrs_clt_close(p->clt);
	p->clt = NULL;
	p->closing = false;
}

bool peer_path_is_up(struct peer *p, unsigned int path)
{
	char buf[32];

	KUNIT_EXPECT_EQ(p->test, 0, peer_path_read(p, path, "state_detail", buf, sizeof(buf)));
	return !strcmp(buf, "connected");
}

/* Waits until a path is up, or until it is not. */
bool peer_wait_path(struct peer *p, unsigned int path, bool up, unsigned int ms)
{
	unsigned long end = jiffies + msecs_to_jiffies(ms * PEER_SCALE);

	while (peer_path_is_up(p, path) != up) {
		if (time_after(jiffies, end))
			return false;
		msleep(20);
	}
	return true;
}

void peer_expect_reason(struct peer *p, unsigned int path, int err, const char *why)
{
	char buf[128], num[16];

	KUNIT_EXPECT_EQ(p->test, 0,
			peer_path_read(p, path, "last_error_reason", buf, sizeof(buf)));
	KUNIT_EXPECT_STREQ(p->test, buf, why);
	KUNIT_EXPECT_EQ(p->test, 0, peer_path_read(p, path, "last_error", buf, sizeof(buf)));
	snprintf(num, sizeof(num), "%d", err);
	KUNIT_EXPECT_STREQ(p->test, buf, num);
}

int peer_reconnect(struct peer *p, unsigned int path)
{
	return peer_path_write(p, path, "reconnect", "1");
}

/*
 * Acts of suites in which something fails on the way, and how to undo them
 */

int peer_do_open(struct peer *p)
{
	struct rtrs_clt_sess *clt = peer_open_raw(p, 1);

	p->clt = IS_ERR(clt) ? NULL : clt;
	return PTR_ERR_OR_ZERO(clt);
}

int peer_undo_open(struct peer *p)
{
	peer_close(p);
	return 0;
}

int peer_do_add_path(struct peer *p)
{
	return peer_add_path(p, 1);
}

int peer_undo_add_path(struct peer *p)
{
	return peer_path_write(p, 1, "remove_path", "1");
}

int peer_do_reconnect(struct peer *p)
{
	return peer_reconnect(p, 0);
}

/* The first path is up again, or was all the time. */
int peer_mend(struct peer *p)
{
	return peer_path_is_up(p, 0) ? 0 : peer_reconnect(p, 0);
}

int peer_add_path(struct peer *p, unsigned int link)
{
	char val[64];

	snprintf(val, sizeof(val), "ip:10.0.%u.1@ip:10.0.%u.1", link, link);
	return peer_sess_write(p, "add_path", val);
}

/* The same; before() and after() enclose the write, but not what prepares it. */
int peer_add_path_with(struct peer *p, unsigned int link, unsigned int (*before)(void),
		       void (*after)(unsigned int taken))
{
	char *name = sess_file(p, "add_path");
	struct file *file;
	loff_t pos = 0;
	unsigned int taken;
	char val[64];
	ssize_t n;

	KUNIT_ASSERT_NOT_NULL(p->test, name);
	file = file_open_root(&peer_root, name, O_WRONLY, 0);
	kfree(name);
	KUNIT_ASSERT_FALSE(p->test, IS_ERR(file));
	snprintf(val, sizeof(val), "ip:10.0.%u.1@ip:10.0.%u.1", link, link);
	taken = before();
	n = kernel_write(file, val, strlen(val), &pos);
	after(taken);
	filp_close(file, NULL);
	return n < 0 ? n : 0;
}

/*
 * Requests
 */

static void peer_conf(void *priv, int err)
{
	struct peer_req *req = priv;
	struct peer *p = req->peer;
	unsigned long flags;

	/* who frees the request takes the lock before */
	spin_lock_irqsave(&p->lock, flags);
	req->err = err;
	atomic_inc(&req->confs);
	complete(&req->done);
	if (p->closing)
		peer_put(req);
	spin_unlock_irqrestore(&p->lock, flags);
}

void peer_fill(struct peer_req *req, u8 byte)
{
	unsigned int i;

	for (i = 0; i < req->nr_sg; i++)
		memset(req->page[i], byte, req->sg[i].length);
}

static u8 req_byte(const struct peer_req *req, size_t i)
{
	return ((u8 *)req->page[i / PAGE_SIZE])[i % PAGE_SIZE];
}

bool peer_data_is(struct peer_req *req, u8 byte)
{
	size_t i;

	for (i = 0; i < req->len; i++)
		if (req_byte(req, i) != byte)
			return false;
	return true;
}

bool peer_data_ok(struct peer_req *req)
{
	size_t i;

	for (i = 0; i < req->len; i++)
		if (req_byte(req, i) != pattern(req->tag, i))
			return false;
	return true;
}

static void peer_alloc_data(struct peer_req *req)
{
	size_t i, left = req->len;

	req->nr_sg = DIV_ROUND_UP(req->len, PAGE_SIZE);
	KUNIT_ASSERT_LE(req->peer->test, req->nr_sg, PEER_MAX_SG);
	sg_init_table(req->sg, max(req->nr_sg, 1U));
	for (i = 0; i < req->nr_sg; i++) {
		req->page[i] = (void *)__get_free_page(GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(req->peer->test, req->page[i]);
		sg_set_buf(&req->sg[i], req->page[i], min_t(size_t, left, PAGE_SIZE));
		left -= req->sg[i].length;
	}
	peer_fill(req, FILL);
	if (req->dir == WRITE)
		for (i = 0; i < req->len; i++)
			((u8 *)req->page[i / PAGE_SIZE])[i % PAGE_SIZE] = pattern(req->tag, i);
}

static struct peer_req *peer_prepare_req(struct peer *p, int dir, size_t len)
{
	struct peer_req *req = kzalloc(sizeof(*req), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(p->test, req);
	req->peer = p;
	req->dir = dir;
	req->len = len;
	req->tag = ++peer_tag;
	init_completion(&req->done);
	list_add_tail(&req->entry, &p->reqs);
	peer_alloc_data(req);
	return req;
}

static void peer_send(struct peer_req *req, enum rtrs_clt_con_type con)
{
	struct rtrs_clt_req_ops ops = { .priv = req, .conf_fn = peer_conf };
	struct peer *p = req->peer;
	struct peer_msg msg = { .tag = cpu_to_le32(req->tag), .len = cpu_to_le32(req->len) };
	/* the message is what all pieces are together */
	struct kvec vec[] = {
		{ &msg.tag, sizeof(msg.tag) }, { &msg.len, sizeof(msg.len) }, { NULL, 0 },
		{ msg.pad, sizeof(msg.pad) }, { msg.pad, p->msg_more },
	};
	int err = -ENOSPC;

	req->permit = rtrs_clt_get_permit(p->clt, con, RTRS_PERMIT_NOWAIT);
	if (req->permit)
		err = rtrs_clt_request(req->dir, &ops, p->clt, req->permit, vec,
				       ARRAY_SIZE(vec), req->len, req->sg, req->nr_sg);
	if (err) {
		/* refused: not to be confirmed, see peer_free() */
		req->err = err;
		atomic_inc(&req->confs);
		complete(&req->done);
	}
}

/* The request; if it was refused it is done, and has the error */
struct peer_req *peer_submit(struct peer *p, int dir, size_t len, enum rtrs_clt_con_type con)
{
	struct peer_req *req = peer_prepare_req(p, dir, len);

	peer_send(req, con);
	return req;
}

#ifdef CONFIG_FAILSLAB
/* The same, with no memory to be had by the client */
struct peer_req *peer_submit_nomem(struct peer *p, int dir, size_t len)
{
	struct peer_req *req = peer_prepare_req(p, dir, len);

	current->fail_nth = 1;
	peer_send(req, RTRS_IO_CON);
	KUNIT_EXPECT_EQ_MSG(p->test, current->fail_nth, 1, "a request has allocated memory");
	current->fail_nth = 0;
	return req;
}
#endif

/* Waits for the confirmation, and gives the permit back. */
bool peer_wait(struct peer_req *req, unsigned int ms)
{
	if (!wait_for_completion_timeout(&req->done, msecs_to_jiffies(ms * PEER_SCALE)))
		return false;
	complete(&req->done);
	peer_put(req);
	return true;
}

void peer_free(struct peer_req *req)
{
	unsigned int i;

	KUNIT_EXPECT_EQ_MSG(req->peer->test, atomic_read(&req->confs), 1,
			    "confirmed more or less than once");
	list_del(&req->entry);
	spin_lock_irq(&req->peer->lock);
	spin_unlock_irq(&req->peer->lock);
	for (i = 0; i < req->nr_sg; i++)
		free_page((unsigned long)req->page[i]);
	kfree(req);
}

/* One request from begin to end: 0, its error, or -ETIME */
int peer_do(struct peer *p, int dir, size_t len)
{
	struct peer_req *req = peer_submit(p, dir, len, RTRS_IO_CON);
	int err;

	if (!peer_wait(req, 5000))
		return -ETIME;
	err = req->err;
	if (!err && dir == READ && !peer_data_ok(req))
		err = -EBADMSG;
	peer_free(req);
	return err;
}

static struct peer_counts peer_counts(struct peer *p, unsigned int path)
{
	struct peer_counts c = {};
	char buf[128];
	int nr;

	KUNIT_EXPECT_EQ(p->test, 0, peer_path_read(p, path, "stats/rdma", buf, sizeof(buf)));
	nr = sscanf(buf, "%u %*u %u %*u %u", &c.reads, &c.writes, &c.inflight);
	KUNIT_EXPECT_EQ(p->test, nr, 3);
	return c;
}

/* As many requests at once as there are chunks, but no more than that */
static void peer_expect_burst(struct peer *p, enum rtrs_clt_con_type con, unsigned int nr,
			      size_t len)
{
	struct peer_req *reqs[BURST];
	struct rtrs_attrs attr;
	unsigned int i;

	KUNIT_ASSERT_EQ(p->test, 0, rtrs_clt_query(p->clt, &attr));
	nr = min(nr, attr.queue_depth);
	for (i = 0; i < nr; i++)
		reqs[i] = peer_submit(p, i & 1 ? READ : WRITE, len, con);
	for (i = 0; i < nr; i++) {
		KUNIT_ASSERT_TRUE_MSG(p->test, peer_wait(reqs[i], 5000), "a request hangs");
		KUNIT_EXPECT_EQ(p->test, reqs[i]->err, 0);
		KUNIT_EXPECT_TRUE(p->test, peer_data_ok(reqs[i]));
		peer_free(reqs[i]);
	}
}

/*
 * All paths carry requests of both directions, one at a time and many at once,
 * and none is left on them. In the end the policy is the default.
 */
void peer_expect_works(struct peer *p)
{
	struct peer_counts before[PEER_LINKS], after;
	unsigned int i;

	for (i = 0; i < p->paths; i++) {
		KUNIT_EXPECT_TRUE_MSG(p->test, peer_path_is_up(p, i), "path %u is down", i);
		before[i] = peer_counts(p, i);
	}
	KUNIT_EXPECT_EQ(p->test, 0, peer_sess_write(p, "mpath_policy", "round-robin"));
	for (i = 0; i < 2 * p->paths; i++)
		KUNIT_EXPECT_EQ(p->test, 0, peer_do(p, WRITE, PEER_DATA));
	for (i = 0; i < 2 * p->paths; i++)
		KUNIT_EXPECT_EQ(p->test, 0, peer_do(p, READ, PEER_DATA));
	peer_expect_burst(p, RTRS_IO_CON, BURST, PEER_DATA);
	/* which counts what is in flight */
	KUNIT_EXPECT_EQ(p->test, 0, peer_sess_write(p, "mpath_policy", "min-inflight"));
	peer_expect_burst(p, RTRS_IO_CON, BURST, PEER_DATA);
	peer_expect_burst(p, RTRS_ADMIN_CON, 2, 0);
	for (i = 0; i < p->paths; i++) {
		after = peer_counts(p, i);
		KUNIT_EXPECT_GT_MSG(p->test, after.reads, before[i].reads, "on path %u", i);
		KUNIT_EXPECT_GT_MSG(p->test, after.writes, before[i].writes, "on path %u", i);
		KUNIT_EXPECT_EQ_MSG(p->test, 0, after.inflight, "on path %u", i);
	}
}

/*
 * Failures
 */

/* The path that has failed since the session was opened, or none */
int peer_failed_path(struct peer *p)
{
	unsigned int i;
	char buf[16];

	for (i = 0; i < p->paths; i++) {
		KUNIT_EXPECT_EQ(p->test, 0, peer_path_read(p, i, "last_error", buf, sizeof(buf)));
		if (strcmp(buf, "0"))
			return i;
	}
	return -1;
}

/* A path fails for that reason, and comes back once the server behaves. */
void peer_expect_failure(struct peer *p, int err, const char *why)
{
	unsigned long end = jiffies + msecs_to_jiffies(PEER_HB_MS * PEER_SCALE);
	int path = peer_failed_path(p);

	while (path < 0 && time_before(jiffies, end)) {
		msleep(20);
		path = peer_failed_path(p);
	}
	KUNIT_EXPECT_GE_MSG(p->test, path, 0, "no path has failed");
	if (path < 0)
		return;
	KUNIT_EXPECT_FALSE(p->test, peer_path_is_up(p, path));
	peer_expect_reason(p, path, err, why);
	fake_srv_heal(p->srv);
	KUNIT_EXPECT_EQ(p->test, 0, peer_reconnect(p, path));
}

/* The server keeps requests to itself */
const struct fs_script peer_hold = {
	.at = FS_AT_REQUEST, .step = { { FS_HOLD } },
};

/* Waits until the script has had its say so often. */
void peer_wait_hits(struct peer *p, unsigned int nr)
{
	unsigned long end = jiffies + msecs_to_jiffies(4000 * PEER_SCALE);
	struct fs_stats stats;

	do {
		fake_srv_stats(p->srv, &stats);
		if (stats.hits >= nr)
			return;
		msleep(20);
	} while (time_before(jiffies, end));
	KUNIT_FAIL(p->test, "the script had its say %u times, not %u", stats.hits, nr);
}

struct peer *peer_start_open(struct kunit *test, bool new_rkey, unsigned int paths)
{
	struct peer *p = peer_start(test, &(struct peer_mode){ .new_rkey = new_rkey });

	KUNIT_ASSERT_EQ(test, 0, peer_open(p, paths, PEER_CONNECT_MS * PEER_SCALE));
	return p;
}
