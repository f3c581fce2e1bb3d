// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the client's counters by CPU, included by rtrs_clt_kunit.c
 */

static int migrated_to(struct rtrs_clt_path *path, unsigned int cpu)
{
	return atomic_read(&per_cpu_ptr(path->stats.pcpu, cpu)->migr_to);
}

static int migrated_from(struct rtrs_clt_path *path, unsigned int cpu)
{
	return atomic_read(&per_cpu_ptr(path->stats.pcpu, cpu)->migr_from);
}

/* A completion that is handled elsewhere counts at both CPUs, others do not. */
static void migration_test(struct kunit *test)
{
	struct rtrs_clt_path *path = add_path(test, 'a', RTRS_CLT_CONNECTED);
	struct rtrs_clt_con *con = to_clt_con(path->s.con[1]);
	unsigned int here = cpumask_first(cpu_online_mask);
	unsigned int other = cpumask_next(here, cpu_possible_mask);

	if (other >= nr_cpu_ids)
		kunit_skip(test, "there is one CPU only");
	pin_to(test, here);
	con->cpu = here;
	rtrs_clt_stats_completion(con);
	KUNIT_EXPECT_EQ(test, migrated_to(path, here), 0);
	KUNIT_EXPECT_EQ(test, migrated_from(path, here), 0);
	con->cpu = other;
	rtrs_clt_stats_completion(con);
	KUNIT_EXPECT_EQ(test, migrated_to(path, here), 1);
	KUNIT_EXPECT_EQ(test, migrated_from(path, other), 1);
}

/* Connections stand for all CPU numbers, and there are numbers without a CPU. */
static void hole_test(struct kunit *test)
{
	struct rtrs_clt_path *path = add_path(test, 'a', RTRS_CLT_CONNECTED);
	struct rtrs_clt_con *con = to_clt_con(path->s.con[1]);
	unsigned int here = cpumask_first(cpu_online_mask);
	unsigned int hole = find_first_zero_bit(cpumask_bits(cpu_possible_mask),
						CONFIG_NR_CPUS);
	unsigned int cpu;

	if (hole == CONFIG_NR_CPUS)
		kunit_skip(test, "each number has a CPU");
	pin_to(test, here);
	con->cpu = hole;
	rtrs_clt_stats_completion(con);
	KUNIT_EXPECT_EQ(test, migrated_to(path, here), 1);
	for_each_possible_cpu(cpu)
		KUNIT_EXPECT_EQ(test, migrated_from(path, cpu), 0);
}

static struct kunit_case rtrs_clt_stats_cases[] = {
	KUNIT_CASE(migration_test),
	KUNIT_CASE(hole_test),
	{}
};

static struct kunit_suite rtrs_clt_stats_suite = {
	.name = "rtrs_clt_stats",
	.init = kunit_clt_init,
	.exit = kunit_clt_exit,
	.test_cases = rtrs_clt_stats_cases,
};
