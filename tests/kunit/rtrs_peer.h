/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The client under test as its user sees it, for suites that put it in front of
 * the fake server: sessions, requests that check themselves, files of sysfs,
 * and a count of what the HCAs have before and after.
 */
#ifndef RTRS_PEER_H
#define RTRS_PEER_H

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/list.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>

#include "../../rtrs.h"
#include "../fake-srv/fake-srv.h"

#define PEER_PORT 1235
#define PEER_LINKS 2
#define PEER_RES 8
#define PEER_MAX_SG 8
#define PEER_DATA 4096

/* Limit of an attempt to connect that shall succeed */
#define PEER_CONNECT_MS 3000

/* Until it is noticed that a path is silent, at the most, if its heartbeat is short */
#define PEER_HB_MS 2000

/* Sanitizers make the machine slow */
#define PEER_SCALE (IS_ENABLED(CONFIG_KASAN) ? 4 : 1)

/* Offsets in the connection response */
enum { C_MAGIC = 0, C_VERSION = 2, C_ERRNO = 4, C_DEPTH = 6, C_IO = 8, C_HDR = 12, C_FLAGS = 16 };

/* Offsets in the info response and its first descriptors */
enum { I_TYPE = 0, I_NR = 2, I_ADDR = 8, I_KEY = 16, I_LEN = 20, I_LEN2 = 36 };

/* Why a path has failed, in the words of its last_error_reason */
#define NO_REQUEST "answer to no request of this connection"
#define NO_CHUNK "answer with a chunk number that does not exist"
#define UNKNOWN_IMM "immediate of unknown type"
#define WRONG_HB "heartbeat on a connection other than 0"
#define NO_KEY "answer without the new key of its chunk"
#define MALFORMED "malformed message with a new key"
#define OTHER_CHUNK "new key of another chunk than the one answered"
#define NO_ANSWER "new key with an immediate that is no answer"
#define NEITHER "message that is neither an answer nor an invalidation"
#define SENDS_NONE "message with data, but the server said it sends none"
#define RECV_FAILED "a receive failed"
#define DISCONNECTED "the server disconnected"
#define BROKE "the queue pair broke"
#define NO_HB "no heartbeat from the server"
#define NO_HCA "the server's HCA does not answer"

struct peer {
	struct kunit *test;
	struct fake_srv *srv;
	struct rtrs_clt_sess *clt;
	char name[32];
	unsigned int paths;
	unsigned int msg_more;	/* bytes by which the user message is longer than usual */
	struct list_head reqs;
	spinlock_t lock;	/* closing, and confirmations */
	bool closing;
	atomic_t bad_data;
	atomic_t down_events;
	atomic_t up_events;
	unsigned int res[PEER_LINKS][PEER_RES];
};

struct peer_req {
	struct list_head entry;
	struct peer *peer;
	struct rtrs_permit *permit;
	struct completion done;
	atomic_t confs;
	int dir;
	int err;
	u32 tag;
	size_t len;
	unsigned int nr_sg;
	struct scatterlist sg[PEER_MAX_SG];
	void *page[PEER_MAX_SG];
};

/* One row of what a server may be like */
struct peer_mode {
	bool new_rkey;
	bool reads;
	u16 queue_depth;
	u16 chunks_per_desc;
	u32 max_io_size;
	u32 max_hdr_size;
	unsigned int hb_ms;
};

extern const size_t peer_msg_len;
extern const struct fs_script peer_hold;

int peer_suite_init(struct kunit_suite *suite);
void peer_suite_exit(struct kunit_suite *suite);

struct ib_device *peer_hca(unsigned int link);
struct peer *peer_start(struct kunit *test, const struct peer_mode *mode);
struct peer *peer_start_open(struct kunit *test, bool new_rkey, unsigned int paths);
void peer_restart(struct peer *p, const struct peer_mode *mode);
void peer_stop(struct peer *p);

void peer_prepare(struct peer *p, unsigned int paths);
struct rtrs_clt_sess *peer_open_raw(struct peer *p, unsigned int paths);
int peer_open(struct peer *p, unsigned int paths, unsigned int connect_ms);
void peer_close(struct peer *p);

struct peer_req *peer_submit(struct peer *p, int dir, size_t len, enum rtrs_clt_con_type con);
struct peer_req *peer_submit_nomem(struct peer *p, int dir, size_t len);
bool peer_wait(struct peer_req *req, unsigned int ms);
bool peer_data_ok(struct peer_req *req);
bool peer_data_is(struct peer_req *req, u8 byte);
void peer_fill(struct peer_req *req, u8 byte);
void peer_free(struct peer_req *req);
int peer_do(struct peer *p, int dir, size_t len);
void peer_expect_works(struct peer *p);

void peer_wait_hits(struct peer *p, unsigned int nr);
unsigned int peer_hostile_ms(void);
void peer_connect_ms(struct kunit *test, unsigned int ms);
int peer_path_read(struct peer *p, unsigned int path, const char *attr, char *buf, size_t len);
int peer_path_write(struct peer *p, unsigned int path, const char *attr, const char *val);
int peer_sess_write(struct peer *p, const char *attr, const char *val);
void peer_short_hb(struct peer *p, const char *interval_ms);
bool peer_path_is_up(struct peer *p, unsigned int path);
bool peer_wait_path(struct peer *p, unsigned int path, bool up, unsigned int ms);
void peer_expect_reason(struct peer *p, unsigned int path, int err, const char *why);
int peer_failed_path(struct peer *p);
void peer_expect_failure(struct peer *p, int err, const char *why);
int peer_reconnect(struct peer *p, unsigned int path);
int peer_add_path(struct peer *p, unsigned int link);
int peer_add_path_with(struct peer *p, unsigned int link, unsigned int (*before)(void),
		       void (*after)(unsigned int taken));

int peer_do_open(struct peer *p);
int peer_undo_open(struct peer *p);
int peer_do_add_path(struct peer *p);
int peer_undo_add_path(struct peer *p);
int peer_do_reconnect(struct peer *p);
int peer_mend(struct peer *p);

#endif /* RTRS_PEER_H */
