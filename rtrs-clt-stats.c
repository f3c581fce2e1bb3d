// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RDMA Transport client: statistics of a path
 *
 * Counters live in per-CPU memory but are atomic: whoever counts may be
 * preempted or interrupted at any point, and a migration also counts on a CPU
 * that is not the running one. A reset meets counting halfway, then a few
 * events count for neither side; nothing but the output depends on them.
 */
#include <linux/cpumask.h>
#include <linux/percpu.h>
#include <linux/smp.h>

#include "rtrs-clt.h"

int rtrs_clt_stats_init(struct rtrs_clt_stats *stats)
{
	stats->pcpu = alloc_percpu(struct rtrs_clt_stats_pcpu);
	if (!stats->pcpu)
		return -ENOMEM;

	/* the first connect is none of the reconnects */
	atomic_set(&stats->reconnects_ok, -1);
	return 0;
}

void rtrs_clt_stats_free(struct rtrs_clt_stats *stats)
{
	free_percpu(stats->pcpu);
}

/**
 * rtrs_clt_stats_request() - count a request submitted on a path
 * @path: carries the request
 * @dir: READ or WRITE
 * @bytes: data and user message
 *
 * Context: any.
 */
void rtrs_clt_stats_request(struct rtrs_clt_path *path, int dir, size_t bytes)
{
	struct rtrs_clt_stats_pcpu *pcpu = raw_cpu_ptr(path->stats.pcpu);

	atomic64_inc(&pcpu->cnt[dir]);
	atomic64_add(bytes, &pcpu->bytes[dir]);
}

/**
 * rtrs_clt_stats_failover() - count a request taken over from another path
 * @path: took it
 *
 * Context: any.
 */
void rtrs_clt_stats_failover(struct rtrs_clt_path *path)
{
	atomic64_inc(&raw_cpu_ptr(path->stats.pcpu)->failover);
}

/**
 * rtrs_clt_stats_completion() - account for the CPU of a completion
 * @con: connection that it belongs to
 *
 * Counts if the running CPU is not the one that @con stands for.
 *
 * Context: any.
 */
void rtrs_clt_stats_completion(struct rtrs_clt_con *con)
{
	struct rtrs_clt_stats_pcpu __percpu *pcpu = con_to_path(con)->stats.pcpu;
	unsigned int cpu = raw_smp_processor_id();

	if (likely(con->cpu == cpu))
		return;

	atomic_inc(&per_cpu_ptr(pcpu, cpu)->migr_to);
	/* cids are dealt over all CPU numbers, those in a hole have no memory */
	if (cpu_possible(con->cpu))
		atomic_inc(&per_cpu_ptr(pcpu, con->cpu)->migr_from);
}

/**
 * rtrs_clt_stats_inflight() - requests in flight on a path
 * @path: a path with its connections, which it has from allocation to release
 *
 * Context: any.
 * Return: the number of requests that the min-inflight policy has counted
 */
unsigned int rtrs_clt_stats_inflight(const struct rtrs_clt_path *path)
{
	unsigned int sum = 0;
	unsigned int cid;

	for (cid = 0; cid < path->s.con_num; cid++)
		sum += atomic_read(&to_clt_con(path->s.con[cid])->inflight);
	return sum;
}

static int reset_cpu_migration(struct rtrs_clt_stats *stats, bool on)
{
	struct rtrs_clt_stats_pcpu *pcpu;
	int cpu;

	if (!on)
		return -EINVAL;

	for_each_possible_cpu(cpu) {
		pcpu = per_cpu_ptr(stats->pcpu, cpu);
		atomic_set(&pcpu->migr_from, 0);
		atomic_set(&pcpu->migr_to, 0);
	}
	return 0;
}

static int reset_reconnects(struct rtrs_clt_stats *stats, bool on)
{
	if (!on)
		return -EINVAL;

	atomic_set(&stats->reconnects_ok, 0);
	atomic_set(&stats->reconnects_failed, 0);
	return 0;
}

/* Requests in flight are no statistics: they stay counted. */
static int reset_rdma(struct rtrs_clt_stats *stats, bool on)
{
	struct rtrs_clt_stats_pcpu *pcpu;
	int cpu, dir;

	if (!on)
		return -EINVAL;

	for_each_possible_cpu(cpu) {
		pcpu = per_cpu_ptr(stats->pcpu, cpu);
		for (dir = READ; dir <= WRITE; dir++) {
			atomic64_set(&pcpu->cnt[dir], 0);
			atomic64_set(&pcpu->bytes[dir], 0);
		}
		atomic64_set(&pcpu->failover, 0);
	}
	return 0;
}

static int reset_all_stats(struct rtrs_clt_stats *stats, bool on)
{
	if (!on)
		return -EINVAL;

	reset_cpu_migration(stats, on);
	reset_reconnects(stats, on);
	reset_rdma(stats, on);
	return 0;
}

static ssize_t print_cpu_migration(struct rtrs_clt_stats *stats, char *page, bool to)
{
	const struct rtrs_clt_stats_pcpu *pcpu;
	int len = 0;
	int cpu;

	for_each_possible_cpu(cpu) {
		pcpu = per_cpu_ptr(stats->pcpu, cpu);
		len += sysfs_emit_at(page, len, "%d ",
				     atomic_read(to ? &pcpu->migr_to : &pcpu->migr_from));
	}
	return len + sysfs_emit_at(page, len, "\n");
}

static ssize_t print_cpu_migration_from(struct rtrs_clt_stats *stats, char *page)
{
	return print_cpu_migration(stats, page, false);
}

static ssize_t print_cpu_migration_to(struct rtrs_clt_stats *stats, char *page)
{
	return print_cpu_migration(stats, page, true);
}

static ssize_t print_reconnects(struct rtrs_clt_stats *stats, char *page)
{
	return sysfs_emit(page, "%d %d\n", atomic_read(&stats->reconnects_ok),
			  atomic_read(&stats->reconnects_failed));
}

static ssize_t print_rdma(struct rtrs_clt_stats *stats, char *page)
{
	const struct rtrs_clt_path *path = container_of(stats, struct rtrs_clt_path, stats);
	u64 cnt[2] = {}, bytes[2] = {}, failover = 0;
	const struct rtrs_clt_stats_pcpu *pcpu;
	int cpu, dir;

	for_each_possible_cpu(cpu) {
		pcpu = per_cpu_ptr(stats->pcpu, cpu);
		for (dir = READ; dir <= WRITE; dir++) {
			cnt[dir] += atomic64_read(&pcpu->cnt[dir]);
			bytes[dir] += atomic64_read(&pcpu->bytes[dir]);
		}
		failover += atomic64_read(&pcpu->failover);
	}
	return sysfs_emit(page, "%llu %llu %llu %llu %u %llu\n", cnt[READ], bytes[READ],
			  cnt[WRITE], bytes[WRITE], rtrs_clt_stats_inflight(path), failover);
}

static ssize_t print_reset_all(struct rtrs_clt_stats *stats, char *page)
{
	return sysfs_emit(page, "echo 1 to reset all statistics\n");
}

STAT_ATTR(struct rtrs_clt_stats, cpu_migration_from, print_cpu_migration_from,
	  reset_cpu_migration);
STAT_ATTR(struct rtrs_clt_stats, cpu_migration_to, print_cpu_migration_to, reset_cpu_migration);
STAT_ATTR(struct rtrs_clt_stats, reconnects, print_reconnects, reset_reconnects);
STAT_ATTR(struct rtrs_clt_stats, rdma, print_rdma, reset_rdma);
STAT_ATTR(struct rtrs_clt_stats, reset_all, print_reset_all, reset_all_stats);

static struct attribute *rtrs_clt_stats_attrs[] = {
	&rdma_attr.attr,
	&reconnects_attr.attr,
	&cpu_migration_from_attr.attr,
	&cpu_migration_to_attr.attr,
	&reset_all_attr.attr,
	NULL
};

const struct attribute_group rtrs_clt_stats_group = {
	.attrs = rtrs_clt_stats_attrs,
};
