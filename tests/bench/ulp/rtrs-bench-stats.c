// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RTRS bench client: counting, percentiles, the report
 */
#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/seq_file.h>
#include <linux/time64.h>

#include "rtrs-bench-clt.h"

/*
 * Which bucket a time belongs to: the number of its highest bit, and the bits
 * below that one. What has fewer bits is its own bucket.
 */
static unsigned int bench_bucket(u64 ns)
{
	unsigned int octave;

	if (ns < 1 << BENCH_BUCKETS_LOG)
		return ns;
	octave = fls64(ns) - BENCH_BUCKETS_LOG;
	return min_t(u64, ((u64)octave << BENCH_BUCKETS_LOG) +
		     ((ns >> (octave - 1)) - (1 << BENCH_BUCKETS_LOG)), BENCH_BUCKETS - 1);
}

/* The longest time that belongs to a bucket */
static u64 bench_bucket_end(unsigned int bucket)
{
	unsigned int octave = bucket >> BENCH_BUCKETS_LOG;
	u64 rest = bucket & ((1 << BENCH_BUCKETS_LOG) - 1);

	if (!octave)
		return rest;
	return ((rest + (1 << BENCH_BUCKETS_LOG) + 1) << (octave - 1)) - 1;
}

/**
 * bench_count() - count a request that was confirmed
 * @stats: of the thread
 * @slot: of the request
 */
void bench_count(struct bench_stats *stats, const struct bench_slot *slot)
{
	u64 ns = slot->end_ns - slot->begin_ns;

	if (slot->errno) {
		stats->errors++;
		stats->last_error = slot->errno;
		if (slot->errno == -EBADMSG)
			stats->corrupt++;
		return;
	}
	if (slot->dir == READ)
		stats->reads++;
	else
		stats->writes++;
	stats->max_ns = max(stats->max_ns, ns);
	stats->bucket[bench_bucket(ns)]++;
}

/**
 * bench_add() - add up
 * @sum: of some threads
 * @stats: of one more
 */
void bench_add(struct bench_stats *sum, const struct bench_stats *stats)
{
	unsigned int i;

	sum->reads += stats->reads;
	sum->writes += stats->writes;
	sum->busy += stats->busy;
	sum->errors += stats->errors;
	sum->last_error = stats->last_error ?: sum->last_error;
	sum->corrupt += stats->corrupt;
	sum->touched += stats->touched;
	sum->max_ns = max(sum->max_ns, stats->max_ns);
	for (i = 0; i < BENCH_BUCKETS; i++)
		sum->bucket[i] += stats->bucket[i];
}

/* The time that so many of 1000 requests did not exceed */
static u64 bench_percentile(const struct bench_stats *stats, unsigned int permille)
{
	u64 rank = DIV64_U64_ROUND_UP((stats->reads + stats->writes) * permille, 1000);
	u64 seen = 0;
	unsigned int i;

	for (i = 0; i < BENCH_BUCKETS - 1; i++) {
		seen += stats->bucket[i];
		if (seen >= rank)
			break;
	}
	return min(bench_bucket_end(i), stats->max_ns);
}

/**
 * bench_report() - print what a run has found
 * @file: where to
 * @result: of the run
 */
void bench_report(struct seq_file *file, const struct bench_result *result)
{
	const struct bench_stats *stats = &result->stats;
	u64 done = stats->reads + stats->writes;

	seq_printf(file, "reads %llu\nwrites %llu\n", stats->reads, stats->writes);
	seq_printf(file, "errors %llu\nlast_error %d\n", stats->errors, stats->last_error);
	seq_printf(file, "busy %llu\n", stats->busy);
	seq_printf(file, "corrupt %llu\ntouched %llu\n", stats->corrupt, stats->touched);
	seq_printf(file, "ns %llu\n", result->ns);
	seq_printf(file, "per_second %llu\n",
		   mul_u64_u64_div_u64(done, NSEC_PER_SEC, max(result->ns, 1ULL)));
	seq_printf(file, "p50_ns %llu\n", bench_percentile(stats, 500));
	seq_printf(file, "p90_ns %llu\n", bench_percentile(stats, 900));
	seq_printf(file, "p99_ns %llu\n", bench_percentile(stats, 990));
	seq_printf(file, "p99.9_ns %llu\n", bench_percentile(stats, 999));
	seq_printf(file, "max_ns %llu\n", stats->max_ns);
}
