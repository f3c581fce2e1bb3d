// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RDMA Transport client: the path as an object
 *
 * Waking and errors; the worker, which does everything slow that happens to a
 * path, driven by the path's state; what others may ask of it; allocation and
 * the one release.
 */
#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME " L" __stringify(__LINE__) ": " fmt

#include <linux/moduleparam.h>
#include <linux/random.h>
#include <linux/sched/mm.h>

#include "rtrs-clt.h"
#include "rtrs-clt-trace.h"
#include "rtrs-log.h"

/* Between two tries of one attempt, while the server still has the old path */
#define RETRY_MIN_MS 20U
#define RETRY_MAX_MS 250U

static unsigned int connect_timeout_ms = 2000;

static int connect_timeout_set(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, 100, 60000);
}

static const struct kernel_param_ops connect_timeout_ops = {
	.set = connect_timeout_set,
	.get = param_get_uint,
};

module_param_cb(connect_timeout_ms, &connect_timeout_ops, &connect_timeout_ms, 0644);
MODULE_PARM_DESC(connect_timeout_ms,
		 "Time limit of one attempt to connect a path, ms, 100 to 60000 (default 2000)");

/**
 * rtrs_clt_connect_deadline() - the end of an attempt that begins now
 *
 * Return: a time in jiffies.
 */
unsigned long rtrs_clt_connect_deadline(void)
{
	return jiffies + msecs_to_jiffies(READ_ONCE(connect_timeout_ms));
}

static const char * const rtrs_clt_state_names[RTRS_CLT_STATE_NR] = {
	[RTRS_CLT_CONNECTING] = "connecting",
	[RTRS_CLT_CONNECTING_ERR] = "connecting_err",
	[RTRS_CLT_RECONNECTING] = "reconnecting",
	[RTRS_CLT_CONNECTED] = "connected",
	[RTRS_CLT_CLOSING] = "closing",
	[RTRS_CLT_CLOSED] = "closed",
	[RTRS_CLT_DEAD] = "dead",
};

/**
 * rtrs_clt_state_str() - name of a path state, for people
 * @state: the state
 *
 * Return: a constant string.
 */
const char *rtrs_clt_state_str(enum rtrs_clt_state state)
{
	return rtrs_clt_state_names[state];
}

/**
 * rtrs_clt_path_name() - what a path is called
 * @path: the path
 * @buf: room for the name
 * @len: its size, bytes
 *
 * Return: @buf, holding source and destination address.
 */
const char *rtrs_clt_path_name(const struct rtrs_clt_path *path, char *buf, size_t len)
{
	struct rtrs_addr addr = {
		.src = (struct sockaddr_storage *)&path->s.src_addr,
		.dst = (struct sockaddr_storage *)&path->s.dst_addr,
	};

	if (path->s.src_addr.ss_family)
		rtrs_addr_to_str(&addr, buf, len);
	else
		sockaddr_to_str((struct sockaddr *)&path->s.dst_addr, buf, len);
	return buf;
}

/*
 * Waking and kicking
 */

/* Asks the worker to look at the path again. */
static void rtrs_clt_path_kick(struct rtrs_clt_path *path)
{
	lockdep_assert_held(&path->lock);
	/* I5 */
	if (WARN_ON_ONCE(path->state == RTRS_CLT_DEAD))
		return;
	path->kicked = true;
	mod_delayed_work(rtrs_clt_wq, &path->work, 0);
}

/**
 * rtrs_clt_path_progress() - tell the waiting worker that something happened
 * @path: path that is coming up
 *
 * Context: any.
 */
void rtrs_clt_path_progress(struct rtrs_clt_path *path)
{
	wake_up_all(&path->wait);
}

/*
 * Changes the state of a path with which an attempt has ended. In one step, so
 * that who asks for an attempt after it does not get this one's result.
 */
static bool rtrs_clt_path_end_attempt(struct rtrs_clt_path *path, enum rtrs_clt_state state,
				      int err)
{
	bool ok;

	spin_lock_irq(&path->lock);
	ok = rtrs_clt_change_state(path, state);
	if (ok) {
		if (state == RTRS_CLT_CLOSED)
			path->closes++;
		path->result = err;
		path->results++;
		wake_up_all(&path->wait);
	}
	spin_unlock_irq(&path->lock);
	return ok;
}

/**
 * rtrs_clt_path_set_connected() - end an attempt with success
 * @path: path in its worker that has everything
 *
 * The path is counted in the same step, so that who waits for the result finds
 * it counted.
 *
 * Return: 0; negative errno if the path has failed meanwhile, or shall close.
 */
int rtrs_clt_path_set_connected(struct rtrs_clt_path *path)
{
	struct rtrs_clt_sess *clt = path->clt;
	bool ok;

	clear_bit(RTRS_WISH_NOW, &path->wishes);
	spin_lock(&clt->lock);
	ok = rtrs_clt_path_end_attempt(path, RTRS_CLT_CONNECTED, 0);
	if (ok)
		rtrs_clt_count_up(path);
	spin_unlock(&clt->lock);
	if (!ok)
		return READ_ONCE(path->last_err) ?: -ECONNABORTED;
	return 0;
}

/**
 * rtrs_clt_path_wait_result() - wait until an attempt to connect has ended
 * @path: the path
 * @seen: number of attempts that had ended before
 *
 * Context: process, sleeps.
 * Return: how the attempt ended, 0 or negative errno; -EINTR on a signal.
 */
int rtrs_clt_path_wait_result(struct rtrs_clt_path *path, unsigned int seen)
{
	int err;

	if (wait_event_interruptible(path->wait, READ_ONCE(path->results) != seen))
		return -EINTR;
	spin_lock_irq(&path->lock);
	err = path->result;
	spin_unlock_irq(&path->lock);
	return err;
}

/*
 * Reconnect delay of the session, 20 % more or less: not all come at once. If what
 * failed did not last it is a moment at least, or a server could keep us busy.
 */
static unsigned long rtrs_clt_reconnect_delay(const struct rtrs_clt_path *path, bool lasted)
{
	u32 ms = READ_ONCE(path->clt->reconnect_delay_sec) * MSEC_PER_SEC;

	ms = ms - ms / 5 + get_random_u32_below(ms / 5 * 2 + 1);
	return msecs_to_jiffies(lasted ? ms : max(ms, RETRY_MAX_MS));
}

static void rtrs_clt_path_note_err(struct rtrs_clt_path *path, int err, const char *why)
{
	path->last_err = err;
	path->last_why = why;
}

/**
 * rtrs_clt_path_fail() - begin the recovery of a path on which something failed
 * @path: the path
 * @err: negative errno
 * @why: static text for people
 * @passes: it may be over in moments, so an attempt to connect that ends with it
 *	    is worth one more try
 *
 * Only the first error of a path that is up or coming up has an effect. It
 * takes the path out of use at once; its worker does the rest.
 *
 * Context: any.
 */
void rtrs_clt_path_fail(struct rtrs_clt_path *path, int err, const char *why, bool passes)
{
	unsigned long flags;
	bool first, lasted;

	trace_rtrs_rdma_error_recovery(path);
	spin_lock_irqsave(&path->lock, flags);
	lasted = ktime_ms_delta(ktime_get(), path->since) > RETRY_MAX_MS;
	first = rtrs_clt_change_state(path, path->state == RTRS_CLT_CONNECTED ?
				      RTRS_CLT_RECONNECTING : RTRS_CLT_CONNECTING_ERR);
	if (first) {
		rtrs_clt_path_note_err(path, err, why);
		path->link_failed = true;
		path->passes = passes;
		path->due = jiffies + rtrs_clt_reconnect_delay(path, lasted);
		rtrs_clt_path_kick(path);
	}
	spin_unlock_irqrestore(&path->lock, flags);
	if (first)
		trace_rtrs_clt_path_failure(path, err, why);
}

/*
 * False if the path is closed already. Else it will be, and *seen is the number of
 * times that it was before.
 */
static bool rtrs_clt_path_begin_close(struct rtrs_clt_path *path, int err, const char *why,
				      unsigned int *seen)
{
	unsigned long flags;
	bool open;

	trace_rtrs_clt_close_conns(path);
	spin_lock_irqsave(&path->lock, flags);
	*seen = path->closes;
	if (rtrs_clt_change_state(path, RTRS_CLT_CLOSING)) {
		rtrs_clt_path_note_err(path, err, why);
		rtrs_clt_path_kick(path);
	}
	open = path->state < RTRS_CLT_CLOSED;
	spin_unlock_irqrestore(&path->lock, flags);
	return open;
}

/**
 * rtrs_clt_path_close_async() - have a path closed
 * @path: the path
 * @err: what a running attempt to connect shall end with, negative errno
 * @why: static text for people
 *
 * Context: any. The path is closed some time after the call.
 */
void rtrs_clt_path_close_async(struct rtrs_clt_path *path, int err, const char *why)
{
	unsigned int seen;

	rtrs_clt_path_begin_close(path, err, why, &seen);
}

/**
 * rtrs_clt_path_close() - have a path closed and wait for it
 * @path: the path
 * @err: what a running attempt to connect shall end with, negative errno
 * @why: static text for people
 *
 * The path may be reconnected by somebody else before we look again, so
 * closings are counted; and whether there is one to wait for is asked in the step
 * that begins it.
 *
 * Context: process, sleeps for what the local HCA needs, well under a second.
 */
void rtrs_clt_path_close(struct rtrs_clt_path *path, int err, const char *why)
{
	unsigned int seen;

	if (rtrs_clt_path_begin_close(path, err, why, &seen))
		wait_event(path->wait, READ_ONCE(path->closes) != seen);
}

/*
 * The worker
 */

static void rtrs_clt_each_con(struct rtrs_clt_path *path, void (*fn)(struct rtrs_clt_con *con))
{
	unsigned int i;

	for (i = 0; i < path->s.con_num; i++)
		fn(to_clt_con(path->s.con[i]));
}

/*
 * The only teardown. Requests fail over as soon as the queues are drained,
 * before anything else is cleaned up. The ids go last: they keep the HCA.
 */
static void rtrs_clt_path_teardown(struct rtrs_clt_path *path, bool release)
{
	if (!path->torn_down) {
		/* nobody posts for this path any more, see "RCU" in rtrs-clt.h */
		synchronize_rcu();
		path->watched = false;
		rtrs_stop_hb(&path->s);
		rtrs_clt_each_con(path, rtrs_clt_con_stop);
		rtrs_clt_each_con(path, rtrs_clt_con_drain);
		if (path->undrained) {
			/* an HCA that did not give back everything may go on until then */
			synchronize_rcu();
			rtrs_clt_each_con(path, rtrs_clt_con_destroy_queues);
			path->undrained = false;
		}
		rtrs_clt_path_fail_reqs(path);
		rtrs_clt_path_down(path);
		WRITE_ONCE(path->s.hb_cur_latency, 0);
		/* for a poll that has handled the marker and is just arming the CQ */
		synchronize_rcu();
		rtrs_clt_each_con(path, rtrs_clt_con_destroy_queues);
	}
	if (release)
		rtrs_clt_path_release_device(path);
	if (!path->torn_down)
		rtrs_clt_each_con(path, rtrs_clt_con_destroy_id);
	if (release)
		rtrs_clt_each_con(path, rtrs_clt_con_tell_peer);
	path->torn_down = true;
}

/* Tries come quickly at first, then at a rate that does not flood the server. */
static unsigned long rtrs_clt_retry_pause(const struct rtrs_clt_path *path)
{
	unsigned int limit = READ_ONCE(connect_timeout_ms);
	long left = path->deadline - jiffies;
	unsigned int spent;

	spent = limit - min(limit, left > 0 ? jiffies_to_msecs(left) : 0);
	return msecs_to_jiffies(clamp(spent / 2, RETRY_MIN_MS, RETRY_MAX_MS));
}

/*
 * Is it worth to try once more before this attempt's deadline? It is if the
 * server has refused us for what may be a leftover of our former life, or if the
 * neighbour has not answered; and, in an open of several paths, if the first
 * path has to create the session again.
 */
static bool rtrs_clt_path_may_retry(const struct rtrs_clt_path *path, int err)
{
	unsigned long pause = rtrs_clt_retry_pause(path) + msecs_to_jiffies(RETRY_MIN_MS);

	if (!path->passes || path->give_up || READ_ONCE(path->clt->closing))
		return false;
	if (err == -ENXIO && READ_ONCE(path->clt->opened))
		return false;
	return time_before(jiffies + pause, path->deadline);
}

/* Milliseconds since the path went up or down last, and begins the next such time. */
static s64 rtrs_clt_path_flip(struct rtrs_clt_path *path)
{
	ktime_t now = ktime_get();
	s64 ms = ktime_ms_delta(now, path->flipped);

	path->flipped = now;
	return ms;
}

static void rtrs_clt_log_up(struct rtrs_clt_path *path, ktime_t began)
{
	s64 took = ktime_ms_delta(ktime_get(), began);
	s64 down = rtrs_clt_path_flip(path);
	char name[RTRS_CLT_PATH_NAME];

	rtrs_clt_path_name(path, name, sizeof(name));
	if (path->ever_up)
		rtrs_info(path->clt, "path %s is back after %lld ms, connected in %lld ms, attempt %u\n",
			  name, down, took, path->reconnect_attempts);
	else
		rtrs_info(path->clt, "path %s is up, connected in %lld ms\n", name, took);
}

static long rtrs_clt_step_connecting(struct rtrs_clt_path *path)
{
	ktime_t began = ktime_get();
	int err;

	path->torn_down = false;
	err = rtrs_clt_path_connect(path);
	if (err)
		return STEP_AGAIN;
	rtrs_clt_log_up(path, began);
	path->ever_up = true;
	path->reconnect_attempts = 0;
	/* we and the server have a new life */
	rtrs_clt_each_con(path, rtrs_clt_con_tell_peer);
	return STEP_AGAIN;
}

/* One more try of the same attempt, after a pause */
static void rtrs_clt_path_retry(struct rtrs_clt_path *path, int err)
{
	/* the server has answered, so it hears us too */
	if (err == -ECONNRESET || err == -EEXIST)
		rtrs_clt_each_con(path, rtrs_clt_con_tell_peer);
	path->retry_err = err;
	path->retry_why = path->last_why;
	spin_lock_irq(&path->lock);
	path->retry = true;
	path->due = jiffies + rtrs_clt_retry_pause(path);
	rtrs_clt_change_state(path, RTRS_CLT_RECONNECTING);
	spin_unlock_irq(&path->lock);
}

/* The attempt is over. The next one is due later, even if the delay is 0. */
static void rtrs_clt_path_failed(struct rtrs_clt_path *path, int err)
{
	atomic_inc(&path->stats.reconnects_failed);
	path->due = jiffies + rtrs_clt_reconnect_delay(path, false);
	rtrs_clt_path_end_attempt(path, RTRS_CLT_RECONNECTING, err);
}

static long rtrs_clt_step_connecting_err(struct rtrs_clt_path *path)
{
	int err = READ_ONCE(path->last_err);
	char name[RTRS_CLT_PATH_NAME];

	rtrs_clt_path_teardown(path, false);
	if (rtrs_clt_path_may_retry(path, err)) {
		rtrs_clt_path_retry(path, err);
		return STEP_AGAIN;
	}
	rtrs_err(path->clt, "path %s cannot be connected: %s (%pe)\n",
		 rtrs_clt_path_name(path, name, sizeof(name)), path->last_why, ERR_PTR(err));
	if (!path->ever_up || path->give_up) {
		if (path->ever_up)
			atomic_inc(&path->stats.reconnects_failed);
		rtrs_clt_path_close_async(path, err, path->last_why);
		return STEP_AGAIN;
	}
	rtrs_clt_path_failed(path, err);
	return STEP_AGAIN;
}

static bool rtrs_clt_attempts_exhausted(const struct rtrs_clt_path *path)
{
	int max = READ_ONCE(path->clt->max_reconnect_attempts);

	return max >= 0 && path->reconnect_attempts >= max;
}

/* Begins the attempt that is due. Returns how long to wait for it, or 0. */
static long rtrs_clt_begin_attempt(struct rtrs_clt_path *path)
{
	bool manual, exhausted = false;
	long left;

	spin_lock_irq(&path->lock);
	manual = test_and_clear_bit(RTRS_WISH_MANUAL, &path->wishes);
	if (test_and_clear_bit(RTRS_WISH_NOW, &path->wishes) || manual)
		path->due = jiffies;
	if (manual) {
		path->reconnect_attempts = 0;
		path->give_up = false;
		path->retry = false;
	}
	left = path->due - jiffies;
	if (left <= 0) {
		exhausted = !manual && !path->retry && rtrs_clt_attempts_exhausted(path);
		if (!exhausted)
			rtrs_clt_change_state(path, RTRS_CLT_CONNECTING);
	}
	spin_unlock_irq(&path->lock);
	if (left > 0)
		return left;
	if (exhausted) {
		rtrs_clt_path_close_async(path, path->last_err, "all reconnect attempts used up");
		return STEP_AGAIN;
	}
	if (!path->retry) {
		path->reconnect_attempts++;
		path->deadline = rtrs_clt_connect_deadline();
		path->retry_err = 0;
		trace_rtrs_clt_reconnect_work(path);
	}
	path->retry = false;
	return STEP_AGAIN;
}

static long rtrs_clt_step_reconnecting(struct rtrs_clt_path *path)
{
	char name[RTRS_CLT_PATH_NAME];

	if (!path->torn_down) {
		rtrs_err(path->clt, "path %s is lost after %lld ms: %s (%pe)\n",
			 rtrs_clt_path_name(path, name, sizeof(name)), rtrs_clt_path_flip(path),
			 path->last_why, ERR_PTR(path->last_err));
		rtrs_clt_path_teardown(path, false);
	}
	return rtrs_clt_begin_attempt(path);
}

static long rtrs_clt_step_connected(struct rtrs_clt_path *path)
{
	if (test_and_clear_bit(RTRS_WISH_SETTINGS, &path->wishes)) {
		rtrs_stop_hb(&path->s);
		rtrs_clt_path_start_hb(path);
	}
	return rtrs_clt_watch_requests(path);
}

static long rtrs_clt_step_closing(struct rtrs_clt_path *path)
{
	char name[RTRS_CLT_PATH_NAME];

	rtrs_clt_path_teardown(path, true);
	if (path->ever_up)
		rtrs_info(path->clt, "path %s is closed after %lld ms: %s\n",
			  rtrs_clt_path_name(path, name, sizeof(name)), rtrs_clt_path_flip(path),
			  path->last_why);
	path->reconnect_attempts = 0;
	path->retry = false;
	/* who waits for this may free the path, once this work is over */
	rtrs_clt_path_end_attempt(path, RTRS_CLT_CLOSED, path->last_err ?: -ECONNABORTED);
	return STEP_IDLE;
}

static long rtrs_clt_step_idle(struct rtrs_clt_path *path)
{
	return STEP_IDLE;
}

static long (* const rtrs_clt_steps[RTRS_CLT_STATE_NR])(struct rtrs_clt_path *path) = {
	[RTRS_CLT_CONNECTING] = rtrs_clt_step_connecting,
	[RTRS_CLT_CONNECTING_ERR] = rtrs_clt_step_connecting_err,
	[RTRS_CLT_RECONNECTING] = rtrs_clt_step_reconnecting,
	[RTRS_CLT_CONNECTED] = rtrs_clt_step_connected,
	[RTRS_CLT_CLOSING] = rtrs_clt_step_closing,
	[RTRS_CLT_CLOSED] = rtrs_clt_step_idle,
	[RTRS_CLT_DEAD] = rtrs_clt_step_idle,
};

/*
 * The block device above may be what frees memory, so nothing here waits for
 * IO to get some.
 */
static void rtrs_clt_path_work(struct work_struct *work)
{
	struct rtrs_clt_path *path = container_of(work, struct rtrs_clt_path, work.work);
	unsigned int noio = memalloc_noio_save();
	enum rtrs_clt_state state;
	long wait;

	do {
		spin_lock_irq(&path->lock);
		path->kicked = false;
		state = path->state;
		spin_unlock_irq(&path->lock);

		wait = rtrs_clt_steps[state](path);

		spin_lock_irq(&path->lock);
		if (path->kicked)
			wait = STEP_AGAIN;
		else if (wait > 0)
			mod_delayed_work(rtrs_clt_wq, &path->work, wait);
		spin_unlock_irq(&path->lock);
	} while (wait == STEP_AGAIN);
	memalloc_noio_restore(noio);
}

/*
 * What others ask of a path
 */

/**
 * rtrs_clt_path_start() - have a new path connected for the first time
 * @path: published path
 * @deadline: in jiffies, when the attempt shall have ended
 */
void rtrs_clt_path_start(struct rtrs_clt_path *path, unsigned long deadline)
{
	spin_lock_irq(&path->lock);
	path->deadline = deadline;
	rtrs_clt_path_kick(path);
	spin_unlock_irq(&path->lock);
}

/**
 * rtrs_clt_path_settings_changed() - tell a path that its session's heartbeat or
 * request timeout has changed
 * @path: the path
 */
void rtrs_clt_path_settings_changed(struct rtrs_clt_path *path)
{
	spin_lock_irq(&path->lock);
	/* others look at the session when they come up */
	if (path->state == RTRS_CLT_CONNECTED) {
		set_bit(RTRS_WISH_SETTINGS, &path->wishes);
		rtrs_clt_path_kick(path);
	}
	spin_unlock_irq(&path->lock);
}

/**
 * rtrs_clt_path_watch() - have the worker look at the requests from now on
 * @path: path to which a request was posted in the same RCU read section
 *
 * Context: any.
 */
void rtrs_clt_path_watch(struct rtrs_clt_path *path)
{
	unsigned long flags;

	spin_lock_irqsave(&path->lock, flags);
	if (path->state == RTRS_CLT_CONNECTED && !READ_ONCE(path->watched)) {
		WRITE_ONCE(path->watched, true);
		rtrs_clt_path_kick(path);
	}
	spin_unlock_irqrestore(&path->lock, flags);
}

/**
 * rtrs_clt_path_try_now() - end the wait of a path that waits to reconnect
 * @path: the path
 *
 * If an attempt is under way, and fails, the next one follows at once. Attempts
 * count as any other. Context: any.
 */
void rtrs_clt_path_try_now(struct rtrs_clt_path *path)
{
	unsigned long flags;

	spin_lock_irqsave(&path->lock, flags);
	if (path->state <= RTRS_CLT_RECONNECTING)
		set_bit(RTRS_WISH_NOW, &path->wishes);
	if (path->state == RTRS_CLT_RECONNECTING)
		rtrs_clt_path_kick(path);
	spin_unlock_irqrestore(&path->lock, flags);
}

/* The states in which a path can be asked to reconnect */
static bool rtrs_clt_path_may_reconnect(const struct rtrs_clt_path *path)
{
	lockdep_assert_held(&path->lock);
	if (READ_ONCE(path->clt->closing) || test_bit(RTRS_WISH_REMOVE, &path->wishes))
		return false;
	return path->state == RTRS_CLT_CONNECTED || path->state == RTRS_CLT_RECONNECTING ||
	       path->state == RTRS_CLT_CLOSED;
}

/**
 * rtrs_clt_path_reconnect() - take a path down if it is up, and connect it now
 * @path: path that was up before
 *
 * Tries at once and whatever max_reconnect_attempts says. If that fails the
 * automatic attempts go on from the beginning.
 *
 * Context: process, sleeps for one attempt at the most.
 * Return: 0 if the path is up; -ENOTCONN if the attempt failed, the reason is
 * in the path's last error; -EBUSY if the path is just connecting, closing or
 * being removed; -EINTR on a signal, the attempt goes on then.
 */
int rtrs_clt_path_reconnect(struct rtrs_clt_path *path)
{
	unsigned int seen;
	int err;

	spin_lock_irq(&path->lock);
	if (!rtrs_clt_path_may_reconnect(path)) {
		spin_unlock_irq(&path->lock);
		return -EBUSY;
	}
	if (rtrs_clt_change_state(path, RTRS_CLT_RECONNECTING)) {
		rtrs_clt_path_note_err(path, -ECONNABORTED, "reconnect was asked for");
		path->link_failed = false;
	}
	set_bit(RTRS_WISH_MANUAL, &path->wishes);
	seen = path->results;
	rtrs_clt_path_kick(path);
	spin_unlock_irq(&path->lock);

	err = rtrs_clt_path_wait_result(path, seen);
	return err && err != -EINTR ? -ENOTCONN : err;
}

/**
 * rtrs_clt_path_disconnect() - close a path; it stays in its session
 * @path: the path
 *
 * Context: process, sleeps until the path is closed.
 */
void rtrs_clt_path_disconnect(struct rtrs_clt_path *path)
{
	rtrs_clt_path_close(path, -ECONNABORTED, "disconnect was asked for");
}

/* CLOSED once more, or nothing: reconnect is refused from now on */
static void rtrs_clt_path_kill(struct rtrs_clt_path *path)
{
	rtrs_clt_path_close(path, -ECONNABORTED, "the path is removed");
	spin_lock_irq(&path->lock);
	rtrs_clt_change_state(path, RTRS_CLT_DEAD);
	spin_unlock_irq(&path->lock);
	cancel_delayed_work_sync(&path->work);
}

/**
 * rtrs_clt_path_remove() - close a path and take it out of its session
 * @path: published path; gone when this returns 0
 *
 * Context: process, sleeps until the path is closed.
 * Return: 0; -EBUSY if somebody else is just removing the path.
 */
int rtrs_clt_path_remove(struct rtrs_clt_path *path)
{
	bool taken;

	spin_lock_irq(&path->lock);
	taken = test_and_set_bit(RTRS_WISH_REMOVE, &path->wishes);
	spin_unlock_irq(&path->lock);
	if (taken)
		return -EBUSY;
	rtrs_clt_path_kill(path);
	rtrs_clt_destroy_path_files(path);
	rtrs_clt_path_unpublish(path);
	rtrs_clt_path_put(path);
	return 0;
}

/**
 * rtrs_clt_path_add() - add a path to a session and bring it up
 * @clt: open session
 * @addr: its addresses; src may be NULL
 *
 * Context: process, sleeps for one attempt to connect at the most.
 * Return: 0; -EEXIST if the session has that path; -ENOSPC if it has
 * MAX_PATHS_NUM; -EBUSY if it is being closed; -ENOMEM; -EINTR on a signal; or
 * why the path cannot be connected. Nothing is left of the path then.
 */
int rtrs_clt_path_add(struct rtrs_clt_sess *clt, const struct rtrs_addr *addr)
{
	struct rtrs_clt_path *path;
	int err;

	path = rtrs_clt_path_alloc(clt, addr);
	if (IS_ERR(path))
		return PTR_ERR(path);
	err = rtrs_clt_path_publish(path);
	if (err) {
		rtrs_clt_path_put(path);
		return err;
	}
	/* once it is shown, somebody may remove it */
	kobject_get(&path->kobj);
	rtrs_clt_path_start(path, rtrs_clt_connect_deadline());
	err = rtrs_clt_path_wait_result(path, 0);
	if (!err)
		err = rtrs_clt_create_path_files(path);
	if (err)
		rtrs_clt_path_remove(path);
	kobject_put(&path->kobj);
	return err;
}

/*
 * Allocation and release
 */

static int rtrs_clt_alloc_cons(struct rtrs_clt_path *path)
{
	struct rtrs_clt_con *con;
	unsigned int i;

	path->s.irq_con_num = nr_cpu_ids + 1;
	path->s.con_num = path->s.irq_con_num + path->clt->nr_poll_queues;
	path->s.con = kzalloc_objs(*path->s.con, path->s.con_num);
	if (!path->s.con)
		return -ENOMEM;
	for (i = 0; i < path->s.con_num; i++) {
		con = rtrs_clt_con_alloc(path, i);
		if (!con)
			return -ENOMEM;
		path->s.con[i] = &con->c;
	}
	return 0;
}

/**
 * rtrs_clt_path_free() - the release of a path's kobject
 * @path: path that no set shows and no worker works for
 */
void rtrs_clt_path_free(struct rtrs_clt_path *path)
{
	struct rtrs_clt_sess *clt = path->clt;
	unsigned int i;

	/* I4 */
	WARN_ON_ONCE(path->published || path->s.dev || delayed_work_pending(&path->work));
	for (i = 0; path->s.con && i < path->s.con_num; i++)
		if (path->s.con[i])
			rtrs_clt_con_free(to_clt_con(path->s.con[i]));
	kfree(path->s.con);
	rtrs_clt_stats_free(&path->stats);
	kfree(path);
	put_device(&clt->dev);
}

/**
 * rtrs_clt_path_put() - give up the reference that rtrs_clt_path_alloc() returned
 * @path: the path
 */
void rtrs_clt_path_put(struct rtrs_clt_path *path)
{
	kobject_put(&path->stats.kobj_stats);
	kobject_put(&path->kobj);
}

/**
 * rtrs_clt_path_alloc() - make a path object
 * @clt: its session, to which the path holds a reference
 * @addr: addresses, copied; src may be NULL
 *
 * Context: process, sleeps.
 * Return: the path, which rtrs_clt_path_put() frees, or ERR_PTR(-ENOMEM).
 */
struct rtrs_clt_path *rtrs_clt_path_alloc(struct rtrs_clt_sess *clt, const struct rtrs_addr *addr)
{
	struct rtrs_clt_path *path = kzalloc_obj(*path);
	int err;

	if (!path)
		return ERR_PTR(-ENOMEM);
	get_device(&clt->dev);
	path->clt = clt;
	path->state = RTRS_CLT_CONNECTING;
	path->since = ktime_get();
	path->flipped = path->since;
	path->torn_down = true;
	path->max_pages_per_mr = RTRS_MAX_SEGMENTS;
	path->last_why = "";
	spin_lock_init(&path->lock);
	init_waitqueue_head(&path->wait);
	INIT_DELAYED_WORK(&path->work, rtrs_clt_path_work);
	uuid_gen(&path->s.uuid);
	strscpy(path->s.sessname, clt->sessname, sizeof(path->s.sessname));
	memcpy(&path->s.dst_addr, addr->dst, rdma_addr_size((struct sockaddr *)addr->dst));
	if (addr->src)
		memcpy(&path->s.src_addr, addr->src,
		       rdma_addr_size((struct sockaddr *)addr->src));
	rtrs_clt_init_hb(path);
	kobject_init(&path->kobj, &rtrs_clt_path_ktype);

	err = rtrs_clt_stats_init(&path->stats);
	err = err ?: rtrs_clt_alloc_cons(path);
	if (err) {
		kobject_put(&path->kobj);
		return ERR_PTR(err);
	}
	kobject_get(&path->kobj);
	kobject_init(&path->stats.kobj_stats, &rtrs_clt_stats_ktype);
	return path;
}
