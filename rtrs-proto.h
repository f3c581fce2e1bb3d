/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RTRS wire protocol, version 2.0
 *
 * Message layouts, constants, and the functions that make and judge messages.
 * Everything here is pure: no device, no lock, no allocation, no message to
 * the log, callable in any context. What comes from the peer is checked here,
 * once, and reaches the caller as plain numbers in host order.
 *
 * Both ends share this file. On the wire every number is little-endian, except
 * that a 32-bit immediate travels big-endian, as the verbs demand.
 */
#ifndef RTRS_PROTO_H
#define RTRS_PROTO_H

#include <asm/byteorder.h>
#include <linux/build_bug.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/math.h>
#include <linux/overflow.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <linux/stringify.h>
#include <linux/types.h>
#include <linux/uuid.h>

#define RTRS_PROTO_VER_MAJOR 2
#define RTRS_PROTO_VER_MINOR 0

#define RTRS_PROTO_VER_STRING \
	__stringify(RTRS_PROTO_VER_MAJOR) "." __stringify(RTRS_PROTO_VER_MINOR)

/* A bare literal: module parameter descriptions make a string of it. */
#define MAX_SESS_QUEUE_DEPTH 65535

/**
 * enum rtrs_imm_const - how the 32 bits of an immediate are shared out
 * @MAX_IMM_TYPE_BITS: width of the type, in the topmost bits
 * @MAX_IMM_TYPE_MASK: the type's bits, shifted down
 * @MAX_IMM_PAYL_BITS: width of the payload, below the type
 * @MAX_IMM_PAYL_MASK: the payload's bits
 */
enum rtrs_imm_const {
	MAX_IMM_TYPE_BITS = 4,
	MAX_IMM_TYPE_MASK = (1 << MAX_IMM_TYPE_BITS) - 1,
	MAX_IMM_PAYL_BITS = 28,
	MAX_IMM_PAYL_MASK = (1 << MAX_IMM_PAYL_BITS) - 1,
};

/**
 * enum rtrs_imm_type - what an immediate means
 * @RTRS_IO_REQ_IMM: a request; the payload is rtrs_io_req_payload()
 * @RTRS_IO_RSP_IMM: an answer; the payload is chunk number and error
 * @RTRS_IO_RSP_W_INV_IMM: the same, sent behind an invalidation of the
 *	request's key
 * @RTRS_HB_MSG_IMM: heartbeat, wants an @RTRS_HB_ACK_IMM
 * @RTRS_HB_ACK_IMM: answer to a heartbeat
 * @RTRS_LAST_IMM: first number that has no meaning yet
 *
 * The numbers between the answers and the heartbeats are unassigned too.
 */
enum rtrs_imm_type {
	RTRS_IO_REQ_IMM		= 0,
	RTRS_IO_RSP_IMM		= 1,
	RTRS_IO_RSP_W_INV_IMM	= 2,
	RTRS_HB_MSG_IMM		= 8,
	RTRS_HB_ACK_IMM		= 9,
	RTRS_LAST_IMM,
};

/* How the payload of an answer is shared out, from bit 0 upwards. */
enum {
	RTRS_IO_RSP_ID_BITS	= 19,
	RTRS_IO_RSP_ID_MASK	= (1 << RTRS_IO_RSP_ID_BITS) - 1,
	RTRS_IO_RSP_ERRNO_BITS	= 9,
	RTRS_IO_RSP_ERRNO_MASK	= (1 << RTRS_IO_RSP_ERRNO_BITS) - 1,
};

static_assert(MAX_IMM_TYPE_BITS + MAX_IMM_PAYL_BITS == 32);
static_assert(RTRS_LAST_IMM <= 1 << MAX_IMM_TYPE_BITS);
static_assert(RTRS_IO_RSP_ID_BITS + RTRS_IO_RSP_ERRNO_BITS == MAX_IMM_PAYL_BITS);

enum {
	/* Messages that may be under way on connection 0, in each direction. */
	SERVICE_CON_QUEUE_DEPTH	= 512,
	/* Paths of one session. */
	MAX_PATHS_NUM		= 128,
	/* Smallest chunk a server may be configured for, bytes. */
	MIN_CHUNK_SIZE		= 8192,
	/* Time between two ticks of the heartbeat, milliseconds. */
	RTRS_HB_INTERVAL_MS	= 5000,
	/* The tick that finds more silent ticks than this gives the path up. */
	RTRS_HB_MISSED_MAX	= 5,
	/* Marks connection requests and responses as ours. */
	RTRS_MAGIC		= 0x1BBD,
	RTRS_PROTO_VER		= (RTRS_PROTO_VER_MAJOR << 8) | RTRS_PROTO_VER_MINOR,
};

/*
 * Limits to what a server may announce. A header is at most one page of the
 * server: 64 KiB covers every page size there is. The lower bounds leave room
 * for the largest RTRS header with a message of some use, and for one page.
 */
enum {
	RTRS_MIN_HDR_SIZE	= 64,
	RTRS_MAX_HDR_SIZE	= 65536,
	RTRS_MIN_IO_SIZE	= 4096,
	/* Connections of one path; servers refuse more. */
	RTRS_MAX_CON_NUM	= 4096,
};

/**
 * enum rtrs_msg_types - first field of every message but the connection ones
 * @RTRS_MSG_INFO_REQ: &struct rtrs_msg_info_req
 * @RTRS_MSG_INFO_RSP: &struct rtrs_msg_info_rsp
 * @RTRS_MSG_WRITE: &struct rtrs_msg_rdma_write
 * @RTRS_MSG_READ: &struct rtrs_msg_rdma_read
 * @RTRS_MSG_RKEY_RSP: &struct rtrs_msg_rkey_rsp
 */
enum rtrs_msg_types {
	RTRS_MSG_INFO_REQ,
	RTRS_MSG_INFO_RSP,
	RTRS_MSG_WRITE,
	RTRS_MSG_READ,
	RTRS_MSG_RKEY_RSP,
};

/**
 * enum rtrs_msg_flags - flag bits of messages
 * @RTRS_MSG_NEED_INVAL_F: read request: please invalidate the key of desc[0]
 * @RTRS_MSG_NEW_RKEY_F: connection response: each answer brings a new key for
 *	its chunk
 */
enum rtrs_msg_flags {
	RTRS_MSG_NEED_INVAL_F	= 1 << 0,
	RTRS_MSG_NEW_RKEY_F	= 1 << 1,
};

/**
 * struct rtrs_sg_desc - a piece of memory that the peer may access
 * @addr: DMA address of its first byte
 * @key: remote key that opens it
 * @len: its length, bytes
 */
struct rtrs_sg_desc {
	__le64	addr;
	__le32	key;
	__le32	len;
};

/**
 * struct rtrs_msg_conn_req - private data of a connection request
 * @__cma_version: belongs to the RDMA CM; sent as 0, ignored on receipt
 * @__ip_version: likewise
 * @magic: RTRS_MAGIC
 * @version: RTRS_PROTO_VER; only the major half, in the high byte, must match
 * @cid: number of this connection, below @cid_num
 * @cid_num: number of connections of the path, the same in all its requests
 * @recon_cnt: number of the attempt to bring the path up, modulo 65536
 * @sess_uuid: who the *path* is; constant over reconnects
 * @paths_uuid: who the *session* is; the same for all its paths
 * @first_conn: bit 0 of its byte: the server may create the session
 * @reserved_bits: 0
 * @reserved: 0
 */
struct rtrs_msg_conn_req {
	u8	__cma_version;
	u8	__ip_version;
	__le16	magic;
	__le16	version;
	__le16	cid;
	__le16	cid_num;
	__le16	recon_cnt;
	uuid_t	sess_uuid;
	uuid_t	paths_uuid;
#if defined(__LITTLE_ENDIAN_BITFIELD)
	u8	first_conn : 1;
	u8	reserved_bits : 7;
#elif defined(__BIG_ENDIAN_BITFIELD)
	u8	reserved_bits : 7;
	u8	first_conn : 1;
#else
#error "the order of bit-fields is unknown"
#endif
	u8	reserved[11];
};

/**
 * struct rtrs_msg_conn_rsp - private data of an acceptance or a rejection
 * @magic: RTRS_MAGIC
 * @version: RTRS_PROTO_VER; only the major half must match
 * @errno: 0 in an acceptance; why not, as negative errno, in a rejection,
 *	where nothing below is filled
 * @queue_depth: number of chunks of the session
 * @max_io_size: largest data length, bytes
 * @max_hdr_size: largest user message with RTRS header behind it, bytes; a
 *	chunk is as long as both limits together
 * @flags: RTRS_MSG_NEW_RKEY_F or 0
 * @reserved: 0
 */
struct rtrs_msg_conn_rsp {
	__le16	magic;
	__le16	version;
	__le16	errno;
	__le16	queue_depth;
	__le32	max_io_size;
	__le32	max_hdr_size;
	__le32	flags;
	u8	reserved[36];
};

/**
 * struct rtrs_msg_info_req - first message on connection 0
 * @type: RTRS_MSG_INFO_REQ
 * @pathname: name of the session, filled up with at least one NUL
 * @reserved: 0
 */
struct rtrs_msg_info_req {
	__le16	type;
	u8	pathname[NAME_MAX];
	u8	reserved[15];
};

/**
 * struct rtrs_msg_info_rsp - where the chunks of the session are
 * @type: RTRS_MSG_INFO_RSP
 * @sg_cnt: number of descriptors
 * @reserved: 0
 * @desc: the chunks in order of their number, each descriptor one or more
 *	whole chunks
 */
struct rtrs_msg_info_rsp {
	__le16	type;
	__le16	sg_cnt;
	u8	reserved[4];
	struct rtrs_sg_desc desc[];
};

/**
 * struct rtrs_msg_rkey_rsp - payload of an answer under RTRS_MSG_NEW_RKEY_F
 * @type: RTRS_MSG_RKEY_RSP
 * @buf_id: number of the chunk that has been answered
 * @rkey: key for the next request into this chunk on this path
 */
struct rtrs_msg_rkey_rsp {
	__le16	type;
	__le16	buf_id;
	__le32	rkey;
};

/**
 * struct rtrs_msg_rdma_read - header of a read request
 * @type: RTRS_MSG_READ
 * @usr_len: length of the user message in front of this header, bytes
 * @flags: RTRS_MSG_NEED_INVAL_F or 0
 * @sg_cnt: 1, or 0 if there is no data to read
 * @desc: where the client wants the data
 */
struct rtrs_msg_rdma_read {
	__le16	type;
	__le16	usr_len;
	__le16	flags;
	__le16	sg_cnt;
	struct rtrs_sg_desc desc[];
};

/**
 * struct rtrs_msg_rdma_write - header of a write request
 * @type: RTRS_MSG_WRITE
 * @usr_len: length of the user message in front of this header, bytes
 */
struct rtrs_msg_rdma_write {
	__le16	type;
	__le16	usr_len;
};

/**
 * struct rtrs_msg_rdma_hdr - what the headers of all requests begin with
 * @type: RTRS_MSG_WRITE or RTRS_MSG_READ
 */
struct rtrs_msg_rdma_hdr {
	__le16	type;
};

static_assert(sizeof(struct rtrs_sg_desc) == 16);
static_assert(offsetof(struct rtrs_sg_desc, addr) == 0);
static_assert(offsetof(struct rtrs_sg_desc, key) == 8);
static_assert(offsetof(struct rtrs_sg_desc, len) == 12);

static_assert(sizeof(struct rtrs_msg_conn_req) == 56);
static_assert(offsetof(struct rtrs_msg_conn_req, __cma_version) == 0);
static_assert(offsetof(struct rtrs_msg_conn_req, __ip_version) == 1);
static_assert(offsetof(struct rtrs_msg_conn_req, magic) == 2);
static_assert(offsetof(struct rtrs_msg_conn_req, version) == 4);
static_assert(offsetof(struct rtrs_msg_conn_req, cid) == 6);
static_assert(offsetof(struct rtrs_msg_conn_req, cid_num) == 8);
static_assert(offsetof(struct rtrs_msg_conn_req, recon_cnt) == 10);
static_assert(offsetof(struct rtrs_msg_conn_req, sess_uuid) == 12);
static_assert(offsetof(struct rtrs_msg_conn_req, paths_uuid) == 28);
/* The byte of the bit-fields, 44, lies between these two. */
static_assert(offsetofend(struct rtrs_msg_conn_req, paths_uuid) == 44);
static_assert(offsetof(struct rtrs_msg_conn_req, reserved) == 45);

static_assert(sizeof(struct rtrs_msg_conn_rsp) == 56);
static_assert(offsetof(struct rtrs_msg_conn_rsp, magic) == 0);
static_assert(offsetof(struct rtrs_msg_conn_rsp, version) == 2);
static_assert(offsetof(struct rtrs_msg_conn_rsp, errno) == 4);
static_assert(offsetof(struct rtrs_msg_conn_rsp, queue_depth) == 6);
static_assert(offsetof(struct rtrs_msg_conn_rsp, max_io_size) == 8);
static_assert(offsetof(struct rtrs_msg_conn_rsp, max_hdr_size) == 12);
static_assert(offsetof(struct rtrs_msg_conn_rsp, flags) == 16);
static_assert(offsetof(struct rtrs_msg_conn_rsp, reserved) == 20);

static_assert(sizeof(struct rtrs_msg_info_req) == 272);
static_assert(offsetof(struct rtrs_msg_info_req, type) == 0);
static_assert(offsetof(struct rtrs_msg_info_req, pathname) == 2);
static_assert(offsetof(struct rtrs_msg_info_req, reserved) == 257);

static_assert(sizeof(struct rtrs_msg_info_rsp) == 8);
static_assert(offsetof(struct rtrs_msg_info_rsp, type) == 0);
static_assert(offsetof(struct rtrs_msg_info_rsp, sg_cnt) == 2);
static_assert(offsetof(struct rtrs_msg_info_rsp, reserved) == 4);
static_assert(offsetof(struct rtrs_msg_info_rsp, desc) == 8);

static_assert(sizeof(struct rtrs_msg_rkey_rsp) == 8);
static_assert(offsetof(struct rtrs_msg_rkey_rsp, type) == 0);
static_assert(offsetof(struct rtrs_msg_rkey_rsp, buf_id) == 2);
static_assert(offsetof(struct rtrs_msg_rkey_rsp, rkey) == 4);

static_assert(sizeof(struct rtrs_msg_rdma_read) == 8);
static_assert(offsetof(struct rtrs_msg_rdma_read, type) == 0);
static_assert(offsetof(struct rtrs_msg_rdma_read, usr_len) == 2);
static_assert(offsetof(struct rtrs_msg_rdma_read, flags) == 4);
static_assert(offsetof(struct rtrs_msg_rdma_read, sg_cnt) == 6);
static_assert(offsetof(struct rtrs_msg_rdma_read, desc) == 8);

static_assert(sizeof(struct rtrs_msg_rdma_write) == 4);
static_assert(offsetof(struct rtrs_msg_rdma_write, type) == 0);
static_assert(offsetof(struct rtrs_msg_rdma_write, usr_len) == 2);

static_assert(sizeof(struct rtrs_msg_rdma_hdr) == 2);
static_assert(offsetof(struct rtrs_msg_rdma_hdr, type) == 0);

/*
 * Immediates, in host order
 */

/**
 * rtrs_to_imm() - put an immediate together
 * @type: &enum rtrs_imm_type; only the low 4 bits count
 * @payload: only the low 28 bits count
 *
 * Return: the immediate.
 */
static inline u32 rtrs_to_imm(u32 type, u32 payload)
{
	return (type & MAX_IMM_TYPE_MASK) << MAX_IMM_PAYL_BITS | (payload & MAX_IMM_PAYL_MASK);
}

/**
 * rtrs_from_imm() - take an immediate apart
 * @imm: the immediate
 * @type: set to its type, 0..15, which need not be one we know
 * @payload: set to its payload, 28 bits
 */
static inline void rtrs_from_imm(u32 imm, u32 *type, u32 *payload)
{
	*type = imm >> MAX_IMM_PAYL_BITS;
	*payload = imm & MAX_IMM_PAYL_MASK;
}

/**
 * rtrs_to_io_req_imm() - make the immediate of a request
 * @addr: what rtrs_io_req_payload() has returned
 *
 * Return: the immediate.
 */
static inline u32 rtrs_to_io_req_imm(u32 addr)
{
	return rtrs_to_imm(RTRS_IO_REQ_IMM, addr);
}

/**
 * rtrs_to_io_rsp_imm() - make the immediate of an answer
 * @msg_id: number of the chunk; only the low 19 bits count
 * @errno: 0 or an errno of either sign. Only the low 9 bits of its amount
 *	travel: 512 arrives as success, 524 as 12
 * @w_inval: the request's key has been invalidated
 *
 * Return: the immediate.
 */
static inline u32 rtrs_to_io_rsp_imm(u32 msg_id, int errno, bool w_inval)
{
	u32 err = abs(errno) & RTRS_IO_RSP_ERRNO_MASK;

	return rtrs_to_imm(w_inval ? RTRS_IO_RSP_W_INV_IMM : RTRS_IO_RSP_IMM,
			   err << RTRS_IO_RSP_ID_BITS | (msg_id & RTRS_IO_RSP_ID_MASK));
}

/**
 * rtrs_from_io_rsp_imm() - take the payload of an answer apart
 * @payload: payload, as rtrs_from_imm() has set it
 * @msg_id: set to the number of the chunk, 19 bits; the caller compares it
 *	with the queue depth
 * @errno: set to a value from -511 to 0
 */
static inline void rtrs_from_io_rsp_imm(u32 payload, u32 *msg_id, int *errno)
{
	*msg_id = payload & RTRS_IO_RSP_ID_MASK;
	*errno = -(int)(payload >> RTRS_IO_RSP_ID_BITS & RTRS_IO_RSP_ERRNO_MASK);
}

/**
 * rtrs_bits() - how many bits it takes to number a set of things
 * @n: how many things; they are numbered from 0 to n - 1
 *
 * Return: 0 for one thing or none, else the bits of the largest number, 1..32.
 */
static inline unsigned int rtrs_bits(u32 n)
{
	return n > 1 ? ilog2(n - 1) + 1 : 0;
}

/**
 * rtrs_io_req_payload() - tell the server where in its chunks a header lies
 * @mem_id: number of the chunk, below @queue_depth
 * @off: offset of the RTRS header from the start of the chunk, bytes, below
 *	the chunk size
 * @queue_depth: number of chunks, from a &struct rtrs_conn_params; it decides
 *	how many bits are left for the offset
 *
 * Return: payload for rtrs_to_io_req_imm().
 */
static inline u32 rtrs_io_req_payload(u32 mem_id, u32 off, u32 queue_depth)
{
	return (mem_id << (MAX_IMM_PAYL_BITS - rtrs_bits(queue_depth))) + off;
}

/*
 * Connecting
 */

/**
 * struct rtrs_conn_params - what a server offers, checked
 * @queue_depth: number of chunks, 1..65535
 * @max_io_size: largest data length, bytes, at least RTRS_MIN_IO_SIZE
 * @max_hdr_size: largest user message with RTRS header, bytes,
 *	RTRS_MIN_HDR_SIZE..RTRS_MAX_HDR_SIZE
 * @chunk_size: sum of the two, bytes; chunk number and any offset into a chunk
 *	fit into the payload of an immediate together
 * @new_rkey: each answer is a message with a new key for its chunk
 */
struct rtrs_conn_params {
	u32	queue_depth;
	u32	max_io_size;
	u32	max_hdr_size;
	u32	chunk_size;
	bool	new_rkey;
};

/* The peer's fault: one errno for all, the reason in words. */
static inline int rtrs_refuse(const char **why, const char *reason)
{
	*why = reason;
	return -ECONNRESET;
}

/*
 * Who opens a session, or adds a path, gets the server's errno as the result of a
 * system call. From 512 on numbers have a meaning to the kernel itself there: the
 * call is to be restarted (ERESTARTSYS), or will be done later (EIOCBQUEUED, on
 * which a write to sysfs is a BUG). Answers to requests have no room for them.
 */
#define RTRS_MAX_ERRNO 511

/* What the errno field of a connection response says, or 1 if that is none. */
static inline int rtrs_conn_rsp_errno(const struct rtrs_msg_conn_rsp *rsp)
{
	int err = (s16)le16_to_cpu(rsp->errno);

	return err <= 0 && err >= -RTRS_MAX_ERRNO ? err : 1;
}

/**
 * rtrs_conn_req_fill() - make a connection request
 * @msg: where to
 * @cid: number of the connection, below @cid_num
 * @cid_num: number of connections of the path, 1..RTRS_MAX_CON_NUM
 * @recon_cnt: number of the attempt
 * @sess_uuid: uuid of the path
 * @paths_uuid: uuid of the session
 * @first_conn: let the server create the session if it does not know it
 */
static inline void rtrs_conn_req_fill(struct rtrs_msg_conn_req *msg, u16 cid, u16 cid_num,
				      u16 recon_cnt, const uuid_t *sess_uuid,
				      const uuid_t *paths_uuid, bool first_conn)
{
	memset(msg, 0, sizeof(*msg));
	msg->magic = cpu_to_le16(RTRS_MAGIC);
	msg->version = cpu_to_le16(RTRS_PROTO_VER);
	msg->cid = cpu_to_le16(cid);
	msg->cid_num = cpu_to_le16(cid_num);
	msg->recon_cnt = cpu_to_le16(recon_cnt);
	uuid_copy(&msg->sess_uuid, sess_uuid);
	uuid_copy(&msg->paths_uuid, paths_uuid);
	msg->first_conn = first_conn;
}

/**
 * rtrs_conn_rsp_check_hdr() - judge the part that every acceptance must have
 * @rsp: the response
 * @why: set to the reason on error
 *
 * Return: 0; -ECONNRESET if this is not an acceptance of our protocol; the
 * errno -511..-1 that the server has put into it.
 */
static inline int rtrs_conn_rsp_check_hdr(const struct rtrs_msg_conn_rsp *rsp, const char **why)
{
	int err;

	if (le16_to_cpu(rsp->magic) != RTRS_MAGIC)
		return rtrs_refuse(why, "bad magic");
	if (le16_to_cpu(rsp->version) >> 8 != RTRS_PROTO_VER_MAJOR)
		return rtrs_refuse(why, "wrong major version");

	err = rtrs_conn_rsp_errno(rsp);
	if (err > 0)
		return rtrs_refuse(why, "errno out of range");
	if (err)
		*why = "server error";
	return err;
}

/**
 * rtrs_conn_rsp_parse() - judge a connection response and take its contents
 * @data: private data of the acceptance, any alignment; may be NULL if @len
 *	is 0
 * @len: its length, bytes; the CM reports more than was sent
 * @prm: filled on success only
 * @why: set to the reason on error, a constant string; untouched on success
 *
 * Return: 0; -ECONNRESET if the response is malformed or offers what no
 * server may; the errno -511..-1 that the server has put into it.
 */
static inline int rtrs_conn_rsp_parse(const void *data, size_t len, struct rtrs_conn_params *prm,
				      const char **why)
{
	struct rtrs_msg_conn_rsp rsp;
	struct rtrs_conn_params p;
	u32 flags;
	int err;

	if (len < sizeof(rsp))
		return rtrs_refuse(why, "short response");
	memcpy(&rsp, data, sizeof(rsp));

	err = rtrs_conn_rsp_check_hdr(&rsp, why);
	if (err)
		return err;

	flags = le32_to_cpu(rsp.flags);
	p.queue_depth = le16_to_cpu(rsp.queue_depth);
	p.max_io_size = le32_to_cpu(rsp.max_io_size);
	p.max_hdr_size = le32_to_cpu(rsp.max_hdr_size);
	p.new_rkey = flags & RTRS_MSG_NEW_RKEY_F;

	if (flags & ~RTRS_MSG_NEW_RKEY_F)
		return rtrs_refuse(why, "unknown flags");
	if (!p.queue_depth)
		return rtrs_refuse(why, "queue depth 0");
	if (p.max_hdr_size < RTRS_MIN_HDR_SIZE || p.max_hdr_size > RTRS_MAX_HDR_SIZE)
		return rtrs_refuse(why, "header size out of range");
	if (p.max_io_size < RTRS_MIN_IO_SIZE)
		return rtrs_refuse(why, "io size out of range");
	if (check_add_overflow(p.max_io_size, p.max_hdr_size, &p.chunk_size))
		return rtrs_refuse(why, "chunk size overflows");
	if (rtrs_bits(p.queue_depth) + rtrs_bits(p.chunk_size) > MAX_IMM_PAYL_BITS)
		return rtrs_refuse(why, "queue depth and chunk size exceed the immediate");

	*prm = p;
	return 0;
}

/**
 * rtrs_conn_params_equal() - do two connections offer the same
 * @a: what one offers
 * @b: what the other offers
 *
 * Return: true if they do.
 */
static inline bool rtrs_conn_params_equal(const struct rtrs_conn_params *a,
					  const struct rtrs_conn_params *b)
{
	return a->queue_depth == b->queue_depth && a->max_io_size == b->max_io_size &&
	       a->max_hdr_size == b->max_hdr_size && a->chunk_size == b->chunk_size &&
	       a->new_rkey == b->new_rkey;
}

/**
 * rtrs_conn_rej_errno() - why a server has rejected a connection
 * @data: private data of the rejection, any alignment; may be NULL if @len
 *	is 0
 * @len: its length, bytes
 *
 * Whoever rejects need not be an RTRS server, nor an honest one.
 *
 * Return: the errno -511..-1 that the server has given, or 0 if it has given
 * none, or is none.
 */
static inline int rtrs_conn_rej_errno(const void *data, size_t len)
{
	struct rtrs_msg_conn_rsp rsp;
	int err;

	if (len < sizeof(rsp))
		return 0;
	memcpy(&rsp, data, sizeof(rsp));

	if (le16_to_cpu(rsp.magic) != RTRS_MAGIC)
		return 0;
	err = rtrs_conn_rsp_errno(&rsp);
	return err < 0 ? err : 0;
}

/**
 * struct rtrs_rbuf - a chunk of the server as the client addresses it
 * @addr: DMA address at the server
 * @rkey: key for the next request into it
 */
struct rtrs_rbuf {
	u64	addr;
	u32	rkey;
};

/**
 * rtrs_info_rsp_parse() - judge an info response and take the chunks from it
 * @rsp: the message
 * @len: received length, bytes
 * @prm: what the server has offered on connecting
 * @rbufs: array of @prm->queue_depth elements; undefined on error
 * @why: set to the reason on error, a constant string; untouched on success
 *
 * The descriptors must cover all chunks exactly. How many chunks each of them
 * covers is the server's choice, and need not be the same number.
 *
 * Return: 0 or -ECONNRESET.
 */
static inline int rtrs_info_rsp_parse(const struct rtrs_msg_info_rsp *rsp, size_t len,
				      const struct rtrs_conn_params *prm, struct rtrs_rbuf *rbufs,
				      const char **why)
{
	u32 sg_cnt, i, nr = 0;

	if (len < sizeof(*rsp))
		return rtrs_refuse(why, "short info response");
	if (le16_to_cpu(rsp->type) != RTRS_MSG_INFO_RSP)
		return rtrs_refuse(why, "not an info response");
	sg_cnt = le16_to_cpu(rsp->sg_cnt);
	if (!sg_cnt || sg_cnt > prm->queue_depth)
		return rtrs_refuse(why, "descriptor count out of range");
	if (len < struct_size(rsp, desc, sg_cnt))
		return rtrs_refuse(why, "info response lacks descriptors");

	for (i = 0; i < sg_cnt; i++) {
		u64 addr = le64_to_cpu(rsp->desc[i].addr), end;
		u32 size = le32_to_cpu(rsp->desc[i].len);
		u32 chunks = size / prm->chunk_size;

		if (!size || size % prm->chunk_size)
			return rtrs_refuse(why, "descriptor is not made of whole chunks");
		if (check_add_overflow(addr, (u64)size, &end))
			return rtrs_refuse(why, "descriptor wraps around");
		if (chunks > prm->queue_depth - nr)
			return rtrs_refuse(why, "descriptors cover too many chunks");

		for (; addr < end; addr += prm->chunk_size, nr++) {
			rbufs[nr].addr = addr;
			rbufs[nr].rkey = le32_to_cpu(rsp->desc[i].key);
		}
	}
	if (nr != prm->queue_depth)
		return rtrs_refuse(why, "descriptors cover too few chunks");
	return 0;
}

/*
 * Requests. In the chunk lie, without a gap: data, user message, RTRS header.
 * A read leaves the place of the data alone: the server puts it there.
 */

/**
 * rtrs_req_hdr_len() - length of the RTRS header of a request
 * @read: read, not write
 * @has_data: there is data to transfer
 *
 * Return: bytes.
 */
static inline size_t rtrs_req_hdr_len(bool read, bool has_data)
{
	if (!read)
		return sizeof(struct rtrs_msg_rdma_write);
	return sizeof(struct rtrs_msg_rdma_read) + (has_data ? sizeof(struct rtrs_sg_desc) : 0);
}

/**
 * rtrs_req_check_size() - does a request fit what the server offers
 * @prm: what the server has offered on connecting
 * @read: read, not write
 * @has_data: there is data to transfer
 * @usr_len: length of the user message, bytes, any value
 * @data_len: length of the data, bytes, any value
 *
 * Return: 0; -EMSGSIZE if the user message or the whole is too long.
 */
static inline int rtrs_req_check_size(const struct rtrs_conn_params *prm, bool read,
				      bool has_data, size_t usr_len, size_t data_len)
{
	size_t msg_len;

	if (usr_len > U16_MAX)
		return -EMSGSIZE;
	msg_len = usr_len + rtrs_req_hdr_len(read, has_data);
	if (msg_len > prm->max_hdr_size)
		return -EMSGSIZE;
	/* The chunk is longer than the largest header: no underflow. */
	if (data_len > prm->chunk_size - msg_len)
		return -EMSGSIZE;
	return 0;
}

/**
 * rtrs_write_hdr_fill() - make the header of a write request
 * @hdr: where to, any alignment
 * @usr_len: length of the user message in front of it, bytes
 *
 * Return: length of the header, bytes.
 */
static inline size_t rtrs_write_hdr_fill(void *hdr, u16 usr_len)
{
	struct rtrs_msg_rdma_write msg = {
		.type		= cpu_to_le16(RTRS_MSG_WRITE),
		.usr_len	= cpu_to_le16(usr_len),
	};

	memcpy(hdr, &msg, sizeof(msg));
	return sizeof(msg);
}

/**
 * rtrs_read_hdr_fill() - make the header of a read request
 * @hdr: where to, any alignment
 * @usr_len: length of the user message in front of it, bytes
 * @need_inval: ask the server to invalidate @rkey; means nothing without data
 * @addr: DMA address of the buffer for the data
 * @rkey: key that lets the server write there
 * @len: length of the data, bytes; 0 is a read without data
 *
 * Return: length of the header, bytes.
 */
static inline size_t rtrs_read_hdr_fill(void *hdr, u16 usr_len, bool need_inval, u64 addr,
					u32 rkey, u32 len)
{
	struct rtrs_msg_rdma_read msg = {
		.type		= cpu_to_le16(RTRS_MSG_READ),
		.usr_len	= cpu_to_le16(usr_len),
		.flags		= cpu_to_le16(len && need_inval ? RTRS_MSG_NEED_INVAL_F : 0),
		.sg_cnt		= cpu_to_le16(len ? 1 : 0),
	};
	struct rtrs_sg_desc desc = {
		.addr	= cpu_to_le64(addr),
		.key	= cpu_to_le32(rkey),
		.len	= cpu_to_le32(len),
	};

	memcpy(hdr, &msg, sizeof(msg));
	if (!len)
		return sizeof(msg);
	memcpy(hdr + sizeof(msg), &desc, sizeof(desc));
	return sizeof(msg) + sizeof(desc);
}

/**
 * rtrs_rkey_rsp_parse() - judge an rkey message and take its contents
 * @data: the message, any alignment
 * @len: received length, bytes
 * @queue_depth: number of chunks
 * @buf_id: set to the number of the chunk, below @queue_depth, on success; the
 *	caller compares it with the immediate that came along
 * @rkey: set to the new key on success
 *
 * Return: 0 or -EPROTO.
 */
static inline int rtrs_rkey_rsp_parse(const void *data, size_t len, u32 queue_depth, u32 *buf_id,
				      u32 *rkey)
{
	struct rtrs_msg_rkey_rsp rsp;

	if (len != sizeof(rsp))
		return -EPROTO;
	memcpy(&rsp, data, sizeof(rsp));

	if (le16_to_cpu(rsp.type) != RTRS_MSG_RKEY_RSP || le16_to_cpu(rsp.buf_id) >= queue_depth)
		return -EPROTO;
	*buf_id = le16_to_cpu(rsp.buf_id);
	*rkey = le32_to_cpu(rsp.rkey);
	return 0;
}

#endif /* RTRS_PROTO_H */
