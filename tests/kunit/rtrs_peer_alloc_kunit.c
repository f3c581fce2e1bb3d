// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the client without memory
 *
 * What is tested is done again and again, and each time another allocation on
 * its way fails: first the first, then the second, until it gets through
 * without one; or each so-manieth, see alloc_stride. Counted are allocations of
 * the test's own thread and those of the client's worker and CM handler, which
 * kretprobes enclose. Each time there is a clean error, or it works; nothing
 * leaks, and the next session works.
 *
 * Needs CONFIG_FAILSLAB and CONFIG_KRETPROBES.
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/umh.h>

#include "rtrs_peer.h"

/*
 * A task that enters while another one has the count with it fails nothing, so
 * it takes so many times without a failure to believe that there is none to come.
 */
#define TRIES 3

/* More than any operation needs, so that the search ends */
#define MAX_NTH 5000

/* A slow kernel would take ten minutes for each one. */
static unsigned int alloc_stride = IS_ENABLED(CONFIG_KASAN) ? 9 : 1;
module_param(alloc_stride, uint, 0444);
MODULE_PARM_DESC(alloc_stride, "Fail each so-manieth allocation only (default 1, or 9 with KASAN)");

/*
 * Allocations still to come until one fails; 0: not armed. One task at a time
 * takes it along as its own count, and puts back what is left of it.
 */
static atomic_t nth;
static atomic_t fired;

/* Tasks that have taken it, or are about to look whether it is there */
static atomic_t holders;

static unsigned int take(void)
{
	unsigned int n;

	atomic_inc(&holders);
	n = atomic_xchg(&nth, 0);
	if (n)
		current->fail_nth = n;
	else
		atomic_dec(&holders);
	return n;
}

static void put_back(unsigned int taken)
{
	unsigned int n;

	if (!taken)
		return;
	n = current->fail_nth;
	current->fail_nth = 0;
	if (n)
		atomic_set(&nth, n);
	else
		atomic_set(&fired, 1);
	atomic_dec(&holders);
}

/*
 * Disarm. What was done is done when the worker has said so, which is before it
 * has put back what it took.
 */
static bool has_fired(struct kunit *test)
{
	unsigned int i;

	atomic_set(&nth, 0);
	for (i = 0; atomic_read(&holders) && i < 250 * PEER_SCALE; i++)
		msleep(20);
	KUNIT_EXPECT_EQ_MSG(test, 0, atomic_read(&holders), "the worker does not end");
	atomic_set(&nth, 0);
	return atomic_read(&fired);
}

static int enter(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	*(unsigned int *)ri->data = take();
	return 0;
}

static int leave(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	put_back(*(unsigned int *)ri->data);
	return 0;
}

/* The functions in which the client works for itself */
static struct kretprobe probes[] = {
	{ .kp.symbol_name = "rtrs_clt_path_work" },
	{ .kp.symbol_name = "rtrs_clt_cm_handler" },
};

/* debugfs can be written to by processes only. */
static int shell(char *command)
{
	char *argv[4] = { "/bin/sh", "-c", command, NULL };
	char *envp[2] = { "PATH=/sbin:/bin:/usr/sbin:/usr/bin", NULL };

	return call_usermodehelper(argv[0], argv, envp, UMH_WAIT_PROC);
}

static int alloc_suite_init(struct kunit_suite *suite)
{
	unsigned int i;
	int err;

	peer_suite_init(suite);
	err = shell("cd /sys/kernel/debug/failslab && echo N >ignore-gfp-wait && echo 0 >verbose");
	if (err)
		return err > 0 ? -EIO : err;
	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		probes[i].entry_handler = enter;
		probes[i].handler = leave;
		probes[i].data_size = sizeof(unsigned int);
		probes[i].maxactive = 64;
		err = register_kretprobe(&probes[i]);
		if (err)
			return err;
	}
	return 0;
}

static void alloc_suite_exit(struct kunit_suite *suite)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++)
		unregister_kretprobe(&probes[i]);
	shell("echo Y >/sys/kernel/debug/failslab/ignore-gfp-wait");
	peer_suite_exit(suite);
}

/*
 * What is tested: do it, and undo it if it was done, or in any case
 */

/* Here our own thread counts while it is inside of the client. */
static int do_open_self(struct peer *p)
{
	unsigned int taken = take();
	int err = peer_do_open(p);

	put_back(taken);
	return err;
}

/* Our own thread, which waits for the worker and then shows the path in sysfs */
static int do_add_path_self(struct peer *p)
{
	return peer_add_path_with(p, 1, take, put_back);
}

static const struct alloc_row {
	const char *desc;
	bool opened;
	int (*act)(struct peer *p);
	int (*undo)(struct peer *p);
	bool undo_failed;
	unsigned int least;
} alloc_rows[] = {
	{ "open itself", false, do_open_self, peer_undo_open, false, 5 },
	{ "workers of open", false, peer_do_open, peer_undo_open, false, 50 },
	{ "add_path itself", true, do_add_path_self, peer_undo_add_path, false, 5 },
	{ "workers of add_path", true, peer_do_add_path, peer_undo_add_path, false, 50 },
	{ "workers of reconnect", true, peer_do_reconnect, peer_mend, true, 20 },
};

/*
 * A test does so many of a row, since what takes minutes looks to the kernel
 * as if it hung. Then comes the next one, until nothing has failed.
 */
#define NTHS_PER_TEST 25

static struct alloc_share {
	const struct alloc_row *row;
	unsigned int n;
	unsigned int failed;
	bool through;
} alloc_part;

static const void *alloc_gen_params(struct kunit *test, const void *prev, char *desc)
{
	if (!prev || alloc_part.through || alloc_part.n > MAX_NTH) {
		alloc_part.row = prev ? alloc_part.row + 1 : alloc_rows;
		alloc_part.n = 1;
		alloc_part.failed = 0;
		alloc_part.through = false;
	}
	if (alloc_part.row == alloc_rows + ARRAY_SIZE(alloc_rows))
		return NULL;
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s, from allocation %u", alloc_part.row->desc,
		 alloc_part.n);
	return &alloc_part;
}

/* One time with the n-th allocation failing; false: there is none so late */
static bool fail_nth(struct peer *p, const struct alloc_row *row, unsigned int n)
{
	bool failed;
	int err;

	atomic_set(&fired, 0);
	atomic_set(&nth, n);
	err = row->act(p);
	failed = has_fired(p->test);
	KUNIT_EXPECT_TRUE_MSG(p->test, err <= 0 && err != -EINVAL, "allocation %u: %d", n, err);
	if (!failed)
		KUNIT_EXPECT_EQ_MSG(p->test, err, 0, "although no allocation failed");
	if (!err || row->undo_failed)
		KUNIT_EXPECT_EQ_MSG(p->test, 0, row->undo(p), "allocation %u", n);
	return failed;
}

static bool fail_nth_in_tries(struct peer *p, const struct alloc_row *row, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < TRIES; i++)
		if (fail_nth(p, row, n))
			return true;
	return false;
}

static void nth_test(struct kunit *test)
{
	const struct alloc_row *row = alloc_part.row;
	struct peer *p = peer_start(test, &(struct peer_mode){ .new_rkey = true });
	bool through = false;
	unsigned int i;

	/* should the test be broken off */
	alloc_part.through = true;
	peer_prepare(p, 1);
	if (row->opened)
		KUNIT_ASSERT_EQ(test, 0, peer_open(p, 1, PEER_CONNECT_MS * PEER_SCALE));
	for (i = 0; i < NTHS_PER_TEST && !through; i++, alloc_part.n += alloc_stride) {
		through = !fail_nth_in_tries(p, row, alloc_part.n);
		alloc_part.failed += !through;
	}
	alloc_part.through = through;
	if (through) {
		kunit_info(test, "%s: %u allocations failed", row->desc, alloc_part.failed);
		KUNIT_EXPECT_GT(test, alloc_part.failed, row->least / alloc_stride);
	}
	KUNIT_EXPECT_LE(test, alloc_part.n, MAX_NTH);
	if (!p->clt)
		KUNIT_ASSERT_EQ(test, 0, peer_open(p, 1, PEER_CONNECT_MS * PEER_SCALE));
	peer_expect_works(p);
	peer_stop(p);
}

/* Requests need no memory: with none to be had they are done all the same. */
static void request_test(struct kunit *test)
{
	struct peer *p = peer_start(test, &(struct peer_mode){ .new_rkey = true });
	struct peer_req *req;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, 0, peer_open(p, 1, PEER_CONNECT_MS * PEER_SCALE));
	for (i = 0; i < 8; i++) {
		req = peer_submit_nomem(p, i & 1 ? READ : WRITE, 1 + i * 2000);
		KUNIT_ASSERT_TRUE(test, peer_wait(req, 5000));
		KUNIT_EXPECT_EQ(test, req->err, 0);
		KUNIT_EXPECT_TRUE(test, peer_data_ok(req));
	}
	peer_expect_works(p);
	peer_stop(p);
}

static struct kunit_case alloc_cases[] = {
	KUNIT_CASE_PARAM(nth_test, alloc_gen_params),
	KUNIT_CASE(request_test),
	{}
};

static struct kunit_suite alloc_suite = {
	.name = "rtrs_peer_alloc",
	.suite_init = alloc_suite_init,
	.suite_exit = alloc_suite_exit,
	.test_cases = alloc_cases,
};

kunit_test_suite(alloc_suite);
