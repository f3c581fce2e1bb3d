// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RTRS bench server: the half of a user of RTRS that answers
 *
 * It has one store for all sessions, which outlives them. A block is looked at
 * when it arrives and copied out of its chunk; a read copies it into the chunk.
 * A client that only wants to know how fast requests go asks for neither.
 *
 * Requests come in process context, several at a time, and this one answers each
 * before it returns from the handler. One that has to wait, for a disk for
 * example, returns 0 and answers later, from any context.
 */
#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/limits.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include <rtrs.h>

#include "rtrs-bench.h"

MODULE_DESCRIPTION("RTRS benchmark server");
MODULE_LICENSE("GPL");

static ushort port = RTRS_BENCH_PORT;
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "Port to listen on (default 1235)");

static uint store_mb = 16;
module_param(store_mb, uint, 0444);
MODULE_PARM_DESC(store_mb, "Size of the store, 1 to 1024 MiB (default 16)");

static uint forget;
module_param(forget, uint, 0644);
MODULE_PARM_DESC(forget, "Do not keep every so many'th block, which the client must find out; 0: keep all (default)");

/**
 * struct bench_sess - a session, the argument of our handlers
 * @name: how the client calls it
 * @written: blocks that were to be kept
 * @corrupt: those that arrived with something else in them than was said
 */
struct bench_sess {
	char		name[NAME_MAX];
	atomic_t	written;
	atomic_t	corrupt;
};

static struct rtrs_srv_ctx *bench_ctx;
static u8 *bench_store;
static size_t bench_store_len;

/* Where a block of the store lies; NULL if not all of it does */
static void *bench_block(u64 block, size_t len)
{
	u64 begin, end;

	if (check_mul_overflow(block, (u64)len, &begin) ||
	    check_add_overflow(begin, (u64)len, &end) || end > bench_store_len)
		return NULL;
	return bench_store + begin;
}

static int bench_hello(struct bench_sess *sess, const struct rtrs_bench_msg *msg, void *data,
		       size_t len)
{
	struct rtrs_bench_hello *hello = data;

	if (len < sizeof(*hello))
		return -EINVAL;
	hello->store = cpu_to_le64(bench_store_len);
	return 0;
}

static int bench_read(struct bench_sess *sess, const struct rtrs_bench_msg *msg, void *data,
		      size_t len)
{
	void *block;

	if (!msg->keep)
		return 0;
	block = bench_block(le64_to_cpu(msg->block), len);
	if (!block)
		return -EINVAL;
	memcpy(data, block, len);
	return 0;
}

static int bench_write(struct bench_sess *sess, const struct rtrs_bench_msg *msg, void *data,
		       size_t len)
{
	u64 word = rtrs_bench_first(le64_to_cpu(msg->seed), le64_to_cpu(msg->block),
				    le64_to_cpu(msg->gen));
	void *block;

	if (!msg->keep)
		return 0;
	block = bench_block(le64_to_cpu(msg->block), len);
	if (!block || len % sizeof(word))
		return -EINVAL;
	if (forget && !(atomic_inc_return(&sess->written) % forget))
		return 0;
	/* first copy, then look: what is kept is what was found right */
	memcpy(block, data, len);
	if (rtrs_bench_check(block, len, &word))
		return 0;
	atomic_inc(&sess->corrupt);
	return -EBADMSG;
}

static int (*const bench_ops[RTRS_BENCH_OP_NR])(struct bench_sess *sess,
						const struct rtrs_bench_msg *msg,
						void *data, size_t len) = {
	[RTRS_BENCH_HELLO] = bench_hello,
	[RTRS_BENCH_READ] = bench_read,
	[RTRS_BENCH_WRITE] = bench_write,
};

/* Handler of requests. What the client sends may be anything. */
static int bench_rdma_ev(void *priv, struct rtrs_srv_op *id, void *data, size_t datalen,
			 const void *usr, size_t usrlen)
{
	struct rtrs_bench_msg msg;
	unsigned int op;
	int err;

	if (usrlen < sizeof(msg))
		return -EINVAL;
	/* it stands behind the data, at any address */
	memcpy(&msg, usr, sizeof(msg));
	op = le16_to_cpu(msg.op);
	if (op >= RTRS_BENCH_OP_NR)
		return -EOPNOTSUPP;
	err = bench_ops[op](priv, &msg, data, datalen);
	if (err)
		return err;
	rtrs_srv_resp_rdma(id, 0);
	return 0;
}

static int bench_connected(struct rtrs_srv_sess *rtrs)
{
	struct bench_sess *sess;
	int err;

	sess = kzalloc(sizeof(*sess), GFP_KERNEL);
	if (!sess)
		return -ENOMEM;
	err = rtrs_srv_get_path_name(rtrs, sess->name, sizeof(sess->name));
	if (err) {
		kfree(sess);
		return err;
	}
	rtrs_srv_set_sess_priv(rtrs, sess);
	pr_info("%s: connected, queue depth %d\n", sess->name, rtrs_srv_get_queue_depth(rtrs));
	return 0;
}

/* No request of the session is under way any more. */
static void bench_disconnected(struct bench_sess *sess)
{
	pr_info("%s: disconnected, %d corrupt blocks\n", sess->name, atomic_read(&sess->corrupt));
	kfree(sess);
}

/* Handler of events. A session whose connecting we refuse has no argument. */
static int bench_link_ev(struct rtrs_srv_sess *rtrs, enum rtrs_srv_link_ev ev, void *priv)
{
	if (ev == RTRS_SRV_LINK_EV_CONNECTED)
		return bench_connected(rtrs);
	if (priv)
		bench_disconnected(priv);
	return 0;
}

static int __init rtrs_bench_server_init(void)
{
	static struct rtrs_srv_ops ops = {
		.rdma_ev = bench_rdma_ev,
		.link_ev = bench_link_ev,
	};

	if (!store_mb || store_mb > 1024)
		return -EINVAL;
	bench_store_len = (size_t)store_mb << 20;
	bench_store = vzalloc(bench_store_len);
	if (!bench_store)
		return -ENOMEM;
	bench_ctx = rtrs_srv_open(&ops, port);
	if (IS_ERR(bench_ctx)) {
		vfree(bench_store);
		return PTR_ERR(bench_ctx);
	}
	return 0;
}

/* rtrs_srv_close() ends all sessions, and waits for it. */
static void __exit rtrs_bench_server_exit(void)
{
	rtrs_srv_close(bench_ctx);
	vfree(bench_store);
}

module_init(rtrs_bench_server_init);
module_exit(rtrs_bench_server_exit);
