/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RTRS bench client: structures
 *
 * rtrs-bench-clt.c	the session: open, hello, link events, close; debugfs
 * rtrs-bench-run.c	a run: threads, requests, confirmations, the data
 * rtrs-bench-stats.c	counting, percentiles, the report
 */
#ifndef RTRS_BENCH_CLT_H
#define RTRS_BENCH_CLT_H

#include <linux/completion.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/wait.h>

#include <rtrs.h>

#include "rtrs-bench.h"

struct seq_file;
struct task_struct;

/**
 * enum bench_rw - what a run does
 * @BENCH_READ: reads
 * @BENCH_WRITE: writes
 * @BENCH_MIXED: writes each block and reads it back
 */
enum bench_rw {
	BENCH_READ,
	BENCH_WRITE,
	BENCH_MIXED,
};

/**
 * struct bench_params - what a run is to do
 * @rw: enum bench_rw
 * @size: bytes of data in a request
 * @segment: bytes in each element of its scatterlist
 * @depth: requests under way on each CPU
 * @cpus: CPUs at work
 * @ms: milliseconds that it lasts
 * @count: requests after which it ends, 0 for no limit
 * @blocks: blocks of @size bytes in the store, 0 for four per request under way
 * @verify: have the server keep the data, and look at them at both ends
 * @poison: overwrite the buffer of a write when it is confirmed, that of a read when
 *	    it was looked at, and see that nobody has touched it when it is needed again
 * @pause_us: microseconds that a thread sleeps in front of each request
 * @seed: of the data
 */
struct bench_params {
	u32	rw;
	u32	size;
	u32	segment;
	u32	depth;
	u32	cpus;
	u32	ms;
	u32	count;
	u32	blocks;
	u32	verify;
	u32	poison;
	u32	pause_us;
	u32	seed;
};

/* Times are counted in buckets, this many for each doubling: to 1.6 % exact */
#define BENCH_BUCKETS_LOG 6
#define BENCH_OCTAVES 40
#define BENCH_BUCKETS (BENCH_OCTAVES << BENCH_BUCKETS_LOG)

/**
 * struct bench_stats - what came of requests
 * @reads: confirmed without error
 * @writes: confirmed without error
 * @busy: refused with -EAGAIN, and made again
 * @errors: confirmed with an error, or refused
 * @last_error: the last of these
 * @corrupt: read, or arrived at the server, with other data than were to be there
 * @touched: buffers that somebody wrote to after the confirmation
 * @max_ns: the longest that one took from rtrs_clt_request() to its confirmation
 * @bucket: how many took how long
 */
struct bench_stats {
	u64	reads;
	u64	writes;
	u64	busy;
	u64	errors;
	int	last_error;
	u64	corrupt;
	u64	touched;
	u64	max_ns;
	u32	bucket[BENCH_BUCKETS];
};

/**
 * struct bench_result - the last run
 * @params: what was asked for
 * @ns: how long it took
 * @stats: of all CPUs
 */
struct bench_result {
	struct bench_params	params;
	u64			ns;
	struct bench_stats	stats;
};

/**
 * struct bench_block - what a block of the store holds
 * @gen: how many times it was written
 * @known: the last write of it was confirmed without error
 */
struct bench_block {
	u32	gen;
	bool	known;
};

/**
 * struct bench - the session, of which there is one
 * @lock: open, close, run and report come one at a time
 * @sess: of RTRS, NULL if none is open
 * @attrs: what a request may be
 * @store: bytes that the server keeps
 * @connected: false between the link events DISCONNECTED and RECONNECTED
 * @wait: for @connected to change
 * @blocks: what the store holds, for runs with size, blocks and seed of @layout
 * @layout: the run that has begun @blocks
 * @result: the last run; NULL if there was none
 */
struct bench {
	struct mutex		lock;	/* of all else but @connected */
	struct rtrs_clt_sess	*sess;
	struct rtrs_attrs	attrs;
	u64			store;
	bool			connected;
	wait_queue_head_t	wait;
	struct bench_block	*blocks;
	struct bench_params	layout;
	struct bench_result	*result;
};

/**
 * struct bench_slot - one request after the other
 * @done: in the list of what was confirmed
 * @thread: that it belongs to
 * @sg: its buffer
 * @permit: while the request is under way
 * @index: of all slots of the run; its blocks are this one and every so many'th
 * @dir: READ or WRITE
 * @block: of the store
 * @gen: what the block holds when this is done
 * @poisoned: the buffer holds poison
 * @errno: what the confirmation said
 * @begin_ns: when the request was made
 * @end_ns: when it was confirmed
 */
struct bench_slot {
	struct llist_node	done;
	struct bench_thread	*thread;
	struct scatterlist	*sg;
	struct rtrs_permit	*permit;
	u32			index;
	int			dir;
	u32			block;
	u32			gen;
	bool			poisoned;
	int			errno;
	u64			begin_ns;
	u64			end_ns;
};

/**
 * struct bench_thread - a thread that is bound to one CPU
 * @run: that it belongs to
 * @task: the thread itself
 * @done: slots whose requests are confirmed
 * @wait: for @done
 * @under_way: slots with a request whose confirmation was not seen to yet
 * @left: requests that it may still make
 * @slots: of this thread
 * @stats: of this thread
 */
struct bench_thread {
	struct bench_run	*run;
	struct task_struct	*task;
	struct llist_head	done;
	wait_queue_head_t	wait;
	unsigned int		under_way;
	u64			left;
	struct bench_slot	*slots;
	struct bench_stats	stats;
};

/**
 * struct bench_run - one run
 * @bench: its session
 * @params: what it does
 * @nr_sg: elements of a scatterlist
 * @nr_slots: slots of all threads
 * @deadline_ns: when no request is made any more
 * @stop: it is to end at once
 * @active: threads at work
 * @finished: none is any more
 * @threads: as many as CPUs
 */
struct bench_run {
	struct bench		*bench;
	struct bench_params	params;
	unsigned int		nr_sg;
	unsigned int		nr_slots;
	u64			deadline_ns;
	bool			stop;
	atomic_t		active;
	struct completion	finished;
	struct bench_thread	*threads;
};

int bench_run(struct bench *bench, const struct bench_params *params);

void bench_count(struct bench_stats *stats, const struct bench_slot *slot);
void bench_add(struct bench_stats *sum, const struct bench_stats *stats);
void bench_report(struct seq_file *file, const struct bench_result *result);

#endif /* RTRS_BENCH_CLT_H */
