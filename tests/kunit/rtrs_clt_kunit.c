// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the client's inside, included at the end of rtrs-clt.c
 *
 * Sessions and paths are real, made by the code under test, but no path has
 * queues: its state is set by hand and its worker never runs.
 */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/ctype.h>
#include <linux/delay.h>
#include <linux/in.h>
#include <linux/iopoll.h>
#include <linux/workqueue.h>

/* Longer than anything takes, to fail and not to hang */
#define KUNIT_WAIT_US (10 * USEC_PER_SEC)
#define KUNIT_WAIT usecs_to_jiffies(KUNIT_WAIT_US)

/*
 * A session for each test, and paths for it
 */

static void kunit_no_link_ev(void *priv, enum rtrs_clt_link_ev ev)
{
}

static int kunit_clt_init(struct kunit *test)
{
	static const struct rtrs_clt_ops ops = { .link_ev = kunit_no_link_ev };

	test->priv = rtrs_clt_alloc_sess(&ops, "kunit");
	return test->priv ? 0 : -ENOMEM;
}

static void drop_path(struct rtrs_clt_path *path)
{
	rtrs_clt_path_unpublish(path);
	rtrs_clt_path_put(path);
}

static void kunit_clt_exit(struct kunit *test)
{
	struct rtrs_clt_sess *clt = test->priv;
	struct rtrs_clt_path *path;

	while ((path = rtrs_clt_first_path(clt))) {
		drop_path(path);
		kobject_put(&path->kobj);
	}
	flush_work(&clt->ev_work);
	put_device(&clt->dev);
}

/* A letter tells one path from another; it stands where the HCA's name would. */
static char label(const struct rtrs_clt_path *path)
{
	return path ? path->hca_name[0] : '0';
}

/* Returns NULL without memory; also for threads, which must not assert. */
static struct rtrs_clt_path *try_add_path(struct rtrs_clt_sess *clt, char name,
					  enum rtrs_clt_state state)
{
	struct sockaddr_storage dst = {};
	struct rtrs_addr addr = { .dst = &dst };
	struct sockaddr_in *in = (struct sockaddr_in *)&dst;
	struct rtrs_clt_path *path;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(0x0a000000 | name);
	path = rtrs_clt_path_alloc(clt, &addr);
	if (IS_ERR(path))
		return NULL;
	path->state = state;
	path->hca_name[0] = name;
	if (rtrs_clt_path_publish(path)) {
		rtrs_clt_path_put(path);
		return NULL;
	}
	return path;
}

static struct rtrs_clt_path *add_path(struct kunit *test, char name, enum rtrs_clt_state state)
{
	struct rtrs_clt_path *path = try_add_path(test->priv, name, state);

	KUNIT_ASSERT_NOT_NULL(test, path);
	return path;
}

static struct rtrs_clt_path *find_path(struct rtrs_clt_sess *clt, char name)
{
	const struct rtrs_clt_path_set *set = rcu_dereference_protected(clt->paths, true);
	unsigned int i;

	for (i = 0; i < set->nr; i++)
		if (label(set->path[i]) == name)
			return set->path[i];
	return NULL;
}

/* Whoever looks at per-CPU state stays on one CPU. */
static void pin_to(struct kunit *test, unsigned int cpu)
{
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(cpu)), 0);
}

/* Work for other threads, gone before the session goes */
KUNIT_DEFINE_ACTION_WRAPPER(kunit_destroy_wq, destroy_workqueue, struct workqueue_struct *);

static struct workqueue_struct *kunit_wq(struct kunit *test)
{
	struct workqueue_struct *wq = alloc_workqueue("rtrs_kunit", WQ_UNBOUND, 0);

	KUNIT_ASSERT_NOT_NULL(test, wq);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, kunit_destroy_wq, wq), 0);
	return wq;
}

/*
 * Path states: all 49 pairs
 */

struct states_row {
	const char *desc;
	enum rtrs_clt_state from;
	/* to CONNECTING, CONNECTING_ERR, RECONNECTING, CONNECTED, CLOSING, CLOSED, DEAD */
	bool to[7];
};

static const struct states_row states_rows[] = {
	{ "CONNECTING",	    RTRS_CLT_CONNECTING,     { 0, 1, 0, 1, 1, 0, 0 } },
	{ "CONNECTING_ERR", RTRS_CLT_CONNECTING_ERR, { 0, 0, 1, 0, 1, 0, 0 } },
	{ "RECONNECTING",   RTRS_CLT_RECONNECTING,   { 1, 0, 0, 0, 1, 0, 0 } },
	{ "CONNECTED",	    RTRS_CLT_CONNECTED,	     { 0, 0, 1, 0, 1, 0, 0 } },
	{ "CLOSING",	    RTRS_CLT_CLOSING,	     { 0, 0, 0, 0, 0, 1, 0 } },
	{ "CLOSED",	    RTRS_CLT_CLOSED,	     { 0, 0, 1, 0, 0, 0, 1 } },
	{ "DEAD",	    RTRS_CLT_DEAD,	     { 0, 0, 0, 0, 0, 0, 0 } },
};

KUNIT_ARRAY_PARAM_DESC(states, states_rows, desc);

struct waker {
	struct wait_queue_entry entry;
	unsigned int calls;
};

static int waker_func(struct wait_queue_entry *entry, unsigned int mode, int flags, void *key)
{
	container_of(entry, struct waker, entry)->calls++;
	return 0;
}

static void states_test(struct kunit *test)
{
	const struct states_row *row = test->param_value;
	struct rtrs_clt_path *path = add_path(test, 'a', row->from);
	struct waker waker = {};
	unsigned int to;
	bool changed;

	/* the values are seen in traces */
	KUNIT_ASSERT_EQ(test, row->from, row - states_rows);
	KUNIT_ASSERT_EQ(test, RTRS_CLT_STATE_NR, ARRAY_SIZE(row->to));
	init_waitqueue_func_entry(&waker.entry, waker_func);
	add_wait_queue(&path->wait, &waker.entry);

	for (to = 0; to < RTRS_CLT_STATE_NR; to++) {
		waker.calls = 0;
		spin_lock_irq(&path->lock);
		path->state = row->from;
		path->since = 0;
		changed = rtrs_clt_change_state(path, to);
		spin_unlock_irq(&path->lock);

		KUNIT_EXPECT_EQ_MSG(test, changed, row->to[to], "to %u", to);
		KUNIT_EXPECT_EQ_MSG(test, path->state, row->to[to] ? to : row->from, "to %u", to);
		KUNIT_EXPECT_EQ_MSG(test, path->since != 0, row->to[to], "to %u", to);
		KUNIT_EXPECT_EQ_MSG(test, waker.calls, row->to[to], "to %u", to);
	}
	remove_wait_queue(&path->wait, &waker.entry);
}

static struct kunit_case rtrs_clt_states_cases[] = {
	KUNIT_CASE_PARAM(states_test, states_gen_params),
	{}
};

static struct kunit_suite rtrs_clt_states_suite = {
	.name		= "rtrs_clt_states",
	.init		= kunit_clt_init,
	.exit		= kunit_clt_exit,
	.test_cases	= rtrs_clt_states_cases,
};

/*
 * Choice of path. Paths are called a, b, c ... in the order of their addition;
 * in a row a capital letter means that the path is connected.
 */

#define MAX_WALK 8

/* All paths that an iteration hands out, in order */
static void walk(struct rtrs_clt_sess *clt, char *out)
{
	struct rtrs_clt_path *path;
	struct path_it it;
	unsigned int n = 0;

	rcu_read_lock();
	path_it_init(&it, clt);
	while (n < MAX_WALK && (path = it.next_path(&it)))
		out[n++] = label(path);
	/* its end is its end, however often one asks */
	path = it.next_path(&it);
	if (path && n < MAX_WALK)
		out[n++] = '!';
	rcu_read_unlock();
	out[n] = 0;
}

/* The first path that an iteration hands out: that of a request which it takes */
static char pick(struct rtrs_clt_sess *clt)
{
	struct path_it it;
	char name;

	rcu_read_lock();
	path_it_init(&it, clt);
	name = label(it.next_path(&it));
	rcu_read_unlock();
	return name;
}

struct select_row {
	const char *desc;
	enum rtrs_mp_policy policy;
	const char *paths;
	s64 value[4];
	const char *expect;
};

#define RR MP_POLICY_RR
#define MI MP_POLICY_MIN_INFLIGHT
#define ML MP_POLICY_MIN_LATENCY

static const struct select_row select_rows[] = {
	{ "RR, no path", RR, "", {}, "" },
	{ "RR, one path", RR, "A", {}, "a" },
	{ "RR, in order of addition", RR, "ABCD", {}, "abcd" },
	{ "RR, nothing else counts", RR, "ABC", { 9, 1, 5 }, "abc" },
	{ "RR, first not connected", RR, "aBC", {}, "bc" },
	{ "RR, middle not connected", RR, "AbC", {}, "ac" },
	{ "RR, last not connected", RR, "ABc", {}, "ab" },
	{ "RR, none connected", RR, "abc", {}, "" },

	{ "MI, no path", MI, "", {}, "" },
	{ "MI, one path", MI, "A", { 7 }, "a" },
	{ "MI, one path, not connected", MI, "a", {}, "" },
	{ "MI, smallest first", MI, "ABCD", { 4, 2, 1, 3 }, "cbda" },
	{ "MI, all equal", MI, "ABCD", { 5, 5, 5, 5 }, "abcd" },
	{ "MI, all idle", MI, "ABC", {}, "abc" },
	{ "MI, ties behind the smallest", MI, "ABCD", { 3, 1, 3, 1 }, "bdac" },
	{ "MI, smallest not connected", MI, "AbC", { 2, 0, 1 }, "ca" },
	{ "MI, tie with one not connected", MI, "aBC", { 1, 1, 1 }, "bc" },
	{ "MI, none connected", MI, "ab", { 1, 2 }, "" },
	{ "MI, many", MI, "AB", { 65535, 65534 }, "ba" },

	{ "ML, no path", ML, "", {}, "" },
	{ "ML, one path", ML, "A", { 7000 }, "a" },
	{ "ML, one path, unknown", ML, "A", { 0 }, "a" },
	{ "ML, smallest first", ML, "ABCD", { 4000, 2000, 1000, 3000 }, "cbda" },
	{ "ML, all equal", ML, "ABC", { 500, 500, 500 }, "abc" },
	{ "ML, ties behind the smallest", ML, "ABC", { 300, 100, 300 }, "bac" },
	{ "ML, unknown comes last", ML, "ABC", { 0, 300, 200 }, "cba" },
	{ "ML, unknowns by addition", ML, "ABCD", { 0, 1, 0, 0 }, "bacd" },
	{ "ML, all unknown", ML, "ABC", {}, "abc" },
	{ "ML, seconds before unknown", ML, "AB", { 0, 100LL * NSEC_PER_SEC }, "ba" },
	{ "ML, smallest not connected", ML, "AbC", { 200, 1, 100 }, "ca" },
	{ "ML, only the unknown connected", ML, "aBc", { 100, 0, 200 }, "b" },
};

#undef RR
#undef MI
#undef ML

KUNIT_ARRAY_PARAM_DESC(select, select_rows, desc);

static enum rtrs_clt_state state_of(char name)
{
	return isupper(name) ? RTRS_CLT_CONNECTED : RTRS_CLT_RECONNECTING;
}

/* Requests of a path are spread over its connections. */
static void set_value(struct rtrs_clt_path *path, enum rtrs_mp_policy policy, s64 value)
{
	if (policy == MP_POLICY_MIN_LATENCY) {
		path->s.hb_cur_latency = ns_to_ktime(value);
		return;
	}
	atomic_set(&to_clt_con(path->s.con[0])->inflight, value / 2);
	atomic_set(&to_clt_con(path->s.con[path->s.con_num - 1])->inflight, value - value / 2);
}

static void select_test(struct kunit *test)
{
	const struct select_row *row = test->param_value;
	struct rtrs_clt_sess *clt = test->priv;
	struct rtrs_clt_path *path;
	char got[MAX_WALK + 1];
	unsigned int i;

	pin_to(test, raw_smp_processor_id());
	for (i = 0; row->paths[i]; i++) {
		path = add_path(test, tolower(row->paths[i]), state_of(row->paths[i]));
		set_value(path, row->policy, row->value[i]);
	}
	clt->policy = row->policy;

	walk(clt, got);
	KUNIT_EXPECT_STREQ(test, got, row->expect);

	/* nothing has been taken, so the next request gets the same */
	walk(clt, got);
	KUNIT_EXPECT_STREQ(test, got, row->expect);
}

/*
 * The set changes between requests: + and a letter adds a path, - removes one,
 * ! breaks one, ^ brings it back. After each change two rounds of requests must
 * go round what is connected then, from any place.
 */
struct rr_row {
	const char *desc;
	const char *script;
};

static const struct rr_row rr_rows[] = {
	{ "one path", "+a" },
	{ "no path", "" },
	{ "paths are added", "+a+b+c+d" },
	{ "first is removed", "+a+b+c-a" },
	{ "middle is removed", "+a+b+c-b" },
	{ "last is removed", "+a+b+c-c" },
	{ "down to one", "+a+b+c+d-d-a-c" },
	{ "down to none and back", "+a+b-a-b+c+d" },
	{ "one breaks and comes back", "+a+b+c!b^b" },
	{ "all break and come back", "+a+b!a!b^b^a" },
	{ "one breaks and is removed", "+a+b+c!c-c" },
	{ "one is replaced", "+a+b+c-b+d" },
};

KUNIT_ARRAY_PARAM_DESC(rr, rr_rows, desc);

static void rr_change(struct kunit *test, char what, char name)
{
	struct rtrs_clt_path *path = find_path(test->priv, name);

	if (what == '+') {
		add_path(test, name, RTRS_CLT_CONNECTED);
		return;
	}
	KUNIT_ASSERT_NOT_NULL(test, path);
	if (what == '-')
		drop_path(path);
	else
		path->state = what == '^' ? RTRS_CLT_CONNECTED : RTRS_CLT_RECONNECTING;
}

/* Every connected path twice, in order, whatever the first one */
static void expect_two_rounds(struct kunit *test, const char *when)
{
	struct rtrs_clt_sess *clt = test->priv;
	const struct rtrs_clt_path_set *set = rcu_dereference_protected(clt->paths, true);
	char round[16] = "", rounds[48] = "", got[16] = "";
	unsigned int i, n = 0;

	for (i = 0; i < set->nr; i++)
		if (set->path[i]->state == RTRS_CLT_CONNECTED)
			round[n++] = label(set->path[i]);
	if (!n) {
		KUNIT_EXPECT_EQ_MSG(test, pick(clt), '0', "before \"%s\"", when);
		return;
	}
	for (i = 0; i < 2 * n; i++)
		got[i] = pick(clt);
	snprintf(rounds, sizeof(rounds), "%s%s%s", round, round, round);
	KUNIT_EXPECT_NOT_NULL_MSG(test, strstr(rounds, got), "%s of %s before \"%s\"", got,
				  round, when);
}

static void rr_test(struct kunit *test)
{
	const struct rr_row *row = test->param_value;
	struct rtrs_clt_sess *clt = test->priv;
	const char *p;

	pin_to(test, raw_smp_processor_id());
	clt->policy = MP_POLICY_RR;
	expect_two_rounds(test, row->script);
	for (p = row->script; *p; p += 2) {
		rr_change(test, p[0], p[1]);
		expect_two_rounds(test, p + 2);
	}
}

/* Each CPU goes round on its own and begins with the first path. */
static void rr_cpu_test(struct kunit *test)
{
	struct rtrs_clt_sess *clt = test->priv;
	const char *expect = "abcab";
	unsigned int cpu;

	add_path(test, 'a', RTRS_CLT_CONNECTED);
	add_path(test, 'b', RTRS_CLT_CONNECTED);
	add_path(test, 'c', RTRS_CLT_CONNECTED);
	clt->policy = MP_POLICY_RR;

	for (; *expect; expect++) {
		for_each_online_cpu(cpu) {
			pin_to(test, cpu);
			KUNIT_EXPECT_EQ_MSG(test, pick(clt), *expect, "CPU %u", cpu);
		}
	}
}

/* What happens to a path or to the policy during an iteration */
static void select_midway_test(struct kunit *test)
{
	struct rtrs_clt_sess *clt = test->priv;
	struct rtrs_clt_path *b, *got[3];
	enum rtrs_mp_policy policy;
	struct path_it it;

	add_path(test, 'a', RTRS_CLT_CONNECTED);
	b = add_path(test, 'b', RTRS_CLT_CONNECTED);
	add_path(test, 'c', RTRS_CLT_CONNECTED);
	pin_to(test, raw_smp_processor_id());
	for (policy = 0; policy < MP_POLICY_NR; policy++) {
		clt->policy = policy;
		b->state = RTRS_CLT_CONNECTED;

		rcu_read_lock();
		path_it_init(&it, clt);
		got[0] = it.next_path(&it);
		b->state = RTRS_CLT_RECONNECTING;
		clt->policy = (policy + 1) % MP_POLICY_NR;
		got[1] = it.next_path(&it);
		got[2] = it.next_path(&it);
		rcu_read_unlock();

		KUNIT_EXPECT_EQ_MSG(test, label(got[0]), 'a', "policy %u", policy);
		KUNIT_EXPECT_EQ_MSG(test, label(got[1]), 'c', "policy %u", policy);
		KUNIT_EXPECT_EQ_MSG(test, label(got[2]), '0', "policy %u", policy);
	}
}

/* Requests that find their paths in turns, on one CPU or on several */
static void select_interleaved_test(struct kunit *test)
{
	struct rtrs_clt_sess *clt = test->priv;
	char got[2][MAX_WALK + 1];
	enum rtrs_mp_policy policy;
	struct path_it it[2];
	unsigned int i, n;

	for (n = 0; n < 3; n++)
		add_path(test, 'a' + n, RTRS_CLT_CONNECTED);
	for (policy = 0; policy < MP_POLICY_NR; policy++) {
		clt->policy = policy;
		memset(got, 0, sizeof(got));

		rcu_read_lock();
		path_it_init(&it[0], clt);
		path_it_init(&it[1], clt);
		for (n = 0; n < 3; n++)
			for (i = 0; i < 2; i++)
				got[i][n] = label(it[i].next_path(&it[i]));
		rcu_read_unlock();

		/* each of them has tried each path */
		for (i = 0; i < 2; i++)
			for (n = 0; n < 3; n++)
				KUNIT_EXPECT_NOT_NULL_MSG(test, strchr(got[i], 'a' + n),
							  "policy %u: %s", policy, got[i]);
	}
}

/* Threads that walk while the set and the states of the paths change */
struct walker {
	struct work_struct work;
	struct rtrs_clt_sess *clt;
	bool *stop;
	unsigned int walks, bad;
};

static void walker_work(struct work_struct *work)
{
	struct walker *w = container_of(work, struct walker, work);
	char got[MAX_WALK + 1];
	unsigned int i;

	while (!READ_ONCE(*w->stop)) {
		walk(w->clt, got);
		for (i = 0; got[i]; i++)
			/* '!': a path has come up behind the end, and was not tried yet */
			if (got[i] != '!' && (got[i] < 'a' || got[i] > 'd' ||
					      strchr(got + i + 1, got[i])))
				w->bad++;
		w->walks++;
		cond_resched();
	}
}

/* Each path at most once in an iteration, none that was freed (KASAN sees that) */
static void select_race_test(struct kunit *test)
{
	static const enum rtrs_clt_state state[] = { RTRS_CLT_CONNECTED, RTRS_CLT_CLOSED };
	struct workqueue_struct *wq = kunit_wq(test);
	struct rtrs_clt_sess *clt = test->priv;
	struct rtrs_clt_path *path;
	struct walker w[3] = {};
	bool stop = false;
	unsigned int i;

	add_path(test, 'a', RTRS_CLT_CONNECTED);
	add_path(test, 'b', RTRS_CLT_CONNECTED);
	for (i = 0; i < ARRAY_SIZE(w); i++) {
		w[i].clt = clt;
		w[i].stop = &stop;
		INIT_WORK_ONSTACK(&w[i].work, walker_work);
		queue_work(wq, &w[i].work);
	}
	for (i = 0; i < 24; i++) {
		WRITE_ONCE(clt->policy, i % MP_POLICY_NR);
		WRITE_ONCE(find_path(clt, 'b')->state, state[i % 2]);
		path = try_add_path(clt, 'c' + i % 2, RTRS_CLT_CONNECTED);
		fsleep(1000);
		if (path)
			drop_path(path);
	}
	WRITE_ONCE(stop, true);
	for (i = 0; i < ARRAY_SIZE(w); i++) {
		flush_work(&w[i].work);
		destroy_work_on_stack(&w[i].work);
		KUNIT_EXPECT_EQ(test, w[i].bad, 0);
		KUNIT_EXPECT_GT(test, w[i].walks, 0);
	}
}

static struct kunit_case rtrs_clt_selectors_cases[] = {
	KUNIT_CASE_PARAM(select_test, select_gen_params),
	KUNIT_CASE_PARAM(rr_test, rr_gen_params),
	KUNIT_CASE(rr_cpu_test),
	KUNIT_CASE(select_midway_test),
	KUNIT_CASE(select_interleaved_test),
	KUNIT_CASE(select_race_test),
	{}
};

static struct kunit_suite rtrs_clt_selectors_suite = {
	.name		= "rtrs_clt_selectors",
	.init		= kunit_clt_init,
	.exit		= kunit_clt_exit,
	.test_cases	= rtrs_clt_selectors_cases,
};

#include "rtrs_clt_permits_kunit.c"
#include "rtrs_clt_calls_kunit.c"
#include "rtrs_clt_stats_kunit.c"

kunit_test_suites(&rtrs_clt_states_suite, &rtrs_clt_selectors_suite, &rtrs_clt_permits_suite,
		  &rtrs_clt_events_suite, &rtrs_clt_calls_suite, &rtrs_clt_stats_suite);
