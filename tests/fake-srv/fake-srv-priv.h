/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fake server inside. fake-srv.c has sessions, paths and connections,
 * fake-srv-io.c what is sent and received.
 *
 * Locks: fake_srv.mutex protects the lists and who belongs to whom,
 * fake_srv.lock script and counters. Whoever does steps of a path is counted in
 * fs_path.users; who closes the path sets closing, and waits for them.
 */
#ifndef FAKE_SRV_PRIV_H
#define FAKE_SRV_PRIV_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/uuid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "fake-srv.h"
#include "wire.h"

/* Room beyond what requests need: floods, and whatever scripts post */
#define FS_SQ_EXTRA 256
#define FS_RQ_EXTRA 64

/* Closed paths that are remembered: connections of them may be under way */
#define FS_GONE 16

struct fs_con {
	struct fake_srv *srv;
	struct fs_path *path;
	struct rdma_cm_id *id;
	struct ib_qp *qp;
	struct ib_cq *scq;
	struct ib_cq *rcq;
	unsigned int cid;
	struct work_struct setup;
	struct wire_conn_req req;
	u8 req_len;
	struct ib_cqe recv_cqe;
	struct ib_cqe info_cqe;
	struct wire_info_req *info;
	u64 info_dma;
	bool established;
	struct list_head stray;
};

/* @listener: only there to be the context of the listening id */
struct fake_srv {
	struct fs_config cfg;
	struct fs_con listener;
	struct workqueue_struct *wq;
	wait_queue_head_t wait;

	struct mutex mutex;	/* sessions and paths */
	struct list_head sessions;
	struct list_head held;
	struct list_head strays;	/* connections to paths that are silent */
	unsigned int paths_seen;
	uuid_t gone[FS_GONE];
	unsigned int nr_gone;

	spinlock_t lock;	/* script and stats */
	struct fs_script script;
	struct fs_stats stats;
	atomic_t cons;
};

/* A session: as many areas as the info response has descriptors */
struct fs_sess {
	struct list_head entry;
	struct fake_srv *srv;
	struct list_head paths;
	unsigned int refs;
	uuid_t uuid;
	u32 queue_depth;
	u32 max_io_size;
	u32 max_hdr_size;
	u32 chunk_size;
	bool new_rkey;
	u32 per_desc;
	u32 nr_desc;
};

/*
 * One area of a path. Upstream's server has one memory for all paths, where a
 * request that was lost on one path may disturb what another path does with the
 * chunk. Tests want to know whose fault wrong data are.
 */
struct fs_area {
	void *mem;
	struct ib_mr *mr;
	struct ib_cqe cqe;
	struct scatterlist sg;
	bool mapped;
	bool valid;
};

struct fs_path {
	struct list_head entry;
	struct fake_srv *srv;
	struct fs_sess *sess;
	uuid_t uuid;
	unsigned int index;
	unsigned int nr_cons;
	struct ib_pd *pd;
	struct fs_area *areas;
	atomic_t users;
	struct work_struct close;
	struct delayed_work hb;
	bool up;
	bool silent;
	bool closing;
	struct fs_con *con[];
};

struct fs_req {
	struct list_head entry;
	struct fs_con *con;
	struct fs_request r;
	u32 id;
	u64 addr;
	u32 key;
	u32 len;
	bool inval;
	int err;
};

/* fake-srv.c */
void fs_path_close(struct fs_path *path);
bool fs_path_enter(struct fs_path *path);
void fs_path_leave(struct fs_path *path);
void fs_complain(struct fake_srv *srv, const char *what);
struct fs_path *fs_other_path(struct fs_path *path, bool same_sess);

/* fake-srv-io.c */
void fs_phase(struct fs_con *con, enum fs_at at, struct fs_req *req);
int fs_con_post_recvs(struct fs_con *con);
void fs_recv_done(struct ib_cq *cq, struct ib_wc *wc);
void fs_info_done(struct ib_cq *cq, struct ib_wc *wc);
void fs_area_done(struct ib_cq *cq, struct ib_wc *wc);
void fs_hb_work(struct work_struct *work);

#endif /* FAKE_SRV_PRIV_H */
