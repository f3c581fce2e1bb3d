// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the whole client in front of a server that behaves well
 */
#include <linux/delay.h>

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
 * On a slow kernel no reads on connection 0: its ACK timeout of 134 ms is passed
 * there, and to repeat a request behind which memory was registered, which to rxe
 * means to register it again, breaks its queue pair.
 */
static enum rtrs_clt_con_type burst_con(unsigned int i)
{
	if (i % 3 || (PEER_SCALE > 1 && i & 1))
		return RTRS_IO_CON;
	return RTRS_ADMIN_CON;
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
			peer_submit(p, i & 1 ? READ : WRITE, 4096, burst_con(i));
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

static struct kunit_case good_cases[] = {
	KUNIT_CASE_PARAM(good_test, good_gen_params),
	KUNIT_CASE_PARAM(burst_test, good_gen_params),
	KUNIT_CASE_PARAM(room_test, room_gen_params),
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
