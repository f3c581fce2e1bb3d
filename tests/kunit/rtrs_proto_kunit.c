// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the wire protocol, rtrs-proto.h
 *
 * The expected bytes are written down here by hand. They are what a server on
 * another machine sends and understands, so a failure is never cured by
 * changing them.
 */

#include <kunit/test.h>
#include <linux/module.h>

#include "../../rtrs-proto.h"

/* A server with its defaults: 128 KiB chunks, 4 KiB pages. */
static const struct rtrs_conn_params usual = {
	.queue_depth	= 512,
	.max_io_size	= 126976,
	.max_hdr_size	= 4096,
	.chunk_size	= 131072,
	.new_rkey	= true,
};

/*
 * Layout: every size and offset
 */

struct layout_row {
	const char *desc;
	size_t got;
	size_t want;
};

#define SIZE_ROW(type, want) { "sizeof " #type, sizeof(struct type), want }
#define OFFSET_ROW(type, member, want) \
	{ #type "." #member, offsetof(struct type, member), want }

static const struct layout_row layout_rows[] = {
	SIZE_ROW(rtrs_sg_desc, 16),
	OFFSET_ROW(rtrs_sg_desc, addr, 0),
	OFFSET_ROW(rtrs_sg_desc, key, 8),
	OFFSET_ROW(rtrs_sg_desc, len, 12),

	SIZE_ROW(rtrs_msg_conn_req, 56),
	OFFSET_ROW(rtrs_msg_conn_req, __cma_version, 0),
	OFFSET_ROW(rtrs_msg_conn_req, __ip_version, 1),
	OFFSET_ROW(rtrs_msg_conn_req, magic, 2),
	OFFSET_ROW(rtrs_msg_conn_req, version, 4),
	OFFSET_ROW(rtrs_msg_conn_req, cid, 6),
	OFFSET_ROW(rtrs_msg_conn_req, cid_num, 8),
	OFFSET_ROW(rtrs_msg_conn_req, recon_cnt, 10),
	OFFSET_ROW(rtrs_msg_conn_req, sess_uuid, 12),
	OFFSET_ROW(rtrs_msg_conn_req, paths_uuid, 28),
	OFFSET_ROW(rtrs_msg_conn_req, reserved, 45),

	SIZE_ROW(rtrs_msg_conn_rsp, 56),
	OFFSET_ROW(rtrs_msg_conn_rsp, magic, 0),
	OFFSET_ROW(rtrs_msg_conn_rsp, version, 2),
	OFFSET_ROW(rtrs_msg_conn_rsp, errno, 4),
	OFFSET_ROW(rtrs_msg_conn_rsp, queue_depth, 6),
	OFFSET_ROW(rtrs_msg_conn_rsp, max_io_size, 8),
	OFFSET_ROW(rtrs_msg_conn_rsp, max_hdr_size, 12),
	OFFSET_ROW(rtrs_msg_conn_rsp, flags, 16),
	OFFSET_ROW(rtrs_msg_conn_rsp, reserved, 20),

	SIZE_ROW(rtrs_msg_info_req, 272),
	OFFSET_ROW(rtrs_msg_info_req, type, 0),
	OFFSET_ROW(rtrs_msg_info_req, pathname, 2),
	OFFSET_ROW(rtrs_msg_info_req, reserved, 257),

	SIZE_ROW(rtrs_msg_info_rsp, 8),
	OFFSET_ROW(rtrs_msg_info_rsp, type, 0),
	OFFSET_ROW(rtrs_msg_info_rsp, sg_cnt, 2),
	OFFSET_ROW(rtrs_msg_info_rsp, reserved, 4),
	OFFSET_ROW(rtrs_msg_info_rsp, desc, 8),

	SIZE_ROW(rtrs_msg_rkey_rsp, 8),
	OFFSET_ROW(rtrs_msg_rkey_rsp, type, 0),
	OFFSET_ROW(rtrs_msg_rkey_rsp, buf_id, 2),
	OFFSET_ROW(rtrs_msg_rkey_rsp, rkey, 4),

	SIZE_ROW(rtrs_msg_rdma_read, 8),
	OFFSET_ROW(rtrs_msg_rdma_read, type, 0),
	OFFSET_ROW(rtrs_msg_rdma_read, usr_len, 2),
	OFFSET_ROW(rtrs_msg_rdma_read, flags, 4),
	OFFSET_ROW(rtrs_msg_rdma_read, sg_cnt, 6),
	OFFSET_ROW(rtrs_msg_rdma_read, desc, 8),

	SIZE_ROW(rtrs_msg_rdma_write, 4),
	OFFSET_ROW(rtrs_msg_rdma_write, type, 0),
	OFFSET_ROW(rtrs_msg_rdma_write, usr_len, 2),

	SIZE_ROW(rtrs_msg_rdma_hdr, 2),
	OFFSET_ROW(rtrs_msg_rdma_hdr, type, 0),
};

static void layout_test(struct kunit *test)
{
	const struct layout_row *row;

	for (row = layout_rows; row < layout_rows + ARRAY_SIZE(layout_rows); row++)
		KUNIT_EXPECT_EQ_MSG(test, row->got, row->want, "%s", row->desc);
}

/* Every number a peer can see. */
static void constants_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, RTRS_MAGIC, 0x1bbd);
	KUNIT_EXPECT_EQ(test, RTRS_PROTO_VER, 0x0200);
	KUNIT_EXPECT_STREQ(test, RTRS_PROTO_VER_STRING, "2.0");
	KUNIT_EXPECT_STREQ(test, __stringify(MAX_SESS_QUEUE_DEPTH), "65535");

	KUNIT_EXPECT_EQ(test, (int)RTRS_MSG_INFO_REQ, 0);
	KUNIT_EXPECT_EQ(test, (int)RTRS_MSG_INFO_RSP, 1);
	KUNIT_EXPECT_EQ(test, (int)RTRS_MSG_WRITE, 2);
	KUNIT_EXPECT_EQ(test, (int)RTRS_MSG_READ, 3);
	KUNIT_EXPECT_EQ(test, (int)RTRS_MSG_RKEY_RSP, 4);
	KUNIT_EXPECT_EQ(test, (int)RTRS_MSG_NEED_INVAL_F, 1);
	KUNIT_EXPECT_EQ(test, (int)RTRS_MSG_NEW_RKEY_F, 2);

	KUNIT_EXPECT_EQ(test, (int)RTRS_IO_REQ_IMM, 0);
	KUNIT_EXPECT_EQ(test, (int)RTRS_IO_RSP_IMM, 1);
	KUNIT_EXPECT_EQ(test, (int)RTRS_IO_RSP_W_INV_IMM, 2);
	KUNIT_EXPECT_EQ(test, (int)RTRS_HB_MSG_IMM, 8);
	KUNIT_EXPECT_EQ(test, (int)RTRS_HB_ACK_IMM, 9);
	KUNIT_EXPECT_EQ(test, (int)RTRS_LAST_IMM, 10);
	KUNIT_EXPECT_EQ(test, (int)MAX_IMM_TYPE_MASK, 0xf);
	KUNIT_EXPECT_EQ(test, (int)MAX_IMM_PAYL_MASK, 0x0fffffff);

	KUNIT_EXPECT_EQ(test, SERVICE_CON_QUEUE_DEPTH, 512);
	KUNIT_EXPECT_EQ(test, MAX_PATHS_NUM, 128);
	KUNIT_EXPECT_EQ(test, MIN_CHUNK_SIZE, 8192);
	KUNIT_EXPECT_EQ(test, RTRS_HB_INTERVAL_MS, 5000);
	KUNIT_EXPECT_EQ(test, RTRS_HB_MISSED_MAX, 5);
}

/*
 * The worked example of the protocol's description: 512 chunks, permit 5, a
 * message of 32 bytes with 4096 bytes of data
 */

static void worked_example_test(struct kunit *test)
{
	static const u8 rkey_msg[] = { 0x04, 0x00, 0x05, 0x00, 0x78, 0x56, 0x34, 0x12 };
	static const u8 write_hdr[] = { 0x02, 0x00, 0x20, 0x00 };
	static const u8 read_hdr[] = {
		0x03, 0x00, 0x20, 0x00, 0x01, 0x00, 0x01, 0x00,
		0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01,
		0xdd, 0xcc, 0xbb, 0xaa, 0x00, 0x10, 0x00, 0x00,
	};
	u32 payload, buf_id, rkey;
	u8 hdr[24];

	payload = rtrs_io_req_payload(5, 4096 + 32, 512);
	KUNIT_EXPECT_EQ(test, rtrs_to_io_req_imm(payload), 0x00281020);

	KUNIT_EXPECT_EQ(test, rtrs_write_hdr_fill(hdr, 32), sizeof(write_hdr));
	KUNIT_EXPECT_MEMEQ(test, hdr, write_hdr, sizeof(write_hdr));
	KUNIT_EXPECT_EQ(test, rtrs_read_hdr_fill(hdr, 32, true, 0x0123456789abcdef, 0xaabbccdd,
						 4096), sizeof(read_hdr));
	KUNIT_EXPECT_MEMEQ(test, hdr, read_hdr, sizeof(read_hdr));

	KUNIT_EXPECT_EQ(test, rtrs_to_io_rsp_imm(5, 0, false), 0x10000005);
	KUNIT_EXPECT_EQ(test, rtrs_to_io_rsp_imm(5, -EIO, false), 0x10280005);
	KUNIT_EXPECT_EQ(test, rtrs_to_io_rsp_imm(5, 0, true), 0x20000005);
	KUNIT_EXPECT_EQ(test, rtrs_to_imm(RTRS_HB_MSG_IMM, 0), 0x80000000);
	KUNIT_EXPECT_EQ(test, rtrs_to_imm(RTRS_HB_ACK_IMM, 0), 0x90000000);

	KUNIT_ASSERT_EQ(test, rtrs_rkey_rsp_parse(rkey_msg, 8, 512, &buf_id, &rkey), 0);
	KUNIT_EXPECT_EQ(test, buf_id, 5);
	KUNIT_EXPECT_EQ(test, rkey, 0x12345678);
}

/*
 * Immediates
 */

/* Whatever goes in comes out, for types without meaning too. */
static void imm_round_trip_test(struct kunit *test)
{
	static const u32 payloads[] = { 0, 1, 0x0badcaf, MAX_IMM_PAYL_MASK };
	u32 in, type, payload;
	size_t i;

	for (in = 0; in <= MAX_IMM_TYPE_MASK; in++) {
		for (i = 0; i < ARRAY_SIZE(payloads); i++) {
			rtrs_from_imm(rtrs_to_imm(in, payloads[i]), &type, &payload);
			KUNIT_EXPECT_EQ(test, type, in);
			KUNIT_EXPECT_EQ(test, payload, payloads[i]);
		}
	}
}

/* Too large a type or payload never spills into the other. */
static void imm_overflow_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, rtrs_to_imm(0, U32_MAX), 0x0fffffff);
	KUNIT_EXPECT_EQ(test, rtrs_to_imm(U32_MAX, 0), 0xf0000000);
	KUNIT_EXPECT_EQ(test, rtrs_to_imm(0x11, 0x10000001), 0x10000001);
}

struct rsp_imm_row {
	const char *desc;
	u32 msg_id;
	int errno;
	u32 imm;
	u32 msg_id_out;
	int errno_out;
};

static const struct rsp_imm_row rsp_imm_rows[] = {
	{ "success",			0,	 0,    0x10000000, 0,	    0 },
	{ "largest chunk number",	0x7ffff, 0,    0x1007ffff, 0x7ffff, 0 },
	{ "chunk number is cut",	0x80001, 0,    0x10000001, 1,	    0 },
	{ "negative errno",		7,	 -5,   0x10280007, 7,	    -5 },
	{ "positive errno",		7,	 5,    0x10280007, 7,	    -5 },
	{ "largest errno",		7,	 -511, 0x1ff80007, 7,	    -511 },
	{ "512 is lost",		7,	 -512, 0x10000007, 7,	    0 },
	{ "524 becomes 12",		7,	 -524, 0x10600007, 7,	    -12 },
};

KUNIT_ARRAY_PARAM_DESC(rsp_imm, rsp_imm_rows, desc);

static void rsp_imm_test(struct kunit *test)
{
	const struct rsp_imm_row *row = test->param_value;
	u32 imm, type, payload, msg_id;
	int errno;

	imm = rtrs_to_io_rsp_imm(row->msg_id, row->errno, false);
	KUNIT_EXPECT_EQ(test, imm, row->imm);
	/* With invalidation only the type differs. */
	KUNIT_EXPECT_EQ(test, rtrs_to_io_rsp_imm(row->msg_id, row->errno, true),
			row->imm + 0x10000000);

	rtrs_from_imm(imm, &type, &payload);
	rtrs_from_io_rsp_imm(payload, &msg_id, &errno);
	KUNIT_EXPECT_EQ(test, type, (u32)RTRS_IO_RSP_IMM);
	KUNIT_EXPECT_EQ(test, msg_id, row->msg_id_out);
	KUNIT_EXPECT_EQ(test, errno, row->errno_out);
}

struct bits_row {
	u32 n;
	unsigned int bits;
};

static const struct bits_row bits_rows[] = {
	{ 0, 0 }, { 1, 0 }, { 2, 1 }, { 3, 2 }, { 4, 2 }, { 5, 3 },
	{ 500, 9 }, { 512, 9 }, { 513, 10 }, { 65535, 16 }, { 65536, 16 }, { 65537, 17 },
	{ 1U << 31, 31 }, { (1U << 31) + 1, 32 }, { U32_MAX, 32 },
};

static void bits_test(struct kunit *test)
{
	const struct bits_row *row;

	for (row = bits_rows; row < bits_rows + ARRAY_SIZE(bits_rows); row++)
		KUNIT_EXPECT_EQ_MSG(test, rtrs_bits(row->n), row->bits, "%u things", row->n);
}

struct payload_row {
	const char *desc;
	u32 queue_depth;
	u32 mem_id;
	u32 off;
	u32 payload;
};

static const struct payload_row payload_rows[] = {
	{ "first chunk",		512,   0,     36,	 36 },
	{ "last chunk, last byte",	512,   511,   0x7ffff,	 0x0fffffff },
	{ "depth is no power of two",	500,   499,   0x1020,	 499 << 19 | 0x1020 },
	{ "just above a power of two",	513,   512,   0x3ffff,	 512 << 18 | 0x3ffff },
	{ "one chunk has all bits",	1,     0,     0xfffffff, 0x0fffffff },
	{ "two chunks",			2,     1,     0x7ffffff, 0x0fffffff },
	{ "deepest queue",		65535, 65534, 0xfff,	 65534 << 12 | 0xfff },
};

KUNIT_ARRAY_PARAM_DESC(payload, payload_rows, desc);

static void io_req_payload_test(struct kunit *test)
{
	const struct payload_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, rtrs_io_req_payload(row->mem_id, row->off, row->queue_depth),
			row->payload);
}

/*
 * Connection request
 */

static const u8 conn_req_image[56] = {
	0x00, 0x00,		/* the CMA's */
	0xbd, 0x1b,		/* magic */
	0x00, 0x02,		/* version 2.0 */
	0x03, 0x01,		/* cid 0x0103 */
	0x00, 0x10,		/* cid_num 0x1000 */
	0xfe, 0xca,		/* recon_cnt 0xcafe */
	0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17,
	0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f,
	0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27,
	0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f,
	0x01,			/* first_conn */
};

/* The image must come out whatever the memory has held before. */
static void conn_req_image_test(struct kunit *test)
{
	static const uuid_t path = UUID_INIT(0x10111213, 0x1415, 0x1617,
					     0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f);
	static const uuid_t sess = UUID_INIT(0x20212223, 0x2425, 0x2627,
					     0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f);
	struct rtrs_msg_conn_req msg;
	u8 want[sizeof(msg)];

	memcpy(want, conn_req_image, sizeof(want));
	memset(&msg, 0xff, sizeof(msg));
	rtrs_conn_req_fill(&msg, 0x103, 0x1000, 0xcafe, &path, &sess, true);
	KUNIT_EXPECT_MEMEQ(test, &msg, want, sizeof(msg));

	want[44] = 0;
	memset(&msg, 0xff, sizeof(msg));
	rtrs_conn_req_fill(&msg, 0x103, 0x1000, 0xcafe, &path, &sess, false);
	KUNIT_EXPECT_MEMEQ(test, &msg, want, sizeof(msg));
}

/* A server reads the flag by its name, from the byte of any machine. */
static void first_conn_bit_test(struct kunit *test)
{
	struct rtrs_msg_conn_req msg;

	memcpy(&msg, conn_req_image, sizeof(msg));
	KUNIT_EXPECT_EQ(test, (u8)msg.first_conn, 1);
	KUNIT_EXPECT_EQ(test, (u8)msg.reserved_bits, 0);

	((u8 *)&msg)[44] = 0xfe;
	KUNIT_EXPECT_EQ(test, (u8)msg.first_conn, 0);
	KUNIT_EXPECT_EQ(test, (u8)msg.reserved_bits, 0x7f);
}

/*
 * Connection response, as acceptance and as rejection
 */

/* The wire's fields as numbers; the bytes are made by put_conn_rsp(). */
struct conn_rsp_fields {
	u16 magic;
	u16 version;
	u16 errno;
	u16 queue_depth;
	u32 max_io_size;
	u32 max_hdr_size;
	u32 flags;
};

static void put_le(u8 *at, u32 val, unsigned int bytes)
{
	for (; bytes; bytes--, val >>= 8)
		*at++ = val & 0xff;
}

static void put_conn_rsp(u8 *msg, const struct conn_rsp_fields *f)
{
	put_le(msg, f->magic, 2);
	put_le(msg + 2, f->version, 2);
	put_le(msg + 4, f->errno, 2);
	put_le(msg + 6, f->queue_depth, 2);
	put_le(msg + 8, f->max_io_size, 4);
	put_le(msg + 12, f->max_hdr_size, 4);
	put_le(msg + 16, f->flags, 4);
}

struct good_rsp_row {
	const char *desc;
	size_t len;
	struct conn_rsp_fields in;
	struct rtrs_conn_params out;
};

static const struct good_rsp_row good_rsp_rows[] = {
	{ "defaults, new keys", 196,
	  { 0x1bbd, 0x0200, 0, 512, 126976, 4096, 2 },
	  { 512, 126976, 4096, 131072, true } },
	{ "defaults, fixed keys", 196,
	  { 0x1bbd, 0x0200, 0, 512, 126976, 4096, 0 },
	  { 512, 126976, 4096, 131072, false } },
	{ "exact length, as on iWARP", 56,
	  { 0x1bbd, 0x0200, 0, 512, 126976, 4096, 0 },
	  { 512, 126976, 4096, 131072, false } },
	{ "other minor version", 196,
	  { 0x1bbd, 0x02ff, 0, 512, 126976, 4096, 0 },
	  { 512, 126976, 4096, 131072, false } },
	{ "smallest sizes", 196,
	  { 0x1bbd, 0x0200, 0, 1, 4096, 64, 0 },
	  { 1, 4096, 64, 4160, false } },
	{ "server with 64 KiB pages", 196,
	  { 0x1bbd, 0x0200, 0, 512, 65536, 65536, 2 },
	  { 512, 65536, 65536, 131072, true } },
	{ "one chunk takes the whole immediate", 196,
	  { 0x1bbd, 0x0200, 0, 1, 0x0ffff000, 0x1000, 0 },
	  { 1, 0x0ffff000, 0x1000, 0x10000000, false } },
	{ "depth and chunk use 28 bits", 196,
	  { 0x1bbd, 0x0200, 0, 32768, 4096, 4096, 0 },
	  { 32768, 4096, 4096, 8192, false } },
	{ "depth is no power of two", 196,
	  { 0x1bbd, 0x0200, 0, 500, 126976, 4096, 0 },
	  { 500, 126976, 4096, 131072, false } },
};

KUNIT_ARRAY_PARAM_DESC(good_rsp, good_rsp_rows, desc);

/* At an odd address too: where the CM keeps it is the CM's business. */
static void conn_rsp_good_test(struct kunit *test)
{
	const struct good_rsp_row *row = test->param_value;
	struct rtrs_conn_params prm;
	const char *why = NULL;
	u8 buf[200] = {};
	size_t odd;

	for (odd = 0; odd < 2; odd++) {
		memset(&prm, 0xff, sizeof(prm));
		put_conn_rsp(buf + odd, &row->in);
		KUNIT_ASSERT_EQ_MSG(test, rtrs_conn_rsp_parse(buf + odd, row->len, &prm, &why), 0,
				    "%s", why);
		KUNIT_EXPECT_EQ(test, prm.queue_depth, row->out.queue_depth);
		KUNIT_EXPECT_EQ(test, prm.max_io_size, row->out.max_io_size);
		KUNIT_EXPECT_EQ(test, prm.max_hdr_size, row->out.max_hdr_size);
		KUNIT_EXPECT_EQ(test, prm.chunk_size, row->out.chunk_size);
		KUNIT_EXPECT_EQ(test, prm.new_rkey, row->out.new_rkey);
		KUNIT_EXPECT_TRUE(test, rtrs_conn_params_equal(&prm, &row->out));
		KUNIT_EXPECT_NULL(test, why);
	}
}

struct bad_rsp_row {
	const char *desc;
	size_t len;
	struct conn_rsp_fields in;
	int err;
	const char *why;
};

static const struct bad_rsp_row bad_rsp_rows[] = {
	{ "no data", 0,
	  { 0x1bbd, 0x0200, 0, 512, 126976, 4096, 0 },
	  -ECONNRESET, "short response" },
	{ "one byte short", 55,
	  { 0x1bbd, 0x0200, 0, 512, 126976, 4096, 0 },
	  -ECONNRESET, "short response" },
	{ "all zero", 196, { }, -ECONNRESET, "bad magic" },
	{ "magic in the wrong order", 196,
	  { 0xbd1b, 0x0200, 0, 512, 126976, 4096, 0 },
	  -ECONNRESET, "bad magic" },
	{ "version 1", 196,
	  { 0x1bbd, 0x01ff, 0, 512, 126976, 4096, 0 },
	  -ECONNRESET, "wrong major version" },
	{ "version 3", 196,
	  { 0x1bbd, 0x0300, 0, 512, 126976, 4096, 0 },
	  -ECONNRESET, "wrong major version" },
	{ "version in the wrong order", 196,
	  { 0x1bbd, 0x0002, 0, 512, 126976, 4096, 0 },
	  -ECONNRESET, "wrong major version" },
	{ "errno of the server", 196,
	  { 0x1bbd, 0x0200, (u16)-ENOMEM, 512, 126976, 4096, 0 },
	  -ENOMEM, "server error" },
	{ "smallest errno", 196,
	  { 0x1bbd, 0x0200, (u16)-1, 512, 126976, 4096, 0 },
	  -1, "server error" },
	{ "largest errno", 196,
	  { 0x1bbd, 0x0200, (u16)-511, 512, 126976, 4096, 0 },
	  -511, "server error" },
	{ "errno too large", 196,
	  { 0x1bbd, 0x0200, (u16)-512, 512, 126976, 4096, 0 },
	  -ECONNRESET, "errno out of range" },
	{ "most negative errno", 196,
	  { 0x1bbd, 0x0200, 0x8000, 512, 126976, 4096, 0 },
	  -ECONNRESET, "errno out of range" },
	{ "positive errno", 196,
	  { 0x1bbd, 0x0200, 1, 512, 126976, 4096, 0 },
	  -ECONNRESET, "errno out of range" },
	{ "flag of a read request", 196,
	  { 0x1bbd, 0x0200, 0, 512, 126976, 4096, 1 },
	  -ECONNRESET, "unknown flags" },
	{ "highest flag", 196,
	  { 0x1bbd, 0x0200, 0, 512, 126976, 4096, 0x80000002 },
	  -ECONNRESET, "unknown flags" },
	{ "queue depth 0", 196,
	  { 0x1bbd, 0x0200, 0, 0, 126976, 4096, 0 },
	  -ECONNRESET, "queue depth 0" },
	{ "header size 0", 196,
	  { 0x1bbd, 0x0200, 0, 512, 126976, 0, 0 },
	  -ECONNRESET, "header size out of range" },
	{ "header just too small", 196,
	  { 0x1bbd, 0x0200, 0, 512, 126976, 63, 0 },
	  -ECONNRESET, "header size out of range" },
	{ "header just too large", 196,
	  { 0x1bbd, 0x0200, 0, 512, 126976, 65537, 0 },
	  -ECONNRESET, "header size out of range" },
	{ "header of 2 GiB", 196,
	  { 0x1bbd, 0x0200, 0, 512, 126976, 0x80000000, 0 },
	  -ECONNRESET, "header size out of range" },
	{ "no data at all", 196,
	  { 0x1bbd, 0x0200, 0, 512, 0, 4096, 0 },
	  -ECONNRESET, "io size out of range" },
	{ "data just too small", 196,
	  { 0x1bbd, 0x0200, 0, 512, 4095, 4096, 0 },
	  -ECONNRESET, "io size out of range" },
	{ "chunk smaller than a 64 KiB page", 196,
	  { 0x1bbd, 0x0200, 0, 512, 0xffff2000, 65536, 0 },
	  -ECONNRESET, "chunk size overflows" },
	{ "sum is 0", 196,
	  { 0x1bbd, 0x0200, 0, 512, 0xfffff000, 4096, 0 },
	  -ECONNRESET, "chunk size overflows" },
	{ "sum is just no overflow", 196,
	  { 0x1bbd, 0x0200, 0, 1, 0xffffefff, 4096, 0 },
	  -ECONNRESET, "queue depth and chunk size exceed the immediate" },
	{ "29 bits by the chunk", 196,
	  { 0x1bbd, 0x0200, 0, 512, 126977 + 393216, 4096, 0 },
	  -ECONNRESET, "queue depth and chunk size exceed the immediate" },
	{ "29 bits by the depth", 196,
	  { 0x1bbd, 0x0200, 0, 32769, 4096, 4096, 0 },
	  -ECONNRESET, "queue depth and chunk size exceed the immediate" },
};

KUNIT_ARRAY_PARAM_DESC(bad_rsp, bad_rsp_rows, desc);

/* Refused for the reason given, and the caller's parameters left alone. */
static void conn_rsp_bad_test(struct kunit *test)
{
	const struct bad_rsp_row *row = test->param_value;
	struct rtrs_conn_params prm = usual;
	const char *why = NULL;
	u8 buf[196] = {};

	put_conn_rsp(buf, &row->in);
	KUNIT_EXPECT_EQ(test, rtrs_conn_rsp_parse(row->len ? buf : NULL, row->len, &prm, &why),
			row->err);
	KUNIT_EXPECT_STREQ(test, why, row->why);
	KUNIT_EXPECT_TRUE(test, rtrs_conn_params_equal(&prm, &usual));
}

/* A difference in one member is a difference. */
static void conn_params_equal_test(struct kunit *test)
{
	static const struct rtrs_conn_params others[] = {
		{ 511, 126976, 4096, 131072, true },
		{ 512, 126975, 4096, 131072, true },
		{ 512, 126976, 4097, 131072, true },
		{ 512, 126976, 4096, 131073, true },
		{ 512, 126976, 4096, 131072, false },
	};
	size_t i;

	KUNIT_EXPECT_TRUE(test, rtrs_conn_params_equal(&usual, &usual));
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		KUNIT_EXPECT_FALSE(test, rtrs_conn_params_equal(&usual, &others[i]));
		KUNIT_EXPECT_FALSE(test, rtrs_conn_params_equal(&others[i], &usual));
	}
}

struct rej_row {
	const char *desc;
	size_t len;
	u16 magic;
	u16 errno;
	int want;
};

static const struct rej_row rej_rows[] = {
	{ "session unknown",			148, 0x1bbd, (u16)-ENXIO,	-ENXIO },
	{ "path exists",			148, 0x1bbd, (u16)-EEXIST,	-EEXIST },
	{ "exact length, as on iWARP",		56,  0x1bbd, (u16)-ENOMEM,	-ENOMEM },
	{ "smallest errno",			148, 0x1bbd, (u16)-1,		-1 },
	{ "largest errno",			148, 0x1bbd, (u16)-511,		-511 },
	{ "restart the system call",		148, 0x1bbd, (u16)-512,		0 },
	{ "done later, says no system call",	148, 0x1bbd, (u16)-EIOCBQUEUED,	0 },
	{ "an error pointer's last",		148, 0x1bbd, (u16)-4095,	0 },
	{ "most negative errno",		148, 0x1bbd, 0x8000,		0 },
	{ "no errno",				148, 0x1bbd, 0,			0 },
	{ "positive errno",			148, 0x1bbd, 1,			0 },
	{ "somebody else's, all zero",		148, 0,	     0,			0 },
	{ "somebody else's, with an errno",	148, 0xbd1b, (u16)-ENXIO,	0 },
	{ "one byte short",			55,  0x1bbd, (u16)-ENXIO,	0 },
	{ "no data",				0,   0x1bbd, (u16)-ENXIO,	0 },
};

KUNIT_ARRAY_PARAM_DESC(rej, rej_rows, desc);

static void conn_rej_test(struct kunit *test)
{
	const struct rej_row *row = test->param_value;
	struct conn_rsp_fields in = { .magic = row->magic, .errno = row->errno };
	u8 buf[149] = {};
	size_t odd;

	for (odd = 0; odd < 2; odd++) {
		put_conn_rsp(buf + odd, &in);
		KUNIT_EXPECT_EQ(test, rtrs_conn_rej_errno(row->len ? buf + odd : NULL, row->len),
				row->want);
	}
}

/*
 * Info response
 */

#define CHUNK 8192
#define MAX_DESC 4

struct info_row {
	const char *desc;
	u32 queue_depth;
	size_t len;
	u16 type;
	u16 sg_cnt;
	struct {
		u64 addr;
		u32 key;
		u32 len;
	} in[MAX_DESC];
	const char *why;	/* NULL: accepted */
};

static const struct info_row info_rows[] = {
	{ "one chunk", 1, 24, 1, 1,
	  { { 0x1000, 7, CHUNK } } },
	{ "a descriptor for each chunk", 4, 72, 1, 4,
	  { { 0x10000, 1, CHUNK }, { 0x90000, 2, CHUNK },
	    { 0x50000, 3, CHUNK }, { 0x20000, 4, CHUNK } } },
	{ "one descriptor for all chunks", 512, 24, 1, 1,
	  { { 0x1234567800000000, 0xffffffff, 512 * CHUNK } } },
	{ "two descriptors", 512, 40, 1, 2,
	  { { 0x10000000, 1, 256 * CHUNK }, { 0x90000000, 2, 256 * CHUNK } } },
	{ "last descriptor shorter", 5, 40, 1, 2,
	  { { 0x10000, 1, 3 * CHUNK }, { 0x90000, 2, 2 * CHUNK } } },
	{ "uneven descriptors", 7, 72, 1, 4,
	  { { 0x10000, 1, CHUNK }, { 0x90000, 2, 3 * CHUNK },
	    { 0x50000, 3, CHUNK }, { 0x20000, 4, 2 * CHUNK } } },
	{ "received more than announced", 1, 72, 1, 1,
	  { { 0x1000, 7, CHUNK } } },
	{ "up to the last address but one", 1, 24, 1, 1,
	  { { U64_MAX - CHUNK, 7, CHUNK } } },

	{ "nothing received", 1, 0, 1, 1,
	  { { 0x1000, 7, CHUNK } }, "short info response" },
	{ "header cut off", 1, 7, 1, 1,
	  { { 0x1000, 7, CHUNK } }, "short info response" },
	{ "another message", 1, 24, 0, 1,
	  { { 0x1000, 7, CHUNK } }, "not an info response" },
	{ "type in the wrong order", 1, 24, 0x0100, 1,
	  { { 0x1000, 7, CHUNK } }, "not an info response" },
	{ "no descriptor", 1, 24, 1, 0,
	  { { 0x1000, 7, CHUNK } }, "descriptor count out of range" },
	{ "more descriptors than chunks", 1, 40, 1, 2,
	  { { 0x1000, 7, CHUNK }, { 0x9000, 8, CHUNK } }, "descriptor count out of range" },
	{ "most descriptors", 512, 24, 1, 0xffff,
	  { { 0x1000, 7, CHUNK } }, "descriptor count out of range" },
	{ "descriptor missing", 2, 24, 1, 2,
	  { { 0x1000, 7, CHUNK }, { 0x9000, 8, CHUNK } }, "info response lacks descriptors" },
	{ "descriptor one byte short", 2, 39, 1, 2,
	  { { 0x1000, 7, CHUNK }, { 0x9000, 8, CHUNK } }, "info response lacks descriptors" },
	{ "empty descriptor", 2, 40, 1, 2,
	  { { 0x1000, 7, 2 * CHUNK }, { 0x9000, 8, 0 } },
	  "descriptor is not made of whole chunks" },
	{ "part of a chunk", 1, 24, 1, 1,
	  { { 0x1000, 7, CHUNK - 1 } }, "descriptor is not made of whole chunks" },
	{ "a chunk and a byte", 2, 24, 1, 1,
	  { { 0x1000, 7, CHUNK + 1 } }, "descriptor is not made of whole chunks" },
	{ "a chunk and a half", 2, 24, 1, 1,
	  { { 0x1000, 7, CHUNK + CHUNK / 2 } }, "descriptor is not made of whole chunks" },
	{ "longest descriptor", 2, 24, 1, 1,
	  { { 0x1000, 7, 0xffffffff } }, "descriptor is not made of whole chunks" },
	{ "wraps around", 2, 24, 1, 1,
	  { { U64_MAX - CHUNK, 7, 2 * CHUNK } }, "descriptor wraps around" },
	{ "ends where addresses do", 1, 24, 1, 1,
	  { { U64_MAX - CHUNK + 1, 7, CHUNK } }, "descriptor wraps around" },
	{ "one chunk too few", 3, 24, 1, 1,
	  { { 0x1000, 7, 2 * CHUNK } }, "descriptors cover too few chunks" },
	{ "one chunk too many", 2, 24, 1, 1,
	  { { 0x1000, 7, 3 * CHUNK } }, "descriptors cover too many chunks" },
	{ "too many by the last descriptor", 3, 40, 1, 2,
	  { { 0x1000, 7, 2 * CHUNK }, { 0x9000, 8, 2 * CHUNK } },
	  "descriptors cover too many chunks" },
	{ "too many by 4 GiB", 2, 24, 1, 1,
	  { { 0x1000, 7, 0xffffe000 } }, "descriptors cover too many chunks" },
	{ "lengths add up in 32 bits", 3, 56, 1, 3,
	  { { 0x1000, 7, 0x80000000 }, { 0x1000, 8, 0x80000000 }, { 0x1000, 9, 3 * CHUNK } },
	  "descriptors cover too many chunks" },
};

KUNIT_ARRAY_PARAM_DESC(info, info_rows, desc);

static struct rtrs_msg_info_rsp *make_info_rsp(struct kunit *test, const struct info_row *row)
{
	u8 *msg = kunit_kzalloc(test, 8 + 16 * MAX_DESC, GFP_KERNEL);
	u8 *at = msg + 8;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, msg);
	put_le(msg, row->type, 2);
	put_le(msg + 2, row->sg_cnt, 2);
	for (i = 0; i < MAX_DESC; i++, at += 16) {
		put_le(at, row->in[i].addr, 4);
		put_le(at + 4, row->in[i].addr >> 32, 4);
		put_le(at + 8, row->in[i].key, 4);
		put_le(at + 12, row->in[i].len, 4);
	}
	return (struct rtrs_msg_info_rsp *)msg;
}

/* The chunks in order, as the description of the protocol counts them. */
static void expect_rbufs(struct kunit *test, const struct info_row *row,
			 const struct rtrs_rbuf *rbufs)
{
	u32 i, k, nr = 0;

	for (i = 0; i < row->sg_cnt; i++) {
		for (k = 0; k < row->in[i].len / CHUNK; k++, nr++) {
			KUNIT_EXPECT_EQ(test, rbufs[nr].addr, row->in[i].addr + k * CHUNK);
			KUNIT_EXPECT_EQ(test, rbufs[nr].rkey, row->in[i].key);
		}
	}
	KUNIT_EXPECT_EQ(test, nr, row->queue_depth);
}

static void info_rsp_test(struct kunit *test)
{
	const struct info_row *row = test->param_value;
	struct rtrs_conn_params prm = {
		.queue_depth	= row->queue_depth,
		.max_io_size	= CHUNK / 2,
		.max_hdr_size	= CHUNK / 2,
		.chunk_size	= CHUNK,
	};
	struct rtrs_msg_info_rsp *rsp = make_info_rsp(test, row);
	struct rtrs_rbuf *rbufs, guard;
	const char *why = NULL;
	int err;

	rbufs = kunit_kcalloc(test, row->queue_depth + 1, sizeof(*rbufs), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, rbufs);
	memset(&guard, 0xa5, sizeof(guard));
	memcpy(&rbufs[row->queue_depth], &guard, sizeof(guard));

	err = rtrs_info_rsp_parse(rsp, row->len, &prm, rbufs, &why);

	/* Accepted or not, nothing is written past the last chunk. */
	KUNIT_EXPECT_MEMEQ(test, &rbufs[row->queue_depth], &guard, sizeof(guard));
	if (row->why) {
		KUNIT_EXPECT_EQ(test, err, -ECONNRESET);
		KUNIT_EXPECT_STREQ(test, why, row->why);
		return;
	}
	KUNIT_ASSERT_EQ_MSG(test, err, 0, "%s", why);
	KUNIT_EXPECT_NULL(test, why);
	expect_rbufs(test, row, rbufs);
}

/*
 * Requests
 */

static void req_hdr_len_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, rtrs_req_hdr_len(false, false), 4);
	KUNIT_EXPECT_EQ(test, rtrs_req_hdr_len(false, true), 4);
	KUNIT_EXPECT_EQ(test, rtrs_req_hdr_len(true, false), 8);
	KUNIT_EXPECT_EQ(test, rtrs_req_hdr_len(true, true), 24);
}

struct req_size_row {
	const char *desc;
	u32 max_hdr_size;	/* the chunk is always 131072 */
	bool read;
	bool has_data;
	size_t usr_len;
	size_t data_len;
	bool fits;
};

static const struct req_size_row req_size_rows[] = {
	{ "write, nothing",		   4096,  false, false, 0,     0,		true },
	{ "write, longest message",	   4096,  false, false, 4092,  0,		true },
	{ "write, message too long",	   4096,  false, false, 4093,  0,		false },
	{ "write fills the chunk",	   4096,  false, true,	32,    131072 - 36,	true },
	{ "write past the chunk",	   4096,  false, true,	32,    131072 - 35,	false },
	{ "write, both longest",	   4096,  false, true,	4092,  126976,		true },
	{ "write, both one too long",	   4096,  false, true,	4092,  126977,		false },
	{ "read, nothing",		   4096,  true,  false, 0,     0,		true },
	{ "read, longest message",	   4096,  true,  false, 4088,  0,		true },
	{ "read, message too long",	   4096,  true,  false, 4089,  0,		false },
	{ "read with data, longest",	   4096,  true,  true,	4072,  4096,		true },
	{ "read with data, too long",	   4096,  true,  true,	4073,  4096,		false },
	{ "read fills the chunk",	   4096,  true,  true,	32,    131072 - 56,	true },
	{ "read past by the descriptor",   4096,  true,  true,	32,    131072 - 55,	false },
	{ "read of a whole chunk",	   4096,  true,  true,	0,     131072,		false },
	{ "longest of 64 KiB pages",	   65536, false, false, 65532, 0,		true },
	{ "too long for 64 KiB pages",	   65536, false, false, 65533, 0,		false },
	{ "largest 16-bit length",	   65536, false, false, 65535, 0,		false },
	{ "length needs 17 bits",	   65536, false, false, 65536, 0,		false },
	{ "message length wraps",	   65536, true,  true,	SIZE_MAX, 0,		false },
	{ "message length wraps to fit",   65536, true,  true,	SIZE_MAX - 23, 0,	false },
	{ "data length wraps",		   4096,  false, true,	32,    SIZE_MAX,	false },
	{ "data length wraps to fit",	   4096,  false, true,	32,    SIZE_MAX - 35,	false },
};

KUNIT_ARRAY_PARAM_DESC(req_size, req_size_rows, desc);

static void req_size_test(struct kunit *test)
{
	const struct req_size_row *row = test->param_value;
	struct rtrs_conn_params prm = usual;

	prm.max_hdr_size = row->max_hdr_size;
	prm.max_io_size = prm.chunk_size - row->max_hdr_size;
	KUNIT_EXPECT_EQ(test, rtrs_req_check_size(&prm, row->read, row->has_data, row->usr_len,
						  row->data_len), row->fits ? 0 : -EMSGSIZE);
}

struct hdr_row {
	const char *desc;
	bool read;
	u16 usr_len;
	bool need_inval;
	u64 addr;
	u32 rkey;
	u32 len;
	size_t want_len;
	u8 want[24];
};

static const struct hdr_row hdr_rows[] = {
	{ "write", false, 0x1234, false, 0, 0, 0,
	  4, { 0x02, 0x00, 0x34, 0x12 } },
	{ "write, longest message", false, 0xffff, false, 0, 0, 0,
	  4, { 0x02, 0x00, 0xff, 0xff } },
	{ "read without data", true, 0x1234, false, 0x1111, 0x2222, 0,
	  8, { 0x03, 0x00, 0x34, 0x12, 0x00, 0x00, 0x00, 0x00 } },
	{ "nothing to invalidate without data", true, 0x1234, true, 0x1111, 0x2222, 0,
	  8, { 0x03, 0x00, 0x34, 0x12, 0x00, 0x00, 0x00, 0x00 } },
	{ "read, key stays", true, 0x0020, false, 0x0102030405060708, 0x090a0b0c, 0x0d0e0f10,
	  24, { 0x03, 0x00, 0x20, 0x00, 0x00, 0x00, 0x01, 0x00,
		0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01,
		0x0c, 0x0b, 0x0a, 0x09, 0x10, 0x0f, 0x0e, 0x0d } },
	{ "read, key to invalidate", true, 0x0020, true, 0xfffffffffffffffe, 0xfffffffd, 1,
	  24, { 0x03, 0x00, 0x20, 0x00, 0x01, 0x00, 0x01, 0x00,
		0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xfd, 0xff, 0xff, 0xff, 0x01, 0x00, 0x00, 0x00 } },
};

KUNIT_ARRAY_PARAM_DESC(hdr, hdr_rows, desc);

/* At every alignment, and not a byte around it touched. */
static void hdr_fill_test(struct kunit *test)
{
	const struct hdr_row *row = test->param_value;
	u8 buf[8 + 24 + 8], want[sizeof(buf)];
	size_t off, len;

	for (off = 0; off < 8; off++) {
		memset(buf, 0xa5, sizeof(buf));
		memset(want, 0xa5, sizeof(want));
		memcpy(want + off, row->want, row->want_len);

		if (row->read)
			len = rtrs_read_hdr_fill(buf + off, row->usr_len, row->need_inval,
						 row->addr, row->rkey, row->len);
		else
			len = rtrs_write_hdr_fill(buf + off, row->usr_len);

		KUNIT_EXPECT_EQ(test, len, row->want_len);
		KUNIT_EXPECT_EQ(test, len, rtrs_req_hdr_len(row->read, row->len));
		KUNIT_EXPECT_MEMEQ(test, buf, want, sizeof(buf));
	}
}

/*
 * Rkey message
 */

struct rkey_row {
	const char *desc;
	size_t len;
	u32 queue_depth;
	u8 msg[9];
	int err;
	u32 buf_id;
	u32 rkey;
};

static const struct rkey_row rkey_rows[] = {
	{ "first chunk", 8, 512, { 4, 0, 0, 0, 1, 2, 3, 4 }, 0, 0, 0x04030201 },
	{ "last chunk", 8, 512, { 4, 0, 0xff, 1, 0xff, 0xfe, 0xfd, 0xfc }, 0, 511, 0xfcfdfeff },
	{ "deepest queue", 8, 65535, { 4, 0, 0xfe, 0xff, 0, 0, 0, 0 }, 0, 65534, 0 },
	{ "behind the last chunk", 8, 512, { 4, 0, 0, 2, 1, 2, 3, 4 }, -EPROTO },
	{ "largest number", 8, 65535, { 4, 0, 0xff, 0xff, 1, 2, 3, 4 }, -EPROTO },
	{ "another message", 8, 512, { 3, 0, 0, 0, 1, 2, 3, 4 }, -EPROTO },
	{ "type in the wrong order", 8, 512, { 0, 4, 0, 0, 1, 2, 3, 4 }, -EPROTO },
	{ "nothing received", 0, 512, { 4, 0, 0, 0, 1, 2, 3, 4 }, -EPROTO },
	{ "one byte short", 7, 512, { 4, 0, 0, 0, 1, 2, 3, 4 }, -EPROTO },
	{ "one byte long", 9, 512, { 4, 0, 0, 0, 1, 2, 3, 4 }, -EPROTO },
};

KUNIT_ARRAY_PARAM_DESC(rkey, rkey_rows, desc);

static void rkey_rsp_test(struct kunit *test)
{
	const struct rkey_row *row = test->param_value;
	u32 buf_id = 0xa5a5, rkey = 0x5a5a;
	u8 buf[10];

	memcpy(buf + 1, row->msg, sizeof(row->msg));
	KUNIT_ASSERT_EQ(test, rtrs_rkey_rsp_parse(buf + 1, row->len, row->queue_depth, &buf_id,
						  &rkey), row->err);
	KUNIT_EXPECT_EQ(test, buf_id, row->err ? 0xa5a5 : row->buf_id);
	KUNIT_EXPECT_EQ(test, rkey, row->err ? 0x5a5a : row->rkey);
}

static struct kunit_case rtrs_proto_cases[] = {
	KUNIT_CASE(layout_test),
	KUNIT_CASE(constants_test),
	KUNIT_CASE(worked_example_test),
	KUNIT_CASE(imm_round_trip_test),
	KUNIT_CASE(imm_overflow_test),
	KUNIT_CASE_PARAM(rsp_imm_test, rsp_imm_gen_params),
	KUNIT_CASE(bits_test),
	KUNIT_CASE_PARAM(io_req_payload_test, payload_gen_params),
	KUNIT_CASE(conn_req_image_test),
	KUNIT_CASE(first_conn_bit_test),
	KUNIT_CASE_PARAM(conn_rsp_good_test, good_rsp_gen_params),
	KUNIT_CASE_PARAM(conn_rsp_bad_test, bad_rsp_gen_params),
	KUNIT_CASE(conn_params_equal_test),
	KUNIT_CASE_PARAM(conn_rej_test, rej_gen_params),
	KUNIT_CASE_PARAM(info_rsp_test, info_gen_params),
	KUNIT_CASE(req_hdr_len_test),
	KUNIT_CASE_PARAM(req_size_test, req_size_gen_params),
	KUNIT_CASE_PARAM(hdr_fill_test, hdr_gen_params),
	KUNIT_CASE_PARAM(rkey_rsp_test, rkey_gen_params),
	{}
};

static struct kunit_suite rtrs_proto_suite = {
	.name		= "rtrs_proto",
	.test_cases	= rtrs_proto_cases,
};

kunit_test_suite(rtrs_proto_suite);

MODULE_DESCRIPTION("KUnit tests of the RTRS protocol and addresses");
MODULE_LICENSE("GPL");
