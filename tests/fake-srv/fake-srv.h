/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A scriptable RTRS server for tests, on the RDMA CM
 *
 * Without a script it behaves well. A script says at which point of the
 * protocol, and how often, the server does something else, and what: a short
 * list of steps that replaces what it would have done there. What is zero in a
 * step means: right. So { .op = FS_ANSWER }, { .op = FS_IMM } is a correct
 * answer followed by a second one, and { .op = FS_IMM, .id = 1 } an answer with
 * the number behind that of the chunk that was asked for. See README.md.
 */
#ifndef FAKE_SRV_H
#define FAKE_SRV_H

#include <linux/types.h>

/* Where a script has its say; behind each: what happens there without one */
enum fs_at {
	FS_NEVER,
	FS_AT_CONN_REQ,		/* connection request: FS_ACCEPT */
	FS_AT_ESTABLISHED,	/* a connection is there: nothing */
	FS_AT_INFO_REQ,		/* info request: FS_INFO_RSP */
	FS_AT_UP,		/* info response sent: nothing */
	FS_AT_REQUEST,		/* IO request: FS_ANSWER */
	FS_AT_HB,		/* heartbeat: FS_HB_ACK */
};

enum fs_op {
	FS_END,
	/* of connections */
	FS_ACCEPT,
	FS_REJECT,
	FS_CM_REJECT,		/* the RDMA CM rejects, not RTRS; .err is its reason */
	/* connection 0 */
	FS_INFO_RSP,
	FS_HB,
	FS_HB_ACK,
	/* the right answer to the request, whatever form it must have */
	FS_ANSWER,
	/* parts of answers */
	FS_DATA,		/* RDMA write of the data */
	FS_NEW_KEY,		/* register the chunk with its next key */
	FS_INV,			/* SEND_WITH_INV */
	FS_IMM,			/* RDMA write with immediate; without data, unless .len says */
	FS_MSG,			/* SEND_WITH_IMM of an rkey message */
	/* what no server sends */
	FS_SEND,		/* plain SEND */
	FS_STEAL,		/* RDMA read of the client's buffer; see fs_config.reads */
	/* time and death */
	FS_WAIT,		/* .ms */
	FS_HOLD,		/* keep the request for fake_srv_release() */
	FS_DISCONNECT,
	FS_KILL_QP,		/* and say nothing about it */
	FS_SILENCE,		/* the path says nothing from now on */
};

/* Which connection a step uses */
enum fs_on {
	FS_ON_SAME,
	FS_ON_CID0,
	FS_ON_NEXT_CON,		/* another IO connection of the path */
	FS_ON_OTHER_PATH,	/* of the session, the same cid */
	FS_ON_OTHER_SESS,	/* the same cid of a path there */
};

/* Which key a step uses */
enum fs_key {
	FS_KEY_RIGHT,
	FS_KEY_NEXT,		/* the right MR, its next key */
	FS_KEY_NONE,		/* an MR that does not exist */
	FS_KEY_HELD,		/* the key of a request that is held */
};

/* Which part of an answer names another chunk, the next one that there is */
#define FS_OTHER_IMM 1
#define FS_OTHER_MSG 2

/* Bytes of a message that are changed before it is sent; width 0: none */
struct fs_patch {
	u16 off;
	u8 width;
	u64 val;
};

#define FS_PATCH(_off, _width, _val) { .off = (_off), .width = (_width), .val = (_val) }

/* For fields whose zero means "right" */
#define FS_LEN(n) ((n) + 1)
#define FS_TYPE(n) ((n) + 1)
#define FS_ERR(n) ((n) + 1)
#define FS_CID(n) ((n) + 1)
#define FS_LINK(n) ((n) + 1)

/**
 * struct fs_step - one thing that the server does
 * @op: what
 * @nr: how many times, 0 is once
 * @on: connection
 * @key: of FS_DATA, FS_INV, FS_STEAL; of FS_MSG which key it announces. Where
 *	there is no request none is right
 * @id: added to the chunk number in the immediate
 * @other: FS_OTHER_IMM, FS_OTHER_MSG
 * @type: FS_TYPE(immediate type)
 * @err: FS_ERR(errno) of the answer or of the rejection, as a positive number;
 *	FS_ERR(reason) of the CM's
 * @len: FS_LEN(bytes) of the message or of the data
 * @ms: how long FS_WAIT waits
 * @patch: changes to the message
 */
struct fs_step {
	enum fs_op op;
	unsigned int nr;
	enum fs_on on;
	enum fs_key key;
	int id;
	unsigned int other;
	int type;
	int err;
	int len;
	unsigned int ms;
	struct fs_patch patch[2];
};

#define FS_STEPS 6

/**
 * struct fs_script - when the server does not behave as it should, and how
 * @at: the point
 * @cid: FS_CID(n): on this connection only
 * @path: n: only on the n-th path that has come to the server, from 1
 * @link: FS_LINK(n): only on paths to an address x.x.n.x of the server
 * @skip: the first so many times nothing happens
 * @times: so often, then never again; 0: always
 * @keep: do not close a path when a send on it has failed
 * @step: what happens instead; ends with FS_END, or is full
 */
struct fs_script {
	enum fs_at at;
	int cid;
	unsigned int path;
	int link;
	unsigned int skip;
	unsigned int times;
	bool keep;
	struct fs_step step[FS_STEPS];
};

/**
 * struct fs_request - a request, as the user of the server sees it
 * @read: direction
 * @data: @data_len bytes: what was written, or where the answer goes
 * @data_len: length of the data
 * @usr: user message
 * @usr_len: its length
 */
struct fs_request {
	bool read;
	void *data;
	u32 data_len;
	const void *usr;
	u32 usr_len;
};

/**
 * struct fs_config - the server; what is 0 has a default
 * @port: port to listen on
 * @queue_depth: number of chunks, default 8
 * @max_io_size: default 28672
 * @max_hdr_size: default 4096
 * @new_rkey: always_invalidate: chunks are closed and renewed with each request
 * @chunks_per_desc: chunks under one key, without @new_rkey. Default all
 * @reads: have the queue pairs made so that FS_STEAL gets away
 * @hb_ms: time between heartbeats of the server, default 5000
 * @request: handles a request: 0 or errno. May sleep. Default: 0
 * @priv: for @request
 */
struct fs_config {
	u16 port;
	u16 queue_depth;
	u32 max_io_size;
	u32 max_hdr_size;
	bool new_rkey;
	bool reads;
	u16 chunks_per_desc;
	unsigned int hb_ms;
	int (*request)(void *priv, const struct fs_request *req);
	void *priv;
};

/**
 * struct fs_stats - what a server has seen
 * @hits: how often the script had its say, since it was set
 * @steps: steps done
 * @requests: IO requests received
 * @hbs: heartbeats received
 * @hb_acks: answers to heartbeats received
 * @access_errors: sends that the client's HCA has refused for their key
 * @paths: paths that are there
 * @complaint: the first thing that a client has done against the protocol
 */
struct fs_stats {
	unsigned int hits;
	unsigned int steps;
	unsigned int requests;
	unsigned int hbs;
	unsigned int hb_acks;
	unsigned int access_errors;
	unsigned int paths;
	const char *complaint;
};

struct fake_srv;

struct fake_srv *fake_srv_start(const struct fs_config *cfg);
void fake_srv_stop(struct fake_srv *srv);
void fake_srv_script(struct fake_srv *srv, const struct fs_script *script);
int fake_srv_release(struct fake_srv *srv, const struct fs_step *step);
void fake_srv_heal(struct fake_srv *srv);
void fake_srv_stats(struct fake_srv *srv, struct fs_stats *stats);

#endif /* FAKE_SRV_H */
