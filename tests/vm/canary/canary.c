// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Does one bad thing on purpose, for the tool of a debug kernel that is to notice:
 *
 *	echo NAME >/sys/module/canary/parameters/fault
 *
 * What each does is as harmless as can be, so that one machine survives all of them,
 * if the tool is there. OPTIMIZER_HIDE_VAR() and the sink keep the compiler from
 * seeing through it, and from leaving it out.
 */
#include <linux/compiler.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kobject.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/preempt.h>
#include <linux/processor.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/timer.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

MODULE_DESCRIPTION("Does bad things on purpose");
MODULE_LICENSE("GPL");

#define CANARY_SIZE 100
#define CANARY_LEAKS 10
#define CANARY_STALL_MS 6000
#define CANARY_RACE_MS 3000

static int canary_sink;

/*
 * Memory
 */

/* Several: what was in a register or on a stack by chance would look like a user */
static void canary_leak(void)
{
	void *lost;
	int i;

	for (i = 0; i < CANARY_LEAKS; i++) {
		lost = kmalloc(CANARY_SIZE, GFP_KERNEL);
		OPTIMIZER_HIDE_VAR(lost);
	}
}

static void canary_use_after_free(void)
{
	u8 *p = kmalloc(CANARY_SIZE, GFP_KERNEL);

	kfree(p);
	OPTIMIZER_HIDE_VAR(p);
	if (p)
		WRITE_ONCE(canary_sink, p[0]);
}

static void canary_beyond_vmalloc(void)
{
	u8 *p = vmalloc(CANARY_SIZE);

	OPTIMIZER_HIDE_VAR(p);
	if (p)
		WRITE_ONCE(canary_sink, p[CANARY_SIZE]);
	vfree(p);
}

/*
 * Locks, RCU, context
 */

static void canary_rcu_without_lock(void)
{
	static int __rcu *pointer;

	WRITE_ONCE(canary_sink, !rcu_dereference(pointer));
}

static void canary_two_lock_orders(void)
{
	static DEFINE_MUTEX(one);
	static DEFINE_MUTEX(other);

	mutex_lock(&one);
	mutex_lock(&other);
	mutex_unlock(&other);
	mutex_unlock(&one);

	mutex_lock(&other);
	mutex_lock(&one);
	mutex_unlock(&one);
	mutex_unlock(&other);
}

static void canary_sleep_under_spinlock(void)
{
	static DEFINE_SPINLOCK(lock);

	spin_lock(&lock);
	kfree(kmalloc(CANARY_SIZE, GFP_KERNEL));
	spin_unlock(&lock);
}

static void canary_cpu_while_preemptible(void)
{
	WRITE_ONCE(canary_sink, smp_processor_id());
}

/*
 * Objects
 */

static void canary_list_del_twice(void)
{
	LIST_HEAD(list);
	LIST_HEAD(entry);

	list_add(&entry, &list);
	list_del(&entry);
	list_del(&entry);
}

static void canary_timer_done(struct timer_list *timer)
{
}

static void canary_free_active_timer(void)
{
	struct timer_list *timer = kmalloc(sizeof(*timer), GFP_KERNEL);

	if (!timer)
		return;
	timer_setup(timer, canary_timer_done, 0);
	mod_timer(timer, jiffies + 3600 * HZ);
	kfree(timer);
}

static void canary_work_done(struct work_struct *work)
{
}

/* Without the _ONSTACK that tells of it. A work that is freed while it is queued would
 * be found as well, but be executed for all that.
 */
static void canary_work_on_stack(void)
{
	struct work_struct work;

	INIT_WORK(&work, canary_work_done);
	destroy_work_on_stack(&work);
}

static void canary_rcu_done(struct rcu_head *head)
{
}

/* The first one's grace period does not end before the second is there */
static void canary_call_rcu_twice(void)
{
	static struct rcu_head head;

	rcu_read_lock();
	call_rcu(&head, canary_rcu_done);
	call_rcu(&head, canary_rcu_done);
	rcu_read_unlock();
	rcu_barrier();
}

static void canary_kobject_done(struct kobject *kobj)
{
}

static const struct kobj_type canary_ktype = {
	.release = canary_kobject_done,
};

/* Not from its release function */
static void canary_free_kobject_early(void)
{
	struct kobject *kobj = kzalloc(sizeof(*kobj), GFP_KERNEL);

	if (!kobj)
		return;
	kobject_init(kobj, &canary_ktype);
	kobject_put(kobj);
	kfree(kobj);
}

/*
 * Undefined behaviour
 */

/* There is memory of ours behind the array, so that no other tool minds */
static void canary_index_beyond_array(void)
{
	static struct {
		int array[4];
		int behind[4];
	} both;
	int index = ARRAY_SIZE(both.array) + 1;

	OPTIMIZER_HIDE_VAR(index);
	WRITE_ONCE(canary_sink, both.array[index]);
}

static void canary_shift_too_far(void)
{
	int bits = 8 * sizeof(bits) + 1;

	OPTIMIZER_HIDE_VAR(bits);
	WRITE_ONCE(canary_sink, 1 << bits);
}

/* The quotient is not used, or the CPU would trap what has just been reported */
static void canary_divide_by_zero(void)
{
	int zero = 0;

	OPTIMIZER_HIDE_VAR(zero);
	(void)(1 / zero);
}

static void canary_no_bool(void)
{
	u8 byte = 2;
	bool *p = (bool *)&byte;

	OPTIMIZER_HIDE_VAR(p);
	WRITE_ONCE(canary_sink, *p);
}

/*
 * Devices
 */

static void canary_dma_unmap_unmapped(void)
{
	struct platform_device *pdev = platform_device_register_simple("canary", -1, NULL, 0);

	if (IS_ERR(pdev))
		return;
	dma_unmap_single(&pdev->dev, PAGE_SIZE, CANARY_SIZE, DMA_TO_DEVICE);
	platform_device_unregister(pdev);
}

/*
 * Hangs
 */

static void canary_block_task(void)
{
	msleep(CANARY_STALL_MS);
}

/* The work is queued on a CPU whose workers do not get it. mdelay() would be too short
 * where the emulated TSC is calibrated wrong.
 */
static void canary_stall_workqueue(void)
{
	static DECLARE_WORK(work, canary_work_done);
	unsigned long end = jiffies + msecs_to_jiffies(CANARY_STALL_MS);

	preempt_disable();
	schedule_work_on(smp_processor_id(), &work);
	while (time_before(jiffies, end))
		cpu_relax();
	preempt_enable();
	flush_work(&work);
}

/*
 * Data races
 */

static int canary_raced;

static int canary_racer(void *unused)
{
	while (!kthread_should_stop()) {
		canary_raced++;
		cond_resched();
	}
	return 0;
}

static void canary_data_race(void)
{
	struct task_struct *racers[2];
	int i;

	for (i = 0; i < ARRAY_SIZE(racers); i++)
		racers[i] = kthread_run(canary_racer, NULL, "canary/%d", i);
	msleep(CANARY_RACE_MS);
	for (i = 0; i < ARRAY_SIZE(racers); i++)
		if (!IS_ERR(racers[i]))
			kthread_stop(racers[i]);
}

#define FAULT(name) { #name, canary_##name }

static const struct {
	const char *name;
	void (*commit)(void);
} canary_faults[] = {
	FAULT(leak),
	FAULT(use_after_free),
	FAULT(beyond_vmalloc),
	FAULT(rcu_without_lock),
	FAULT(two_lock_orders),
	FAULT(sleep_under_spinlock),
	FAULT(cpu_while_preemptible),
	FAULT(list_del_twice),
	FAULT(free_active_timer),
	FAULT(work_on_stack),
	FAULT(call_rcu_twice),
	FAULT(free_kobject_early),
	FAULT(index_beyond_array),
	FAULT(shift_too_far),
	FAULT(divide_by_zero),
	FAULT(no_bool),
	FAULT(dma_unmap_unmapped),
	FAULT(block_task),
	FAULT(stall_workqueue),
	FAULT(data_race),
};

static int canary_set(const char *val, const struct kernel_param *kp)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(canary_faults); i++)
		if (sysfs_streq(val, canary_faults[i].name)) {
			canary_faults[i].commit();
			return 0;
		}
	return -EINVAL;
}

static const struct kernel_param_ops canary_ops = {
	.set = canary_set,
};

module_param_cb(fault, &canary_ops, NULL, 0200);
MODULE_PARM_DESC(fault, "Name of what to do");
