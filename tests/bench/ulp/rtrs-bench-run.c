// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RTRS bench client: a run
 *
 * On each CPU one thread makes requests, since a permit remembers the CPU on which
 * it was taken, and the request goes over the connection of that CPU. A request is
 * confirmed in softirq as a rule, on whichever CPU: there the permit goes back, and
 * the slot to its thread, which looks at the data and makes the next request.
 */
#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blk_types.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>

#include "rtrs-bench-clt.h"

/* What a segment must be a multiple of, but for the last one */
#define BENCH_SEGMENT 4096

/*
 * The data
 */

static u64 bench_first(const struct bench_slot *slot)
{
	return rtrs_bench_first(slot->thread->run->params.seed, slot->block, slot->gen);
}

static void bench_fill(struct bench_slot *slot)
{
	unsigned int nr = slot->thread->run->nr_sg, i, k;
	u64 word = bench_first(slot);
	struct scatterlist *sg;

	for_each_sg(slot->sg, sg, nr, i) {
		u64 *data = sg_virt(sg);

		for (k = 0; k < sg->length / sizeof(*data); k++, word = rtrs_bench_next(word))
			data[k] = word;
	}
}

/* Is in the buffer what was last written to the block? */
static bool bench_is_right(struct bench_slot *slot)
{
	unsigned int nr = slot->thread->run->nr_sg, i;
	u64 word = bench_first(slot);
	struct scatterlist *sg;

	for_each_sg(slot->sg, sg, nr, i)
		if (!rtrs_bench_check(sg_virt(sg), sg->length, &word))
			return false;
	return true;
}

static void bench_poison(struct bench_slot *slot)
{
	unsigned int nr = slot->thread->run->nr_sg, i;
	struct scatterlist *sg;

	for_each_sg(slot->sg, sg, nr, i)
		memset(sg_virt(sg), RTRS_BENCH_POISON, sg->length);
}

static bool bench_is_poisoned(struct bench_slot *slot)
{
	unsigned int nr = slot->thread->run->nr_sg, i;
	struct scatterlist *sg;

	for_each_sg(slot->sg, sg, nr, i)
		if (memchr_inv(sg_virt(sg), RTRS_BENCH_POISON, sg->length))
			return false;
	return true;
}

/*
 * A request
 */

/* The next block of the slot, or the one just written once more, to be read */
static void bench_choose(struct bench_slot *slot)
{
	const struct bench_run *run = slot->thread->run;
	struct bench_block *block;

	if (run->params.rw == BENCH_MIXED && slot->dir == WRITE && !slot->errno) {
		slot->dir = READ;
		return;
	}
	slot->block += run->nr_slots;
	if (slot->block >= run->params.blocks)
		slot->block = slot->index;
	slot->dir = run->params.rw == BENCH_READ ? READ : WRITE;
	if (!run->params.verify)
		return;
	block = &run->bench->blocks[slot->block];
	if (!block->known)
		slot->dir = WRITE;
	slot->gen = slot->dir == WRITE ? ++block->gen : block->gen;
}

/* Of what is read nothing may be in the buffer before. */
static void bench_prepare(struct bench_slot *slot)
{
	struct bench_thread *thread = slot->thread;
	const struct bench_params *params = &thread->run->params;

	if (slot->poisoned && !bench_is_poisoned(slot)) {
		thread->stats.touched++;
		pr_err("block %u: the buffer was written to after the confirmation\n",
		       slot->block);
	}
	slot->poisoned = false;
	if (!params->verify)
		return;
	if (slot->dir == WRITE)
		bench_fill(slot);
	else
		bench_poison(slot);
}

/* A write that has failed may have changed the block or not. */
static void bench_remember(const struct bench_slot *slot)
{
	const struct bench_run *run = slot->thread->run;

	if (run->params.verify && slot->dir == WRITE)
		run->bench->blocks[slot->block].known = !slot->errno;
}

/*
 * The confirmation. The transport has let go of the buffer, so we may do with it
 * what we like, and do. Mostly softirq: no sleep.
 */
static void bench_confirm(void *priv, int errno)
{
	struct bench_slot *slot = priv;
	struct bench_thread *thread = slot->thread;
	struct bench_run *run = thread->run;

	slot->end_ns = ktime_get_ns();
	slot->errno = errno;
	if (run->params.poison && slot->dir == WRITE) {
		bench_poison(slot);
		slot->poisoned = true;
	}
	rtrs_clt_put_permit(run->bench->sess, slot->permit);
	/* the thread may end the run as soon as it has the slot, see bench_free() */
	rcu_read_lock();
	if (llist_add(&slot->done, &thread->done))
		wake_up(&thread->wait);
	rcu_read_unlock();
}

/* May sleep for a permit. An error: refused, there will be no confirmation. */
static int bench_submit(struct bench_slot *slot)
{
	struct bench_run *run = slot->thread->run;
	struct rtrs_clt_sess *sess = run->bench->sess;
	struct rtrs_clt_req_ops ops = { .priv = slot, .conf_fn = bench_confirm };
	struct rtrs_bench_msg msg = {
		.op = cpu_to_le16(slot->dir == READ ? RTRS_BENCH_READ : RTRS_BENCH_WRITE),
		.keep = cpu_to_le16(run->params.verify),
		.seed = cpu_to_le64(run->params.seed),
		.block = cpu_to_le64(slot->block),
		.gen = cpu_to_le64(slot->dir == READ ? 0 : slot->gen),
	};
	struct kvec vec = { .iov_base = &msg, .iov_len = sizeof(msg) };
	struct rtrs_permit *permit;
	int err;

	permit = rtrs_clt_get_permit(sess, RTRS_IO_CON, RTRS_PERMIT_WAIT);
	slot->permit = permit;
	slot->begin_ns = ktime_get_ns();
	err = rtrs_clt_request(slot->dir, &ops, sess, permit, &vec, 1, run->params.size,
			       slot->sg, run->nr_sg);
	if (err)
		rtrs_clt_put_permit(sess, permit);
	return err;
}

/* Without a path there is no use in going on at once. */
static void bench_rest(struct bench_run *run)
{
	struct bench *bench = run->bench;

	msleep(20);
	wait_event_idle_timeout(bench->wait, READ_ONCE(bench->connected) || READ_ONCE(run->stop),
				msecs_to_jiffies(500));
}

static bool bench_goes_on(const struct bench_slot *slot)
{
	const struct bench_run *run = slot->thread->run;

	return !READ_ONCE(run->stop) && slot->thread->left && slot->end_ns < run->deadline_ns;
}

/* Makes the next request of a slot, if the run is not over. */
static void bench_next(struct bench_slot *slot)
{
	struct bench_thread *thread = slot->thread;
	struct bench_run *run = thread->run;

	while (bench_goes_on(slot)) {
		if (run->params.pause_us)
			usleep_range(run->params.pause_us, run->params.pause_us + 50);
		bench_choose(slot);
		bench_prepare(slot);
		slot->errno = bench_submit(slot);
		if (!slot->errno) {
			thread->left--;
			thread->under_way++;
			return;
		}
		slot->end_ns = ktime_get_ns();
		bench_remember(slot);
		if (slot->errno == -EAGAIN) {
			thread->stats.busy++;
			usleep_range(100, 200);
			continue;
		}
		bench_count(&thread->stats, slot);
		bench_rest(run);
	}
}

/* Sees to a request that was confirmed. */
static void bench_finish(struct bench_slot *slot)
{
	struct bench_thread *thread = slot->thread;
	struct bench_run *run = thread->run;

	bench_count(&thread->stats, slot);
	bench_remember(slot);
	if (run->params.verify && slot->dir == READ && !slot->errno && !bench_is_right(slot)) {
		thread->stats.corrupt++;
		pr_err("block %u does not hold generation %u\n", slot->block, slot->gen);
	}
	if (run->params.poison && slot->dir == READ) {
		bench_poison(slot);
		slot->poisoned = true;
	}
	if (slot->errno)
		bench_rest(run);
}

/*
 * A run
 */

static int bench_thread(void *arg)
{
	struct bench_thread *thread = arg;
	struct bench_run *run = thread->run;
	struct bench_slot *slot, *next;
	struct llist_node *done;
	unsigned int i;

	for (i = 0; i < run->params.depth; i++)
		bench_next(&thread->slots[i]);
	while (thread->under_way) {
		wait_event_idle(thread->wait, !llist_empty(&thread->done));
		done = llist_reverse_order(llist_del_all(&thread->done));
		llist_for_each_entry_safe(slot, next, done, done) {
			thread->under_way--;
			bench_finish(slot);
			bench_next(slot);
		}
	}
	if (atomic_dec_and_test(&run->active))
		complete(&run->finished);
	return 0;
}

/* The parameters with what follows from others filled in; or what is wrong. */
static int bench_complete_params(const struct bench *bench, struct bench_params *params)
{
	u64 slots = (u64)params->depth * params->cpus;

	if (params->segment > params->size)
		params->segment = params->size;
	if (!params->blocks)
		params->blocks = 4 * min(slots, U16_MAX);
	if (params->size > bench->attrs.max_io_size ||
	    DIV_ROUND_UP(params->size, params->segment) > bench->attrs.max_segments ||
	    (params->segment < params->size && params->segment % BENCH_SEGMENT))
		return -EMSGSIZE;
	if (slots > bench->attrs.queue_depth || params->blocks < slots ||
	    params->cpus > num_online_cpus())
		return -ERANGE;
	if (params->poison && !params->verify)
		return -EINVAL;
	if (params->verify && (params->size % sizeof(u64) ||
			       (u64)params->blocks * params->size > bench->store))
		return -ERANGE;
	return 0;
}

/* What earlier runs have written counts as long as the blocks are the same. */
static int bench_lay_out(struct bench *bench, const struct bench_params *params)
{
	const struct bench_params *layout = &bench->layout;
	struct bench_block *blocks;

	if (!params->verify || (bench->blocks && layout->size == params->size &&
				layout->blocks == params->blocks && layout->seed == params->seed))
		return 0;
	blocks = kvcalloc(params->blocks, sizeof(*blocks), GFP_KERNEL);
	if (!blocks)
		return -ENOMEM;
	kvfree(bench->blocks);
	bench->blocks = blocks;
	bench->layout = *params;
	return 0;
}

static int bench_alloc_slot(const struct bench_run *run, struct bench_slot *slot)
{
	unsigned int left = run->params.size, i;
	struct scatterlist *sg;

	slot->sg = kcalloc(run->nr_sg, sizeof(*slot->sg), GFP_KERNEL);
	if (!slot->sg)
		return -ENOMEM;
	sg_init_table(slot->sg, run->nr_sg);
	for_each_sg(slot->sg, sg, run->nr_sg, i) {
		unsigned int len = min(left, run->params.segment);
		void *data = kmalloc(len, GFP_KERNEL);

		if (!data)
			return -ENOMEM;
		sg_set_buf(sg, data, len);
		left -= len;
	}
	return 0;
}

static void bench_free_slot(const struct bench_run *run, struct bench_slot *slot)
{
	struct scatterlist *sg;
	unsigned int i;

	if (!slot->sg)
		return;
	for_each_sg(slot->sg, sg, run->nr_sg, i)
		if (sg_page(sg))
			kfree(sg_virt(sg));
	kfree(slot->sg);
}

static int bench_alloc_thread(struct bench_run *run, unsigned int nr, unsigned int cpu)
{
	struct bench_thread *thread = &run->threads[nr];
	struct task_struct *task;
	unsigned int i;
	int err;

	thread->run = run;
	thread->left = run->params.count ? DIV_ROUND_UP(run->params.count, run->params.cpus) :
		U64_MAX;
	init_llist_head(&thread->done);
	init_waitqueue_head(&thread->wait);
	thread->slots = kvcalloc(run->params.depth, sizeof(*thread->slots), GFP_KERNEL);
	if (!thread->slots)
		return -ENOMEM;
	for (i = 0; i < run->params.depth; i++) {
		thread->slots[i].thread = thread;
		thread->slots[i].index = nr * run->params.depth + i;
		thread->slots[i].block = thread->slots[i].index;
		err = bench_alloc_slot(run, &thread->slots[i]);
		if (err)
			return err;
	}
	task = kthread_create_on_cpu(bench_thread, thread, cpu, "rtrs_bench/%u");
	if (IS_ERR(task))
		return PTR_ERR(task);
	/* it ends by itself, and perhaps before it is stopped */
	thread->task = get_task_struct(task);
	return 0;
}

static struct bench_run *bench_alloc(struct bench *bench, const struct bench_params *params)
{
	struct bench_run *run = kzalloc(sizeof(*run), GFP_KERNEL);

	if (!run)
		return NULL;
	run->bench = bench;
	run->params = *params;
	run->nr_sg = DIV_ROUND_UP(params->size, params->segment);
	run->nr_slots = params->depth * params->cpus;
	init_completion(&run->finished);
	run->threads = kvcalloc(params->cpus, sizeof(*run->threads), GFP_KERNEL);
	if (!run->threads) {
		kfree(run);
		return NULL;
	}
	return run;
}

static void bench_free(struct bench_run *run)
{
	unsigned int i, k;

	for (i = 0; i < run->params.cpus; i++) {
		struct bench_thread *thread = &run->threads[i];

		if (!thread->task)
			continue;
		kthread_stop(thread->task);
		put_task_struct(thread->task);
	}
	/* the last confirmations have woken their threads */
	synchronize_rcu();
	for (i = 0; i < run->params.cpus; i++) {
		struct bench_thread *thread = &run->threads[i];

		for (k = 0; thread->slots && k < run->params.depth; k++)
			bench_free_slot(run, &thread->slots[k]);
		kvfree(thread->slots);
	}
	kvfree(run->threads);
	kfree(run);
}

/* All threads are there: let them work, and wait for the last one. */
static void bench_work(struct bench_run *run, struct bench_result *result)
{
	u64 begin = ktime_get_ns();
	unsigned int i;

	run->deadline_ns = begin + (u64)run->params.ms * NSEC_PER_MSEC;
	atomic_set(&run->active, run->params.cpus);
	for (i = 0; i < run->params.cpus; i++)
		wake_up_process(run->threads[i].task);
	if (wait_for_completion_interruptible(&run->finished)) {
		WRITE_ONCE(run->stop, true);
		wait_for_completion(&run->finished);
	}
	result->params = run->params;
	result->ns = ktime_get_ns() - begin;
	for (i = 0; i < run->params.cpus; i++)
		bench_add(&result->stats, &run->threads[i].stats);
}

/**
 * bench_run() - make requests as asked for, and count what comes of them
 * @bench: open session; the result is left in it
 * @params: what to do
 *
 * Context: process, sleeps until the run is over. The caller holds the lock.
 * Return: 0 whatever came of the requests; -ENOMEM, or an error of @params.
 */
int bench_run(struct bench *bench, const struct bench_params *params)
{
	struct bench_params completed = *params;
	struct bench_result *result;
	unsigned int nr = 0, cpu;
	struct bench_run *run;
	int err;

	err = bench_complete_params(bench, &completed) ?: bench_lay_out(bench, &completed);
	if (err)
		return err;
	result = kvzalloc(sizeof(*result), GFP_KERNEL);
	if (!result)
		return -ENOMEM;
	run = bench_alloc(bench, &completed);
	if (!run) {
		kvfree(result);
		return -ENOMEM;
	}
	for_each_online_cpu(cpu) {
		if (nr == completed.cpus || err)
			break;
		err = bench_alloc_thread(run, nr++, cpu);
	}
	if (!err)
		bench_work(run, result);
	bench_free(run);
	if (err) {
		kvfree(result);
		return err;
	}
	kvfree(bench->result);
	bench->result = result;
	return 0;
}
