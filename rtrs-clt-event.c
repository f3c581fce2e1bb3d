// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RDMA Transport client: which paths are up, and who is told
 *
 * Paths that are up are counted. When the count leaves 0 or comes to it, the
 * caller of rtrs_clt_open() hears of it, in a work of its own without any lock;
 * user space hears of each path.
 */
#include "rtrs-clt.h"
#include "rtrs-clt-trace.h"

/* Says to the caller what has happened since; down and up again is two events. */
static void rtrs_clt_ev_work(struct work_struct *work)
{
	struct rtrs_clt_sess *clt = container_of(work, struct rtrs_clt_sess, ev_work);
	enum rtrs_clt_link_ev ev;

	might_sleep();
	for (;;) {
		spin_lock(&clt->lock);
		if (!clt->ev_pending) {
			/* I7 */
			WARN_ON_ONCE(clt->opened && clt->ev_up != !!clt->paths_up);
			spin_unlock(&clt->lock);
			return;
		}
		/* more than down and up in a row says no more than that */
		if (clt->ev_pending > 2)
			clt->ev_pending = 2 - (clt->ev_pending & 1);
		clt->ev_pending--;
		clt->ev_up = !clt->ev_up;
		ev = clt->ev_up ? RTRS_CLT_LINK_EV_RECONNECTED : RTRS_CLT_LINK_EV_DISCONNECTED;
		spin_unlock(&clt->lock);

		trace_rtrs_clt_link_event(clt, ev);
		clt->ops.link_ev(clt->ops.priv, ev);
	}
}

/* Tells user space which path went up or down. */
static void rtrs_clt_path_uevent(struct rtrs_clt_path *path, const char *state)
{
	char name[RTRS_CLT_PATH_NAME], path_env[RTRS_CLT_PATH_NAME + 16], state_env[32];
	char *env[3] = {};

	env[0] = path_env;
	env[1] = state_env;
	snprintf(path_env, sizeof(path_env), "PATH_NAME=%s",
		 rtrs_clt_path_name(path, name, sizeof(name)));
	snprintf(state_env, sizeof(state_env), "STATE=%s", state);
	kobject_uevent_env(&path->clt->dev.kobj, KOBJ_CHANGE, env);
}

/**
 * rtrs_clt_count_up() - count a path that becomes CONNECTED
 * @path: the path, in its worker
 *
 * Context: process, the session's lock is held.
 */
void rtrs_clt_count_up(struct rtrs_clt_path *path)
{
	struct rtrs_clt_sess *clt = path->clt;

	lockdep_assert_held(&clt->lock);
	path->was_up = true;
	atomic_inc(&path->stats.reconnects_ok);
	if (!clt->paths_up++ && clt->opened) {
		clt->ev_pending++;
		queue_work(rtrs_clt_ev_wq, &clt->ev_work);
	}
}

/**
 * rtrs_clt_path_up() - tell of a path that has become CONNECTED
 * @path: the path, in its worker
 */
void rtrs_clt_path_up(struct rtrs_clt_path *path)
{
	rtrs_clt_path_uevent(path, "connected");
}

/**
 * rtrs_clt_path_down() - count a path that is torn down
 * @path: the path, in its worker; its requests are dealt with
 */
void rtrs_clt_path_down(struct rtrs_clt_path *path)
{
	struct rtrs_clt_sess *clt = path->clt;

	if (!path->was_up)
		return;
	path->was_up = false;
	spin_lock(&clt->lock);
	if (!--clt->paths_up && clt->opened) {
		clt->ev_pending++;
		queue_work(rtrs_clt_ev_wq, &clt->ev_work);
	}
	spin_unlock(&clt->lock);
	rtrs_clt_path_uevent(path, "disconnected");
}

/**
 * rtrs_clt_start_events() - tell link events from now on
 * @clt: session that has just been opened
 *
 * If all its paths are gone already that is told first.
 */
void rtrs_clt_start_events(struct rtrs_clt_sess *clt)
{
	spin_lock(&clt->lock);
	clt->promised = true;
	clt->opened = true;
	clt->ev_up = true;
	if (!clt->paths_up) {
		clt->ev_pending = 1;
		queue_work(rtrs_clt_ev_wq, &clt->ev_work);
	}
	spin_unlock(&clt->lock);
}

/**
 * rtrs_clt_init_events() - prepare a new session's link events
 * @clt: session
 */
void rtrs_clt_init_events(struct rtrs_clt_sess *clt)
{
	INIT_WORK(&clt->ev_work, rtrs_clt_ev_work);
}
