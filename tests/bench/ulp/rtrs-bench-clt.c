// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RTRS bench client: the half of a user of RTRS that asks
 *
 * One session, driven by files in debugfs, in the folder rtrs-bench:
 *
 *	open	NAME PATH...: open it; a path is what rnbd calls one
 *	run	OPTION=VALUE...: make requests for a while (struct bench_params)
 *	report	what the last run has found, one "name value" a line
 *	close	anything: close it
 *
 * Writing returns when it is done. To do without a session is an error, ENOTCONN.
 */
#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blk_types.h>
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uio.h>

#include "rtrs-bench-clt.h"

MODULE_DESCRIPTION("RTRS benchmark client");
MODULE_LICENSE("GPL");

/* What one writes into a file is not longer, and has words between these */
#define BENCH_INPUT 1024
#define BENCH_BLANKS "\n "
#define BENCH_MAX_PATHS 8
#define BENCH_RECONNECT_DELAY_SEC 1

static ushort port = RTRS_BENCH_PORT;
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "Port of the server (default 1235)");

static struct bench bench = {
	.lock = __MUTEX_INITIALIZER(bench.lock),
	.wait = __WAIT_QUEUE_HEAD_INITIALIZER(bench.wait),
};

static struct dentry *bench_dir;

/*
 * The session
 */

/* One at a time, never before rtrs_clt_open() has succeeded. May sleep. */
static void bench_link_ev(void *priv, enum rtrs_clt_link_ev ev)
{
	struct bench *b = priv;

	WRITE_ONCE(b->connected, ev == RTRS_CLT_LINK_EV_RECONNECTED);
	wake_up_all(&b->wait);
}

/**
 * struct bench_hello_req - somebody waits for the answer to a hello
 * @done: it is there
 * @errno: what the confirmation said
 */
struct bench_hello_req {
	struct completion	done;
	int			errno;
};

static void bench_hello_confirm(void *priv, int errno)
{
	struct bench_hello_req *req = priv;

	req->errno = errno;
	complete(&req->done);
}

/* Asks the server how much it keeps, over the service connection. */
static int bench_hello(struct bench *b)
{
	struct rtrs_bench_msg msg = { .op = cpu_to_le16(RTRS_BENCH_HELLO) };
	struct kvec vec = { .iov_base = &msg, .iov_len = sizeof(msg) };
	struct bench_hello_req req;
	struct rtrs_clt_req_ops ops = { .priv = &req, .conf_fn = bench_hello_confirm };
	struct rtrs_bench_hello *hello;
	struct rtrs_permit *permit;
	struct scatterlist sg;
	int err;

	/* the server writes to it: memory of its own, not of the stack */
	hello = kzalloc(sizeof(*hello), GFP_KERNEL);
	if (!hello)
		return -ENOMEM;
	sg_init_one(&sg, hello, sizeof(*hello));
	init_completion(&req.done);
	permit = rtrs_clt_get_permit(b->sess, RTRS_ADMIN_CON, RTRS_PERMIT_WAIT);
	err = rtrs_clt_request(READ, &ops, b->sess, permit, &vec, 1, sizeof(*hello), &sg, 1);
	if (!err) {
		wait_for_completion(&req.done);
		err = req.errno;
	}
	rtrs_clt_put_permit(b->sess, permit);
	b->store = le64_to_cpu(hello->store);
	kfree(hello);
	return err;
}

/* All permits are back: a run ends when its last request was confirmed. */
static int bench_close(struct bench *b, char *args)
{
	if (!b->sess)
		return -ENOTCONN;
	rtrs_clt_close(b->sess);
	b->sess = NULL;
	kvfree(b->blocks);
	b->blocks = NULL;
	return 0;
}

/**
 * struct bench_paths - addresses of the paths of a session
 * @nr: how many
 * @addr: what rtrs_clt_open() takes
 * @ends: the memory behind @addr
 */
struct bench_paths {
	size_t				nr;
	struct rtrs_addr		addr[BENCH_MAX_PATHS];
	struct sockaddr_storage		ends[BENCH_MAX_PATHS][2];
};

static int bench_parse_paths(struct bench_paths *paths, char *args)
{
	char *word;
	int err;

	while ((word = strsep(&args, BENCH_BLANKS))) {
		struct rtrs_addr *addr = &paths->addr[paths->nr];

		if (!*word)
			continue;
		if (paths->nr == BENCH_MAX_PATHS)
			return -E2BIG;
		addr->src = &paths->ends[paths->nr][0];
		addr->dst = &paths->ends[paths->nr][1];
		err = rtrs_addr_to_sockaddr(word, strlen(word), port, addr);
		if (err)
			return err;
		paths->nr++;
	}
	return 0;
}

static int bench_open_sess(struct bench *b, const char *name, const struct bench_paths *paths)
{
	struct rtrs_clt_ops ops = { .priv = b, .link_ev = bench_link_ev };
	struct rtrs_clt_sess *sess;
	int err;

	/* the first event may come before we are back, and is DISCONNECTED */
	b->connected = true;
	sess = rtrs_clt_open(&ops, name, paths->addr, paths->nr, port, 0,
			     BENCH_RECONNECT_DELAY_SEC, -1, 0);
	if (IS_ERR(sess))
		return PTR_ERR(sess);
	b->sess = sess;
	err = rtrs_clt_query(sess, &b->attrs) ?: bench_hello(b);
	if (err)
		bench_close(b, NULL);
	return err;
}

static int bench_open(struct bench *b, char *args)
{
	const char *name = strsep(&args, BENCH_BLANKS);
	struct bench_paths *paths;
	int err;

	if (b->sess)
		return -EISCONN;
	paths = kzalloc(sizeof(*paths), GFP_KERNEL);
	if (!paths)
		return -ENOMEM;
	err = bench_parse_paths(paths, args) ?: bench_open_sess(b, name, paths);
	kfree(paths);
	return err;
}

/*
 * Options of a run
 */

static const char * const bench_rws[] = {
	[BENCH_READ] = "read",
	[BENCH_WRITE] = "write",
	[BENCH_MIXED] = "mixed",
};

#define OPTION(name, min, max) { #name, offsetof(struct bench_params, name), min, max }

static const struct bench_option {
	const char	*name;
	size_t		offset;
	u32		min;
	u32		max;
} bench_options[] = {
	OPTION(size, 8, U32_MAX),
	OPTION(segment, 8, U32_MAX),
	OPTION(depth, 1, U16_MAX),
	OPTION(cpus, 1, U16_MAX),
	OPTION(ms, 1, 3600000),
	OPTION(count, 0, U32_MAX),
	OPTION(blocks, 0, U32_MAX),
	OPTION(verify, 0, 1),
	OPTION(poison, 0, 1),
	OPTION(pause_us, 0, 1000000),
	OPTION(seed, 0, U32_MAX),
};

static int bench_set_option(struct bench_params *params, const char *name, const char *text)
{
	const struct bench_option *option;
	u32 value;
	int err;

	if (!strcmp(name, "rw")) {
		err = match_string(bench_rws, ARRAY_SIZE(bench_rws), text);
		if (err >= 0)
			params->rw = err;
		return min(err, 0);
	}
	for (option = bench_options; option < bench_options + ARRAY_SIZE(bench_options); option++) {
		if (strcmp(name, option->name))
			continue;
		err = kstrtou32(text, 0, &value);
		if (err)
			return err;
		if (value < option->min || value > option->max)
			return -ERANGE;
		*(u32 *)((void *)params + option->offset) = value;
		return 0;
	}
	return -EINVAL;
}

static int bench_run_args(struct bench *b, char *args)
{
	struct bench_params params = {
		.rw = BENCH_READ,
		.size = 4096,
		.segment = 4096,
		.depth = 1,
		.cpus = 1,
		.ms = 1000,
		.seed = 1,
	};
	char *word, *name;
	int err;

	if (!b->sess)
		return -ENOTCONN;
	while ((word = strsep(&args, BENCH_BLANKS))) {
		if (!*word)
			continue;
		name = strsep(&word, "=");
		err = word ? bench_set_option(&params, name, word) : -EINVAL;
		if (err)
			return err;
	}
	return bench_run(b, &params);
}

/*
 * Files
 */

/* Has the text that was written handled by @handle, one at a time */
static ssize_t bench_input(const char __user *buf, size_t len,
			   int (*handle)(struct bench *b, char *args))
{
	char *args;
	int err;

	if (len > BENCH_INPUT)
		return -E2BIG;
	args = memdup_user_nul(buf, len);
	if (IS_ERR(args))
		return PTR_ERR(args);
	err = mutex_lock_interruptible(&bench.lock);
	if (!err) {
		err = handle(&bench, args);
		mutex_unlock(&bench.lock);
	}
	kfree(args);
	return err ?: len;
}

static ssize_t bench_open_write(struct file *file, const char __user *buf, size_t len,
				loff_t *pos)
{
	return bench_input(buf, len, bench_open);
}

static ssize_t bench_close_write(struct file *file, const char __user *buf, size_t len,
				 loff_t *pos)
{
	return bench_input(buf, len, bench_close);
}

static ssize_t bench_run_write(struct file *file, const char __user *buf, size_t len,
			       loff_t *pos)
{
	return bench_input(buf, len, bench_run_args);
}

static const struct file_operations bench_open_fops = {
	.owner = THIS_MODULE,
	.write = bench_open_write,
};

static const struct file_operations bench_close_fops = {
	.owner = THIS_MODULE,
	.write = bench_close_write,
};

static const struct file_operations bench_run_fops = {
	.owner = THIS_MODULE,
	.write = bench_run_write,
};

static int bench_report_show(struct seq_file *file, void *unused)
{
	int err = mutex_lock_interruptible(&bench.lock);

	if (err)
		return err;
	if (bench.result)
		bench_report(file, bench.result);
	mutex_unlock(&bench.lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(bench_report);

static int __init rtrs_bench_client_init(void)
{
	bench_dir = debugfs_create_dir("rtrs-bench", NULL);
	debugfs_create_file("open", 0200, bench_dir, NULL, &bench_open_fops);
	debugfs_create_file("close", 0200, bench_dir, NULL, &bench_close_fops);
	debugfs_create_file("run", 0200, bench_dir, NULL, &bench_run_fops);
	debugfs_create_file("report", 0444, bench_dir, NULL, &bench_report_fops);
	return 0;
}

static void __exit rtrs_bench_client_exit(void)
{
	/* waits for whoever is inside one of the files */
	debugfs_remove(bench_dir);
	bench_close(&bench, NULL);
	kvfree(bench.result);
}

module_init(rtrs_bench_client_init);
module_exit(rtrs_bench_client_exit);
