// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the client's permits, included by rtrs_clt_kunit.c
 */

static void make_permits(struct kunit *test, unsigned int depth, size_t pdu_sz)
{
	struct rtrs_clt_sess *clt = test->priv;

	clt->queue_depth = depth;
	clt->pdu_sz = pdu_sz;
	KUNIT_ASSERT_EQ(test, rtrs_clt_alloc_permits(clt), 0);
}

static struct rtrs_permit *get_permit(struct rtrs_clt_sess *clt)
{
	return rtrs_clt_get_permit(clt, RTRS_IO_CON, RTRS_PERMIT_NOWAIT);
}

struct permits_row {
	const char *desc;
	unsigned int depth;
	size_t pdu_sz;
};

static const struct permits_row permits_rows[] = {
	{ "one permit", 1, 0 },
	{ "two permits", 2, 0 },
	{ "odd depth", 7, 0 },
	{ "more than a word of bits", 65, 0 },
	{ "the usual depth", 512, 0 },
	{ "the largest depth", 65535, 0 },
	{ "a byte for the caller", 9, 1 },
	{ "one less than a word", 9, 7 },
	{ "a word", 9, 8 },
	{ "one more than a word", 9, 9 },
	{ "a page", 9, 4096 },
};

KUNIT_ARRAY_PARAM_DESC(permits, permits_rows, desc);

/* As many as there are chunks, each a number of its own, and no more */
static void permits_exhaust_test(struct kunit *test)
{
	const struct permits_row *row = test->param_value;
	struct rtrs_clt_sess *clt = test->priv;
	unsigned long *seen = kunit_kcalloc(test, BITS_TO_LONGS(row->depth), sizeof(long),
					    GFP_KERNEL);
	struct rtrs_permit *permit;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, seen);
	make_permits(test, row->depth, row->pdu_sz);

	for (i = 0; i < row->depth; i++) {
		permit = get_permit(clt);
		KUNIT_ASSERT_NOT_NULL(test, permit);
		KUNIT_ASSERT_LT(test, permit->mem_id, row->depth);
		KUNIT_ASSERT_FALSE(test, test_and_set_bit(permit->mem_id, seen));
		KUNIT_ASSERT_PTR_EQ(test, permit, rtrs_clt_nth_permit(clt, permit->mem_id));
	}
	KUNIT_EXPECT_NULL(test, get_permit(clt));

	/* the one that comes back is the one that goes out */
	permit = rtrs_clt_nth_permit(clt, row->depth / 2);
	rtrs_clt_put_permit(clt, permit);
	KUNIT_EXPECT_PTR_EQ(test, get_permit(clt), permit);
	KUNIT_EXPECT_NULL(test, get_permit(clt));

	for (i = 0; i < row->depth; i++)
		rtrs_clt_put_permit(clt, rtrs_clt_nth_permit(clt, i));
	KUNIT_EXPECT_FALSE(test, sbitmap_any_bit_set(&clt->permits_map));
}

/* The caller's bytes are aligned, and nobody else's. */
static void permits_layout_test(struct kunit *test)
{
	const struct permits_row *row = test->param_value;
	struct rtrs_clt_sess *clt = test->priv;
	struct rtrs_permit *permit, *next;
	unsigned int i;

	make_permits(test, row->depth, row->pdu_sz);
	for (i = 0; i < row->depth; i++) {
		permit = rtrs_clt_nth_permit(clt, i);
		KUNIT_ASSERT_EQ(test, (unsigned long)permit % sizeof(u64), 0);
		KUNIT_ASSERT_EQ(test, permit->mem_id, i);
		if (i + 1 == row->depth)
			break;
		next = rtrs_clt_nth_permit(clt, i + 1);
		KUNIT_ASSERT_GE(test, (void *)next - (void *)(permit + 1), (long)row->pdu_sz);
	}

	for (i = 0; i < row->depth; i++)
		memset(rtrs_clt_nth_permit(clt, i) + 1, 0xff, row->pdu_sz);
	for (i = 0; i < row->depth; i++)
		KUNIT_ASSERT_EQ(test, rtrs_clt_nth_permit(clt, i)->mem_id, i);
}

/* A permit remembers for whom it is and where it was taken. */
static void permits_caller_test(struct kunit *test)
{
	struct rtrs_clt_sess *clt = test->priv;
	struct rtrs_permit *permit;
	unsigned int cpu;

	make_permits(test, 1, 0);
	for_each_online_cpu(cpu) {
		pin_to(test, cpu);
		permit = rtrs_clt_get_permit(clt, RTRS_ADMIN_CON, RTRS_PERMIT_WAIT);
		KUNIT_EXPECT_EQ(test, permit->con_type, RTRS_ADMIN_CON);
		KUNIT_EXPECT_EQ(test, permit->cpu_id, cpu);
		rtrs_clt_put_permit(clt, permit);

		permit = rtrs_clt_get_permit(clt, RTRS_IO_CON, RTRS_PERMIT_NOWAIT);
		KUNIT_EXPECT_EQ(test, permit->con_type, RTRS_IO_CON);
		KUNIT_EXPECT_EQ(test, permit->cpu_id, cpu);
		rtrs_clt_put_permit(clt, permit);
	}
}

/* CPU n has connection n + 1, whatever lies behind the interrupt connections. */
static void permits_con_test(struct kunit *test)
{
	struct rtrs_clt_sess *clt = test->priv;
	struct rtrs_permit permit = {};
	struct rtrs_clt_path *path;
	unsigned int cpu;

	clt->nr_poll_queues = 3;
	path = add_path(test, 'a', RTRS_CLT_CONNECTED);
	KUNIT_ASSERT_EQ(test, path->s.irq_con_num, nr_cpu_ids + 1);
	KUNIT_ASSERT_EQ(test, path->s.con_num, nr_cpu_ids + 4);

	for (cpu = 0; cpu < 2 * nr_cpu_ids; cpu++) {
		permit.cpu_id = cpu;
		permit.con_type = RTRS_IO_CON;
		KUNIT_EXPECT_EQ(test, rtrs_permit_to_clt_con(path, &permit)->c.cid,
				cpu % nr_cpu_ids + 1);
		permit.con_type = RTRS_ADMIN_CON;
		KUNIT_EXPECT_EQ(test, rtrs_permit_to_clt_con(path, &permit)->c.cid, 0);
	}
}

/* A permit put twice may be another caller's by then. */
static void permits_put_twice_test(struct kunit *test)
{
	struct rtrs_clt_sess *clt = test->priv;
	struct rtrs_permit *permit;

	make_permits(test, 2, 0);
	permit = get_permit(clt);
	rtrs_clt_put_permit(clt, permit);
	kunit_warning_suppress(test) {
		rtrs_clt_put_permit(clt, permit);
		KUNIT_EXPECT_SUPPRESSED_WARNING_COUNT(test, 1);
	}
	KUNIT_EXPECT_FALSE(test, sbitmap_any_bit_set(&clt->permits_map));
}

/* A thread that waits for a permit and keeps it until told */
struct waiter {
	struct work_struct work;
	struct rtrs_clt_sess *clt;
	atomic_t *served;
	struct completion *release;
	struct rtrs_permit *permit;
};

static void waiter_work(struct work_struct *work)
{
	struct waiter *w = container_of(work, struct waiter, work);

	w->permit = rtrs_clt_get_permit(w->clt, RTRS_IO_CON, RTRS_PERMIT_WAIT);
	atomic_inc(w->served);
	wait_for_completion(w->release);
	rtrs_clt_put_permit(w->clt, w->permit);
}

static unsigned int nr_sleeping(struct rtrs_clt_sess *clt)
{
	struct wait_queue_entry *entry;
	unsigned int n = 0;

	spin_lock_irq(&clt->permits_wait.lock);
	list_for_each_entry(entry, &clt->permits_wait.head, entry)
		n++;
	spin_unlock_irq(&clt->permits_wait.lock);
	return n;
}

/* 0, or -ETIMEDOUT if it does not come to that */
static int wait_sleeping(struct rtrs_clt_sess *clt, unsigned int nr)
{
	unsigned int val;

	return read_poll_timeout(nr_sleeping, val, val == nr, 1000, KUNIT_WAIT_US, false, clt);
}

static int wait_served(const atomic_t *served, int nr)
{
	int val;

	return read_poll_timeout(atomic_read, val, val == nr, 1000, KUNIT_WAIT_US, false, served);
}

/* Each put serves one of those who wait, and no more than one. */
static void permits_wake_test(struct kunit *test)
{
	struct workqueue_struct *wq = kunit_wq(test);
	struct rtrs_clt_sess *clt = test->priv;
	DECLARE_COMPLETION_ONSTACK(release);
	struct rtrs_permit *permit[4];
	struct waiter w[4] = {};
	atomic_t served = ATOMIC_INIT(0);
	unsigned int i;

	make_permits(test, ARRAY_SIZE(permit), 0);
	for (i = 0; i < ARRAY_SIZE(permit); i++)
		permit[i] = get_permit(clt);
	for (i = 0; i < ARRAY_SIZE(w); i++) {
		w[i] = (struct waiter){ .clt = clt, .served = &served, .release = &release };
		INIT_WORK_ONSTACK(&w[i].work, waiter_work);
		queue_work(wq, &w[i].work);
	}
	KUNIT_EXPECT_EQ(test, wait_sleeping(clt, ARRAY_SIZE(w)), 0);
	KUNIT_EXPECT_NULL(test, get_permit(clt));

	for (i = 0; i < ARRAY_SIZE(permit); i++) {
		rtrs_clt_put_permit(clt, permit[i]);
		KUNIT_EXPECT_EQ(test, wait_served(&served, i + 1), 0);
		KUNIT_EXPECT_EQ(test, wait_sleeping(clt, ARRAY_SIZE(w) - i - 1), 0);
		KUNIT_EXPECT_NULL(test, get_permit(clt));
	}
	complete_all(&release);
	for (i = 0; i < ARRAY_SIZE(w); i++) {
		flush_work(&w[i].work);
		destroy_work_on_stack(&w[i].work);
	}
	KUNIT_EXPECT_FALSE(test, sbitmap_any_bit_set(&clt->permits_map));
}

struct closer {
	struct work_struct work;
	struct rtrs_clt_sess *clt;
	struct completion done;
};

static void closer_work(struct work_struct *work)
{
	struct closer *c = container_of(work, struct closer, work);

	rtrs_clt_wait_permits(c->clt);
	complete(&c->done);
}

/* Close waits for the last permit, and hears of it at once. */
static void permits_close_test(struct kunit *test)
{
	struct workqueue_struct *wq = kunit_wq(test);
	struct closer c = { .clt = test->priv };
	struct rtrs_permit *a, *b;

	make_permits(test, 2, 0);
	a = get_permit(c.clt);
	b = get_permit(c.clt);
	init_completion(&c.done);
	INIT_WORK_ONSTACK(&c.work, closer_work);
	queue_work(wq, &c.work);

	KUNIT_EXPECT_EQ(test, wait_sleeping(c.clt, 1), 0);
	rtrs_clt_put_permit(c.clt, a);
	KUNIT_EXPECT_FALSE(test, wait_for_completion_timeout(&c.done, msecs_to_jiffies(50)));
	rtrs_clt_put_permit(c.clt, b);
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&c.done, KUNIT_WAIT));
	flush_work(&c.work);
	destroy_work_on_stack(&c.work);
}

/* More threads than permits; nobody ever holds what another one holds. */
#define STRESS_DEPTH  3
#define STRESS_ROUNDS 1000

struct stress {
	struct work_struct work;
	struct rtrs_clt_sess *clt;
	atomic_t *owner;
	unsigned int id, got, clashes;
};

static void stress_round(struct stress *s, enum wait_type wait)
{
	enum rtrs_clt_con_type type = s->id % 2 ? RTRS_IO_CON : RTRS_ADMIN_CON;
	struct rtrs_permit *permit = rtrs_clt_get_permit(s->clt, type, wait);

	if (!permit)
		return;
	s->got++;
	if (permit->mem_id >= STRESS_DEPTH || permit->con_type != type ||
	    atomic_cmpxchg(&s->owner[permit->mem_id], 0, s->id)) {
		s->clashes++;
	} else {
		cond_resched();
		if (atomic_xchg(&s->owner[permit->mem_id], 0) != s->id)
			s->clashes++;
	}
	rtrs_clt_put_permit(s->clt, permit);
}

static void stress_work(struct work_struct *work)
{
	struct stress *s = container_of(work, struct stress, work);
	unsigned int i;

	for (i = 0; i < STRESS_ROUNDS; i++) {
		stress_round(s, RTRS_PERMIT_WAIT);
		stress_round(s, RTRS_PERMIT_NOWAIT);
		cond_resched();
	}
}

static void permits_stress_test(struct kunit *test)
{
	struct workqueue_struct *wq = kunit_wq(test);
	struct rtrs_clt_sess *clt = test->priv;
	atomic_t owner[STRESS_DEPTH] = {};
	struct stress s[6] = {};
	unsigned int i;

	make_permits(test, STRESS_DEPTH, 0);
	for (i = 0; i < ARRAY_SIZE(s); i++) {
		s[i].clt = clt;
		s[i].owner = owner;
		s[i].id = i + 1;
		INIT_WORK_ONSTACK(&s[i].work, stress_work);
		queue_work(wq, &s[i].work);
	}
	for (i = 0; i < ARRAY_SIZE(s); i++) {
		flush_work(&s[i].work);
		destroy_work_on_stack(&s[i].work);
		KUNIT_EXPECT_EQ(test, s[i].clashes, 0);
		/* waiting never fails */
		KUNIT_EXPECT_GE(test, s[i].got, STRESS_ROUNDS);
	}
	KUNIT_EXPECT_FALSE(test, sbitmap_any_bit_set(&clt->permits_map));
}

static struct kunit_case rtrs_clt_permits_cases[] = {
	KUNIT_CASE_PARAM(permits_exhaust_test, permits_gen_params),
	KUNIT_CASE_PARAM(permits_layout_test, permits_gen_params),
	KUNIT_CASE(permits_caller_test),
	KUNIT_CASE(permits_con_test),
	KUNIT_CASE(permits_put_twice_test),
	KUNIT_CASE(permits_wake_test),
	KUNIT_CASE(permits_close_test),
	KUNIT_CASE(permits_stress_test),
	{}
};

static struct kunit_suite rtrs_clt_permits_suite = {
	.name		= "rtrs_clt_permits",
	.init		= kunit_clt_init,
	.exit		= kunit_clt_exit,
	.test_cases	= rtrs_clt_permits_cases,
};
