// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the client with an HCA, and a connection manager, that refuse
 *
 * What is tested is done again and again, and each time another call of one
 * function of the RDMA core or of the HCA's driver fails: first the first, then
 * the second, until it gets through without one. Each time there is a clean
 * error, or it works; nothing leaks, and the session goes on. Counted are calls
 * by the client, which are told from those of the fake server by the name of
 * the caller. To have another call fail, add a row.
 *
 * Needs CONFIG_KPROBES, and a machine whose stack has the return address on top
 * when a function begins.
 */
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/ptrace.h>
#include <rdma/ib_verbs.h>

#include "rtrs_peer.h"

/* More calls than any operation needs, so that the search ends */
#define MAX_CALLS 100

/* So many requests that each connection posts receives again */
#define MANY_REQS 48

/* Not on a stack: a test that is broken off loses its own */
static struct kprobe probe;
static struct kretprobe half_probe;

/* Calls still to come until one fails; 0: not armed */
static atomic_t calls_left;
static atomic_t fired;

/* Runs in place of the function that fails. */
static noinline long refusal(void)
{
	return -ENOMEM;
}

/* Is this the call that shall fail? */
static bool is_the_one(struct pt_regs *regs)
{
	char caller[KSYM_SYMBOL_LEN];

	if (!atomic_read(&calls_left))
		return false;
	sprint_symbol(caller, regs_get_kernel_stack_nth(regs, 0));
	if (!str_has_prefix(caller, "rtrs_") || atomic_dec_if_positive(&calls_left))
		return false;
	atomic_set(&fired, 1);
	return true;
}

static int on_call(struct kprobe *kp, struct pt_regs *regs)
{
	if (!is_the_one(regs))
		return 0;
	instruction_pointer_set(regs, (unsigned long)refusal);
	return 1;
}

/* A chain that is cut behind its first work request, a registration */
struct half {
	struct ib_send_wr *first;
	const struct ib_send_wr *rest;
	const struct ib_send_wr **bad;
};

static int on_post(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct half *half = (struct half *)ri->data;

	half->first = (struct ib_send_wr *)regs_get_kernel_argument(regs, 1);
	half->bad = (const struct ib_send_wr **)regs_get_kernel_argument(regs, 2);
	if (half->first->opcode != IB_WR_REG_MR || !is_the_one(regs))
		return 1;
	half->rest = half->first->next;
	half->first->next = NULL;
	return 0;
}

static int after_post(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct half *half = (struct half *)ri->data;

	half->first->next = (struct ib_send_wr *)half->rest;
	*half->bad = half->rest;
	regs_set_return_value(regs, -ENOMEM);
	return 0;
}

/*
 * What is tested: do it, and undo it if it was done, or in any case
 */

static int finish_reqs(struct peer *p)
{
	struct peer_req *req, *next;
	int err = 0;

	list_for_each_entry_safe(req, next, &p->reqs, entry) {
		KUNIT_ASSERT_TRUE_MSG(p->test, peer_wait(req, 5000), "a request hangs");
		if (!req->err)
			KUNIT_EXPECT_TRUE(p->test, peer_data_ok(req));
		err = err ?: req->err;
		peer_free(req);
	}
	return err;
}

/* Of all kinds: registered or not, with data or not, on both kinds of connections */
static int do_requests(struct peer *p)
{
	unsigned int i;

	for (i = 0; i < 8; i++)
		peer_submit(p, i & 1 ? READ : WRITE, i < 6 ? i / 2 * 6000 : 512,
			    i < 6 ? RTRS_IO_CON : RTRS_ADMIN_CON);
	return finish_reqs(p);
}

static int do_many_requests(struct peer *p)
{
	int err = 0;
	unsigned int i;

	for (i = 0; i < MANY_REQS && !err; i++) {
		peer_submit(p, i & 1 ? READ : WRITE, 512, RTRS_IO_CON);
		err = finish_reqs(p);
	}
	return err;
}

static const struct act {
	const char *desc;
	bool opened;
	int (*act)(struct peer *p);
	int (*undo)(struct peer *p);
	bool undo_failed;
} acts[] = {
	{ "open", false, peer_do_open, peer_undo_open, false },
	{ "add_path", true, peer_do_add_path, peer_undo_add_path, false },
	{ "reconnect", true, peer_do_reconnect, peer_mend, true },
	{ "requests", true, do_requests, peer_mend, true },
	{ "many requests", true, do_many_requests, peer_mend, true },
};

#define OPEN BIT(0)
#define ADD BIT(1)
#define RECONNECT BIT(2)
#define REQUESTS BIT(3)
#define MANY BIT(4)
#define CONNECT (OPEN | ADD | RECONNECT)

/* The function that fails; what it is needed for; whether it does half of it */
static const struct call {
	const char *symbol;
	unsigned int acts;
	bool half;
} calls[] = {
	{ "__rdma_create_kernel_id", CONNECT },
	{ "rdma_set_reuseaddr", CONNECT },
	{ "rdma_resolve_addr", CONNECT },
	{ "rdma_resolve_route", CONNECT },
	{ "rdma_connect_locked", CONNECT },
	{ "__ib_alloc_pd", OPEN | ADD },
	{ "__ib_create_cq", CONNECT },
	{ "ib_cq_pool_get", CONNECT },
	{ "rdma_create_qp", CONNECT },
	{ "ib_alloc_mr", OPEN | ADD },
	{ "rxe_post_recv", CONNECT | MANY },
	{ "rxe_post_send", CONNECT | REQUESTS },
	{ "rxe_post_send", REQUESTS, true },
	{ "ib_dma_virt_map_sg", REQUESTS },
	{ "ib_map_mr_sg", REQUESTS },
};

struct inject_case {
	const struct call *call;
	const struct act *act;
};

static const void *inject_gen_params(struct kunit *test, const void *prev, char *desc)
{
	static struct inject_case c;
	unsigned int i;

	/* all pairs, in the order of the tables */
	i = prev ? (c.call - calls) * ARRAY_SIZE(acts) + (c.act - acts) + 1 : 0;
	for (; i < ARRAY_SIZE(calls) * ARRAY_SIZE(acts); i++) {
		c.call = &calls[i / ARRAY_SIZE(acts)];
		c.act = &acts[i % ARRAY_SIZE(acts)];
		if (c.call->acts & BIT(i % ARRAY_SIZE(acts))) {
			snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s: %s%s", c.act->desc,
				 c.call->half ? "half of " : "", c.call->symbol);
			return &c;
		}
	}
	return NULL;
}

/* One time with the n-th call failing; false: there is none so late */
static bool fail_nth(struct peer *p, const struct inject_case *c, unsigned int n)
{
	const struct act *act = c->act;
	bool failed;
	int err;

	atomic_set(&fired, 0);
	atomic_set(&calls_left, n);
	err = act->act(p);
	atomic_set(&calls_left, 0);
	failed = atomic_read(&fired);
	KUNIT_EXPECT_TRUE_MSG(p->test, err <= 0, "call %u: %d", n, err);
	if (!failed)
		KUNIT_EXPECT_EQ_MSG(p->test, err, 0, "although no call failed");
	else if (c->call->half)
		peer_expect_reason(p, 0, -ENOMEM, "a request could not be posted");
	if (!err || act->undo_failed)
		KUNIT_EXPECT_EQ_MSG(p->test, 0, act->undo(p), "call %u", n);
	return failed;
}

static void remove_probe(void *half)
{
	atomic_set(&calls_left, 0);
	if (half)
		unregister_kretprobe(&half_probe);
	else
		unregister_kprobe(&probe);
}

static int set_probe(const struct call *call)
{
	if (!call->half) {
		probe = (struct kprobe){ .symbol_name = call->symbol, .pre_handler = on_call };
		return register_kprobe(&probe);
	}
	half_probe = (struct kretprobe){
		.kp.symbol_name = call->symbol,
		.entry_handler = on_post,
		.handler = after_post,
		.data_size = sizeof(struct half),
		.maxactive = 64,
	};
	return register_kretprobe(&half_probe);
}

static void inject_test(struct kunit *test)
{
	const struct inject_case *c = test->param_value;
	struct peer *p = peer_start(test, &(struct peer_mode){ .new_rkey = true });
	void *half = c->call->half ? &half_probe : NULL;
	unsigned int n = 1;

	peer_prepare(p, 1);
	if (c->act->opened)
		KUNIT_ASSERT_EQ(test, 0, peer_open(p, 1, PEER_CONNECT_MS * PEER_SCALE));
	KUNIT_ASSERT_EQ(test, 0, set_probe(c->call));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, remove_probe, half));
	while (n < MAX_CALLS && test->status != KUNIT_FAILURE && fail_nth(p, c, n))
		n++;
	kunit_release_action(test, remove_probe, half);
	KUNIT_EXPECT_GT_MSG(test, n, 1, "it was never called");
	KUNIT_EXPECT_LT(test, n, MAX_CALLS);
	if (!p->clt)
		KUNIT_ASSERT_EQ(test, 0, peer_open(p, 1, PEER_CONNECT_MS * PEER_SCALE));
	peer_expect_works(p);
	peer_stop(p);
}

static struct kunit_case inject_cases[] = {
	KUNIT_CASE_PARAM(inject_test, inject_gen_params),
	{}
};

static struct kunit_suite inject_suite = {
	.name = "rtrs_peer_inject",
	.suite_init = peer_suite_init,
	.suite_exit = peer_suite_exit,
	.test_cases = inject_cases,
};

kunit_test_suite(inject_suite);
