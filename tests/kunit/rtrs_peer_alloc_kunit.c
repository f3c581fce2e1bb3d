// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the client without memory
 *
 * What is tested is done again and again, and each time another allocation on
 * its way fails: first the first, then the second, until it gets through
 * without one. Counted are allocations of the test's own thread and those of
 * the client's worker and CM handler, which kretprobes enclose. Each time there
 * is a clean error, or it works; nothing leaks, and the next session works.
 *
 * Needs CONFIG_FAILSLAB and CONFIG_KRETPROBES.
 */
#include <linux/kprobes.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>

#include "rtrs_peer.h"

/* More than any operation needs, so that the search ends */
#define MAX_NTH 5000

static unsigned int alloc_stride = 1;
module_param(alloc_stride, uint, 0444);
MODULE_PARM_DESC(alloc_stride, "Fail each so-manieth allocation only (default 1)");

/*
 * Allocations still to come until one fails; 0: not armed. One task at a time
 * takes it along as its own count, and puts back what is left of it.
 */
static atomic_t nth;
static atomic_t fired;

static unsigned int take(void)
{
	unsigned int n = atomic_xchg(&nth, 0);

	if (n)
		current->fail_nth = n;
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

static const struct {
	const char *file;
	const char *val;
} failslab[] = {
	{ "/sys/kernel/debug/failslab/ignore-gfp-wait", "N" },
	{ "/sys/kernel/debug/failslab/verbose", "0" },
};

static int alloc_suite_init(struct kunit_suite *suite)
{
	unsigned int i;
	int err;

	peer_suite_init(suite);
	for (i = 0; i < ARRAY_SIZE(failslab); i++) {
		err = peer_file_write(failslab[i].file, failslab[i].val);
		if (err)
			return err;
	}
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
	peer_file_write(failslab[0].file, "Y");
	peer_suite_exit(suite);
}

/* From here on the n-th allocation fails. */
static void arm(unsigned int n)
{
	atomic_set(&fired, 0);
	atomic_set(&nth, n);
}

/* Did one fail? */
static bool disarm(void)
{
	atomic_set(&nth, 0);
	return atomic_read(&fired);
}

/* Counts what our own thread allocates inside of the client. */
static int open_failing(struct peer *p, unsigned int n, bool *failed)
{
	struct rtrs_clt_sess *clt;
	unsigned int taken;

	arm(n);
	taken = take();
	clt = peer_open_raw(p, 2);
	put_back(taken);
	*failed = disarm();
	p->clt = IS_ERR(clt) ? NULL : clt;
	return PTR_ERR_OR_ZERO(clt);
}

static void expect_clean(struct kunit *test, int err, unsigned int n)
{
	KUNIT_EXPECT_TRUE_MSG(test, err == 0 || (err < 0 && err > -MAX_ERRNO),
			      "allocation %u: %d", n, err);
	KUNIT_EXPECT_NE_MSG(test, err, -EINVAL, "allocation %u", n);
}

/* The allocations of open itself, not those of its workers */
static void open_test(struct kunit *test)
{
	struct peer *p = peer_start(test, &(struct peer_mode){ .new_rkey = true });
	unsigned int n, own = 0;
	bool failed = true;
	int err;

	peer_prepare(p, 2);
	for (n = 1; failed && n < MAX_NTH; n += alloc_stride) {
		err = open_failing(p, n, &failed);
		own += failed;
		expect_clean(test, err, n);
		if (p->clt)
			peer_close(p);
	}
	KUNIT_EXPECT_FALSE(test, failed);
	kunit_info(test, "%u allocations of open failed", own);
	KUNIT_EXPECT_GT(test, own, 5);
	KUNIT_ASSERT_EQ(test, 0, peer_open(p, 2, PEER_CONNECT_MS * PEER_SCALE));
	peer_expect_works(p);
	peer_stop(p);
}

/* Something that the workers of an open session do */
static int do_reconnect(struct peer *p)
{
	return peer_reconnect(p, 0);
}

static int do_add_path(struct peer *p)
{
	return peer_add_path(p, 1);
}

static int do_open(struct peer *p)
{
	struct rtrs_clt_sess *clt = peer_open_raw(p, 1);

	p->clt = IS_ERR(clt) ? NULL : clt;
	return PTR_ERR_OR_ZERO(clt);
}

static int undo_reconnect(struct peer *p)
{
	return peer_path_is_up(p, 0) ? 0 : peer_reconnect(p, 0);
}

static int undo_add_path(struct peer *p)
{
	return peer_path_write(p, 1, "remove_path", "1");
}

static int undo_open(struct peer *p)
{
	peer_close(p);
	return 0;
}

static const struct worker_row {
	const char *desc;
	bool open;
	int (*act)(struct peer *p);
	int (*undo)(struct peer *p);
	bool undo_failed;
} worker_rows[] = {
	{ "open", false, do_open, undo_open, false },
	{ "add_path", true, do_add_path, undo_add_path, false },
	{ "reconnect", true, do_reconnect, undo_reconnect, true },
};

KUNIT_ARRAY_PARAM_DESC(worker, worker_rows, desc);

/* The allocations of the worker and of the CM handler */
static void worker_test(struct kunit *test)
{
	const struct worker_row *row = test->param_value;
	struct peer *p = peer_start(test, &(struct peer_mode){ .new_rkey = true });
	unsigned int n, nr = 0;
	bool failed = true;
	int err;

	peer_prepare(p, 1);
	if (row->open)
		KUNIT_ASSERT_EQ(test, 0, peer_open(p, 1, PEER_CONNECT_MS * PEER_SCALE));
	for (n = 1; failed && n < MAX_NTH; n += alloc_stride) {
		arm(n);
		err = row->act(p);
		failed = disarm();
		nr += failed;
		expect_clean(test, err, n);
		if (!err || row->undo_failed)
			KUNIT_EXPECT_EQ_MSG(test, 0, row->undo(p), "allocation %u", n);
	}
	KUNIT_EXPECT_FALSE(test, failed);
	kunit_info(test, "%u allocations failed", nr);
	KUNIT_EXPECT_GT(test, nr, 20);
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
	KUNIT_CASE_SLOW(open_test),
	KUNIT_CASE_PARAM_ATTR(worker_test, worker_gen_params, { .speed = KUNIT_SPEED_SLOW }),
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
