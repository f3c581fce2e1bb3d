/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RDMA Transport client: private definitions. The first file to read.
 *
 * Path states
 * ===========
 *
 *                     +------------------+
 *      (new path) --> |    CONNECTING    | --- info answer ----> CONNECTED
 *                     +------------------+                           |
 *                        |            ^                        error | manual
 *              any error |            | attempt begins         (reconnect)
 *                        v            |                              v
 *                  CONNECTING_ERR --> RECONNECTING <-----------------+
 *                        |  torn down    |    ^
 *                        |               |    | manual reconnect
 *                        v               v    |
 *      close wanted --> CLOSING ------> CLOSED ------> DEAD (removed)
 *
 * CLOSING is reached from each of the upper four states. The state is written
 * under rtrs_clt_path.lock and only by rtrs_clt_change_state(); readers use
 * rtrs_clt_path_state().
 *
 * Everything slow that happens to a path is done by one worker per path
 * (rtrs-clt-path.c). Others change the state or leave a wish, kick the worker
 * and, if their contract says so, wait. There is never a second teardown.
 *
 * Life of a request slot (path x permit)
 * ======================================
 *
 *   FREE --init--> PREPARING --post--> POSTED --answer--> ANSWERED --> FREE
 *                      |                  |
 *                      +-- refused        +-- path torn down: fails over
 *                          --> FREE           --> FREE
 *
 * rtrs_clt_io_req.holds counts who still needs the buffers: the answer, and the
 * completion of the send. For a registered request that is the answer and the
 * submitter until it has posted; the last of them posts the invalidation, whose
 * completion speaks for the send, too.
 *
 * Locks, from the outermost to the innermost
 * ==========================================
 *
 *   rtrs_clt_sess_mutex        list of sessions; device removal
 *   rtrs_clt_sess.paths_mutex  replacing the path set; adding, removing
 *   rdma_cm handler mutex      (held by the RDMA CM around our CM handler)
 *   rtrs_clt_con.lock          flags, ids, queues of one connection; mutex
 *   rtrs_clt_sess.lock         limits and link event counters; spinlock
 *   rtrs_clt_path.lock         state, wishes, last error; spinlock, irq safe
 *
 * No lock is held around conf_fn or link_ev. Nothing that tears a path down
 * takes paths_mutex, so that whoever holds it may wait for a path's worker.
 *
 * RCU: the path set, and everything a CONNECTED path owns. A post to a queue,
 * of a send or of a receive, happens inside an RCU read section which has seen
 * the path CONNECTED or CONNECTING, or by the worker itself. The worker waits for a grace
 * period after it left CONNECTED, so no post comes behind its drain.
 *
 * Invariants
 * ==========
 *
 * I1 A permit belongs to its caller from get to put and its slots serve one
 *    request at a time. Asserted in rtrs_clt_init_req().
 * I2 Buffers belong to the HCA from posting until the answer and the send's
 *    completion and, if one was posted, the invalidation; or until the queue
 *    pair is drained, or gone. Asserted in rtrs_clt_req_finish() and in
 *    rtrs_clt_free_slots().
 * I3 conf_fn runs once for an accepted request, never for a refused one.
 *    Asserted in rtrs_clt_req_finish().
 * I4 A path shown by a published set has its memory, it is freed a grace
 *    period later. Asserted in the release of the path's kobject.
 * I5 Nothing is queued for a path that is DEAD. Asserted in
 *    rtrs_clt_path_kick().
 * I6 No post fails for lack of room: a chain reserves its send queue entries
 *    before it is built. Asserted in rtrs_clt_post_req().
 * I7 Link events alternate, come from process context without a lock, and
 *    none comes before open has succeeded. Asserted in the event work.
 * I8 What rtrs_clt_query() promised, every path keeps: others are refused by
 *    rtrs_clt_sess_accept_limits().
 * I9 Nothing waits for the peer without a bound: rtrs_clt_path.deadline.
 *
 * Assertions speak of our own code; what a peer or a user sends never warns.
 */
#ifndef RTRS_CLT_H
#define RTRS_CLT_H

#include <linux/device.h>
#include <linux/irq_poll.h>
#include <linux/sbitmap.h>
#include <linux/uio.h>

#include "rtrs-pri.h"

/*
 * One more than the data segments that a write may have and still travel as
 * one work request without registration: 64 KiB of scattered pages. To rxe the
 * work queue entry is the same from 4 to 19 of them.
 */
#define RTRS_CLT_SEND_SGE 17

/* The same on the service connection. With one more an entry of rxe is twice as large. */
#define RTRS_CLT_SERVICE_SGE 3

/* A request takes up to this many send queue entries: register, write, invalidate */
#define RTRS_CLT_WR_PER_REQ 3

/* Send queue entries kept for heartbeats, their answers, probes and the drain marker */
#define RTRS_CLT_SQ_SLACK 16

/* Receives are posted in chains of this many, so as many more are posted */
#define RTRS_CLT_RECV_BATCH 16

/* Receives of the info response; each heartbeat of a server that is slow takes one */
#define RTRS_CLT_INFO_RECVS 14

/*
 * Requests on the service connection. The rest of the server's 512 receives is for
 * heartbeats, the rest of ours is in rtrs_clt_queue_sizes(). If they are
 * registered the send queue takes fewer, 335.
 */
#define RTRS_CLT_ADMIN_MAX 464

/* Connections of a path that are brought up at the same time, after cid 0 */
#define RTRS_CLT_CONNECT_PARALLEL 8

/* Upper bound of the segments of a request, and the page size of registration */
#define RTRS_MAX_SEGMENTS 128
#define RTRS_CLT_MR_PAGE_SIZE 4096

/* Room for "gid:<39>@gid:<39>" */
#define RTRS_CLT_PATH_NAME 96

enum rtrs_clt_state {
	RTRS_CLT_CONNECTING,
	RTRS_CLT_CONNECTING_ERR,
	RTRS_CLT_RECONNECTING,
	RTRS_CLT_CONNECTED,
	RTRS_CLT_CLOSING,
	RTRS_CLT_CLOSED,
	RTRS_CLT_DEAD,
	RTRS_CLT_STATE_NR
};

enum rtrs_mp_policy {
	MP_POLICY_RR,
	MP_POLICY_MIN_INFLIGHT,
	MP_POLICY_MIN_LATENCY,
	MP_POLICY_NR
};

struct path_it;
struct rtrs_clt_path;

/**
 * struct rtrs_mp_policy_row - one multipath policy
 * @name:	long name, as read from sysfs
 * @abbr:	two letters, as accepted by sysfs
 * @next_path:	picks the next path of an iteration, NULL at its end
 */
struct rtrs_mp_policy_row {
	const char *name;
	const char *abbr;
	struct rtrs_clt_path *(*next_path)(struct path_it *it);
};

extern const struct rtrs_mp_policy_row rtrs_mp_policies[MP_POLICY_NR];

/**
 * struct rtrs_permit - the right to use one chunk of the server
 * @con_type:	connection asked for
 * @cpu_id:	CPU of the caller of rtrs_clt_get_permit()
 * @mem_id:	chunk number, 0 to queue depth - 1
 * @held:	given out and not put back yet
 */
struct rtrs_permit {
	enum rtrs_clt_con_type con_type;
	unsigned int cpu_id;
	unsigned int mem_id;
	bool held;
};

/* Low byte of rtrs_clt_io_req.state; above it stands the cid while POSTED */
enum rtrs_clt_req_state {
	RTRS_REQ_FREE,
	RTRS_REQ_PREPARING,
	RTRS_REQ_POSTED,
	RTRS_REQ_ANSWERED,
};

#define RTRS_REQ_STATE(state, cid) ((state) | (cid) << 8)
#define RTRS_REQ_STATE_MASK 0xff

enum rtrs_clt_req_flags {
	/* counted in the connection's inflight */
	RTRS_REQ_COUNTED = BIT(0),
	/* the data are DMA mapped */
	RTRS_REQ_MAPPED = BIT(1),
	/* the MR is, or may be, valid at the HCA */
	RTRS_REQ_REGISTERED = BIT(2),
	/* counted in the path's admin_inflight */
	RTRS_REQ_ADMIN = BIT(3),
};

/**
 * struct rtrs_clt_io_req - slot of one request on one path
 * @state:	see the diagram above; compared and exchanged as a whole, so an
 *		answer on another connection never matches
 * @holds:	who still needs the buffers
 * @con:	connection that carries the request
 * @permit:	permit of the caller
 * @iu:		header buffer: user message, then the protocol header
 * @mr:		NULL after it had to be given up with its key valid
 * @sg:		the caller's data
 * @sg_cnt:	entries of @sg as given by the caller
 * @nents:	entries of @sg after DMA mapping
 * @data_len:	bytes of data
 * @usr_len:	bytes of the user message
 * @dir:	direction of the data at the HCA
 * @flags:	enum rtrs_clt_req_flags, touched by the owner of the slot only
 * @late:	answered, but something still holds it: counted in con->late
 * @nr_wr:	send queue entries reserved
 * @errno:	the server's answer, 0 or negative
 * @posted:	time of posting, jiffies
 * @start:	time of submission, for the trace
 * @priv:	caller's argument of @conf
 * @conf:	confirmation
 * @send_cqe:	completion of the RDMA write
 * @reg_cqe:	completion of REG_MR, seen in case of error only
 * @inv_cqe:	completion of LOCAL_INV
 */
struct rtrs_clt_io_req {
	atomic_t state;
	atomic_t holds;
	struct rtrs_clt_con *con;
	struct rtrs_permit *permit;
	struct rtrs_iu *iu;
	struct ib_mr *mr;
	struct scatterlist *sg;
	unsigned int sg_cnt;
	unsigned int nents;
	size_t data_len;
	size_t usr_len;
	enum dma_data_direction dir;
	unsigned int flags;
	bool late;
	unsigned int nr_wr;
	int errno;
	unsigned long posted;
	ktime_t start;
	void *priv;
	void (*conf)(void *priv, int errno);
	struct ib_cqe send_cqe;
	struct ib_cqe reg_cqe;
	struct ib_cqe inv_cqe;
};

/*
 * Bits of rtrs_clt_con.flags. The first four are written under rtrs_clt_con.lock
 * or by the path's worker when no CM handler can run.
 */
enum rtrs_clt_con_flags {
	/* the CM id exists */
	RTRS_CON_ALLOCATED,
	/* the address is resolved, the queue pair exists */
	RTRS_CON_RESOLVED,
	/* the server has accepted the connection */
	RTRS_CON_CONNECTED,
	/* teardown has begun, CM events mean nothing any more */
	RTRS_CON_DEAD,
	/* somebody polls the DIRECT completion queue */
	RTRS_CON_POLLING,
	/* a heartbeat answer is under way */
	RTRS_CON_HB_ACK,
	/* a probe is under way */
	RTRS_CON_PROBE,
	/* the HCA has not given back everything, and nobody polls for it any more */
	RTRS_CON_UNDRAINED,
};

/**
 * struct rtrs_clt_con - one connection of a path
 * @c:		part known to rtrs-core; c.sq_wr_avail counts the free send
 *		queue entries, c.send_cq is ours
 * @old_id:	CM id of its former life, whose peer is to be told yet (worker only)
 * @quiet:	teardown does not tell the peer (worker only)
 * @cpu:	CPU that the connection stands for
 * @max_sge:	elements of one send, of which one is the header
 * @flags:	enum rtrs_clt_con_flags
 * @lock:	serialises CM events, queue creation and teardown
 * @inflight:	requests counted by the min-inflight policy
 * @late:	answered requests that wait for a completion on send_cq
 * @iop:	polls send_cq when it was armed
 * @drain_cqe:	marker behind the last send
 * @drained:	the marker came out
 * @recv_cqe:	completion of receives without a buffer
 * @msg_cqe:	completions of the receives of @msgs, by index
 * @msgs:	8-byte buffers of the rkey messages, NULL if the server sends none
 * @msgs_dma:	their one DMA mapping
 * @nr_msgs:	number of elements of @msgs
 * @free_msgs:	indices of buffers to be posted again
 * @nr_free:	receives to be posted again, below RTRS_CLT_RECV_BATCH
 */
struct rtrs_clt_con {
	struct rtrs_con c;
	struct rdma_cm_id *old_id;
	bool quiet;
	unsigned int cpu;
	u32 max_sge;
	unsigned long flags;
	struct mutex lock;	/* CM events, queue creation, teardown */
	atomic_t inflight;
	atomic_t late;
	struct irq_poll iop;
	struct ib_cqe drain_cqe;
	struct completion drained;

	/* below: touched by the handler of the receive CQ, one at a time */
	struct ib_cqe recv_cqe;
	struct ib_cqe *msg_cqe;
	struct rtrs_msg_rkey_rsp *msgs;
	dma_addr_t msgs_dma;
	u32 nr_msgs;
	u32 nr_free;
	u32 free_msgs[RTRS_CLT_RECV_BATCH];
};

/**
 * struct rtrs_clt_stats_pcpu - counters of one CPU
 * @migr_from:	completions of this CPU's connection handled elsewhere
 * @migr_to:	completions handled here for another CPU's connection
 * @cnt:	requests by direction, READ and WRITE
 * @bytes:	bytes by direction, data and user message
 * @failover:	requests taken over from another path
 */
struct rtrs_clt_stats_pcpu {
	atomic_t migr_from;
	atomic_t migr_to;
	atomic64_t cnt[2];
	atomic64_t bytes[2];
	atomic64_t failover;
};

/**
 * struct rtrs_clt_stats - statistics of a path
 * @kobj_stats:		the stats folder; holds a reference to the path
 * @pcpu:		per-CPU counters
 * @reconnects_ok:	successful connects less the first one, starts at -1
 * @reconnects_failed:	failed reconnect attempts
 */
struct rtrs_clt_stats {
	struct kobject kobj_stats;
	struct rtrs_clt_stats_pcpu __percpu *pcpu;
	atomic_t reconnects_ok;
	atomic_t reconnects_failed;
};

/* Wishes to the path's worker, bits of rtrs_clt_path.wishes */
enum rtrs_clt_path_wish {
	/* connect at once, whatever the delay or the limit of attempts */
	RTRS_WISH_MANUAL,
	/* connect at once, the link has come back */
	RTRS_WISH_NOW,
	/* the session's heartbeat or request timeout has changed */
	RTRS_WISH_SETTINGS,
	/* close, and never reconnect: the path is being removed */
	RTRS_WISH_REMOVE,
};

/**
 * struct rtrs_clt_path - one pair of addresses of a session
 * @s:			part known to rtrs-core
 * @clt:		session
 * @state:		see the diagram; written under @lock
 * @hca:		the HCA of s.dev, for comparison: set before, cleared after
 * @prm:		what the server announced for this path
 * @rbufs:		the server's chunks, one per permit
 * @reqs:		request slots, one per permit
 * @ius:		header buffers of @reqs
 * @nr_slots:		number of elements of @rbufs, @reqs and @ius
 * @mr_pages:		pages that the MRs of @reqs have room for
 * @max_pages_per_mr:	pages, and so segments, that one request may have
 * @admin_inflight:	requests on the service connection
 * @lock:		protects what follows, and the kicking of the worker
 * @wait:		woken at each change of state and of progress
 * @work:		the worker
 * @kicked:		the worker shall look again before it waits
 * @wishes:		enum rtrs_clt_path_wish
 * @last_err:		errno of the last failure, 0 if there was none
 * @last_why:		static text of the last failure
 * @since:		time of the last change of state
 * @link_failed:	the path was lost by a failure, not because a user wanted so
 * @passes:		the failure may be over in moments
 * @results:		number of attempts that ended, to wait for the next
 * @result:		how the last one ended, 0 or negative errno
 * @closes:		number of times the path became CLOSED
 * @deadline:		in jiffies: end of the running attempt
 * @due:		in jiffies: begin of the next attempt
 * @give_up:		the server has become another one; stop reconnecting
 * @published:		a path set shows the path
 * @shown:		all files of the path are there
 * @watched:		the worker looks at the requests every now and then: set under
 *			@lock by who posts one, cleared by the worker
 * @undrained:		the HCA has not given back everything that was posted (worker only)
 * @torn_down:		the queues are gone (worker only)
 * @was_up:		counted in the session's paths_up (worker only)
 * @ever_up:		was CONNECTED at least once (worker only)
 * @flipped:		when the path went up or down last (worker only)
 * @retry:		the next attempt continues this one (worker only)
 * @retry_err:		why the try before in this attempt failed, 0 if there was none
 * @retry_why:		static text for it
 * @reconnect_attempts:	attempts since the path was up last (worker only)
 * @cons_up:		connections accepted in this attempt
 * @cid0_up:		the server has accepted cid 0 of the path
 * @first_conn:		cid 0 may create the session at the server
 * @info_rsp_len:	bytes received as info response, 0 before
 * @info_ius:		receive buffers of the info response
 * @nr_info_ius:	their number
 * @info_rsp:		the one that the response is in, NULL before
 * @info_req:		buffer of the info request
 * @hb_cqe:		completion of heartbeat messages
 * @hb_ack_cqe:		completion of heartbeat answers
 * @probe_cqe:		completion of probes
 * @hca_name:		HCA of the last establishment
 * @hca_port:		its port
 * @kobj:		path folder in sysfs; its release is the only free
 * @stats:		statistics
 */
struct rtrs_clt_path {
	struct rtrs_path s;
	struct rtrs_clt_sess *clt;
	enum rtrs_clt_state state;
	struct ib_device *hca;
	struct rtrs_conn_params prm;
	struct rtrs_rbuf *rbufs;
	struct rtrs_clt_io_req *reqs;
	struct rtrs_iu *ius;
	u32 nr_slots;
	u32 mr_pages;
	u32 max_pages_per_mr;
	atomic_t admin_inflight;

	spinlock_t lock;	/* state, wishes, errors, the worker's kicks */
	wait_queue_head_t wait;
	struct delayed_work work;
	bool kicked;
	unsigned long wishes;
	int last_err;
	const char *last_why;
	ktime_t since;
	bool link_failed;
	bool passes;
	unsigned int results;
	int result;
	unsigned int closes;
	unsigned long deadline;
	unsigned long due;
	bool give_up;

	bool published;
	bool shown;
	bool watched;
	bool undrained;
	bool torn_down;
	bool was_up;
	bool ever_up;
	ktime_t flipped;
	bool retry;
	int retry_err;
	const char *retry_why;
	unsigned int reconnect_attempts;

	atomic_t cons_up;
	bool cid0_up;
	bool first_conn;
	u32 info_rsp_len;
	struct rtrs_iu *info_ius;
	u32 nr_info_ius;
	struct rtrs_iu *info_rsp;
	struct rtrs_iu *info_req;
	struct ib_cqe hb_cqe;
	struct ib_cqe hb_ack_cqe;
	struct ib_cqe probe_cqe;

	char hca_name[IB_DEVICE_NAME_MAX];
	u32 hca_port;
	struct kobject kobj;
	struct rtrs_clt_stats stats;
};

/**
 * struct rtrs_clt_path_set - the paths of a session; immutable once published
 * @rcu:	for freeing
 * @nr:		number of paths
 * @path:	in order of addition
 */
struct rtrs_clt_path_set {
	struct rcu_head rcu;
	unsigned int nr;
	struct rtrs_clt_path *path[] __counted_by(nr);
};

/**
 * struct rtrs_clt_sess - a session
 * @dev:		device of class rtrs-client; its release is the only free
 * @sessname:		name
 * @paths_uuid:		identifies the session to the server
 * @entry:		in the list of sessions
 * @paths_mutex:	held while @paths is replaced
 * @paths:		the current path set
 * @rr_pos:		per CPU: place of the path used last, round robin
 * @policy:		enum rtrs_mp_policy
 * @opened:		rtrs_clt_open() has succeeded: sysfs may change paths
 * @closing:		rtrs_clt_close() has begun: nothing starts any more
 * @kobj_paths:		the paths folder
 * @dev_pd:		pool of HCAs and their PDs; not shared with other sessions
 * @register_always:	module parameter at the time of open
 * @port:		destination port of paths added by sysfs
 * @nr_poll_queues:	connections with a polled CQ, of each path
 * @reconnect_delay_sec:	seconds between attempts
 * @max_reconnect_attempts:	-1 is for ever
 * @hb_interval_ms:	heartbeat interval
 * @hb_missed_max:	heartbeats missed until a path is given up
 * @request_timeout_sec:	seconds that a request may take, 0 for any
 * @lock:		protects the limits and the counting of paths that are up
 * @queue_depth:	permits; 0 until the first path was accepted
 * @max_io_size:	bytes of data in a request
 * @max_hdr_size:	bytes of user message and header
 * @max_segments:	segments of a request
 * @promised:		the limits stand, the caller knows them
 * @paths_up:		paths that are up
 * @ev_pending:		link events not yet delivered, they alternate
 * @ev_up:		what the last delivered event said
 * @ev_work:		delivers them
 * @ops:		the caller's link event callback
 * @permits_map:	permits given out
 * @permits_wait:	waiters for a permit, and for all of them
 * @permits:		array of permits, each followed by @pdu_sz bytes
 * @pdu_sz:		bytes for the caller behind each permit
 */
struct rtrs_clt_sess {
	struct device dev;
	char sessname[NAME_MAX];
	uuid_t paths_uuid;
	struct list_head entry;

	struct mutex paths_mutex;	/* replacing the path set */
	struct rtrs_clt_path_set __rcu *paths;
	int __percpu *rr_pos;
	enum rtrs_mp_policy policy;
	bool opened;
	bool closing;
	struct kobject *kobj_paths;
	struct rtrs_rdma_dev_pd dev_pd;
	bool register_always;

	u16 port;
	u32 nr_poll_queues;
	unsigned int reconnect_delay_sec;
	int max_reconnect_attempts;
	unsigned int hb_interval_ms;
	unsigned int hb_missed_max;
	unsigned int request_timeout_sec;

	spinlock_t lock;	/* limits, link events */
	u32 queue_depth;
	u32 max_io_size;
	u32 max_hdr_size;
	u32 max_segments;
	bool promised;
	unsigned int paths_up;
	unsigned int ev_pending;
	bool ev_up;
	struct work_struct ev_work;
	struct rtrs_clt_ops ops;

	struct sbitmap permits_map;
	wait_queue_head_t permits_wait;
	void *permits;
	size_t pdu_sz;
};

/**
 * struct path_it - iteration over the paths of a session for one request
 * @clt:	session
 * @set:	path set, valid inside the RCU read section of the iteration
 * @next_path:	the policy's function, read once
 * @i:		paths looked at so far
 * @pos:	round robin: place of the path looked at last
 * @tried:	places of the set handed out so far
 */
struct path_it {
	struct rtrs_clt_sess *clt;
	const struct rtrs_clt_path_set *set;
	struct rtrs_clt_path *(*next_path)(struct path_it *it);
	unsigned int i;
	unsigned int pos;
	DECLARE_BITMAP(tried, MAX_PATHS_NUM);
};

extern struct workqueue_struct *rtrs_clt_wq;
extern struct workqueue_struct *rtrs_clt_ev_wq;
extern struct mutex rtrs_clt_sess_mutex;
extern struct list_head rtrs_clt_sess_list;

static inline struct rtrs_clt_con *to_clt_con(struct rtrs_con *c)
{
	return container_of(c, struct rtrs_clt_con, c);
}

static inline struct rtrs_clt_path *to_clt_path(struct rtrs_path *s)
{
	return container_of(s, struct rtrs_clt_path, s);
}

static inline struct rtrs_clt_path *con_to_path(const struct rtrs_clt_con *con)
{
	return to_clt_path(con->c.path);
}

static inline enum rtrs_clt_state rtrs_clt_path_state(const struct rtrs_clt_path *path)
{
	return READ_ONCE(path->state);
}

static inline bool rtrs_clt_path_is_connected(const struct rtrs_clt_path *path)
{
	/* pairs with the release in rtrs_clt_change_state(): rbufs, reqs, cons */
	return smp_load_acquire(&path->state) == RTRS_CLT_CONNECTED;
}

/* Bytes from one permit to the next */
static inline size_t rtrs_clt_permit_stride(const struct rtrs_clt_sess *clt)
{
	return ALIGN(sizeof(struct rtrs_permit) + clt->pdu_sz, sizeof(u64));
}

static inline struct rtrs_permit *rtrs_clt_nth_permit(const struct rtrs_clt_sess *clt,
						      unsigned int n)
{
	return clt->permits + n * rtrs_clt_permit_stride(clt);
}

/* rtrs-clt.c */

bool rtrs_clt_change_state(struct rtrs_clt_path *path, enum rtrs_clt_state new_state);
struct rtrs_clt_con *rtrs_permit_to_clt_con(struct rtrs_clt_path *path,
					    const struct rtrs_permit *permit);
void rtrs_clt_path_fail_reqs(struct rtrs_clt_path *path);
int rtrs_clt_path_connect(struct rtrs_clt_path *path);
int rtrs_clt_sess_accept_limits(struct rtrs_clt_path *path);

/* rtrs-clt-path.c */

/* What a step of the worker wants next: jiffies to wait, or one of these */
#define STEP_AGAIN 0L
#define STEP_IDLE (-1L)

unsigned long rtrs_clt_connect_deadline(void);
const char *rtrs_clt_state_str(enum rtrs_clt_state state);
const char *rtrs_clt_path_name(const struct rtrs_clt_path *path, char *buf, size_t len);
struct rtrs_clt_path *rtrs_clt_path_alloc(struct rtrs_clt_sess *clt,
					  const struct rtrs_addr *addr);
void rtrs_clt_path_put(struct rtrs_clt_path *path);
void rtrs_clt_path_free(struct rtrs_clt_path *path);
void rtrs_clt_path_start(struct rtrs_clt_path *path, unsigned long deadline);
int rtrs_clt_path_set_connected(struct rtrs_clt_path *path);
int rtrs_clt_path_wait_result(struct rtrs_clt_path *path, unsigned int seen);
void rtrs_clt_path_progress(struct rtrs_clt_path *path);
void rtrs_clt_path_fail(struct rtrs_clt_path *path, int err, const char *why, bool passes);

/* The same for what does not pass by itself */
static inline void rtrs_clt_path_error(struct rtrs_clt_path *path, int err, const char *why)
{
	rtrs_clt_path_fail(path, err, why, false);
}

void rtrs_clt_path_close_async(struct rtrs_clt_path *path, int err, const char *why);
void rtrs_clt_path_close(struct rtrs_clt_path *path, int err, const char *why);
void rtrs_clt_path_try_now(struct rtrs_clt_path *path);
int rtrs_clt_path_reconnect(struct rtrs_clt_path *path);
void rtrs_clt_path_disconnect(struct rtrs_clt_path *path);
int rtrs_clt_path_remove(struct rtrs_clt_path *path);
int rtrs_clt_path_add(struct rtrs_clt_sess *clt, const struct rtrs_addr *addr);
void rtrs_clt_path_settings_changed(struct rtrs_clt_path *path);
void rtrs_clt_path_watch(struct rtrs_clt_path *path);

/* rtrs-clt-set.c */

int rtrs_clt_path_publish(struct rtrs_clt_path *path);
void rtrs_clt_path_unpublish(struct rtrs_clt_path *path);
bool rtrs_clt_path_same_addr(const struct rtrs_clt_path *path, const struct rtrs_addr *addr);
bool rtrs_clt_path_is_twin(struct rtrs_clt_path *path, struct sockaddr_storage *src);

/* rtrs-clt-event.c */

void rtrs_clt_init_events(struct rtrs_clt_sess *clt);
void rtrs_clt_start_events(struct rtrs_clt_sess *clt);
void rtrs_clt_count_up(struct rtrs_clt_path *path);
void rtrs_clt_path_up(struct rtrs_clt_path *path);
void rtrs_clt_path_down(struct rtrs_clt_path *path);

/* rtrs-clt-dev.c */

int rtrs_clt_use_device(struct rtrs_clt_path *path, struct rdma_cm_id *id);
void rtrs_clt_path_release_device(struct rtrs_clt_path *path);
void rtrs_clt_sess_init_dev_pd(struct rtrs_clt_sess *clt);
int rtrs_clt_ib_client_register(void);
void rtrs_clt_ib_client_unregister(void);

/* rtrs-clt-con.c */

struct rtrs_clt_con *rtrs_clt_con_alloc(struct rtrs_clt_path *path, unsigned int cid);
void rtrs_clt_con_free(struct rtrs_clt_con *con);
void rtrs_clt_con_free_msgs(struct rtrs_clt_con *con);
int rtrs_clt_connect_cons(struct rtrs_clt_path *path);
int rtrs_clt_exchange_info(struct rtrs_clt_path *path);
void rtrs_clt_con_stop(struct rtrs_clt_con *con);
void rtrs_clt_con_drain(struct rtrs_clt_con *con);
void rtrs_clt_con_destroy_queues(struct rtrs_clt_con *con);
void rtrs_clt_con_tell_peer(struct rtrs_clt_con *con);
void rtrs_clt_con_destroy_id(struct rtrs_clt_con *con);

/* rtrs-clt-io.c */

int rtrs_clt_alloc_reqs(struct rtrs_clt_path *path);
void rtrs_clt_free_reqs(struct rtrs_clt_path *path);
int rtrs_clt_io_submit(struct rtrs_clt_io_req *req);
void rtrs_clt_req_release(struct rtrs_clt_io_req *req);
void rtrs_clt_req_finish(struct rtrs_clt_io_req *req, int err);
bool rtrs_clt_recv_failed(struct rtrs_clt_con *con, const struct ib_wc *wc);
void rtrs_clt_recv_wc(struct rtrs_clt_con *con, const struct ib_wc *wc,
		      const struct rtrs_msg_rkey_rsp *msg);
void rtrs_clt_recv_done(struct ib_cq *cq, struct ib_wc *wc);
void rtrs_clt_msg_done(struct ib_cq *cq, struct ib_wc *wc);
int rtrs_clt_post_recvs(struct rtrs_clt_con *con);
u32 rtrs_clt_nr_recvs(const struct rtrs_clt_con *con);
int rtrs_clt_reap_sends(struct rtrs_clt_con *con, int budget);
void rtrs_clt_arm_sends(struct rtrs_clt_con *con);
void rtrs_clt_send_cq_event(struct ib_cq *cq, void *con);
int rtrs_clt_send_cq_poll(struct irq_poll *iop, int budget);

/*
 * Has a send failed? Then the path does. A failed completion never lets go of a
 * request: what the HCA still does with the buffers is known only after the drain,
 * so teardown ends the request.
 */
static inline bool rtrs_clt_wc_failed(struct rtrs_clt_con *con, const struct ib_wc *wc,
				      const char *what)
{
	if (likely(wc->status == IB_WC_SUCCESS))
		return false;
	if (wc->status != IB_WC_WR_FLUSH_ERR)
		rtrs_clt_path_error(con_to_path(con), -EIO, what);
	return true;
}

/* rtrs-clt-hb.c */

void rtrs_clt_init_hb(struct rtrs_clt_path *path);
void rtrs_clt_path_start_hb(struct rtrs_clt_path *path);
long rtrs_clt_watch_requests(struct rtrs_clt_path *path);

/* rtrs-clt-stats.c */

int rtrs_clt_stats_init(struct rtrs_clt_stats *stats);
void rtrs_clt_stats_free(struct rtrs_clt_stats *stats);
void rtrs_clt_stats_request(struct rtrs_clt_path *path, int dir, size_t bytes);
void rtrs_clt_stats_failover(struct rtrs_clt_path *path);
void rtrs_clt_stats_completion(struct rtrs_clt_con *con);
unsigned int rtrs_clt_stats_inflight(const struct rtrs_clt_path *path);
extern const struct attribute_group rtrs_clt_stats_group;

/* rtrs-clt-sysfs.c */

extern const struct attribute_group rtrs_clt_sess_group;
extern const struct kobj_type rtrs_clt_path_ktype;
extern const struct kobj_type rtrs_clt_stats_ktype;
int rtrs_clt_create_path_files(struct rtrs_clt_path *path);
void rtrs_clt_destroy_path_files(struct rtrs_clt_path *path);

#endif /* RTRS_CLT_H */
