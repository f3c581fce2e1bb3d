// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rtrs-core: what client and server have in common
 *
 * Buffers and the work requests made of them, the queues of a connection, the
 * heartbeat of a path, addresses, and the pool of devices. The wire protocol
 * itself is in rtrs-proto.h.
 */

#define pr_fmt(fmt) KBUILD_MODNAME " L" __stringify(__LINE__) ": " fmt

#include <linux/inet.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "rtrs-log.h"
#include "rtrs-pri.h"

MODULE_DESCRIPTION("RDMA Transport Core");
MODULE_LICENSE("GPL");

/*
 * Buffers and work requests
 */

/**
 * rtrs_iu_alloc() - allocate buffers and map them for a device
 * @queue_num: how many
 * @size: length of each, bytes
 * @gfp: how to allocate
 * @dev: device to map for
 * @dir: direction to map for
 * @done: completion handler of each
 *
 * The buffers are zeroed. Once the CPU writes into them, or reads what the
 * device has written, syncing is the caller's business.
 *
 * Context: as @gfp allows.
 * Return: array of @queue_num elements; NULL if one of them could not be had,
 * or if @queue_num or @size is 0.
 */
struct rtrs_iu *rtrs_iu_alloc(u32 queue_num, size_t size, gfp_t gfp, struct ib_device *dev,
			      enum dma_data_direction dir,
			      void (*done)(struct ib_cq *cq, struct ib_wc *wc))
{
	struct rtrs_iu *ius, *iu;
	u32 i;

	if (!queue_num || !size)
		return NULL;
	ius = kcalloc(queue_num, sizeof(*ius), gfp);
	if (!ius)
		return NULL;

	for (i = 0; i < queue_num; i++) {
		iu = &ius[i];
		iu->buf = kzalloc(size, gfp);
		if (!iu->buf)
			goto err;
		iu->dma_addr = ib_dma_map_single(dev, iu->buf, size, dir);
		if (ib_dma_mapping_error(dev, iu->dma_addr)) {
			kfree(iu->buf);
			goto err;
		}
		iu->cqe.done = done;
		iu->size = size;
		iu->direction = dir;
	}
	return ius;

err:
	rtrs_iu_free(ius, dev, i);
	return NULL;
}
EXPORT_SYMBOL_GPL(rtrs_iu_alloc);

/**
 * rtrs_iu_free() - unmap and free buffers
 * @iu: what rtrs_iu_alloc() has returned, or NULL
 * @dev: device they are mapped for
 * @queue_num: number of elements
 *
 * Nothing may be posted with them any more.
 *
 * Context: any but hard interrupt and NMI.
 */
void rtrs_iu_free(struct rtrs_iu *iu, struct ib_device *dev, u32 queue_num)
{
	u32 i;

	if (!iu)
		return;

	for (i = 0; i < queue_num; i++) {
		ib_dma_unmap_single(dev, iu[i].dma_addr, iu[i].size, iu[i].direction);
		kfree(iu[i].buf);
	}
	kfree(iu);
}
EXPORT_SYMBOL_GPL(rtrs_iu_free);

/**
 * rtrs_iu_post_recv() - post a receive into the whole of a buffer
 * @con: connection to receive on
 * @iu: the buffer, mapped for the device to write
 *
 * Context: any in which @con's device can be posted to.
 * Return: 0; -EINVAL if the buffer has no length; error of ib_post_recv().
 */
int rtrs_iu_post_recv(struct rtrs_con *con, struct rtrs_iu *iu)
{
	struct ib_sge sge = {
		.addr	= iu->dma_addr,
		.length	= iu->size,
		.lkey	= con->path->dev->ib_pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {
		.wr_cqe		= &iu->cqe,
		.sg_list	= &sge,
		.num_sge	= 1,
	};

	if (!iu->size) {
		rtrs_wrn_rl(con->path, "receive into a buffer without length refused\n");
		return -EINVAL;
	}
	return ib_post_recv(con->qp, &wr, NULL);
}
EXPORT_SYMBOL_GPL(rtrs_iu_post_recv);

/**
 * rtrs_post_recv_empty() - post a receive that takes no data
 * @con: connection to receive on
 * @cqe: its completion
 *
 * It is what an immediate without data needs.
 *
 * Context: any in which @con's device can be posted to.
 * Return: 0 or error of ib_post_recv().
 */
int rtrs_post_recv_empty(struct rtrs_con *con, struct ib_cqe *cqe)
{
	struct ib_recv_wr wr = {
		.wr_cqe = cqe,
	};

	return ib_post_recv(con->qp, &wr, NULL);
}
EXPORT_SYMBOL_GPL(rtrs_post_recv_empty);

/* Post @wr, which may have successors, behind the optional chain @head. */
static int rtrs_post_send(struct rtrs_con *con, struct ib_send_wr *head, struct ib_send_wr *wr)
{
	struct ib_send_wr *last = head;
	int err;

	if (!head)
		return ib_post_send(con->qp, wr, NULL);

	while (last->next)
		last = last->next;
	last->next = wr;
	err = ib_post_send(con->qp, head, NULL);
	/* @wr is on our stack, the chain is the caller's and may stay. */
	last->next = NULL;
	return err;
}

/**
 * rtrs_iu_post_send() - post a signalled send of the start of a buffer
 * @con: connection to send on
 * @iu: the buffer, synced for the device
 * @size: how much of it, bytes, not 0
 * @head: chain of work requests to post in front of it, or NULL
 *
 * Context: any in which @con's device can be posted to.
 * Return: 0; -EINVAL if there is nothing to send, or less in the buffer than
 * @size; error of ib_post_send(), which may have taken a part of the chain.
 */
int rtrs_iu_post_send(struct rtrs_con *con, struct rtrs_iu *iu, size_t size,
		      struct ib_send_wr *head)
{
	struct ib_sge sge = {
		.addr	= iu->dma_addr,
		.length	= size,
		.lkey	= con->path->dev->ib_pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe		= &iu->cqe,
		.sg_list	= &sge,
		.num_sge	= 1,
		.opcode		= IB_WR_SEND,
		.send_flags	= IB_SEND_SIGNALED,
	};

	if (!size || size > iu->size) {
		rtrs_wrn_rl(con->path, "send of %zu bytes from a buffer of %zu refused\n",
			    size, iu->size);
		return -EINVAL;
	}
	return rtrs_post_send(con, head, &wr);
}
EXPORT_SYMBOL_GPL(rtrs_iu_post_send);

/**
 * rtrs_iu_post_rdma_write_imm() - post an RDMA write with immediate
 * @con: connection to write on
 * @iu: gives the completion; its buffer counts only as far as @sge names it
 * @sge: what to write, no element of length 0
 * @num_sge: number of elements
 * @rkey: key for the memory of the peer
 * @rdma_addr: where to write there
 * @imm_data: the immediate, host order
 * @flags: send flags
 * @head: chain of work requests to post in front of it, or NULL
 * @tail: chain of work requests to post behind it, or NULL
 *
 * Context: any in which @con's device can be posted to.
 * Return: 0; -EINVAL if an element has no length; error of ib_post_send(),
 * which may have taken a part of the chain.
 */
int rtrs_iu_post_rdma_write_imm(struct rtrs_con *con, struct rtrs_iu *iu, struct ib_sge *sge,
				unsigned int num_sge, u32 rkey, u64 rdma_addr, u32 imm_data,
				enum ib_send_flags flags, struct ib_send_wr *head,
				struct ib_send_wr *tail)
{
	struct ib_rdma_wr rdma = {
		.wr = {
			.next		= tail,
			.wr_cqe		= &iu->cqe,
			.sg_list	= sge,
			.num_sge	= num_sge,
			.opcode		= IB_WR_RDMA_WRITE_WITH_IMM,
			.send_flags	= flags,
			.ex.imm_data	= cpu_to_be32(imm_data),
		},
		.remote_addr	= rdma_addr,
		.rkey		= rkey,
	};
	unsigned int i;

	/* To some devices length 0 means 2 GiB. */
	for (i = 0; i < num_sge; i++) {
		if (!sge[i].length) {
			pr_warn_once("write of an element without length refused\n");
			return -EINVAL;
		}
	}
	return rtrs_post_send(con, head, &rdma.wr);
}
EXPORT_SYMBOL_GPL(rtrs_iu_post_rdma_write_imm);

/*
 * Queues
 */

static void rtrs_qp_event(struct ib_event *event, void *context)
{
	struct rtrs_con *con = context;

	rtrs_info_rl(con->path, "connection %u: queue pair event: %s (%d)\n", con->cid,
		     ib_event_msg(event->event), event->event);
	/* Data has overtaken the CM's last message: it wants to know. */
	if (event->event == IB_EVENT_COMM_EST)
		rdma_notify(con->cm_id, IB_EVENT_COMM_EST);
}

static bool rtrs_con_has_own_cq(const struct rtrs_con *con)
{
	return con->cid >= con->path->irq_con_num;
}

static int rtrs_cq_create(struct rtrs_con *con, int cq_vector, int nr_cqe,
			  enum ib_poll_context poll_ctx)
{
	struct ib_device *dev = con->cm_id->device;
	struct ib_cq *cq;

	if (rtrs_con_has_own_cq(con))
		cq = ib_alloc_cq(dev, con, nr_cqe, cq_vector, poll_ctx);
	else
		cq = ib_cq_pool_get(dev, nr_cqe, cq_vector, poll_ctx);
	if (IS_ERR(cq)) {
		rtrs_err(con->path, "connection %u: no completion queue of %d entries: %pe\n",
			 con->cid, nr_cqe, cq);
		return PTR_ERR(cq);
	}
	con->cq = cq;
	con->nr_cqe = nr_cqe;
	return 0;
}

static void rtrs_cq_destroy(struct rtrs_con *con)
{
	if (!con->cq)
		return;

	if (rtrs_con_has_own_cq(con))
		ib_free_cq(con->cq);
	else
		ib_cq_pool_put(con->cq, con->nr_cqe);
	con->cq = NULL;
	con->nr_cqe = 0;
}

static int rtrs_qp_create(struct rtrs_con *con, u32 max_send_sge, u32 max_send_wr,
			  u32 max_recv_wr)
{
	struct ib_qp_init_attr attr = {
		.event_handler	= rtrs_qp_event,
		.qp_context	= con,
		.send_cq	= con->send_cq ?: con->cq,
		.recv_cq	= con->cq,
		.cap = {
			.max_send_wr	= max_send_wr,
			.max_recv_wr	= max_recv_wr,
			.max_send_sge	= max_send_sge,
			.max_recv_sge	= 1,
		},
		.sq_sig_type	= IB_SIGNAL_REQ_WR,
		.qp_type	= IB_QPT_RC,
	};
	int err;

	err = rdma_create_qp(con->cm_id, con->path->dev->ib_pd, &attr);
	if (err) {
		rtrs_err(con->path, "connection %u: no queue pair of %u sends (%u SGEs) and %u receives: %pe\n",
			 con->cid, max_send_wr, max_send_sge, max_recv_wr, ERR_PTR(err));
		return err;
	}
	con->qp = con->cm_id->qp;
	con->max_send_wr = attr.cap.max_send_wr;
	con->max_recv_wr = attr.cap.max_recv_wr;
	con->max_send_sge = attr.cap.max_send_sge;
	return 0;
}

static void rtrs_qp_destroy(struct rtrs_con *con)
{
	if (!con->qp)
		return;

	rdma_destroy_qp(con->cm_id);
	con->qp = NULL;
}

/**
 * rtrs_cq_qp_create() - create the queues of a connection
 * @path: its path; @path->dev is set
 * @con: the connection; @con->cm_id and @con->cid are set
 * @max_send_sge: elements of one send
 * @cq_vector: completion vector of the completion queue
 * @nr_cqe: entries to claim in the completion queue; receives only, if
 *	@con->send_cq is set
 * @max_send_wr: entries of the send queue
 * @max_recv_wr: entries of the receive queue
 * @poll_ctx: how completions are handled
 *
 * Below @path->irq_con_num the completion queue is a share of one of the
 * device's common queues, from there on it is the connection's own. Sets
 * @con->path, cq, nr_cqe, qp and the limits granted for the queue pair, whose
 * qp_context is @con.
 *
 * Context: process, sleeps.
 * Return: 0, or a negative errno, and then nothing is left.
 */
int rtrs_cq_qp_create(struct rtrs_path *path, struct rtrs_con *con, u32 max_send_sge,
		      int cq_vector, int nr_cqe, u32 max_send_wr, u32 max_recv_wr,
		      enum ib_poll_context poll_ctx)
{
	int err;

	con->path = path;
	err = rtrs_cq_create(con, cq_vector, nr_cqe, poll_ctx);
	if (err)
		return err;
	err = rtrs_qp_create(con, max_send_sge, max_send_wr, max_recv_wr);
	if (err)
		rtrs_cq_destroy(con);
	return err;
}
EXPORT_SYMBOL_GPL(rtrs_cq_qp_create);

/**
 * rtrs_cq_qp_destroy() - destroy the queues of a connection
 * @con: the connection; @con->path is set
 *
 * May be called any number of times, also without rtrs_cq_qp_create(). Leaves
 * @con->send_cq to its owner.
 *
 * Context: process, sleeps.
 */
void rtrs_cq_qp_destroy(struct rtrs_con *con)
{
	rtrs_qp_destroy(con);
	rtrs_cq_destroy(con);
}
EXPORT_SYMBOL_GPL(rtrs_cq_qp_destroy);

/*
 * Heartbeat
 *
 * A tick that has heard from the peer since the one before asks again; ticks
 * that have not only count. Whoever receives anything on the path starts the
 * count anew by writing 0, without a lock.
 */

static int rtrs_post_hb(struct rtrs_path *path, struct ib_cqe *cqe, enum rtrs_imm_type type)
{
	struct rtrs_con *con = path->con[0];
	struct ib_rdma_wr rdma = {
		.wr = {
			.wr_cqe		= cqe,
			.opcode		= IB_WR_RDMA_WRITE_WITH_IMM,
			.ex.imm_data	= cpu_to_be32(rtrs_to_imm(type, 0)),
		},
	};
	int err;

	atomic_dec_if_positive(&con->sq_wr_avail);
	if (atomic_inc_return(&con->wr_cnt) % path->signal_interval == 0)
		rdma.wr.send_flags = IB_SEND_SIGNALED;

	err = ib_post_send(con->qp, &rdma.wr, NULL);
	if (err) {
		rtrs_err_rl(path, "posting a heartbeat failed: %pe\n", ERR_PTR(err));
		path->hb_err_handler(con);
	}
	return err;
}

static void rtrs_queue_hb(struct rtrs_path *path)
{
	queue_delayed_work(path->hb_wq, &path->hb_dwork,
			   msecs_to_jiffies(READ_ONCE(path->hb_interval_ms)));
}

static void rtrs_hb_tick(struct work_struct *work)
{
	struct rtrs_path *path = container_of(to_delayed_work(work), struct rtrs_path, hb_dwork);
	unsigned int missed = READ_ONCE(path->hb_missed_cnt);

	if (missed > READ_ONCE(path->hb_missed_max)) {
		rtrs_err(path, "nothing heard from the peer for %u heartbeats\n", missed);
		path->hb_err_handler(path->con[0]);
		return;
	}

	/*
	 * Counted before posting, since the answer may be faster than we are,
	 * and only if the peer has not been heard in between: its 0 stands.
	 */
	cmpxchg(&path->hb_missed_cnt, missed, missed + 1);
	if (!missed) {
		WRITE_ONCE(path->hb_last_sent, ktime_get());
		/* Pairs with the atomic_xchg() of whoever gets the answer. */
		atomic_set_release(&path->hb_outstanding, 1);
		if (rtrs_post_hb(path, path->hb_cqe, RTRS_HB_MSG_IMM))
			return;
	}
	rtrs_queue_hb(path);
}

/**
 * rtrs_init_hb() - prepare the heartbeat of a path
 * @path: the path
 * @cqe: completion of the messages it posts
 * @interval_ms: time between ticks, milliseconds, not 0
 * @missed_max: how many silent ticks in a row are forgiven
 * @err_handler: called with connection 0 when the peer has been silent for
 *	longer, from @wq, or when a message could not be posted, from @wq or the
 *	context of rtrs_send_hb_ack(). A tick that calls it is the last one.
 *	Must not sleep, must not call rtrs_stop_hb()
 * @wq: runs the ticks
 *
 * Context: any.
 */
void rtrs_init_hb(struct rtrs_path *path, struct ib_cqe *cqe, unsigned int interval_ms,
		  unsigned int missed_max, void (*err_handler)(struct rtrs_con *con),
		  struct workqueue_struct *wq)
{
	path->hb_cqe = cqe;
	path->hb_interval_ms = interval_ms;
	path->hb_missed_cnt = 0;
	path->hb_missed_max = missed_max;
	path->hb_err_handler = err_handler;
	path->hb_wq = wq;
	atomic_set(&path->hb_outstanding, 0);
	INIT_DELAYED_WORK(&path->hb_dwork, rtrs_hb_tick);
}
EXPORT_SYMBOL_GPL(rtrs_init_hb);

/**
 * rtrs_start_hb() - start the heartbeat of a path
 * @path: the path, after rtrs_init_hb()
 *
 * The first tick comes after one interval. From now on until rtrs_stop_hb()
 * connection 0 must be there, and @path->signal_interval be nonzero.
 *
 * Context: any.
 */
void rtrs_start_hb(struct rtrs_path *path)
{
	rtrs_queue_hb(path);
}
EXPORT_SYMBOL_GPL(rtrs_start_hb);

/**
 * rtrs_stop_hb() - stop the heartbeat of a path
 * @path: the path, after rtrs_init_hb(); it need not have been started
 *
 * A tick that is running has ended on return. The heartbeat can be started
 * again then, and knows nothing of before.
 *
 * Context: process, sleeps.
 */
void rtrs_stop_hb(struct rtrs_path *path)
{
	cancel_delayed_work_sync(&path->hb_dwork);
	WRITE_ONCE(path->hb_missed_cnt, 0);
	atomic_set(&path->hb_outstanding, 0);
}
EXPORT_SYMBOL_GPL(rtrs_stop_hb);

/**
 * rtrs_send_hb_ack() - answer the peer's heartbeat
 * @path: the path; the rules of rtrs_start_hb() hold
 *
 * If that fails the error handler has been called on return.
 *
 * Context: any in which the device can be posted to; does not sleep.
 */
void rtrs_send_hb_ack(struct rtrs_path *path)
{
	rtrs_post_hb(path, path->hb_ack_cqe ?: path->hb_cqe, RTRS_HB_ACK_IMM);
}
EXPORT_SYMBOL_GPL(rtrs_send_hb_ack);

/*
 * Addresses
 */

/* @str is not terminated, so that the parsers' end pointers must be looked at. */
static int rtrs_parse_gid(const char *str, size_t len, u16 port, struct sockaddr_storage *ss)
{
	struct sockaddr_ib *ib = (struct sockaddr_ib *)ss;
	const char *end;

	if (!in6_pton(str, len, ib->sib_addr.sib_raw, -1, &end) || end != str + len)
		return -EINVAL;

	ib->sib_family = AF_IB;
	ib->sib_pkey = cpu_to_be16(0xffff);
	ib->sib_sid = cpu_to_be64(RDMA_IB_IP_PS_IB | port);
	ib->sib_sid_mask = cpu_to_be64(U64_MAX);
	return 0;
}

static int rtrs_parse_ipv4(const char *str, size_t len, u16 port, struct sockaddr_storage *ss)
{
	struct sockaddr_in *in = (struct sockaddr_in *)ss;
	const char *end;

	if (!in4_pton(str, len, (u8 *)&in->sin_addr, -1, &end) || end != str + len)
		return -EINVAL;

	in->sin_family = AF_INET;
	in->sin_port = cpu_to_be16(port);
	return 0;
}

static int rtrs_parse_ipv6(const char *str, size_t len, u16 port, struct sockaddr_storage *ss)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ss;
	char buf[INET6_ADDRSTRLEN + 1];

	memcpy(buf, str, len);
	buf[len] = '\0';
	if (inet_pton_with_scope(&init_net, AF_INET6, buf, NULL, ss))
		return -EINVAL;
	/* The kernel's parser ignores a scope that the address cannot have. */
	if (strchr(buf, '%') && !in6->sin6_scope_id)
		return -EINVAL;

	in6->sin6_port = cpu_to_be16(port);
	return 0;
}

static int rtrs_parse_ip(const char *str, size_t len, u16 port, struct sockaddr_storage *ss)
{
	if (!rtrs_parse_ipv4(str, len, port, ss))
		return 0;
	return rtrs_parse_ipv6(str, len, port, ss);
}

static const struct {
	const char *prefix;
	int (*parse)(const char *str, size_t len, u16 port, struct sockaddr_storage *ss);
} rtrs_addr_kinds[] = {
	{ "ip:",  rtrs_parse_ip },
	{ "gid:", rtrs_parse_gid },
};

static int rtrs_parse_addr(const char *str, size_t len, u16 port, struct sockaddr_storage *ss)
{
	size_t i, n;

	for (i = 0; i < ARRAY_SIZE(rtrs_addr_kinds); i++) {
		n = strlen(rtrs_addr_kinds[i].prefix);
		if (len < n || memcmp(str, rtrs_addr_kinds[i].prefix, n))
			continue;
		if (len - n > INET6_ADDRSTRLEN)
			return -EINVAL;
		memset(ss, 0, sizeof(*ss));
		return rtrs_addr_kinds[i].parse(str + n, len - n, port, ss);
	}
	return -EPROTONOSUPPORT;
}

/**
 * rtrs_addr_to_sockaddr() - read the addresses of a path from a string
 * @str: "[<source><separator>]<destination>". The separator is the first
 *	comma, if there is none the first "@". Each address is "ip:" with an
 *	IPv4 or IPv6 address, a link-local one possibly with "%" and name or
 *	index of an interface of init_net; or "gid:" with a GID written like an
 *	IPv6 address
 * @len: length of @str; what is behind it, or behind a NUL, does not count
 * @port: port, or lower part of the service id, of the destination, host order
 * @addr: points to storage for both addresses. Storage that is filled is
 *	zeroed first. @addr->src becomes NULL if @str has no source
 *
 * Context: process.
 * Return: 0; -EPROTONOSUPPORT if the destination begins with neither "ip:" nor
 * "gid:"; -EINVAL if the rest of it is not an address, or if the source is
 * wrong in any way. The storage is undefined on error.
 */
int rtrs_addr_to_sockaddr(const char *str, size_t len, u16 port, struct rtrs_addr *addr)
{
	const char *sep;

	len = strnlen(str, len);
	sep = memchr(str, ',', len) ?: memchr(str, '@', len);
	if (!sep) {
		addr->src = NULL;
		return rtrs_parse_addr(str, len, port, addr->dst);
	}

	if (rtrs_parse_addr(str, sep - str, 0, addr->src))
		return -EINVAL;
	sep++;
	return rtrs_parse_addr(sep, str + len - sep, port, addr->dst);
}
EXPORT_SYMBOL(rtrs_addr_to_sockaddr);

/**
 * sockaddr_to_str() - print an address
 * @addr: address of family AF_INET, AF_INET6 or AF_IB; others give a text that
 *	says so
 * @buf: where to
 * @len: its size, bytes; may be 0
 *
 * Prints what rtrs_addr_to_sockaddr() reads, without port and scope. What does
 * not fit is cut off; the result is terminated in any case unless @len is 0.
 *
 * Context: any.
 * Return: number of characters written, without the terminating NUL.
 */
int sockaddr_to_str(const struct sockaddr *addr, char *buf, size_t len)
{
	switch (addr->sa_family) {
	case AF_IB:
		return scnprintf(buf, len, "gid:%pI6",
				 &((const struct sockaddr_ib *)addr)->sib_addr);
	case AF_INET:
		return scnprintf(buf, len, "ip:%pI4",
				 &((const struct sockaddr_in *)addr)->sin_addr);
	case AF_INET6:
		return scnprintf(buf, len, "ip:%pI6c",
				 &((const struct sockaddr_in6 *)addr)->sin6_addr);
	}
	return scnprintf(buf, len, "<invalid address family>");
}
EXPORT_SYMBOL(sockaddr_to_str);

/**
 * rtrs_addr_to_str() - print both addresses of a path
 * @addr: the addresses
 * @buf: where to
 * @len: its size, bytes; may be 0
 *
 * Prints "<source>@<destination>", or the destination alone if there is no
 * source, as sockaddr_to_str() does, and cuts off like that.
 *
 * Context: any.
 * Return: number of characters written, without the terminating NUL.
 */
int rtrs_addr_to_str(const struct rtrs_addr *addr, char *buf, size_t len)
{
	int n = 0;

	if (addr->src) {
		n = sockaddr_to_str((struct sockaddr *)addr->src, buf, len);
		n += scnprintf(buf + n, len - n, "@");
	}
	n += sockaddr_to_str((struct sockaddr *)addr->dst, buf + n, len - n);
	return n;
}
EXPORT_SYMBOL(rtrs_addr_to_str);

/*
 * Devices
 *
 * Looking up and adding is one step under the pool's mutex, and so are the last
 * put and the removal: what the list shows is alive, once for each device.
 */

/**
 * rtrs_rdma_dev_pd_init() - make a pool of devices
 * @pd_flags: for the PDs
 * @pool: the pool; its ops are set already
 *
 * Context: process.
 */
void rtrs_rdma_dev_pd_init(enum ib_pd_flags pd_flags, struct rtrs_rdma_dev_pd *pool)
{
	mutex_init(&pool->mutex);
	INIT_LIST_HEAD(&pool->list);
	pool->pd_flags = pd_flags;
}
EXPORT_SYMBOL(rtrs_rdma_dev_pd_init);

/**
 * rtrs_rdma_dev_pd_deinit() - end the use of a pool
 * @pool: the pool; the last rtrs_ib_dev_put() for it has returned
 *
 * Context: process.
 */
void rtrs_rdma_dev_pd_deinit(struct rtrs_rdma_dev_pd *pool)
{
	WARN_ON_ONCE(!list_empty(&pool->list));
	mutex_destroy(&pool->mutex);
}
EXPORT_SYMBOL(rtrs_rdma_dev_pd_deinit);

static struct rtrs_ib_dev *rtrs_ib_dev_create(struct ib_device *ib_dev,
					      struct rtrs_rdma_dev_pd *pool)
{
	struct rtrs_ib_dev *dev;
	int err;

	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return ERR_PTR(-ENOMEM);

	kref_init(&dev->ref);
	dev->pool = pool;
	dev->ib_dev = ib_dev;
	dev->ib_pd = ib_alloc_pd(ib_dev, pool->pd_flags);
	if (IS_ERR(dev->ib_pd)) {
		err = PTR_ERR(dev->ib_pd);
		goto free_dev;
	}
	if (pool->ops && pool->ops->init) {
		err = pool->ops->init(dev);
		if (err)
			goto free_pd;
	}
	return dev;

free_pd:
	ib_dealloc_pd(dev->ib_pd);
free_dev:
	kfree(dev);
	return ERR_PTR(err);
}

/**
 * rtrs_ib_dev_get() - take a device of a pool, adding it if it is not there
 * @ib_dev: the device
 * @pool: the pool
 *
 * Context: process, sleeps.
 * Return: the entry, to be given back by rtrs_ib_dev_put(); ERR_PTR() of
 * -ENOMEM, or of the error of ib_alloc_pd() or the pool's init operation.
 */
struct rtrs_ib_dev *rtrs_ib_dev_get(struct ib_device *ib_dev, struct rtrs_rdma_dev_pd *pool)
{
	struct rtrs_ib_dev *dev;

	mutex_lock(&pool->mutex);
	list_for_each_entry(dev, &pool->list, entry) {
		/* Not by node_guid: two software devices may have the same. */
		if (dev->ib_dev == ib_dev) {
			kref_get(&dev->ref);
			goto unlock;
		}
	}
	dev = rtrs_ib_dev_create(ib_dev, pool);
	if (!IS_ERR(dev))
		list_add(&dev->entry, &pool->list);
unlock:
	mutex_unlock(&pool->mutex);
	return dev;
}
EXPORT_SYMBOL_GPL(rtrs_ib_dev_get);

/**
 * rtrs_ib_dev_find_or_add() - take a device of a pool, whatever the error
 * @ib_dev: the device
 * @pool: the pool
 *
 * rtrs_ib_dev_get() for those who do not ask for the reason.
 *
 * Context: process, sleeps.
 * Return: the entry, to be given back by rtrs_ib_dev_put(), or NULL.
 */
struct rtrs_ib_dev *rtrs_ib_dev_find_or_add(struct ib_device *ib_dev,
					    struct rtrs_rdma_dev_pd *pool)
{
	struct rtrs_ib_dev *dev = rtrs_ib_dev_get(ib_dev, pool);

	return IS_ERR(dev) ? NULL : dev;
}
EXPORT_SYMBOL(rtrs_ib_dev_find_or_add);

/* Called with the pool's mutex held, and gives it back. */
static void rtrs_ib_dev_release(struct kref *ref)
{
	struct rtrs_ib_dev *dev = container_of(ref, struct rtrs_ib_dev, ref);
	const struct rtrs_rdma_dev_pd_ops *ops = dev->pool->ops;

	list_del(&dev->entry);
	/* Whoever comes now gets an entry of its own. */
	mutex_unlock(&dev->pool->mutex);

	if (ops && ops->deinit)
		ops->deinit(dev);
	ib_dealloc_pd(dev->ib_pd);
	kfree(dev);
}

/**
 * rtrs_ib_dev_put() - give a device of a pool back
 * @dev: what rtrs_ib_dev_get() or rtrs_ib_dev_find_or_add() has returned
 *
 * Context: process, sleeps.
 * Return: 1 if this was the last reference and the entry is gone, else 0.
 */
int rtrs_ib_dev_put(struct rtrs_ib_dev *dev)
{
	return kref_put_mutex(&dev->ref, rtrs_ib_dev_release, &dev->pool->mutex);
}
EXPORT_SYMBOL(rtrs_ib_dev_put);
