// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the client in front of a server that behaves badly between
 * requests: right after a path is up, in the exchange of heartbeats, and by
 * promises that show to be wrong only when they are used
 */
#include <linux/delay.h>

#include "rtrs_peer.h"

#define NOT_SENT "a request could not be sent"

/*
 * Right after a path is up
 */

#define ACCEPTED(_cid, ...) .at = FS_AT_CONN_REQ, .cid = FS_CID(_cid), .times = 1, \
	.step = { { FS_ACCEPT }, __VA_ARGS__ }

static const struct up_row {
	const char *desc;
	struct fs_script script;
	bool new_rkey;
	int err;
	const char *why;
	/* while it comes up this is worth one more try, which nothing happens to */
	bool again;
} up_rows[] = {
	{ "answer before any request", { .at = FS_AT_UP, .times = 1, .step = { { FS_IMM } } },
	  false, -EPROTO, NO_REQUEST },
	{ "key before any request", { .at = FS_AT_UP, .times = 1, .step = { { FS_MSG } } },
	  true, -EPROTO, NO_REQUEST },
	{ "second info response", { .at = FS_AT_UP, .times = 1, .step = { { FS_INFO_RSP } } },
	  false, -EPROTO, NEITHER },
	{ "second info response, renewed keys",
	  { .at = FS_AT_UP, .times = 1, .step = { { FS_INFO_RSP } } },
	  true, -EPROTO, NEITHER },
	{ "unknown immediate", { .at = FS_AT_UP, .times = 1,
				 .step = { { FS_IMM, .type = FS_TYPE(11) } } },
	  false, -EPROTO, UNKNOWN_IMM },
	{ "disconnect", { .at = FS_AT_UP, .times = 1, .step = { { FS_DISCONNECT } } },
	  false, -ECONNRESET, DISCONNECTED, true },
	{ "heartbeat on connection 1 as soon as it is there", { ACCEPTED(1, { FS_HB }) },
	  false, -EPROTO, WRONG_HB },
	{ "answer on connection 1 as soon as it is there", { ACCEPTED(1, { FS_IMM }) },
	  false, -EPROTO, NO_REQUEST },
	{ "key on connection 1 as soon as it is there", { ACCEPTED(1, { FS_MSG }) },
	  true, -EPROTO, NO_REQUEST },
	{ "message on connection 1 as soon as it is there",
	  { ACCEPTED(1, { FS_SEND, .len = FS_LEN(8) }) }, false, -ECONNRESET, RECV_FAILED },
	{ "invalidation of nothing on connection 1 as soon as it is there",
	  { ACCEPTED(1, { FS_INV }) }, false, -ECONNRESET, RECV_FAILED },
	/*
	 * Not on connection 0: it has no receives yet, and rxe does not survive to
	 * repeat what the server registers memory behind.
	 */
};

KUNIT_ARRAY_PARAM_DESC(up, up_rows, desc);

/*
 * Right behind the info response of a reconnect: the attempt fails, or the path
 * comes up and fails then. In any case for that reason.
 */
static void up_test(struct kunit *test)
{
	const struct up_row *row = test->param_value;
	struct peer *p = peer_start_open(test, row->new_rkey, 1);
	int err;

	fake_srv_script(p->srv, &row->script);
	err = peer_reconnect(p, 0);
	peer_wait_hits(p, 1);
	if (!row->again) {
		KUNIT_EXPECT_TRUE(test, peer_wait_path(p, 0, false, PEER_HB_MS));
		peer_expect_reason(p, 0, row->err, row->why);
	} else {
		KUNIT_EXPECT_EQ(test, err, 0);
	}
	fake_srv_heal(p->srv);
	KUNIT_EXPECT_EQ(test, 0, peer_reconnect(p, 0));
	peer_expect_works(p);
	peer_stop(p);
}

/*
 * Heartbeats
 */

/* An acknowledgment that answers nothing says nothing about the latency. */
static void bogus_ack_test(struct kunit *test)
{
	static const struct fs_script script = {
		.at = FS_AT_REQUEST, .times = 1,
		.step = { { FS_HB_ACK, .nr = 3, .on = FS_ON_CID0 }, { FS_WAIT, .ms = 50 },
			  { FS_ANSWER } },
	};
	struct peer *p = peer_start_open(test, false, 1);
	char buf[32];

	fake_srv_script(p->srv, &script);
	KUNIT_EXPECT_EQ(test, 0, peer_do(p, READ, PEER_DATA));
	KUNIT_EXPECT_EQ(test, 0, peer_path_read(p, 0, "cur_latency", buf, sizeof(buf)));
	KUNIT_EXPECT_STREQ(test, buf, "0 ns");
	peer_stop(p);
}

/* Who is silent is given up, also with nothing under way; who beats is not. */
static void idle_test(struct kunit *test)
{
	static const struct fs_script quiet = { .at = FS_AT_HB, .step = { { FS_SILENCE } } };
	struct peer *p = peer_start_open(test, false, 1);
	struct fs_stats stats;

	peer_short_hb(p, "100");
	msleep(1000 * PEER_SCALE);
	KUNIT_EXPECT_TRUE(test, peer_path_is_up(p, 0));
	fake_srv_stats(p->srv, &stats);
	KUNIT_EXPECT_GE(test, stats.hbs, 2);
	fake_srv_script(p->srv, &quiet);
	KUNIT_EXPECT_TRUE(test, peer_wait_path(p, 0, false, PEER_HB_MS));
	peer_expect_reason(p, 0, -ETIMEDOUT, NO_HB);
	fake_srv_heal(p->srv);
	KUNIT_EXPECT_EQ(test, 0, peer_reconnect(p, 0));
	peer_expect_works(p);
	peer_stop(p);
}

#define AT_HB(...) .script = { .at = FS_AT_HB, .step = { __VA_ARGS__ } }

static const struct hb_row {
	const char *desc;
	struct fs_script script;
	bool new_rkey;
	int err;
	const char *why;
} hb_rows[] = {
	{ "acknowledged late", AT_HB({ FS_WAIT, .ms = 20 }, { FS_HB_ACK }) },
	{ "acknowledged twice", AT_HB({ FS_HB_ACK }, { FS_WAIT, .ms = 20 }, { FS_HB_ACK }) },
	{ "acknowledged a hundred times", AT_HB({ FS_HB_ACK, .nr = 100 }) },
	/* who says anything is alive */
	{ "heartbeat in return", AT_HB({ FS_HB }) },
	{ "fifty heartbeats in return", AT_HB({ FS_HB, .nr = 50 }), true },
	{ "acknowledged on another connection", AT_HB({ FS_HB_ACK, .on = FS_ON_NEXT_CON }),
	  false, -EPROTO, WRONG_HB },
	{ "heartbeat on another connection", AT_HB({ FS_HB, .on = FS_ON_NEXT_CON }),
	  true, -EPROTO, WRONG_HB },
	{ "answered as a request", AT_HB({ FS_IMM }), false, -EPROTO, NO_REQUEST },
	{ "answered as a request, renewed keys", AT_HB({ FS_MSG }), true, -EPROTO, NO_REQUEST },
	{ "answered by an immediate of unknown type", AT_HB({ FS_IMM, .type = FS_TYPE(10) }),
	  false, -EPROTO, UNKNOWN_IMM },
	{ "answered by an empty message", AT_HB({ FS_SEND, .len = FS_LEN(0) }),
	  false, -EPROTO, NEITHER },
	{ "answered by an invalidation of nothing", AT_HB({ FS_INV }),
	  false, -ECONNRESET, RECV_FAILED },
	{ "not answered", AT_HB({ FS_END }), false, -ETIMEDOUT, NO_HB },
	{ "disconnected", AT_HB({ FS_DISCONNECT }), false, -ECONNRESET, DISCONNECTED },
	{ "another connection disconnected", AT_HB({ FS_DISCONNECT, .on = FS_ON_NEXT_CON }),
	  false, -ECONNRESET, DISCONNECTED },
	{ "queue gone", AT_HB({ FS_KILL_QP }), false, -ETIMEDOUT, NO_HB },
};

KUNIT_ARRAY_PARAM_DESC(hb, hb_rows, desc);

/* Heartbeats answered within the rules keep a path up, all else takes it down. */
static void hb_test(struct kunit *test)
{
	const struct hb_row *row = test->param_value;
	struct peer *p = peer_start_open(test, row->new_rkey, 1);
	unsigned long long ns = 0;
	struct fs_stats stats;
	char buf[32];
	int nr;

	peer_expect_works(p);
	fake_srv_script(p->srv, &row->script);
	peer_short_hb(p, "100");
	peer_wait_hits(p, row->why ? 1 : 5);
	if (row->why) {
		peer_expect_failure(p, row->err, row->why);
	} else {
		KUNIT_EXPECT_EQ(test, -1, peer_failed_path(p));
		fake_srv_stats(p->srv, &stats);
		/* answered, and no more than asked for */
		if (row->script.step[0].op == FS_HB)
			KUNIT_EXPECT_GT(test, stats.hb_acks, 0);
		else
			KUNIT_EXPECT_EQ(test, stats.hb_acks, 0);
		/* measured by the first acknowledgment after the heartbeat */
		KUNIT_EXPECT_EQ(test, 0, peer_path_read(p, 0, "cur_latency", buf, sizeof(buf)));
		nr = sscanf(buf, "%llu ns", &ns);
		KUNIT_EXPECT_EQ(test, nr, 1);
		KUNIT_EXPECT_LT(test, ns, 100 * NSEC_PER_MSEC * PEER_SCALE);
		fake_srv_heal(p->srv);
	}
	peer_expect_works(p);
	peer_stop(p);
}

/* The server's heart beats, but it has lost a request. Without a limit we wait. */
static void overdue_test(struct kunit *test)
{
	struct peer *p = peer_start_open(test, false, 2);
	struct fs_script hold_first = peer_hold;
	struct peer_req *req;
	int path;

	hold_first.times = 1;
	fake_srv_script(p->srv, &hold_first);
	req = peer_submit(p, READ, PEER_DATA, RTRS_IO_CON);
	KUNIT_EXPECT_FALSE_MSG(test, peer_wait(req, 1500), "there is no limit yet");
	KUNIT_EXPECT_EQ(test, peer_failed_path(p), -1);
	KUNIT_EXPECT_EQ(test, 0, peer_sess_write(p, "request_timeout_sec", "1"));
	KUNIT_ASSERT_TRUE_MSG(test, peer_wait(req, 2000), "the request hangs");
	KUNIT_EXPECT_EQ(test, req->err, 0);
	KUNIT_EXPECT_TRUE(test, peer_data_ok(req));
	path = peer_failed_path(p);
	KUNIT_ASSERT_GE(test, path, 0);
	peer_expect_reason(p, path, -ETIMEDOUT, "a request was not answered in time");
	fake_srv_heal(p->srv);
	KUNIT_EXPECT_EQ(test, 0, peer_reconnect(p, path));
	peer_expect_works(p);
	/* and those who are answered are not overdue, however long the path is up */
	msleep(1500);
	KUNIT_EXPECT_TRUE(test, peer_path_is_up(p, 0) && peer_path_is_up(p, 1));
	peer_stop(p);
}

/*
 * Promises
 */

#define KEYS(...) .script = { .at = FS_AT_REQUEST, .times = 1, .step = { __VA_ARGS__ } }
#define INFO(...) .script = { .at = FS_AT_INFO_REQ, \
			      .step = { { .op = FS_INFO_RSP, .patch = { __VA_ARGS__ } } } }
#define FLAGS(_flags) .script = { .at = FS_AT_CONN_REQ, \
	.step = { { .op = FS_ACCEPT, .patch = { FS_PATCH(C_FLAGS, 4, _flags) } } } }

/*
 * What a server has told may be wrong, which shows with the first request that
 * makes use of it. Told with the answer to a request: with the next one.
 */
static const struct lie_row {
	const char *desc;
	struct fs_script script;
	bool new_rkey;
	int err;
	const char *why;
} lie_rows[] = {
	{ "the chunk's next key is another one",
	  KEYS({ FS_DATA }, { FS_NEW_KEY }, { FS_MSG, .key = FS_KEY_NEXT }), true,
	  -EIO, NOT_SENT },
	{ "the chunk's next key is 0",
	  KEYS({ FS_DATA }, { FS_NEW_KEY }, { FS_MSG, .patch = { FS_PATCH(4, 4, 0) } }), true,
	  -EIO, NOT_SENT },
	{ "the chunk is not registered again", KEYS({ FS_DATA }, { FS_MSG }), true,
	  -EIO, NOT_SENT },
	{ "the chunks have another key", INFO(FS_PATCH(I_KEY, 4, 0xdead)), false, -EIO, NOT_SENT },
	{ "the chunks are elsewhere", INFO(FS_PATCH(I_ADDR, 8, 4096)), false, -EIO, NOT_SENT },
	{ "the keys stay, which were to be renewed", FLAGS(2), false, -EPROTO, NO_KEY },
	{ "the keys are renewed, which were to stay", FLAGS(0), true, -ECONNRESET, RECV_FAILED },
};

KUNIT_ARRAY_PARAM_DESC(lie, lie_rows, desc);

static void lie_test(struct kunit *test)
{
	const struct lie_row *row = test->param_value;
	struct peer *p = peer_start_open(test, row->new_rkey, 1);
	unsigned int i;
	int err = 0;

	peer_expect_works(p);
	fake_srv_script(p->srv, &row->script);
	if (row->script.at == FS_AT_REQUEST)
		KUNIT_EXPECT_EQ(test, 0, peer_do(p, READ, PEER_DATA));
	else
		KUNIT_EXPECT_EQ(test, 0, peer_reconnect(p, 0));
	/* until it is the turn of this chunk */
	for (i = 0; i < 32 && !err; i++)
		err = peer_do(p, READ, PEER_DATA);
	KUNIT_EXPECT_EQ(test, err, -ECONNABORTED);
	peer_expect_failure(p, row->err, row->why);
	peer_expect_works(p);
	peer_stop(p);
}

/*
 * One path has less room for messages than the other, which is legal as long as
 * nothing was promised. A request that fails over fits there or ends.
 */
static void small_header_test(struct kunit *test)
{
	static const struct fs_step gone[FS_STEPS] = { { FS_DISCONNECT } };
	static const struct fs_script small = {
		.at = FS_AT_CONN_REQ, .link = FS_LINK(1),
		.step = { { .op = FS_ACCEPT, .patch = { FS_PATCH(C_HDR, 4, 64),
							FS_PATCH(C_IO, 4, 32768 - 64) } } },
	};
	struct peer *p = peer_start(test, &(struct peer_mode){});
	struct peer_req *read, *write;

	/* with that a write takes 52 bytes of the header, a read 72 */
	p->msg_more = 16;
	fake_srv_script(p->srv, &small);
	KUNIT_ASSERT_EQ(test, 0, peer_open(p, 2, PEER_CONNECT_MS * PEER_SCALE));
	fake_srv_script(p->srv, &peer_hold);
	/* the second one would go to the other path */
	KUNIT_EXPECT_EQ(test, 0, peer_path_write(p, 1, "disconnect", "1"));
	read = peer_submit(p, READ, PEER_DATA, RTRS_IO_CON);
	write = peer_submit(p, WRITE, PEER_DATA, RTRS_IO_CON);
	peer_wait_hits(p, 2);
	fake_srv_script(p->srv, &small);
	KUNIT_EXPECT_EQ(test, 0, peer_reconnect(p, 1));
	fake_srv_release(p->srv, gone);
	KUNIT_ASSERT_TRUE(test, peer_wait(read, 3000));
	KUNIT_EXPECT_EQ(test, read->err, -EMSGSIZE);
	KUNIT_ASSERT_TRUE(test, peer_wait(write, 3000));
	KUNIT_EXPECT_EQ(test, write->err, 0);
	peer_expect_reason(p, 0, -ECONNRESET, DISCONNECTED);
	fake_srv_heal(p->srv);
	p->msg_more = 0;
	KUNIT_EXPECT_EQ(test, 0, peer_reconnect(p, 0));
	KUNIT_EXPECT_EQ(test, 0, peer_path_write(p, 1, "remove_path", "1"));
	KUNIT_EXPECT_EQ(test, 0, peer_add_path(p, 1));
	peer_expect_works(p);
	peer_stop(p);
}

/* After its restart the server is another one, which keeps what was promised. */
static const struct restart_row {
	const char *desc;
	struct peer_mode before;
	struct peer_mode after;
} restart_rows[] = {
	{ "keys stay, then are renewed", {}, { .new_rkey = true } },
	{ "keys are renewed, then stay", { .new_rkey = true }, {} },
	{ "one descriptor, then four", {}, { .chunks_per_desc = 2 } },
	{ "larger messages", {}, { .max_hdr_size = 8192 } },
	{ "larger data, keys renewed", {}, { .new_rkey = true, .max_io_size = 61440 } },
	{ "largest of all", {}, { .max_hdr_size = 65536, .max_io_size = 131072 } },
};

KUNIT_ARRAY_PARAM_DESC(restart, restart_rows, desc);

static void restart_as(struct peer *p, const struct peer_mode *mode)
{
	unsigned int i;

	peer_restart(p, mode);
	for (i = 0; i < p->paths; i++) {
		KUNIT_EXPECT_TRUE(p->test, peer_wait_path(p, i, false, PEER_HB_MS));
		KUNIT_EXPECT_EQ(p->test, 0, peer_reconnect(p, i));
	}
	peer_expect_works(p);
}

static void restart_test(struct kunit *test)
{
	const struct restart_row *row = test->param_value;
	struct peer *p = peer_start(test, &row->before);

	KUNIT_ASSERT_EQ(test, 0, peer_open(p, 2, PEER_CONNECT_MS * PEER_SCALE));
	peer_expect_works(p);
	restart_as(p, &row->after);
	/* and back, with slots that have been made anew */
	restart_as(p, &row->before);
	peer_stop(p);
}

static struct kunit_case life_cases[] = {
	KUNIT_CASE_PARAM(up_test, up_gen_params),
	KUNIT_CASE(bogus_ack_test),
	KUNIT_CASE(idle_test),
	KUNIT_CASE_PARAM(hb_test, hb_gen_params),
	KUNIT_CASE(overdue_test),
	KUNIT_CASE_PARAM(lie_test, lie_gen_params),
	KUNIT_CASE(small_header_test),
	KUNIT_CASE_PARAM(restart_test, restart_gen_params),
	{}
};

static struct kunit_suite life_suite = {
	.name = "rtrs_peer_life",
	.suite_init = peer_suite_init,
	.suite_exit = peer_suite_exit,
	.test_cases = life_cases,
};

kunit_test_suite(life_suite);
