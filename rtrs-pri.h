/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What rtrs-core, rtrs-client and rtrs-server share
 *
 * Client and server embed &struct rtrs_path and &struct rtrs_con as first
 * member of their own objects and allocate them zeroed; what is zero or NULL
 * here means the plain behaviour. The functions are documented in rtrs.c.
 */
#ifndef RTRS_PRI_H
#define RTRS_PRI_H

#include <linux/atomic.h>
#include <linux/dma-direction.h>
#include <linux/gfp.h>
#include <linux/kobject.h>
#include <linux/kref.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <linux/uuid.h>
#include <linux/workqueue.h>
#include <rdma/ib.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "rtrs.h"
#include "rtrs-proto.h"

struct rtrs_ib_dev;

/**
 * struct rtrs_rdma_dev_pd_ops - what the owner of a pool does for each device
 * @init: optional; the entry has its PD but nobody else sees it yet. May
 *	sleep, must not use the pool. 0 or a negative errno, which then reaches
 *	whoever asked for the device; nothing may be left behind in that case
 * @deinit: optional; undoes @init. Nobody else sees the entry any more
 */
struct rtrs_rdma_dev_pd_ops {
	int	(*init)(struct rtrs_ib_dev *dev);
	void	(*deinit)(struct rtrs_ib_dev *dev);
};

/**
 * struct rtrs_rdma_dev_pd - a pool of devices in use, one PD for each
 * @mutex: protects @list and the step of each reference count to zero
 * @list: entries, all of them with a reference count above zero
 * @pd_flags: for each PD
 * @ops: set by the owner before rtrs_rdma_dev_pd_init(), or NULL
 */
struct rtrs_rdma_dev_pd {
	struct mutex				mutex;	/* list, references reaching 0 */
	struct list_head			list;
	enum ib_pd_flags			pd_flags;
	const struct rtrs_rdma_dev_pd_ops	*ops;
};

/**
 * struct rtrs_ib_dev - a device in a pool
 * @ib_dev: the device
 * @ib_pd: the pool's protection domain on it
 * @ref: users; the last one to go frees the entry
 * @entry: in the list of @pool
 * @pool: where it belongs
 * @event_handler: for the owner of the pool, not used by rtrs-core
 */
struct rtrs_ib_dev {
	struct ib_device		*ib_dev;
	struct ib_pd			*ib_pd;
	struct kref			ref;
	struct list_head		entry;
	struct rtrs_rdma_dev_pd		*pool;
	struct ib_event_handler		event_handler;
};

/**
 * struct rtrs_con - one connection of a path
 * @path: its path
 * @qp: queue pair, NULL before rtrs_cq_qp_create() and after
 *	rtrs_cq_qp_destroy(). Its qp_context is this structure
 * @cq: completion queue of receives, and of sends unless @send_cq is set; NULL
 *	likewise
 * @cm_id: RDMA CM id, owned by client or server
 * @cid: number in the path; from rtrs_path.irq_con_num on @cq is private to
 *	this connection, below it is shared
 * @nr_cqe: entries of @cq that this connection has claimed
 * @wr_cnt: requests, answers and heartbeats posted, used modulo
 *	rtrs_path.signal_interval
 * @sq_wr_avail: free entries of the send queue as its owner counts them
 * @send_cq: separate completion queue of sends. Set before
 *	rtrs_cq_qp_create() by whoever wants one, and theirs to free after
 *	rtrs_cq_qp_destroy(); NULL: sends complete on @cq
 * @max_send_wr: entries of the send queue as granted by the device; may exceed
 *	what was asked for. Valid while @qp is there, like the two below
 * @max_recv_wr: entries of the receive queue as granted
 * @max_send_sge: elements of one send as granted
 */
struct rtrs_con {
	struct rtrs_path	*path;
	struct ib_qp		*qp;
	struct ib_cq		*cq;
	struct rdma_cm_id	*cm_id;
	unsigned int		cid;
	int			nr_cqe;
	atomic_t		wr_cnt;
	atomic_t		sq_wr_avail;
	struct ib_cq		*send_cq;
	u32			max_send_wr;
	u32			max_recv_wr;
	u32			max_send_sge;
};

/**
 * struct rtrs_path - one pair of addresses in a session
 * @entry: for its owner
 * @dst_addr: address of the peer
 * @src_addr: own address
 * @sessname: name of the session, for messages
 * @uuid: who the path is
 * @con: array of @con_num connections
 * @con_num: number of connections
 * @irq_con_num: the connections below this number complete by interrupt on
 *	shared completion queues, the others are polled
 * @recon_cnt: attempts to bring the path up
 * @signal_interval: each so-manieth send of a connection is signalled; not 0
 *	from the first heartbeat on
 * @dev: the device the path lies on
 * @dev_ref: for its owner
 * @hb_cqe: completion of heartbeats, and of their acknowledgments unless
 *	@hb_ack_cqe is set
 * @hb_err_handler: called with connection 0 when the peer is silent, or a
 *	heartbeat cannot be posted
 * @hb_wq: runs @hb_dwork
 * @hb_dwork: the tick
 * @hb_interval_ms: time between ticks, milliseconds. This and the two below
 *	change at any time: READ_ONCE(), WRITE_ONCE()
 * @hb_missed_cnt: silent ticks in a row; whoever hears from the peer writes 0
 * @hb_missed_max: the tick that finds more than this is the last
 * @hb_last_sent: when the last heartbeat was posted
 * @hb_cur_latency: last measured time between heartbeat and acknowledgment;
 *	for its owner, not used by rtrs-core
 * @hb_ack_cqe: completion of acknowledgments, or NULL. Set, if at all, before
 *	rtrs_start_hb()
 * @hb_outstanding: 1 from just after the update of @hb_last_sent and before
 *	the heartbeat is posted. Who takes it to 0 with atomic_xchg() has the
 *	acknowledgment that belongs to @hb_last_sent; all others are bogus
 */
struct rtrs_path {
	struct list_head	entry;
	struct sockaddr_storage	dst_addr;
	struct sockaddr_storage	src_addr;
	char			sessname[NAME_MAX];
	uuid_t			uuid;
	struct rtrs_con		**con;
	unsigned int		con_num;
	unsigned int		irq_con_num;
	unsigned int		recon_cnt;
	unsigned int		signal_interval;
	struct rtrs_ib_dev	*dev;
	int			dev_ref;
	struct ib_cqe		*hb_cqe;
	void			(*hb_err_handler)(struct rtrs_con *con);
	struct workqueue_struct	*hb_wq;
	struct delayed_work	hb_dwork;
	unsigned int		hb_interval_ms;
	unsigned int		hb_missed_cnt;
	unsigned int		hb_missed_max;
	ktime_t			hb_last_sent;
	ktime_t			hb_cur_latency;
	struct ib_cqe		*hb_ack_cqe;
	atomic_t		hb_outstanding;
};

/**
 * struct rtrs_iu - a buffer that the device can reach
 * @cqe: completion of whatever is posted with it
 * @dma_addr: address of @buf for the device
 * @buf: the memory
 * @size: its length, bytes
 * @direction: how it is mapped
 */
struct rtrs_iu {
	struct ib_cqe		cqe;
	dma_addr_t		dma_addr;
	void			*buf;
	size_t			size;
	enum dma_data_direction	direction;
};

/*
 * Buffers and work requests
 */

struct rtrs_iu *rtrs_iu_alloc(u32 queue_num, size_t size, gfp_t gfp, struct ib_device *dev,
			      enum dma_data_direction dir,
			      void (*done)(struct ib_cq *cq, struct ib_wc *wc));

void rtrs_iu_free(struct rtrs_iu *iu, struct ib_device *dev, u32 queue_num);

int rtrs_iu_post_recv(struct rtrs_con *con, struct rtrs_iu *iu);

int rtrs_iu_post_send(struct rtrs_con *con, struct rtrs_iu *iu, size_t size,
		      struct ib_send_wr *head);

int rtrs_iu_post_rdma_write_imm(struct rtrs_con *con, struct rtrs_iu *iu, struct ib_sge *sge,
				unsigned int num_sge, u32 rkey, u64 rdma_addr, u32 imm_data,
				enum ib_send_flags flags, struct ib_send_wr *head,
				struct ib_send_wr *tail);

int rtrs_post_recv_empty(struct rtrs_con *con, struct ib_cqe *cqe);

/*
 * Queues
 */

int rtrs_cq_qp_create(struct rtrs_path *path, struct rtrs_con *con, u32 max_send_sge,
		      int cq_vector, int nr_cqe, u32 max_send_wr, u32 max_recv_wr,
		      enum ib_poll_context poll_ctx);

void rtrs_cq_qp_destroy(struct rtrs_con *con);

/*
 * Heartbeat
 */

void rtrs_init_hb(struct rtrs_path *path, struct ib_cqe *cqe, unsigned int interval_ms,
		  unsigned int missed_max, void (*err_handler)(struct rtrs_con *con),
		  struct workqueue_struct *wq);

void rtrs_start_hb(struct rtrs_path *path);

void rtrs_stop_hb(struct rtrs_path *path);

void rtrs_send_hb_ack(struct rtrs_path *path);

/*
 * Devices
 */

void rtrs_rdma_dev_pd_init(enum ib_pd_flags pd_flags, struct rtrs_rdma_dev_pd *pool);

void rtrs_rdma_dev_pd_deinit(struct rtrs_rdma_dev_pd *pool);

struct rtrs_ib_dev *rtrs_ib_dev_get(struct ib_device *ib_dev, struct rtrs_rdma_dev_pd *pool);

struct rtrs_ib_dev *rtrs_ib_dev_find_or_add(struct ib_device *ib_dev,
					    struct rtrs_rdma_dev_pd *pool);

int rtrs_ib_dev_put(struct rtrs_ib_dev *dev);

/*
 * Attributes of statistics. The object of a given type is the one whose member
 * kobj_stats the attribute hangs on.
 */

/* Writing "1" or "0" calls reset(object, true or false): 0 or negative errno. */
#define STAT_STORE_FUNC(type, set_value, reset)					\
static ssize_t set_value##_store(struct kobject *kobj,				\
				 struct kobj_attribute *attr,			\
				 const char *buf, size_t count)			\
{										\
	bool on = sysfs_streq(buf, "1");					\
	int err;								\
										\
	if (!on && !sysfs_streq(buf, "0"))					\
		return -EINVAL;							\
	err = reset(container_of(kobj, type, kobj_stats), on);			\
	return err ? err : count;						\
}

/* Reading returns what print(object, page) does: a length or negative errno. */
#define STAT_SHOW_FUNC(type, get_value, print)					\
static ssize_t get_value##_show(struct kobject *kobj,				\
				struct kobj_attribute *attr, char *page)	\
{										\
	return print(container_of(kobj, type, kobj_stats), page);		\
}

/* The attribute @stat, mode 0644, as stat_attr; goes with a semicolon. */
#define STAT_ATTR(type, stat, print, reset)					\
STAT_STORE_FUNC(type, stat, reset)						\
STAT_SHOW_FUNC(type, stat, print)						\
static struct kobj_attribute stat##_attr = __ATTR_RW(stat)

#endif /* RTRS_PRI_H */
