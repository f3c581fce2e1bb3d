/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The RTRS wire as the fake server sees it. Not shared with the client under
 * test, so that a wrong layout in one of them is noticed.
 */
#ifndef FAKE_SRV_WIRE_H
#define FAKE_SRV_WIRE_H

#include <linux/build_bug.h>
#include <linux/types.h>
#include <linux/uuid.h>

#define WIRE_MAGIC 0x1BBD
#define WIRE_VERSION 0x0200
#define WIRE_MAX_CONS 4096
#define WIRE_IMM_BITS 28

enum wire_imm {
	WIRE_IMM_REQ = 0,
	WIRE_IMM_RSP = 1,
	WIRE_IMM_RSP_INV = 2,
	WIRE_IMM_HB = 8,
	WIRE_IMM_HB_ACK = 9,
};

enum wire_msg {
	WIRE_INFO_REQ = 0,
	WIRE_INFO_RSP = 1,
	WIRE_WRITE = 2,
	WIRE_READ = 3,
	WIRE_NEW_KEY = 4,
};

#define WIRE_NEED_INVAL 0x1
#define WIRE_RENEWS_KEYS 0x2

struct wire_desc {
	__le64 addr;
	__le32 key;
	__le32 len;
} __packed;

struct wire_conn_req {
	u8 cma[2];
	__le16 magic;
	__le16 version;
	__le16 cid;
	__le16 cid_num;
	__le16 attempt;
	uuid_t path;
	uuid_t session;
	u8 first;
	u8 zero[11];
} __packed;

struct wire_conn_rsp {
	__le16 magic;
	__le16 version;
	__le16 err;
	__le16 queue_depth;
	__le32 max_io_size;
	__le32 max_hdr_size;
	__le32 flags;
	u8 zero[36];
} __packed;

struct wire_info_req {
	__le16 type;
	char name[255];
	u8 zero[15];
} __packed;

struct wire_info_rsp {
	__le16 type;
	__le16 nr;
	u8 zero[4];
	struct wire_desc desc[];
} __packed;

struct wire_write {
	__le16 type;
	__le16 usr_len;
} __packed;

struct wire_read {
	__le16 type;
	__le16 usr_len;
	__le16 flags;
	__le16 nr;
	struct wire_desc desc[];
} __packed;

struct wire_new_key {
	__le16 type;
	__le16 id;
	__le32 key;
} __packed;

static_assert(sizeof(struct wire_conn_req) == 56);
static_assert(sizeof(struct wire_conn_rsp) == 56);
static_assert(sizeof(struct wire_info_req) == 272);
static_assert(sizeof(struct wire_info_rsp) == 8);
static_assert(sizeof(struct wire_desc) == 16);
static_assert(sizeof(struct wire_write) == 4);
static_assert(sizeof(struct wire_read) == 8);
static_assert(sizeof(struct wire_new_key) == 8);

#endif /* FAKE_SRV_WIRE_H */
