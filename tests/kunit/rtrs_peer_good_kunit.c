// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the whole client in front of a server that behaves well
 */
#include <linux/delay.h>
#include <linux/uio.h>

#include "rtrs_peer.h"

static const struct good_row {
	const char *desc;
	struct peer_mode mode;
	unsigned int paths;
} good_rows[] = {
	{ "keys stay, one path", { .new_rkey = false }, 1 },
	{ "keys renewed, one path", { .new_rkey = true }, 1 },
	{ "keys stay, two paths", { .new_rkey = false }, 2 },
	{ "keys renewed, two paths", { .new_rkey = true }, 2 },
	{ "depth 1, keys stay", { .new_rkey = false, .queue_depth = 1 }, 1 },
	{ "depth 1, keys renewed", { .new_rkey = true, .queue_depth = 1 }, 1 },
	{ "depth 13, keys renewed", { .new_rkey = true, .queue_depth = 13 }, 1 },
	{ "depth 8 in four descriptors", { .chunks_per_desc = 2 }, 1 },
	{ "depth 7 in uneven descriptors", { .queue_depth = 7, .chunks_per_desc = 3 }, 1 },
	{ "headers of 64 KiB", { .max_hdr_size = 65536, .max_io_size = 65536,
				 .new_rkey = true }, 1 },
	{ "smallest sizes", { .max_hdr_size = 4096, .max_io_size = 4096 }, 1 },
	{ "heartbeats of the server every 20 ms", { .hb_ms = 20 }, 1 },
	{ "the same with keys renewed", { .hb_ms = 20, .new_rkey = true }, 2 },
};

KUNIT_ARRAY_PARAM_DESC(good, good_rows, desc);

static const size_t good_lens[] = { 0, 1, 512, 4096, 4097, 16384, 28672 };

static void good_test(struct kunit *test)
{
	const struct good_row *row = test->param_value;
	struct peer *p = peer_start(test, &row->mode);
	struct rtrs_attrs attr;
	unsigned int i, k;

	KUNIT_ASSERT_EQ(test, 0, peer_open(p, row->paths, PEER_CONNECT_MS * PEER_SCALE));
	KUNIT_EXPECT_EQ(test, 0, rtrs_clt_query(p->clt, &attr));
	KUNIT_EXPECT_EQ(test, attr.queue_depth, row->mode.queue_depth ?: 8);
	for (i = 0; i < 2; i++) {
		for (k = 0; k < ARRAY_SIZE(good_lens); k++) {
			if (good_lens[k] > attr.max_io_size)
				continue;
			KUNIT_EXPECT_EQ(test, 0, peer_do(p, WRITE, good_lens[k]));
			KUNIT_EXPECT_EQ(test, 0, peer_do(p, READ, good_lens[k]));
		}
		KUNIT_EXPECT_EQ(test, 0, peer_reconnect(p, 0));
	}
	peer_close(p);
	peer_stop(p);
}

/*
 * Reads on connection 0 have no data here: its ACK timeout of 134 ms passes on a
 * busy machine, and to repeat a request behind which memory was registered means
 * to rxe to register it again, which breaks the queue pair.
 */
static void burst_submit(struct peer *p, unsigned int i)
{
	bool admin = i % 3 == 0, read = i & 1;

	peer_submit(p, read ? READ : WRITE, admin && read ? 0 : 4096,
		    admin ? RTRS_ADMIN_CON : RTRS_IO_CON);
}

/* As many at once as there are permits, on all kinds of connections */
static void burst_test(struct kunit *test)
{
	const struct good_row *row = test->param_value;
	struct peer *p = peer_start(test, &row->mode);
	unsigned int depth = row->mode.queue_depth ?: 8;
	struct peer_req *req;
	unsigned int i, round;

	KUNIT_ASSERT_EQ(test, 0, peer_open(p, row->paths, PEER_CONNECT_MS * PEER_SCALE));
	for (round = 0; round < 5; round++) {
		for (i = 0; i < depth; i++)
			burst_submit(p, i);
		list_for_each_entry(req, &p->reqs, entry) {
			KUNIT_ASSERT_TRUE(test, peer_wait(req, 5000));
			KUNIT_EXPECT_EQ(test, req->err, 0);
			KUNIT_EXPECT_TRUE(test, peer_data_ok(req));
		}
		while (!list_empty(&p->reqs))
			peer_free(list_first_entry(&p->reqs, struct peer_req, entry));
	}
	peer_close(p);
	peer_stop(p);
}

static const struct room_row {
	const char *desc;
	int dir;
	size_t header;
	int more;
	int err;
} room_rows[] = {
	{ "write that fills the chunk", WRITE, 4, 0, 0 },
	{ "read that fills the chunk", READ, 24, 0, 0 },
	{ "write of one byte more", WRITE, 4, 1, -EMSGSIZE },
	{ "read of one byte more", READ, 24, 1, -EMSGSIZE },
};

KUNIT_ARRAY_PARAM_DESC(room, room_rows, desc);

/* A request may be as long as the chunk, and no longer. */
static void room_test(struct kunit *test)
{
	const struct room_row *row = test->param_value;
	struct peer *p = peer_start(test, &(struct peer_mode){
		.max_io_size = 28672, .max_hdr_size = 4096,
	});
	size_t len = 28672 + 4096 - peer_msg_len - row->header + row->more;

	KUNIT_ASSERT_EQ(test, 0, peer_open(p, 1, PEER_CONNECT_MS * PEER_SCALE));
	KUNIT_EXPECT_EQ(test, row->err, peer_do(p, row->dir, len));
	peer_expect_works(p);
	peer_stop(p);
}

/* nr elements of sg_len bytes each, while the request speaks of len */
static const struct lie_row {
	const char *desc;
	int dir;
	size_t len;
	unsigned int nr;
	size_t sg_len;
} lie_rows[] = {
	{ "data to write and none there", WRITE, 4096, 0, 0 },
	{ "data to read and no place for them", READ, 4096, 0, 0 },
	{ "write of more than there is", WRITE, 4096, 1, 2048 },
	{ "read of more than there is room for", READ, 4096, 1, 2048 },
	{ "write of less than there is", WRITE, 4096, 2, 4096 },
	{ "read of less than there is room for", READ, 4096, 2, 4096 },
	{ "write from an empty element", WRITE, 0, 1, 0 },
};

KUNIT_ARRAY_PARAM_DESC(lie, lie_rows, desc);

static void count_conf(void *priv, int err)
{
	atomic_inc(priv);
}

/* A caller that lies about its data is refused, and nothing is left of it. */
static void lie_test(struct kunit *test)
{
	const struct lie_row *row = test->param_value;
	struct peer *p = peer_start(test, &(struct peer_mode){ .new_rkey = true });
	static atomic_t confs;
	struct rtrs_clt_req_ops ops = { .priv = &confs, .conf_fn = count_conf };
	void *page = kunit_kzalloc(test, 2 * PAGE_SIZE, GFP_KERNEL);
	struct rtrs_permit *permit;
	struct scatterlist sg[2];
	char msg[8] = "message";
	struct kvec vec = { msg, sizeof(msg) };
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_ASSERT_EQ(test, 0, peer_open(p, 1, PEER_CONNECT_MS * PEER_SCALE));
	sg_init_table(sg, max(row->nr, 1U));
	for (i = 0; i < row->nr; i++)
		sg_set_buf(&sg[i], page + i * PAGE_SIZE, row->sg_len);
	atomic_set(&confs, 0);
	permit = rtrs_clt_get_permit(p->clt, RTRS_IO_CON, RTRS_PERMIT_NOWAIT);
	KUNIT_ASSERT_NOT_NULL(test, permit);
	KUNIT_EXPECT_EQ(test, -EINVAL, rtrs_clt_request(row->dir, &ops, p->clt, permit, &vec, 1,
							row->len, sg, row->nr));
	rtrs_clt_put_permit(p->clt, permit);
	peer_expect_works(p);
	peer_stop(p);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&confs));
}

static struct kunit_case good_cases[] = {
	KUNIT_CASE_PARAM(good_test, good_gen_params),
	KUNIT_CASE_PARAM(burst_test, good_gen_params),
	KUNIT_CASE_PARAM(room_test, room_gen_params),
	KUNIT_CASE_PARAM(lie_test, lie_gen_params),
	{}
};

static struct kunit_suite good_suite = {
	.name = "rtrs_peer_good",
	.suite_init = peer_suite_init,
	.suite_exit = peer_suite_exit,
	.test_cases = good_cases,
};

kunit_test_suite(good_suite);

MODULE_DESCRIPTION("KUnit tests of rtrs-client against a fake server");
MODULE_LICENSE("GPL");
