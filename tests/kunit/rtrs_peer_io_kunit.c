// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the client in front of a server that answers badly
 *
 * Each row is done in both modes of the server, where it makes sense, with one
 * path and with two: with one the request fails, with the second it fails over.
 * To add a behaviour, add a row.
 */
#include <linux/delay.h>

#include "rtrs_peer.h"

#define KEEPS BIT(0)		/* the server's keys stay (always_invalidate=N) */
#define RENEWS BIT(1)		/* and they do not */

#define DEPTH 8
#define FILL 0xc3

#define STEPS(...) .script = { .at = FS_AT_REQUEST, .times = 1, .step = { __VA_ARGS__ } }

/* The server does not hang up by itself, so that the client has to see it. */
#define REFUSED_STEPS(...) \
	.script = { .at = FS_AT_REQUEST, .times = 1, .keep = true, .step = { __VA_ARGS__ } }, \
	.err = -ECONNRESET, .why = BROKE, .refused = 1

/**
 * struct io_row - what the server does with one request
 * @modes: KEEPS or RENEWS, 0 is both
 * @write: the request is a write, else a read
 * @no_data: it has none
 * @pages: it has so many, else one. More than two make the client register them
 *	for a write with @admin, too
 * @admin: it is made on connection 0
 * @info_bufs: the client still has receives from the info exchange
 * @two_paths: makes sense with a second path only
 * @hb: the session's heartbeat is short
 * @reads: the server may do RDMA reads
 * @no_check: the server has not sent the right data
 * @lost: the path fails before the answer: -ECONNABORTED, or done elsewhere
 * @conf: otherwise the result of the request
 * @err: last error of the path that fails, 0 if none does
 * @why: its reason
 * @refused: sends of the server that the client's HCA has refused, at least
 */
static const struct io_row {
	const char *desc;
	struct fs_script script;
	unsigned int modes;
	bool write, no_data, admin, info_bufs, two_paths, hb, reads, no_check, lost;
	unsigned int pages;
	int conf;
	int err;
	const char *why;
	unsigned int refused;
} io_rows[] = {
	/* legal */
	{ "error 5 for a read", STEPS({ FS_ANSWER, .err = FS_ERR(5) }), .conf = -EIO },
	{ "error 5 for a write", STEPS({ FS_ANSWER, .err = FS_ERR(5) }), .write = true,
	  .conf = -EIO },
	{ "error 511", STEPS({ FS_ANSWER, .err = FS_ERR(511) }), .conf = -511 },
	{ "a slow answer", STEPS({ FS_WAIT, .ms = 50 }, { FS_ANSWER }) },
	{ "heartbeats around the parts of an answer",
	  STEPS({ FS_HB, .on = FS_ON_CID0 }, { FS_DATA }, { FS_HB, .on = FS_ON_CID0 },
		{ FS_INV }, { FS_HB_ACK, .on = FS_ON_CID0 }, { FS_IMM }), .modes = KEEPS },
	{ "an answer on connection 0, with heartbeats", STEPS({ FS_HB }, { FS_ANSWER }, { FS_HB }),
	  .admin = true },
	{ "data and answer in one", STEPS({ FS_IMM, .len = FS_LEN(PEER_DATA) }), .modes = KEEPS },
	{ "a flood of heartbeats", STEPS({ FS_HB, .nr = 600, .on = FS_ON_CID0 }, { FS_ANSWER }) },
	{ "a flood of acknowledgments nobody asked for",
	  STEPS({ FS_HB_ACK, .nr = 600, .on = FS_ON_CID0 }, { FS_ANSWER }) },

	/* answers to something else */
	{ "answered twice", STEPS({ FS_ANSWER }, { FS_IMM }), .modes = KEEPS,
	  .err = -EPROTO, .why = NO_REQUEST },
	{ "write answered twice", STEPS({ FS_ANSWER }, { FS_IMM }), .modes = KEEPS, .write = true,
	  .err = -EPROTO, .why = NO_REQUEST },
	{ "answered and keyed twice", STEPS({ FS_ANSWER }, { FS_MSG }), .modes = RENEWS,
	  .err = -EPROTO, .why = NO_REQUEST },
	{ "answered a hundred times", STEPS({ FS_ANSWER }, { FS_IMM, .nr = 99 }), .modes = KEEPS,
	  .err = -EPROTO, .why = NO_REQUEST },
	{ "answered, and once more on another connection",
	  STEPS({ FS_ANSWER }, { FS_IMM, .on = FS_ON_NEXT_CON }), .modes = KEEPS,
	  .err = -EPROTO, .why = NO_REQUEST },
	{ "registered write answered twice", STEPS({ FS_ANSWER }, { FS_IMM }), .modes = KEEPS,
	  .write = true, .admin = true, .pages = 3, .err = -EPROTO, .why = NO_REQUEST },
	{ "another chunk answered", STEPS({ FS_IMM, .other = FS_OTHER_IMM }), .modes = KEEPS,
	  .lost = true, .err = -EPROTO, .why = NO_REQUEST },
	{ "another chunk answered and keyed",
	  STEPS({ FS_MSG, .other = FS_OTHER_IMM | FS_OTHER_MSG }), .modes = RENEWS,
	  .lost = true, .err = -EPROTO, .why = NO_REQUEST },
	{ "chunk behind the last answered", STEPS({ FS_IMM, .id = DEPTH }), .modes = KEEPS,
	  .lost = true, .err = -EPROTO, .why = NO_CHUNK },
	{ "chunk 2^19 - 1 answered", STEPS({ FS_IMM, .id = -1 - DEPTH }), .modes = KEEPS,
	  .lost = true, .err = -EPROTO, .why = NO_CHUNK },
	{ "answered on another connection", STEPS({ FS_IMM, .on = FS_ON_NEXT_CON }),
	  .modes = KEEPS, .lost = true, .err = -EPROTO, .why = NO_REQUEST },
	{ "answered on connection 0", STEPS({ FS_IMM, .on = FS_ON_CID0 }),
	  .modes = KEEPS, .lost = true, .err = -EPROTO, .why = NO_REQUEST },
	{ "answered and keyed on another connection", STEPS({ FS_MSG, .on = FS_ON_NEXT_CON }),
	  .modes = RENEWS, .lost = true, .err = -EPROTO, .why = NO_REQUEST },
	{ "admin request answered on an IO connection", STEPS({ FS_IMM, .on = FS_ON_NEXT_CON }),
	  .modes = KEEPS, .admin = true, .lost = true, .err = -EPROTO, .why = NO_REQUEST },
	{ "answered on another path",
	  STEPS({ FS_IMM, .on = FS_ON_OTHER_PATH }, { FS_WAIT, .ms = 50 }, { FS_ANSWER }),
	  .modes = KEEPS, .two_paths = true, .err = -EPROTO, .why = NO_REQUEST },

	/* immediates */
	{ "immediate of type 0", STEPS({ FS_IMM, .type = FS_TYPE(0) }), .lost = true,
	  .err = -EPROTO, .why = UNKNOWN_IMM },
	{ "immediate of type 3", STEPS({ FS_IMM, .type = FS_TYPE(3) }), .lost = true,
	  .err = -EPROTO, .why = UNKNOWN_IMM },
	{ "immediate of type 3, and data behind it",
	  STEPS({ FS_IMM, .type = FS_TYPE(3) }, { FS_DATA, .nr = 100 }), .lost = true,
	  .err = -EPROTO, .why = UNKNOWN_IMM },
	{ "immediate of type 7", STEPS({ FS_IMM, .type = FS_TYPE(7) }), .lost = true,
	  .err = -EPROTO, .why = UNKNOWN_IMM },
	{ "immediate of type 10", STEPS({ FS_IMM, .type = FS_TYPE(10) }), .lost = true,
	  .err = -EPROTO, .why = UNKNOWN_IMM },
	{ "immediate of type 15", STEPS({ FS_IMM, .type = FS_TYPE(15) }), .lost = true,
	  .err = -EPROTO, .why = UNKNOWN_IMM },
	{ "heartbeat on an IO connection", STEPS({ FS_HB }), .lost = true,
	  .err = -EPROTO, .why = WRONG_HB },
	{ "acknowledgment on an IO connection", STEPS({ FS_HB_ACK }), .lost = true,
	  .err = -EPROTO, .why = WRONG_HB },

	/* the wrong form of answer for the mode */
	{ "answer without a key", STEPS({ FS_IMM, .type = FS_TYPE(1) }), .modes = RENEWS,
	  .lost = true, .err = -EPROTO, .why = NO_KEY },
	{ "answer without a key, after an invalidation", STEPS({ FS_DATA }, { FS_INV }, { FS_IMM }),
	  .modes = RENEWS, .lost = true, .err = -EPROTO, .why = NO_KEY },
	{ "answer of type 2 without a key",
	  STEPS({ FS_DATA }, { FS_INV }, { FS_IMM, .type = FS_TYPE(2) }), .modes = RENEWS,
	  .lost = true, .err = -EPROTO, .why = NO_KEY },
	{ "answer without a key on connection 0", STEPS({ FS_IMM }), .modes = RENEWS,
	  .admin = true, .lost = true, .err = -EPROTO, .why = NO_KEY },
	{ "answer with a key that none asked for", STEPS({ FS_MSG }), .modes = KEEPS,
	  .lost = true, .err = -ECONNRESET, .why = RECV_FAILED },
	/* receives that connection 0 still has from when it waited for the info response */
	{ "answer with a key that none asked for on connection 0", STEPS({ FS_MSG }),
	  .modes = KEEPS, .info_bufs = true, .admin = true, .lost = true,
	  .err = -EPROTO, .why = SENDS_NONE },
	{ "message of eight bytes on connection 0", STEPS({ FS_SEND, .len = FS_LEN(8) }),
	  .modes = KEEPS, .info_bufs = true, .admin = true, .lost = true,
	  .err = -EPROTO, .why = NEITHER },
	{ "invalidation with data on connection 0", STEPS({ FS_INV, .len = FS_LEN(8) }),
	  .modes = KEEPS, .info_bufs = true, .admin = true, .lost = true,
	  .err = -EPROTO, .why = "invalidation with data" },
	{ "key message of nine bytes on connection 0", STEPS({ FS_MSG, .len = FS_LEN(9) }),
	  .modes = RENEWS, .info_bufs = true, .admin = true, .lost = true,
	  .err = -EPROTO, .why = MALFORMED },
	{ "answer as empty message", STEPS({ FS_MSG, .len = FS_LEN(0) }), .modes = KEEPS,
	  .lost = true, .err = -EPROTO, .why = SENDS_NONE },

	/* messages with keys */
	{ "key message of another type", STEPS({ FS_MSG, .patch = { FS_PATCH(0, 2, 3) } }),
	  .modes = RENEWS, .lost = true, .err = -EPROTO, .why = MALFORMED },
	{ "key message of an impossible chunk",
	  STEPS({ FS_MSG, .patch = { FS_PATCH(2, 2, DEPTH) } }),
	  .modes = RENEWS, .lost = true, .err = -EPROTO, .why = MALFORMED },
	{ "key message of chunk 65535", STEPS({ FS_MSG, .patch = { FS_PATCH(2, 2, 65535) } }),
	  .modes = RENEWS, .lost = true, .err = -EPROTO, .why = MALFORMED },
	{ "key message whose immediate names another chunk",
	  STEPS({ FS_MSG, .other = FS_OTHER_IMM }),
	  .modes = RENEWS, .lost = true, .err = -EPROTO, .why = OTHER_CHUNK },
	{ "key message of another chunk than the immediate",
	  STEPS({ FS_MSG, .other = FS_OTHER_MSG }),
	  .modes = RENEWS, .lost = true, .err = -EPROTO, .why = OTHER_CHUNK },
	{ "key message of no bytes", STEPS({ FS_MSG, .len = FS_LEN(0) }),
	  .modes = RENEWS, .lost = true, .err = -EPROTO, .why = MALFORMED },
	{ "key message of seven bytes", STEPS({ FS_MSG, .len = FS_LEN(7) }),
	  .modes = RENEWS, .lost = true, .err = -EPROTO, .why = MALFORMED },
	{ "key message of nine bytes", STEPS({ FS_MSG, .len = FS_LEN(9) }),
	  .modes = RENEWS, .lost = true, .err = -ECONNRESET, .why = RECV_FAILED },
	{ "key message with a request's immediate", STEPS({ FS_MSG, .type = FS_TYPE(0) }),
	  .modes = RENEWS, .lost = true, .err = -EPROTO, .why = NO_ANSWER },
	{ "key message with a heartbeat's immediate", STEPS({ FS_MSG, .type = FS_TYPE(8) }),
	  .modes = RENEWS, .lost = true, .err = -EPROTO, .why = NO_ANSWER },
	{ "key message without immediate", STEPS({ FS_SEND, .len = FS_LEN(8) }),
	  .modes = RENEWS, .lost = true, .err = -EPROTO, .why = NEITHER },
	{ "plain message of no bytes", STEPS({ FS_SEND, .len = FS_LEN(0) }),
	  .lost = true, .err = -EPROTO, .why = NEITHER },
	{ "plain message of eight bytes", STEPS({ FS_SEND, .len = FS_LEN(8) }), .modes = KEEPS,
	  .lost = true, .err = -ECONNRESET, .why = RECV_FAILED },

	/* invalidations of the client's keys, and answers that claim them */
	{ "type 2 without an invalidation", STEPS({ FS_DATA }, { FS_IMM, .type = FS_TYPE(2) }),
	  .modes = KEEPS },
	{ "type 2 without an invalidation, renewed keys",
	  STEPS({ FS_DATA }, { FS_NEW_KEY }, { FS_MSG, .type = FS_TYPE(2) }), .modes = RENEWS },
	{ "type 1 without an invalidation", STEPS({ FS_DATA }, { FS_IMM, .type = FS_TYPE(1) }),
	  .modes = KEEPS },
	{ "invalidation, and then type 1",
	  STEPS({ FS_DATA }, { FS_INV }, { FS_IMM, .type = FS_TYPE(1) }), .modes = KEEPS },
	{ "invalidation, and then type 2",
	  STEPS({ FS_DATA }, { FS_INV }, { FS_IMM, .type = FS_TYPE(2) }), .modes = KEEPS },
	{ "invalidation, and then type 2, renewed keys",
	  STEPS({ FS_DATA }, { FS_INV }, { FS_NEW_KEY }, { FS_MSG, .type = FS_TYPE(2) }),
	  .modes = RENEWS },
	{ "type 2 for a write", STEPS({ FS_IMM, .type = FS_TYPE(2) }), .modes = KEEPS,
	  .write = true },
	{ "type 2 for a read without data", STEPS({ FS_IMM, .type = FS_TYPE(2) }), .modes = KEEPS,
	  .no_data = true },
	{ "invalidated twice",
	  STEPS({ FS_DATA }, { FS_INV, .nr = 2 }, { FS_IMM, .type = FS_TYPE(2) }),
	  .modes = KEEPS },
	{ "invalidated a hundred times", STEPS({ FS_DATA }, { FS_INV, .nr = 100 }, { FS_IMM }),
	  .modes = KEEPS },
	{ "invalidated a hundred times, renewed keys",
	  STEPS({ FS_DATA }, { FS_INV, .nr = 100 }, { FS_NEW_KEY }, { FS_MSG }), .modes = RENEWS },
	{ "invalidation of a key that is none", STEPS({ FS_INV, .key = FS_KEY_NONE }),
	  .lost = true, .err = -ECONNRESET, .why = RECV_FAILED },
	{ "invalidation of the MR's next key", STEPS({ FS_INV, .key = FS_KEY_NEXT }),
	  .lost = true, .err = -ECONNRESET, .why = RECV_FAILED },
	{ "invalidation with data", STEPS({ FS_INV, .len = FS_LEN(8) }), .modes = RENEWS,
	  .lost = true, .err = -EPROTO, .why = "invalidation with data" },
	{ "invalidation on another connection",
	  STEPS({ FS_DATA }, { FS_WAIT, .ms = 50 }, { FS_INV, .on = FS_ON_NEXT_CON }, { FS_IMM }),
	  .modes = KEEPS },
	{ "invalidated, then silent", STEPS({ FS_DATA }, { FS_INV }, { FS_SILENCE }),
	  .hb = true, .lost = true, .err = -ETIMEDOUT, .why = NO_HB },
	{ "invalidated, then gone", STEPS({ FS_DATA }, { FS_INV }, { FS_DISCONNECT }),
	  .lost = true, .err = -ECONNRESET, .why = DISCONNECTED },

	/* access to the client's memory */
	{ "write to the buffer after a good answer",
	  REFUSED_STEPS({ FS_ANSWER }, { FS_WAIT, .ms = 100 }, { FS_DATA }) },
	{ "write to the buffer after type 2 without an invalidation",
	  REFUSED_STEPS({ FS_DATA }, { FS_IMM, .type = FS_TYPE(2) }, { FS_WAIT, .ms = 100 },
			{ FS_DATA }), .modes = KEEPS },
	{ "write to the buffer after type 1",
	  REFUSED_STEPS({ FS_DATA }, { FS_IMM, .type = FS_TYPE(1) }, { FS_WAIT, .ms = 100 },
			{ FS_DATA }), .modes = KEEPS },
	{ "write to the buffer by its next key after the answer",
	  REFUSED_STEPS({ FS_ANSWER }, { FS_WAIT, .ms = 100 },
			{ FS_DATA, .key = FS_KEY_NEXT }) },
	{ "write to the buffer on another connection after the answer",
	  REFUSED_STEPS({ FS_ANSWER }, { FS_WAIT, .ms = 100 },
			{ FS_DATA, .on = FS_ON_NEXT_CON }) },
	{ "write to the buffer after an error",
	  REFUSED_STEPS({ FS_ANSWER, .err = FS_ERR(5) }, { FS_WAIT, .ms = 100 }, { FS_DATA }),
	  .conf = -EIO },
	{ "write to the buffer after type 2 without an invalidation, renewed keys",
	  REFUSED_STEPS({ FS_DATA }, { FS_NEW_KEY }, { FS_MSG, .type = FS_TYPE(2) },
			{ FS_WAIT, .ms = 100 }, { FS_DATA }), .modes = RENEWS },
	{ "write to the buffer with no key", REFUSED_STEPS({ FS_DATA, .key = FS_KEY_NONE }),
	  .lost = true },
	{ "write beyond the buffer", REFUSED_STEPS({ FS_DATA, .len = FS_LEN(8192) }),
	  .lost = true },
	{ "read from the buffer", REFUSED_STEPS({ FS_STEAL }), .reads = true, .lost = true },
	{ "no data sent for a read", STEPS({ FS_INV }, { FS_IMM }), .modes = KEEPS,
	  .no_check = true },
	{ "half of the data sent", STEPS({ FS_DATA, .len = FS_LEN(2048) }, { FS_INV }, { FS_IMM }),
	  .modes = KEEPS, .no_check = true },

	/* silence, and going away */
	{ "disconnect instead of an answer", STEPS({ FS_DISCONNECT }), .lost = true,
	  .err = -ECONNRESET, .why = DISCONNECTED },
	{ "disconnect of connection 0", STEPS({ FS_DISCONNECT, .on = FS_ON_CID0 }), .lost = true,
	  .err = -ECONNRESET, .why = DISCONNECTED },
	{ "disconnect of another connection", STEPS({ FS_DISCONNECT, .on = FS_ON_NEXT_CON }),
	  .lost = true, .err = -ECONNRESET, .why = DISCONNECTED },
	{ "disconnect instead of an answer to a registered write", STEPS({ FS_DISCONNECT }),
	  .write = true, .admin = true, .pages = 3, .lost = true,
	  .err = -ECONNRESET, .why = DISCONNECTED },
	{ "disconnect after the answer",
	  STEPS({ FS_ANSWER }, { FS_WAIT, .ms = 50 }, { FS_DISCONNECT }),
	  .err = -ECONNRESET, .why = DISCONNECTED },
	{ "silence", STEPS({ FS_SILENCE }), .hb = true, .lost = true,
	  .err = -ETIMEDOUT, .why = NO_HB },
	{ "silence for a write", STEPS({ FS_SILENCE }), .write = true, .hb = true, .lost = true,
	  .err = -ETIMEDOUT, .why = NO_HB },
	{ "silence for a registered write", STEPS({ FS_SILENCE }), .write = true, .admin = true,
	  .pages = 3, .hb = true, .lost = true, .err = -ETIMEDOUT, .why = NO_HB },
	{ "silence after the answer", STEPS({ FS_ANSWER }, { FS_SILENCE }), .hb = true,
	  .err = -ETIMEDOUT, .why = NO_HB },
	{ "queue of connection 0 gone", STEPS({ FS_KILL_QP, .on = FS_ON_CID0 }), .hb = true,
	  .lost = true, .err = -ETIMEDOUT, .why = NO_HB },
	{ "queue gone", STEPS({ FS_KILL_QP }), .hb = true, .lost = true,
	  .err = -ETIMEDOUT, .why = NO_HB },
	{ "all queues gone, and the next heartbeat is far",
	  STEPS({ FS_KILL_QP, .on = FS_ON_CID0 }, { FS_KILL_QP }), .lost = true,
	  .err = -EIO, .why = NO_HCA },
};

struct io_case {
	const struct io_row *row;
	bool new_rkey;
	unsigned int paths;
};

/* Rows times modes times paths; ends with a case without a row. */
static const struct io_case *io_cases(void)
{
	static struct io_case cases[4 * ARRAY_SIZE(io_rows) + 1];
	unsigned int i, k, n = 0;

	if (cases[0].row)
		return cases;
	for (i = 0; i < ARRAY_SIZE(io_rows); i++) {
		for (k = 0; k < 4; k++) {
			const struct io_row *row = &io_rows[i];
			struct io_case c = { row, k & 1, k / 2 + 1 };

			if (row->modes && !(row->modes & (c.new_rkey ? RENEWS : KEEPS)))
				continue;
			if (row->two_paths && c.paths < 2)
				continue;
			/* where no path fails a second one has nothing to do */
			if (!row->why && c.paths > 1)
				continue;
			cases[n++] = c;
		}
	}
	return cases;
}

static const void *io_gen_params(struct kunit *test, const void *prev, char *desc)
{
	const struct io_case *c = prev ? (const struct io_case *)prev + 1 : io_cases();

	if (!c->row)
		return NULL;
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s (keys %s, %s)", c->row->desc,
		 c->new_rkey ? "renewed" : "stay", c->paths > 1 ? "two paths" : "one path");
	return c;
}

static void io_test(struct kunit *test)
{
	const struct io_case *c = test->param_value;
	const struct io_row *row = c->row;
	struct peer_mode mode = { .new_rkey = c->new_rkey, .reads = row->reads };
	struct peer *p = peer_start(test, &mode);
	struct peer_req *req;
	struct fs_stats stats;

	/* a receive more for each heartbeat that might come meanwhile */
	KUNIT_ASSERT_EQ(test, 0, peer_open(p, c->paths, row->info_bufs ? 60000 :
					   PEER_CONNECT_MS * PEER_SCALE));
	if (row->hb)
		peer_short_hb(p, "150");
	peer_expect_works(p);
	fake_srv_script(p->srv, &row->script);
	req = peer_submit(p, row->write ? WRITE : READ,
			  row->no_data ? 0 : row->pages ? row->pages * PAGE_SIZE : PEER_DATA,
			  row->admin ? RTRS_ADMIN_CON : RTRS_IO_CON);
	KUNIT_ASSERT_TRUE_MSG(test, peer_wait(req, PEER_HB_MS + 1000), "the request hangs");
	KUNIT_EXPECT_EQ(test, req->err,
			row->lost ? c->paths > 1 ? 0 : -ECONNABORTED : row->conf);
	if (!row->write) {
		if (!req->err && !row->no_check)
			KUNIT_EXPECT_TRUE(test, peer_data_ok(req));
		/* from now on nobody writes there but us */
		peer_fill(req, FILL);
	}
	if (row->why)
		peer_expect_failure(p, row->err, row->why);
	fake_srv_stats(p->srv, &stats);
	KUNIT_EXPECT_GE_MSG(test, stats.access_errors, row->refused,
			    "the HCA should have refused the server");
	if (!row->why) {
		KUNIT_EXPECT_EQ(test, stats.hits, 1);
		KUNIT_EXPECT_EQ(test, peer_failed_path(p), -1);
	}
	peer_expect_works(p);
	if (!row->write)
		KUNIT_EXPECT_TRUE_MSG(test, peer_data_is(req, FILL),
				      "somebody wrote to memory that was given back");
	peer_stop(p);
}

/*
 * What needs more than one request
 */

static const struct two_modes {
	const char *desc;
	bool new_rkey;
} two_modes[] = {
	{ "keys stay", false },
	{ "keys renewed", true },
};

KUNIT_ARRAY_PARAM_DESC(modes, two_modes, desc);

/* All chunks are in use, and are answered in one go. */
static void full_test(struct kunit *test)
{
	static const struct fs_step answer[FS_STEPS] = { { FS_ANSWER } };
	const struct two_modes *m = test->param_value;
	struct peer *p = peer_start_open(test, m->new_rkey, 1);
	struct peer_req *req;
	unsigned int i;

	fake_srv_script(p->srv, &peer_hold);
	for (i = 0; i < DEPTH; i++)
		peer_submit(p, i & 1 ? READ : WRITE, PEER_DATA, RTRS_IO_CON);
	KUNIT_EXPECT_PTR_EQ(test, NULL,
			    rtrs_clt_get_permit(p->clt, RTRS_IO_CON, RTRS_PERMIT_NOWAIT));
	peer_wait_hits(p, DEPTH);
	fake_srv_script(p->srv, NULL);
	KUNIT_EXPECT_EQ(test, DEPTH, fake_srv_release(p->srv, answer));
	list_for_each_entry(req, &p->reqs, entry) {
		KUNIT_ASSERT_TRUE(test, peer_wait(req, 3000));
		KUNIT_EXPECT_EQ(test, req->err, 0);
		KUNIT_EXPECT_TRUE(test, peer_data_ok(req));
	}
	peer_expect_works(p);
	peer_stop(p);
}

static const struct admin_row {
	const char *desc;
	bool new_rkey;
	size_t len;
	unsigned int nr;
	bool beats;
} admin_rows[] = {
	{ "keys stay", false, 0, 464 },
	{ "keys renewed", true, 0, 464 },
	{ "registered", true, PEER_DATA, 335 },
	{ "registered, after heartbeats without an answer", true, PEER_DATA, 335, true },
};

KUNIT_ARRAY_PARAM_DESC(admin, admin_rows, desc);

/*
 * The server answers heartbeats on connection 0 with no word, but requests on the
 * others, so that its path lives.
 */
static void beat_for_a_while(struct peer *p)
{
	static const struct fs_script quiet = { .at = FS_AT_HB };
	unsigned int i;

	fake_srv_script(p->srv, &quiet);
	KUNIT_EXPECT_EQ(p->test, 0, peer_sess_write(p, "hb_interval_ms", "100"));
	for (i = 0; i < 20 * PEER_SCALE; i++) {
		KUNIT_EXPECT_EQ(p->test, 0, peer_do(p, READ, PEER_DATA));
		msleep(100);
	}
	peer_wait_hits(p, 12);
	KUNIT_EXPECT_EQ(p->test, 0, peer_sess_write(p, "hb_interval_ms", "5000"));
}

/* As many requests as connection 0 takes, each confirmed; one more is refused. */
static void admin_full_test(struct kunit *test)
{
	static const struct fs_step answer[FS_STEPS] = { { FS_ANSWER } };
	const struct admin_row *row = test->param_value;
	struct peer_mode mode = {
		.new_rkey = row->new_rkey, .queue_depth = 512, .chunks_per_desc = 32,
	};
	struct peer *p = peer_start(test, &mode);
	struct peer_req *req, *next;
	unsigned int nr = 0;

	KUNIT_ASSERT_EQ(test, 0, peer_open(p, 1, PEER_CONNECT_MS * PEER_SCALE));
	if (row->beats)
		beat_for_a_while(p);
	fake_srv_script(p->srv, &peer_hold);
	do {
		req = peer_submit(p, READ, row->len, RTRS_ADMIN_CON);
	} while (!req->err && ++nr < mode.queue_depth);
	KUNIT_EXPECT_EQ(test, nr, row->nr);
	peer_wait_hits(p, nr);
	fake_srv_script(p->srv, NULL);
	KUNIT_EXPECT_EQ(test, nr, fake_srv_release(p->srv, answer));
	list_for_each_entry_safe(req, next, &p->reqs, entry) {
		KUNIT_ASSERT_TRUE(test, peer_wait(req, 5000));
		KUNIT_EXPECT_EQ(test, req->err,
				list_is_last(&req->entry, &p->reqs) ? -EAGAIN : 0);
		peer_free(req);
	}
	peer_expect_works(p);
	peer_stop(p);
}

/*
 * The answer to one read invalidates the key of another that is under way. The
 * first must not believe that its own is gone, the other fails at the server.
 */
static void foreign_key_test(struct kunit *test)
{
	static const struct fs_script steal = {
		.at = FS_AT_REQUEST, .times = 1,
		.step = { { FS_DATA }, { FS_INV, .key = FS_KEY_HELD }, { FS_NEW_KEY },
			  { FS_IMM, .type = FS_TYPE(2) }, { FS_WAIT, .ms = 100 }, { FS_DATA } },
	};
	struct peer *p = peer_start_open(test, false, 1);
	struct peer_req *first, *second;
	struct fs_stats stats;

	fake_srv_script(p->srv, &peer_hold);
	first = peer_submit(p, READ, PEER_DATA, RTRS_IO_CON);
	peer_wait_hits(p, 1);
	fake_srv_script(p->srv, &steal);
	second = peer_submit(p, READ, PEER_DATA, RTRS_IO_CON);
	KUNIT_ASSERT_TRUE(test, peer_wait(second, 3000));
	KUNIT_EXPECT_EQ(test, second->err, 0);
	KUNIT_EXPECT_TRUE(test, peer_data_ok(second));
	peer_fill(second, FILL);
	KUNIT_ASSERT_TRUE(test, peer_wait(first, 3000));
	KUNIT_EXPECT_EQ(test, first->err, -ECONNABORTED);
	KUNIT_EXPECT_TRUE(test, peer_data_is(second, FILL));
	fake_srv_stats(p->srv, &stats);
	KUNIT_EXPECT_GE(test, stats.access_errors, 1);
	fake_srv_heal(p->srv);
	KUNIT_EXPECT_EQ(test, 0, peer_reconnect(p, 0));
	peer_expect_works(p);
	peer_stop(p);
}

#define FIRST(...) .script = { .at = FS_AT_REQUEST, .path = 1, .times = 1, .step = { __VA_ARGS__ } }
#define THERE .on = FS_ON_OTHER_SESS

/*
 * What the server does with the key of a request on a connection of another
 * session, before it ends the request. sent: it sends the data where it should.
 * Whether an HCA lets it invalidate the key there is its own business: soft RoCE
 * does, and then the data do not get through. refused: it must not do that.
 */
static const struct other_row {
	const char *desc;
	struct fs_script script;
	bool new_rkey, reads, sent, refused;
} other_rows[] = {
	{ "write", FIRST({ FS_DATA, THERE }, { FS_WAIT, .ms = 100 }, { FS_INV }, { FS_IMM }),
	  .refused = true },
	{ "write, renewed keys",
	  FIRST({ FS_DATA, THERE }, { FS_WAIT, .ms = 100 }, { FS_INV }, { FS_NEW_KEY }, { FS_MSG }),
	  .new_rkey = true, .refused = true },
	{ "read", FIRST({ FS_STEAL, THERE }, { FS_WAIT, .ms = 100 }, { FS_ANSWER }),
	  .reads = true, .sent = true, .refused = true },
	{ "invalidation", FIRST({ FS_INV, THERE }, { FS_WAIT, .ms = 100 }, { FS_ANSWER }),
	  .sent = true },
	{ "invalidation, renewed keys",
	  FIRST({ FS_INV, THERE }, { FS_WAIT, .ms = 100 }, { FS_ANSWER }),
	  .new_rkey = true, .sent = true },
};

KUNIT_ARRAY_PARAM_DESC(other, other_rows, desc);

/* The sessions take turns at being that of the test. */
struct session {
	struct rtrs_clt_sess *clt;
	char name[sizeof_field(struct peer, name)];
};

static void swap_sessions(struct peer *p, struct session *other)
{
	struct session mine = { .clt = p->clt };

	strscpy(mine.name, p->name, sizeof(mine.name));
	p->clt = other->clt;
	strscpy(p->name, other->name, sizeof(p->name));
	*other = mine;
}

/* A key of one session opens nothing on a connection of another one. */
static void other_session_test(struct kunit *test)
{
	const struct other_row *row = test->param_value;
	struct peer_mode mode = { .new_rkey = row->new_rkey, .reads = row->reads };
	struct peer *p = peer_start(test, &mode);
	struct session other = {};
	struct peer_req *req;
	struct fs_stats stats;

	KUNIT_ASSERT_EQ(test, 0, peer_open(p, 1, PEER_CONNECT_MS * PEER_SCALE));
	swap_sessions(p, &other);
	KUNIT_ASSERT_EQ(test, 0, peer_open(p, 1, PEER_CONNECT_MS * PEER_SCALE));
	swap_sessions(p, &other);
	fake_srv_script(p->srv, &row->script);
	req = peer_submit(p, READ, PEER_DATA, RTRS_IO_CON);
	KUNIT_EXPECT_TRUE(test, peer_wait(req, 3000));
	if (row->refused)
		KUNIT_EXPECT_EQ(test, req->err, 0);
	if (!req->err)
		KUNIT_EXPECT_EQ(test, row->sent, peer_data_ok(req));
	peer_wait_hits(p, 1);
	fake_srv_stats(p->srv, &stats);
	KUNIT_EXPECT_GE(test, stats.access_errors, row->refused);
	fake_srv_heal(p->srv);
	swap_sessions(p, &other);
	KUNIT_EXPECT_EQ(test, 0, peer_mend(p));
	peer_expect_works(p);
	peer_close(p);
	swap_sessions(p, &other);
	KUNIT_EXPECT_EQ(test, 0, peer_mend(p));
	peer_expect_works(p);
	peer_stop(p);
}

static const struct gone_row {
	const char *desc;
	bool new_rkey;
	struct fs_step step[FS_STEPS];
} gone_rows[] = {
	{ "then disconnects", false, { { FS_ANSWER }, { FS_DISCONNECT } } },
	{ "then disconnects, renewed keys", true, { { FS_ANSWER }, { FS_DISCONNECT } } },
	{ "then its queue is gone", false, { { FS_ANSWER }, { FS_KILL_QP } } },
	{ "then writes on and on", false, { { FS_ANSWER }, { FS_DATA, .nr = 100 } } },
	{ "then writes on and on, renewed keys", true, { { FS_ANSWER }, { FS_DATA, .nr = 100 } } },
};

KUNIT_ARRAY_PARAM_DESC(gone, gone_rows, desc);

/*
 * The server answers the first of many reads and goes: the path is taken down
 * while the answer and the invalidation are handled. Each read ends once, and
 * nobody writes to its pages any more.
 */
static void gone_test(struct kunit *test)
{
	const struct gone_row *row = test->param_value;
	struct peer *p = peer_start_open(test, row->new_rkey, 1);
	struct peer_req *req;
	unsigned int i;

	peer_short_hb(p, "150");
	fake_srv_script(p->srv, &peer_hold);
	for (i = 0; i < DEPTH; i++)
		peer_submit(p, READ, PEER_DATA, RTRS_IO_CON);
	peer_wait_hits(p, DEPTH);
	fake_srv_release(p->srv, row->step);
	list_for_each_entry(req, &p->reqs, entry) {
		KUNIT_ASSERT_TRUE_MSG(test, peer_wait(req, 3000), "a request hangs");
		KUNIT_EXPECT_TRUE(test, req->err == -ECONNABORTED || !req->err);
		if (!req->err)
			KUNIT_EXPECT_TRUE(test, peer_data_ok(req));
		peer_fill(req, FILL);
	}
	fake_srv_heal(p->srv);
	KUNIT_EXPECT_EQ(test, 0, peer_reconnect(p, 0));
	peer_expect_works(p);
	list_for_each_entry(req, &p->reqs, entry)
		KUNIT_EXPECT_TRUE_MSG(test, peer_data_is(req, FILL),
				      "somebody wrote to memory that was given back");
	peer_stop(p);
}

/* Everything in flight fails over at once, and once. */
static void failover_test(struct kunit *test)
{
	const struct two_modes *m = test->param_value;
	static const struct fs_step gone[FS_STEPS] = { { FS_DISCONNECT } };
	struct fs_script hold_first = peer_hold;
	struct peer *p = peer_start_open(test, m->new_rkey, 2);
	struct peer_req *req;
	unsigned int i;

	hold_first.path = 1;
	KUNIT_EXPECT_EQ(test, 0, peer_sess_write(p, "mpath_policy", "round-robin"));
	fake_srv_script(p->srv, &hold_first);
	for (i = 0; i < DEPTH; i++)
		peer_submit(p, i & 2 ? READ : WRITE, PEER_DATA, RTRS_IO_CON);
	peer_wait_hits(p, DEPTH / 2);
	fake_srv_release(p->srv, gone);
	list_for_each_entry(req, &p->reqs, entry) {
		KUNIT_ASSERT_TRUE(test, peer_wait(req, 3000));
		KUNIT_EXPECT_EQ(test, req->err, 0);
		KUNIT_EXPECT_TRUE(test, peer_data_ok(req));
	}
	fake_srv_heal(p->srv);
	KUNIT_EXPECT_EQ(test, 0, peer_reconnect(p, 0));
	peer_expect_works(p);
	peer_stop(p);
}

/* The session is closed with requests that nobody will ever answer. */
static void close_busy_test(struct kunit *test)
{
	const struct two_modes *m = test->param_value;
	struct peer *p = peer_start_open(test, m->new_rkey, 2);
	struct peer_req *req;
	unsigned int i;
	ktime_t begin;

	fake_srv_script(p->srv, &peer_hold);
	for (i = 0; i < DEPTH; i++)
		peer_submit(p, i & 1 ? READ : WRITE, PEER_DATA, RTRS_IO_CON);
	peer_wait_hits(p, DEPTH);
	begin = ktime_get();
	peer_close(p);
	KUNIT_EXPECT_LT(test, ktime_ms_delta(ktime_get(), begin), 1000 * PEER_SCALE);
	list_for_each_entry(req, &p->reqs, entry)
		KUNIT_EXPECT_EQ(test, req->err, -ECONNABORTED);
	fake_srv_heal(p->srv);
	KUNIT_ASSERT_EQ(test, 0, peer_open(p, 2, PEER_CONNECT_MS * PEER_SCALE));
	peer_expect_works(p);
	peer_stop(p);
}

static struct kunit_case io_kunit_cases[] = {
	KUNIT_CASE_PARAM(io_test, io_gen_params),
	KUNIT_CASE_PARAM(full_test, modes_gen_params),
	KUNIT_CASE_PARAM(admin_full_test, admin_gen_params),
	KUNIT_CASE(foreign_key_test),
	KUNIT_CASE_PARAM(other_session_test, other_gen_params),
	KUNIT_CASE_PARAM(gone_test, gone_gen_params),
	KUNIT_CASE_PARAM(failover_test, modes_gen_params),
	KUNIT_CASE_PARAM(close_busy_test, modes_gen_params),
	{}
};

static struct kunit_suite io_suite = {
	.name = "rtrs_peer_io",
	.suite_init = peer_suite_init,
	.suite_exit = peer_suite_exit,
	.test_cases = io_kunit_cases,
};

kunit_test_suite(io_suite);
