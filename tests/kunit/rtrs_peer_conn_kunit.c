// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the client in front of a server that connects it badly:
 * connection responses, rejections, the info exchange, silence in between
 *
 * Each row is done three times: to a session that is opened, where the errno
 * shows and how long it took; to a session that reconnects, where the reason can
 * be read, and which must recover when the server behaves again; and to a path
 * that is added to a session, which goes on. To add a behaviour, add a row.
 */
#include <linux/ktime.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>

#include "rtrs_peer.h"

/* Depth 8, chunks of 32 KiB, which is what the server says if not told otherwise */
#define CHUNK 32768
#define DEPTH 8

#define ACCEPT(...) .at = FS_AT_CONN_REQ, .step = { { .op = FS_ACCEPT, .patch = { __VA_ARGS__ } } }
#define REJECT(_err, ...) .at = FS_AT_CONN_REQ, \
	.step = { { .op = FS_REJECT, .err = FS_ERR(_err), .patch = { __VA_ARGS__ } } }
#define INFO(...) .at = FS_AT_INFO_REQ, .step = { { .op = FS_INFO_RSP, .patch = { __VA_ARGS__ } } }
#define INFO_STEPS(...) .at = FS_AT_INFO_REQ, .step = { __VA_ARGS__ }
#define CONN_STEPS(...) .at = FS_AT_CONN_REQ, .step = { __VA_ARGS__ }
#define ESTABLISHED(_cid, ...) \
	.at = FS_AT_ESTABLISHED, .cid = FS_CID(_cid), .step = { __VA_ARGS__ }

#define REFUSED "the server refused: the old path is still there, or it speaks another version"
#define NO_SERVER "refused by what is no RTRS server"
#define HOST_REFUSED "the server's host refused: nothing listens, or it finds no way back"
#define CONTRADICTS "the server contradicts what it said on connection 0"
#define TIMEOUT "no answer within the time limit"

/*
 * err 0: legal, the session must come up. again: it may be over in a moment, so
 * the client tries until its time is over
 */
static const struct conn_row {
	const char *desc;
	struct fs_script script;
	struct peer_mode mode;
	int err;
	const char *why;
	bool again;
} conn_rows[] = {
	/* connection response */
	{ "other minor version is fine", { ACCEPT(FS_PATCH(C_VERSION, 1, 0x77)) } },
	{ "magic 0", { ACCEPT(FS_PATCH(C_MAGIC, 2, 0)) },
	  .err = -ECONNRESET, .why = "bad magic" },
	{ "magic byte-swapped", { ACCEPT(FS_PATCH(C_MAGIC, 2, 0xbd1b)) },
	  .err = -ECONNRESET, .why = "bad magic" },
	{ "response without private data", { CONN_STEPS({ FS_ACCEPT, .len = FS_LEN(0) }) },
	  .err = -ECONNRESET, .why = "bad magic" },
	{ "response cut after the version", { CONN_STEPS({ FS_ACCEPT, .len = FS_LEN(4) }) },
	  .err = -ECONNRESET, .why = "queue depth 0" },
	{ "major version 1", { ACCEPT(FS_PATCH(C_VERSION, 2, 0x0100)) },
	  .err = -ECONNRESET, .why = "wrong major version" },
	{ "major version 3", { ACCEPT(FS_PATCH(C_VERSION, 2, 0x0300)) },
	  .err = -ECONNRESET, .why = "wrong major version" },
	{ "accepted with errno -5", { ACCEPT(FS_PATCH(C_ERRNO, 2, -5)) },
	  .err = -EIO, .why = "server error" },
	{ "accepted with errno 1", { ACCEPT(FS_PATCH(C_ERRNO, 2, 1)) },
	  .err = -ECONNRESET, .why = "errno out of range" },
	{ "accepted with errno -511", { ACCEPT(FS_PATCH(C_ERRNO, 2, -511)) },
	  .err = -511, .why = "server error" },
	/* a system call is to be restarted; will be done later, which nobody may return */
	{ "accepted with errno -512", { ACCEPT(FS_PATCH(C_ERRNO, 2, -512)) },
	  .err = -ECONNRESET, .why = "errno out of range" },
	{ "accepted with errno -529", { ACCEPT(FS_PATCH(C_ERRNO, 2, -EIOCBQUEUED)) },
	  .err = -ECONNRESET, .why = "errno out of range" },
	{ "accepted with errno -32768", { ACCEPT(FS_PATCH(C_ERRNO, 2, 0x8000)) },
	  .err = -ECONNRESET, .why = "errno out of range" },
	{ "depth 0", { ACCEPT(FS_PATCH(C_DEPTH, 2, 0)) },
	  .err = -ECONNRESET, .why = "queue depth 0" },
	{ "depth 65535", { ACCEPT(FS_PATCH(C_DEPTH, 2, 65535)) },
	  .err = -ECONNRESET, .why = "queue depth and chunk size exceed the immediate" },
	{ "io size 0", { ACCEPT(FS_PATCH(C_IO, 4, 0)) },
	  .err = -ECONNRESET, .why = "io size out of range" },
	{ "io size 4095", { ACCEPT(FS_PATCH(C_IO, 4, 4095)) },
	  .err = -ECONNRESET, .why = "io size out of range" },
	{ "io size of 4 GiB", { ACCEPT(FS_PATCH(C_IO, 4, U32_MAX)) },
	  .err = -ECONNRESET, .why = "chunk size overflows" },
	{ "io size wrapped to -4096", { ACCEPT(FS_PATCH(C_IO, 4, 0xfffff000)) },
	  .err = -ECONNRESET, .why = "chunk size overflows" },
	{ "io size of 256 MiB", { ACCEPT(FS_PATCH(C_IO, 4, 0x10000000)) },
	  .err = -ECONNRESET, .why = "queue depth and chunk size exceed the immediate" },
	{ "header size 0", { ACCEPT(FS_PATCH(C_HDR, 4, 0)) },
	  .err = -ECONNRESET, .why = "header size out of range" },
	{ "header size 24", { ACCEPT(FS_PATCH(C_HDR, 4, 24)) },
	  .err = -ECONNRESET, .why = "header size out of range" },
	{ "header size 65537", { ACCEPT(FS_PATCH(C_HDR, 4, 65537)) },
	  .err = -ECONNRESET, .why = "header size out of range" },
	{ "header size 2^31", { ACCEPT(FS_PATCH(C_HDR, 4, 0x80000000)) },
	  .err = -ECONNRESET, .why = "header size out of range" },
	{ "unknown flag 0", { ACCEPT(FS_PATCH(C_FLAGS, 4, 1)) },
	  .err = -ECONNRESET, .why = "unknown flags" },
	{ "unknown flag 31", { ACCEPT(FS_PATCH(C_FLAGS, 4, 0x80000002)) },
	  .err = -ECONNRESET, .why = "unknown flags" },

	/* the other connections say something else than the first */
	{ "cid 1 with another depth",
	  { .cid = FS_CID(1), ACCEPT(FS_PATCH(C_DEPTH, 2, 7)) },
	  .err = -ECONNRESET, .why = CONTRADICTS },
	{ "cid 1 with another io size",
	  { .cid = FS_CID(1), ACCEPT(FS_PATCH(C_IO, 4, 32768)) },
	  .err = -ECONNRESET, .why = CONTRADICTS },
	{ "cid 2 with another header size",
	  { .cid = FS_CID(2), ACCEPT(FS_PATCH(C_HDR, 4, 8192)) },
	  .err = -ECONNRESET, .why = CONTRADICTS },
	{ "cid 1 in another mode",
	  { .cid = FS_CID(1), ACCEPT(FS_PATCH(C_FLAGS, 4, 2)) },
	  .err = -ECONNRESET, .why = CONTRADICTS },
	{ "cid 1 with bad magic", { .cid = FS_CID(1), ACCEPT(FS_PATCH(C_MAGIC, 2, 1)) },
	  .err = -ECONNRESET, .why = "bad magic" },
	{ "cid 2 accepted with errno -12", { .cid = FS_CID(2), ACCEPT(FS_PATCH(C_ERRNO, 2, -12)) },
	  .err = -ENOMEM, .why = "server error" },

	/* rejections */
	{ "rejected: unknown session", { REJECT(ENXIO) }, .err = -ENXIO, .again = true,
	  .why = "the server does not know the session: restarted, or another server" },
	{ "rejected: path exists", { REJECT(EEXIST) }, .err = -EEXIST, .again = true,
	  .why = "the server has a path of these addresses, or one of another family" },
	{ "rejected: no memory", { REJECT(ENOMEM) }, .err = -ENOMEM,
	  .why = "the server has no memory" },
	{ "rejected: connection reset", { REJECT(ECONNRESET) }, .err = -ECONNRESET,
	  .again = true, .why = REFUSED },
	{ "rejected: some errno", { REJECT(EPERM) }, .err = -EPERM,
	  .why = "the server refused the connection" },
	{ "rejected: errno -511", { REJECT(511) }, .err = -511,
	  .why = "the server refused the connection" },
	{ "rejected with errno -512", { REJECT(512) }, .err = -ECONNRESET, .why = NO_SERVER },
	{ "rejected with errno -529", { REJECT(EIOCBQUEUED) }, .err = -ECONNRESET,
	  .why = NO_SERVER },
	{ "rejected with errno -4095", { REJECT(4095) }, .err = -ECONNRESET, .why = NO_SERVER },
	{ "rejected with errno 0", { REJECT(0) }, .err = -ECONNRESET, .why = NO_SERVER },
	{ "rejected with errno 1", { REJECT(0, FS_PATCH(C_ERRNO, 2, 1)) },
	  .err = -ECONNRESET, .why = NO_SERVER },
	{ "rejected with errno -4096", { REJECT(4096) }, .err = -ECONNRESET, .why = NO_SERVER },
	{ "rejected with bad magic", { REJECT(EPERM, FS_PATCH(C_MAGIC, 2, 0x1234)) },
	  .err = -ECONNRESET, .why = NO_SERVER },
	{ "rejected: busy", { REJECT(EBUSY) }, .err = -EBUSY, .again = true,
	  .why = "the server is busy" },
	{ "rejected without private data", { CONN_STEPS({ FS_REJECT, .len = FS_LEN(0) }) },
	  .err = -ECONNRESET, .why = HOST_REFUSED },
	{ "rejected by the CM", { CONN_STEPS({ FS_CM_REJECT }) },
	  .err = -ECONNRESET, .why = "no resources" },
	{ "rejected by the CM as stale",
	  { CONN_STEPS({ FS_CM_REJECT, .err = FS_ERR(IB_CM_REJ_STALE_CONN) }) },
	  .err = -ECONNRESET, .why = "stale conn" },
	{ "rejected by the CM as redirected",
	  { CONN_STEPS({ FS_CM_REJECT, .err = FS_ERR(IB_CM_REJ_PORT_REDIRECT) }) },
	  .err = -ECONNRESET, .why = "port redirect" },
	{ "rejected by the CM for a reason that is none",
	  { CONN_STEPS({ FS_CM_REJECT, .err = FS_ERR(250) }) },
	  .err = -ECONNRESET, .why = "unrecognized reason" },
	{ "cid 1 rejected", { .cid = FS_CID(1), REJECT(EPERM) },
	  .err = -EPERM, .why = "the server refused the connection" },
	{ "last cid rejected", { .cid = FS_CID(2), REJECT(ENOMEM) },
	  .err = -ENOMEM, .why = "the server has no memory" },

	/* silence, and going away */
	{ "no answer to cid 0", { CONN_STEPS({ FS_SILENCE }) },
	  .err = -ETIMEDOUT, .why = TIMEOUT },
	{ "no answer to cid 1", { .cid = FS_CID(1), CONN_STEPS({ FS_SILENCE }) },
	  .err = -ETIMEDOUT, .why = TIMEOUT },
	{ "no answer to the last cid", { .cid = FS_CID(2), CONN_STEPS({ FS_SILENCE }) },
	  .err = -ETIMEDOUT, .why = TIMEOUT },
	{ "a slow answer is fine", { CONN_STEPS({ FS_WAIT, .ms = 60 }, { FS_ACCEPT }) } },
	/* and no info response, or a quick client may be up before it hears of it */
	{ "cid 0 accepted and disconnected",
	  { ESTABLISHED(0, { FS_SILENCE }, { FS_DISCONNECT }) },
	  .err = -ECONNRESET, .again = true, .why = DISCONNECTED },
	{ "cid 1 accepted and disconnected",
	  { .cid = FS_CID(1), CONN_STEPS({ FS_SILENCE }, { FS_ACCEPT }, { FS_DISCONNECT }) },
	  .err = -ECONNRESET, .again = true, .why = DISCONNECTED },
	{ "queue of cid 0 gone after accepting", { ESTABLISHED(0, { FS_KILL_QP }) },
	  .err = -ETIMEDOUT, .why = TIMEOUT },
	{ "queue of cid 1 gone after accepting",
	  { .cid = FS_CID(1), CONN_STEPS({ FS_SILENCE }, { FS_ACCEPT }, { FS_KILL_QP }) },
	  .err = -ETIMEDOUT, .why = TIMEOUT },
	{ "silent after accepting all",
	  { .cid = FS_CID(2), CONN_STEPS({ FS_SILENCE }, { FS_ACCEPT }) },
	  .err = -ETIMEDOUT, .why = TIMEOUT },

	/* info response: what is in it */
	{ "info: type 0", { INFO(FS_PATCH(I_TYPE, 2, 0)) },
	  .err = -ECONNRESET, .why = "not an info response" },
	{ "info: type 4", { INFO(FS_PATCH(I_TYPE, 2, 4)) },
	  .err = -ECONNRESET, .why = "not an info response" },
	{ "info: no descriptor", { INFO(FS_PATCH(I_NR, 2, 0)) },
	  .err = -ECONNRESET, .why = "descriptor count out of range" },
	{ "info: more descriptors than chunks", { INFO(FS_PATCH(I_NR, 2, DEPTH + 1)) },
	  .err = -ECONNRESET, .why = "descriptor count out of range" },
	{ "info: 65535 descriptors", { INFO(FS_PATCH(I_NR, 2, 65535)) },
	  .err = -ECONNRESET, .why = "descriptor count out of range" },
	{ "info: more descriptors than bytes", { INFO(FS_PATCH(I_NR, 2, 2)) },
	  .err = -ECONNRESET, .why = "info response lacks descriptors" },
	{ "info: descriptor of no length", { INFO(FS_PATCH(I_LEN, 4, 0)) },
	  .err = -ECONNRESET, .why = "descriptor is not made of whole chunks" },
	{ "info: half a chunk", { INFO(FS_PATCH(I_LEN, 4, CHUNK / 2)) },
	  .err = -ECONNRESET, .why = "descriptor is not made of whole chunks" },
	{ "info: one byte too many", { INFO(FS_PATCH(I_LEN, 4, DEPTH * CHUNK + 1)) },
	  .err = -ECONNRESET, .why = "descriptor is not made of whole chunks" },
	{ "info: one chunk too many", { INFO(FS_PATCH(I_LEN, 4, (DEPTH + 1) * CHUNK)) },
	  .err = -ECONNRESET, .why = "descriptors cover too many chunks" },
	{ "info: nearly 4 GiB", { INFO(FS_PATCH(I_LEN, 4, 0xffff8000)) },
	  .err = -ECONNRESET, .why = "descriptors cover too many chunks" },
	{ "info: one chunk too few", { INFO(FS_PATCH(I_LEN, 4, (DEPTH - 1) * CHUNK)) },
	  .err = -ECONNRESET, .why = "descriptors cover too few chunks" },
	{ "info: address wraps", { INFO(FS_PATCH(I_ADDR, 8, U64_MAX - CHUNK)) },
	  .err = -ECONNRESET, .why = "descriptor wraps around" },
	{ "info: second descriptor too long", { INFO(FS_PATCH(I_LEN2, 4, 2 * CHUNK)) },
	  { .new_rkey = true }, .err = -ECONNRESET, .why = "descriptors cover too many chunks" },
	{ "info: second descriptor empty", { INFO(FS_PATCH(I_LEN2, 4, 0)) },
	  { .new_rkey = true }, .err = -ECONNRESET,
	  .why = "descriptor is not made of whole chunks" },

	/* info response: how it comes */
	{ "info: no byte", { INFO_STEPS({ FS_INFO_RSP, .len = FS_LEN(0) }) },
	  .err = -ECONNRESET, .why = "short info response" },
	{ "info: seven bytes", { INFO_STEPS({ FS_INFO_RSP, .len = FS_LEN(7) }) },
	  .err = -ECONNRESET, .why = "short info response" },
	{ "info: cut inside the descriptor", { INFO_STEPS({ FS_INFO_RSP, .len = FS_LEN(23) }) },
	  .err = -ECONNRESET, .why = "info response lacks descriptors" },
	{ "info: junk behind it is fine", { INFO_STEPS({ FS_INFO_RSP, .len = FS_LEN(100) }) } },
	{ "info: longer than any can be", { INFO_STEPS({ FS_INFO_RSP, .len = FS_LEN(4096) }) },
	  .err = -ECONNRESET, .why = RECV_FAILED },
	{ "info: never", { INFO_STEPS({ FS_SILENCE }) }, .err = -ETIMEDOUT, .why = TIMEOUT },
	{ "info: disconnect instead", { INFO_STEPS({ FS_DISCONNECT }) },
	  .err = -ECONNRESET, .again = true, .why = DISCONNECTED },
	{ "info: disconnect of another connection",
	  { INFO_STEPS({ FS_DISCONNECT, .on = FS_ON_NEXT_CON }) },
	  .err = -ECONNRESET, .again = true, .why = DISCONNECTED },
	/* the HCA's acknowledgment of the request has got away before */
	{ "info: queue gone instead", { INFO_STEPS({ FS_WAIT, .ms = 50 }, { FS_KILL_QP }) },
	  .err = -ETIMEDOUT, .why = TIMEOUT },
	{ "info: a slow one is fine", { INFO_STEPS({ FS_WAIT, .ms = 60 }, { FS_INFO_RSP }) } },

	/* other messages before it */
	{ "info: heartbeat before it is fine", { INFO_STEPS({ FS_HB }, { FS_INFO_RSP }) } },
	/* no server sends a second one before the first is answered */
	{ "info: eight heartbeats before it",
	  { INFO_STEPS({ FS_HB, .nr = 8 }, { FS_INFO_RSP }) },
	  .err = -ECONNRESET, .why = RECV_FAILED },
	{ "info: forty heartbeats before it", { INFO_STEPS({ FS_HB, .nr = 40 }, { FS_INFO_RSP }) },
	  .err = -EPROTO, .why = "messages before the path is up" },
	{ "info: invalidation before it", { INFO_STEPS({ FS_INV }, { FS_INFO_RSP }) },
	  .err = -ECONNRESET, .why = RECV_FAILED },
	{ "info: heartbeat before it, renewed keys",
	  { INFO_STEPS({ FS_HB }, { FS_INFO_RSP }) }, { .new_rkey = true } },
	{ "info: acknowledgment before it is fine",
	  { INFO_STEPS({ FS_HB_ACK }, { FS_INFO_RSP }) } },
	{ "info: answer before it", { INFO_STEPS({ FS_IMM }, { FS_INFO_RSP }) },
	  .err = -EPROTO, .why = NO_REQUEST },
	{ "info: answer before it on an IO connection",
	  { INFO_STEPS({ FS_IMM, .on = FS_ON_NEXT_CON }, { FS_WAIT, .ms = 20 }, { FS_INFO_RSP }) },
	  .err = -EPROTO, .why = NO_REQUEST },
	{ "info: answer of a chunk that is none before it",
	  { INFO_STEPS({ FS_IMM, .id = 5000 }, { FS_INFO_RSP }) },
	  .err = -EPROTO, .why = NO_CHUNK },
	{ "info: new key before it", { INFO_STEPS({ FS_MSG }, { FS_INFO_RSP }) },
	  { .new_rkey = true }, .err = -EPROTO, .why = NO_REQUEST },
	{ "info: immediate of unknown type before it",
	  { INFO_STEPS({ FS_IMM, .type = FS_TYPE(5) }, { FS_INFO_RSP }) },
	  .err = -EPROTO, .why = UNKNOWN_IMM },
	{ "info: another message in its place",
	  { INFO_STEPS({ FS_SEND, .len = FS_LEN(8) }) },
	  .err = -ECONNRESET, .why = "not an info response" },
	{ "info: on the wrong connection",
	  { INFO_STEPS({ FS_INFO_RSP, .on = FS_ON_NEXT_CON }) },
	  .err = -ECONNRESET, .why = RECV_FAILED },
	{ "info: heartbeat on the wrong connection before it",
	  { INFO_STEPS({ FS_HB, .on = FS_ON_NEXT_CON }, { FS_WAIT, .ms = 20 }, { FS_INFO_RSP }) },
	  .err = -EPROTO, .why = WRONG_HB },
};

KUNIT_ARRAY_PARAM_DESC(conn, conn_rows, desc);

static void expect_hits(struct peer *p)
{
	struct fs_stats stats;

	fake_srv_stats(p->srv, &stats);
	KUNIT_EXPECT_GT_MSG(p->test, stats.hits, 0, "the script was never asked");
}

/* Opening fails with that errno, at once or in time, and leaves nothing behind. */
static void open_test(struct kunit *test)
{
	const struct conn_row *row = test->param_value;
	struct peer *p = peer_start(test, &row->mode);
	bool waits = row->again || row->err == -ETIMEDOUT;
	unsigned int limit = waits ? peer_hostile_ms() : PEER_CONNECT_MS * PEER_SCALE;
	ktime_t begin;

	fake_srv_script(p->srv, &row->script);
	begin = ktime_get();
	KUNIT_EXPECT_EQ(test, row->err, peer_open(p, 1, limit));
	KUNIT_EXPECT_LT(test, ktime_ms_delta(ktime_get(), begin),
			(waits ? limit : 0) + 1000 * PEER_SCALE);
	expect_hits(p);
	if (p->clt) {
		peer_expect_works(p);
		peer_close(p);
	}
	fake_srv_heal(p->srv);
	KUNIT_ASSERT_EQ(test, 0, peer_open(p, 1, PEER_CONNECT_MS * PEER_SCALE));
	peer_expect_works(p);
	peer_stop(p);
}

/* Reconnecting fails for that reason, and works when the server behaves. */
static void reconnect_test(struct kunit *test)
{
	const struct conn_row *row = test->param_value;
	struct peer *p = peer_start(test, &row->mode);

	KUNIT_ASSERT_EQ(test, 0, peer_open(p, 1, PEER_CONNECT_MS * PEER_SCALE));
	peer_connect_ms(test, peer_hostile_ms());
	fake_srv_script(p->srv, &row->script);
	KUNIT_EXPECT_EQ(test, row->err ? -ENOTCONN : 0, peer_reconnect(p, 0));
	expect_hits(p);
	if (row->err)
		peer_expect_reason(p, 0, row->err, row->why);
	fake_srv_heal(p->srv);
	peer_connect_ms(test, PEER_CONNECT_MS * PEER_SCALE);
	KUNIT_EXPECT_EQ(test, 0, peer_reconnect(p, 0));
	peer_expect_works(p);
	peer_stop(p);
}

/* A path cannot be added for that reason, which is none of the others' business. */
static void add_path_test(struct kunit *test)
{
	const struct conn_row *row = test->param_value;
	struct peer *p = peer_start(test, &row->mode);
	char buf[16];

	KUNIT_ASSERT_EQ(test, 0, peer_open(p, 1, PEER_CONNECT_MS * PEER_SCALE));
	peer_connect_ms(test, peer_hostile_ms());
	fake_srv_script(p->srv, &row->script);
	KUNIT_EXPECT_EQ(test, row->err, peer_add_path(p, 1));
	expect_hits(p);
	peer_expect_works(p);
	fake_srv_heal(p->srv);
	peer_connect_ms(test, PEER_CONNECT_MS * PEER_SCALE);
	if (row->err)
		KUNIT_EXPECT_EQ(test, 0, peer_add_path(p, 1));
	p->paths = 2;
	peer_expect_works(p);
	KUNIT_EXPECT_EQ(test, 0, peer_path_read(p, 0, "last_error", buf, sizeof(buf)));
	KUNIT_EXPECT_STREQ(test, buf, "0");
	peer_stop(p);
}

/*
 * What the session promised, all its paths must keep.
 */

static const struct limit_row {
	const char *desc;
	struct fs_script script;
} limit_rows[] = {
	{ "smaller depth", { ACCEPT(FS_PATCH(C_DEPTH, 2, 7)) } },
	{ "larger depth", { ACCEPT(FS_PATCH(C_DEPTH, 2, 9)) } },
	{ "much larger depth", { ACCEPT(FS_PATCH(C_DEPTH, 2, 4096)) } },
	{ "depth 1", { ACCEPT(FS_PATCH(C_DEPTH, 2, 1)) } },
	{ "smaller io size", { ACCEPT(FS_PATCH(C_IO, 4, 8192)) } },
	{ "smaller header", { ACCEPT(FS_PATCH(C_HDR, 4, 64)) } },
};

KUNIT_ARRAY_PARAM_DESC(limit, limit_rows, desc);

#define PROMISE "the server's limits are not those that the session promised"

/* A path of other limits is refused: added, or reconnected; IO goes on. */
static void limit_test(struct kunit *test)
{
	const struct limit_row *row = test->param_value;
	struct peer *p = peer_start(test, &(struct peer_mode){});

	KUNIT_ASSERT_EQ(test, 0, peer_open(p, 1, PEER_CONNECT_MS * PEER_SCALE));
	peer_connect_ms(test, peer_hostile_ms());
	fake_srv_script(p->srv, &row->script);
	KUNIT_EXPECT_EQ(test, -ECONNRESET, peer_add_path(p, 1));
	expect_hits(p);
	peer_expect_works(p);
	KUNIT_EXPECT_EQ(test, -ENOTCONN, peer_reconnect(p, 0));
	peer_expect_reason(p, 0, -ECONNRESET, PROMISE);
	fake_srv_heal(p->srv);
	peer_connect_ms(test, PEER_CONNECT_MS * PEER_SCALE);
	KUNIT_EXPECT_EQ(test, 0, peer_reconnect(p, 0));
	KUNIT_EXPECT_EQ(test, 0, peer_add_path(p, 1));
	p->paths = 2;
	peer_expect_works(p);
	peer_stop(p);
}

static const struct deep_row {
	const char *desc;
	u16 depth;
	int err;
} deep_rows[] = {
	{ "the deepest that rxe has queues for", 10900, -ECONNRESET },
	{ "the deepest that the immediate has room for", 32768, -EOPNOTSUPP },
};

KUNIT_ARRAY_PARAM_DESC(deep, deep_rows, desc);

/*
 * A deep queue, with the smallest chunks. The server does not have that many, but
 * that shows only when we have made everything.
 */
static void deep_test(struct kunit *test)
{
	const struct deep_row *row = test->param_value;
	struct fs_script script = {
		ACCEPT(FS_PATCH(C_DEPTH, 2, row->depth)),
	};
	struct peer *p = peer_start(test, &(struct peer_mode){
		.max_io_size = 4096, .max_hdr_size = 4096,
	});

	fake_srv_script(p->srv, &script);
	KUNIT_EXPECT_EQ(test, row->err, peer_open(p, 1, 60000));
	expect_hits(p);
	fake_srv_heal(p->srv);
	KUNIT_ASSERT_EQ(test, 0, peer_open(p, 1, PEER_CONNECT_MS * PEER_SCALE));
	peer_expect_works(p);
	peer_stop(p);
}

/* The second path of an open has another depth than the first. */
static void open_limit_test(struct kunit *test)
{
	struct fs_script script = {
		.path = 2, ACCEPT(FS_PATCH(C_DEPTH, 2, 16)),
	};
	struct peer *p = peer_start(test, &(struct peer_mode){});

	fake_srv_script(p->srv, &script);
	KUNIT_EXPECT_EQ(test, -ECONNRESET, peer_open(p, 2, peer_hostile_ms()));
	expect_hits(p);
	fake_srv_heal(p->srv);
	KUNIT_ASSERT_EQ(test, 0, peer_open(p, 2, PEER_CONNECT_MS * PEER_SCALE));
	peer_expect_works(p);
	peer_stop(p);
}

/* That a path is there already shows when its source is resolved, if none was given. */
static void twin_test(struct kunit *test)
{
	struct peer *p = peer_start(test, &(struct peer_mode){});

	KUNIT_ASSERT_EQ(test, 0, peer_open(p, 1, PEER_CONNECT_MS * PEER_SCALE));
	KUNIT_EXPECT_EQ(test, -EEXIST, peer_sess_write(p, "add_path", "ip:10.0.0.1"));
	peer_expect_works(p);
	peer_stop(p);
}

/* Nobody listens there at all. */
static void no_listener_test(struct kunit *test)
{
	struct peer *p = peer_start(test, &(struct peer_mode){});
	unsigned int limit = PEER_CONNECT_MS * PEER_SCALE;
	ktime_t begin = ktime_get();

	fake_srv_stop(p->srv);
	p->srv = NULL;
	KUNIT_EXPECT_EQ(test, -ECONNRESET, peer_open(p, 2, limit));
	/* who is refused does not wait */
	KUNIT_EXPECT_LT(test, ktime_ms_delta(ktime_get(), begin), limit);
}

/*
 * HCAs that can do less than rxe: refused, or used within their limits
 */

static void short_queues(struct ib_device_attr *attrs)
{
	attrs->max_qp_wr = 64;
}

static void short_cqs(struct ib_device_attr *attrs)
{
	attrs->max_cqe = 64;
}

static void one_segment(struct ib_device_attr *attrs)
{
	attrs->max_send_sge = 1;
}

static void three_segments(struct ib_device_attr *attrs)
{
	attrs->max_send_sge = 3;
}

static void no_registration(struct ib_device_attr *attrs)
{
	attrs->device_cap_flags &= ~IB_DEVICE_MEM_MGT_EXTENSIONS;
}

static void two_pages(struct ib_device_attr *attrs)
{
	attrs->max_fast_reg_page_list_len = 2;
}

/* err: of the open; two_err and three_err: of requests of so many pages */
static const struct hca_row {
	const char *desc;
	void (*spoil)(struct ib_device_attr *attrs);
	int err;
	int two_err;
	int three_err;
} hca_rows[] = {
	{ "queues of 64 entries", short_queues, -EOPNOTSUPP },
	{ "completion queues of 64 entries", short_cqs, -EOPNOTSUPP },
	{ "sends of one segment", one_segment, -EOPNOTSUPP },
	{ "sends of three segments", three_segments },
	{ "no registration by work request", no_registration, -EOPNOTSUPP },
	{ "registrations of two pages", two_pages, 0, 0, -EMSGSIZE },
};

KUNIT_ARRAY_PARAM_DESC(hca, hca_rows, desc);

/* Also when the test was broken off */
static void mend_hca(void *attrs)
{
	peer_hca(0)->attrs = *(struct ib_device_attr *)attrs;
}

static void hca_test(struct kunit *test)
{
	const struct hca_row *row = test->param_value;
	struct peer *p = peer_start(test, &(struct peer_mode){});
	struct ib_device_attr *attrs = kunit_kzalloc(test, sizeof(*attrs), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, attrs);
	*attrs = peer_hca(0)->attrs;
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, mend_hca, attrs));
	row->spoil(&peer_hca(0)->attrs);
	KUNIT_ASSERT_EQ(test, row->err, peer_open(p, 1, PEER_CONNECT_MS * PEER_SCALE));
	if (!row->err) {
		KUNIT_EXPECT_EQ(test, row->two_err, peer_do(p, WRITE, 2 * PAGE_SIZE));
		KUNIT_EXPECT_EQ(test, row->two_err, peer_do(p, READ, 2 * PAGE_SIZE));
		KUNIT_EXPECT_EQ(test, row->three_err, peer_do(p, WRITE, 3 * PAGE_SIZE));
		KUNIT_EXPECT_EQ(test, row->three_err, peer_do(p, READ, 3 * PAGE_SIZE));
		peer_close(p);
	}
	kunit_release_action(test, mend_hca, attrs);
	KUNIT_ASSERT_EQ(test, 0, peer_open(p, 1, PEER_CONNECT_MS * PEER_SCALE));
	peer_expect_works(p);
	peer_stop(p);
}

static struct kunit_case conn_cases[] = {
	KUNIT_CASE_PARAM(open_test, conn_gen_params),
	KUNIT_CASE_PARAM(reconnect_test, conn_gen_params),
	KUNIT_CASE_PARAM(add_path_test, conn_gen_params),
	KUNIT_CASE_PARAM(limit_test, limit_gen_params),
	KUNIT_CASE_PARAM(deep_test, deep_gen_params),
	KUNIT_CASE(open_limit_test),
	KUNIT_CASE(twin_test),
	KUNIT_CASE(no_listener_test),
	KUNIT_CASE_PARAM(hca_test, hca_gen_params),
	{}
};

static struct kunit_suite conn_suite = {
	.name = "rtrs_peer_conn",
	.suite_init = peer_suite_init,
	.suite_exit = peer_suite_exit,
	.test_cases = conn_cases,
};

kunit_test_suite(conn_suite);
