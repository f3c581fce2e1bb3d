// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RDMA Transport client: attributes of sessions and paths
 *
 * Parse, call, print: what an attribute does is done elsewhere. Formats and
 * errors are ABI, see Documentation/ABI/sysfs-class-rtrs-client.
 */
#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME " L" __stringify(__LINE__) ": " fmt

#include <linux/device.h>
#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/string.h>
#include <linux/stringify.h>
#include <linux/sysfs.h>

#include "rtrs-clt.h"
#include "rtrs-log.h"

static struct rtrs_clt_sess *dev_to_sess(struct device *dev)
{
	return container_of(dev, struct rtrs_clt_sess, dev);
}

static struct rtrs_clt_path *kobj_to_path(struct kobject *kobj)
{
	return container_of(kobj, struct rtrs_clt_path, kobj);
}

/* Control characters are escaped, and a log line is short. */
static void log_bad_input(struct rtrs_clt_sess *clt, const struct kobject *kobj,
			  const char *attr, const char *buf, const char *why)
{
	int len = strnlen(buf, 100);

	if (len && buf[len - 1] == '\n')
		len--;
	rtrs_err(clt, "%s/%s: \"%*pE\" %s\n", kobject_name(kobj), attr, len, buf, why);
}

/*
 * Paths belong to rtrs_clt_open() until it has succeeded and to
 * rtrs_clt_close() once it has begun.
 */
static int may_change_paths(struct rtrs_clt_sess *clt, const struct kobject *kobj,
			    const char *attr)
{
	const char *why;

	if (READ_ONCE(clt->closing))
		why = "closed";
	else if (!READ_ONCE(clt->opened))
		why = "opened";
	else
		return 0;

	rtrs_err(clt, "%s/%s: refused, the session is being %s\n", kobject_name(kobj), attr, why);
	return -EBUSY;
}

/*
 * Session
 */

/**
 * struct sess_int_attr - a number of a session that can be set
 * @attr:	attribute
 * @offset:	of the int in struct rtrs_clt_sess
 * @min:	smallest value
 * @max:	largest value
 * @bad_input:	what the log says about any other
 * @changed:	told to each path when the value was set, or NULL
 */
struct sess_int_attr {
	struct device_attribute attr;
	size_t offset;
	int min;
	int max;
	const char *bad_input;
	void (*changed)(struct rtrs_clt_path *path);
};

static const struct sess_int_attr *to_int_attr(const struct device_attribute *attr)
{
	return container_of(attr, struct sess_int_attr, attr);
}

static int *sess_int(struct rtrs_clt_sess *clt, const struct sess_int_attr *ia)
{
	return (void *)clt + ia->offset;
}

static void tell_paths(struct rtrs_clt_sess *clt, void (*changed)(struct rtrs_clt_path *path))
{
	const struct rtrs_clt_path_set *set;
	unsigned int i;

	mutex_lock(&clt->paths_mutex);
	set = rcu_dereference_protected(clt->paths, lockdep_is_held(&clt->paths_mutex));
	for (i = 0; set && i < set->nr; i++)
		changed(set->path[i]);
	mutex_unlock(&clt->paths_mutex);
}

static ssize_t sess_int_show(struct device *dev, struct device_attribute *attr, char *page)
{
	const int *val = sess_int(dev_to_sess(dev), to_int_attr(attr));

	return sysfs_emit(page, "%d\n", READ_ONCE(*val));
}

static ssize_t sess_int_store(struct device *dev, struct device_attribute *attr,
			      const char *buf, size_t count)
{
	const struct sess_int_attr *ia = to_int_attr(attr);
	struct rtrs_clt_sess *clt = dev_to_sess(dev);
	int val, err;

	err = kstrtoint(buf, 10, &val);
	if (!err && (val < ia->min || val > ia->max))
		err = -EINVAL;
	if (err) {
		log_bad_input(clt, &dev->kobj, attr->attr.name, buf, ia->bad_input);
		return err;
	}

	WRITE_ONCE(*sess_int(clt, ia), val);
	if (ia->changed)
		tell_paths(clt, ia->changed);
	return count;
}

#define SESS_INT_ATTR(_name, _min, _max, _changed)				\
static_assert(sizeof_field(struct rtrs_clt_sess, _name) == sizeof(int));	\
static struct sess_int_attr sess_attr_##_name = {				\
	.attr = __ATTR(_name, 0644, sess_int_show, sess_int_store),		\
	.offset = offsetof(struct rtrs_clt_sess, _name),			\
	.min = (_min),								\
	.max = (_max),								\
	.bad_input = "is no number from " #_min " to " #_max,			\
	.changed = (_changed),							\
}

SESS_INT_ATTR(max_reconnect_attempts, -1, 9999, NULL);
SESS_INT_ATTR(reconnect_delay_sec, 0, 255, NULL);
SESS_INT_ATTR(hb_interval_ms, 100, 60000, rtrs_clt_path_settings_changed);
SESS_INT_ATTR(hb_missed_max, 1, 100, rtrs_clt_path_settings_changed);
SESS_INT_ATTR(request_timeout_sec, 0, 3600, rtrs_clt_path_settings_changed);

static ssize_t mpath_policy_show(struct device *dev, struct device_attribute *attr, char *page)
{
	enum rtrs_mp_policy policy = READ_ONCE(dev_to_sess(dev)->policy);
	const struct rtrs_mp_policy_row *row = &rtrs_mp_policies[policy];

	return sysfs_emit(page, "%s (%s: %d)\n", row->name, row->abbr, policy);
}

/* A number, the abbreviation, or anything that begins with the long name */
static int parse_policy(const char *buf)
{
	const struct rtrs_mp_policy_row *row;
	size_t len = strlen(buf);
	unsigned int i;

	if (!kstrtouint(buf, 10, &i))
		return i < MP_POLICY_NR ? i : -EINVAL;

	if (len && buf[len - 1] == '\n')
		len--;
	for (i = 0; i < MP_POLICY_NR; i++) {
		row = &rtrs_mp_policies[i];
		if (!strncasecmp(buf, row->name, strlen(row->name)) ||
		    (len == strlen(row->abbr) && !strncasecmp(buf, row->abbr, len)))
			return i;
	}
	return -EINVAL;
}

static ssize_t mpath_policy_store(struct device *dev, struct device_attribute *attr,
				  const char *buf, size_t count)
{
	struct rtrs_clt_sess *clt = dev_to_sess(dev);
	int policy = parse_policy(buf);

	if (policy < 0) {
		log_bad_input(clt, &dev->kobj, attr->attr.name, buf, "is no policy");
		return policy;
	}
	WRITE_ONCE(clt->policy, policy);
	return count;
}

static DEVICE_ATTR_RW(mpath_policy);

static ssize_t add_path_show(struct device *dev, struct device_attribute *attr, char *page)
{
	return sysfs_emit(page,
			  "Usage: echo [<source addr>@]<destination addr> > %s\n\n"
			  "*addr ::= [ ip:<ipv4|ipv6> | gid:<gid> ]\n",
			  attr->attr.name);
}

static ssize_t add_path_store(struct device *dev, struct device_attribute *attr,
			      const char *buf, size_t count)
{
	struct rtrs_clt_sess *clt = dev_to_sess(dev);
	struct sockaddr_storage src = {}, dst = {};
	struct rtrs_addr addr = { .src = &src, .dst = &dst };
	int err;

	err = rtrs_addr_to_sockaddr(buf, strcspn(buf, "\n"), clt->port, &addr);
	if (err) {
		log_bad_input(clt, &dev->kobj, attr->attr.name, buf,
			      err == -EPROTONOSUPPORT ? "begins with neither ip: nor gid:" :
							"is no address or pair of addresses");
		return -EINVAL;
	}
	err = may_change_paths(clt, &dev->kobj, attr->attr.name);
	if (!err)
		err = rtrs_clt_path_add(clt, &addr);
	return err ? err : count;
}

static DEVICE_ATTR_RW(add_path);

static struct attribute *rtrs_clt_sess_attrs[] = {
	&dev_attr_add_path.attr,
	&dev_attr_mpath_policy.attr,
	&sess_attr_max_reconnect_attempts.attr.attr,
	&sess_attr_reconnect_delay_sec.attr.attr,
	&sess_attr_hb_interval_ms.attr.attr,
	&sess_attr_hb_missed_max.attr.attr,
	&sess_attr_request_timeout_sec.attr.attr,
	NULL
};

const struct attribute_group rtrs_clt_sess_group = {
	.attrs = rtrs_clt_sess_attrs,
};

/*
 * Path: values. They change together, under the path's lock.
 */

#define PATH_ATTR_RO(_name, _fmt, _value)						\
static ssize_t _name##_show(struct kobject *kobj, struct kobj_attribute *attr, char *page)	\
{											\
	struct rtrs_clt_path *path = kobj_to_path(kobj);				\
	ssize_t len;									\
											\
	spin_lock_irq(&path->lock);							\
	len = sysfs_emit(page, _fmt "\n", _value);					\
	spin_unlock_irq(&path->lock);							\
	return len;									\
}											\
static struct kobj_attribute _name##_attr = __ATTR_RO(_name)

PATH_ATTR_RO(hca_name, "%s", path->hca_name);
PATH_ATTR_RO(hca_port, "%u", path->hca_port);
PATH_ATTR_RO(state, "%s",
	     path->state == RTRS_CLT_CONNECTED ? "connected" : "disconnected");
PATH_ATTR_RO(state_detail, "%s", rtrs_clt_state_str(path->state));
PATH_ATTR_RO(state_ms, "%lld", ktime_ms_delta(ktime_get(), path->since));
PATH_ATTR_RO(last_error, "%d", path->last_err);
PATH_ATTR_RO(last_error_reason, "%s", path->last_why ?: "");
PATH_ATTR_RO(cur_latency, "%lld ns", ktime_to_ns(READ_ONCE(path->s.hb_cur_latency)));

static ssize_t addr_emit(struct rtrs_clt_path *path, const struct sockaddr_storage *addr,
			 char *page)
{
	int len;

	spin_lock_irq(&path->lock);
	len = sockaddr_to_str((const struct sockaddr *)addr, page, PAGE_SIZE);
	spin_unlock_irq(&path->lock);
	return len + sysfs_emit_at(page, len, "\n");
}

static ssize_t src_addr_show(struct kobject *kobj, struct kobj_attribute *attr, char *page)
{
	struct rtrs_clt_path *path = kobj_to_path(kobj);

	return addr_emit(path, &path->s.src_addr, page);
}

static struct kobj_attribute src_addr_attr = __ATTR_RO(src_addr);

static ssize_t dst_addr_show(struct kobject *kobj, struct kobj_attribute *attr, char *page)
{
	struct rtrs_clt_path *path = kobj_to_path(kobj);

	return addr_emit(path, &path->s.dst_addr, page);
}

static struct kobj_attribute dst_addr_attr = __ATTR_RO(dst_addr);

/*
 * Path: actions. Writing "1" to one does it.
 */

static ssize_t action_show(struct kobject *kobj, struct kobj_attribute *attr, char *page)
{
	return sysfs_emit(page, "Usage: echo 1 > %s\n", attr->attr.name);
}

/* 0 if the action may go ahead */
static int action_check(struct rtrs_clt_path *path, const struct kobj_attribute *attr,
			const char *buf)
{
	if (!sysfs_streq(buf, "1")) {
		log_bad_input(path->clt, &path->kobj, attr->attr.name, buf, "is not 1");
		return -EINVAL;
	}
	/* pairs with the release in rtrs_clt_create_path_files() */
	if (!smp_load_acquire(&path->shown)) {
		rtrs_err(path->clt, "%s/%s: refused, the path is just being added\n",
			 kobject_name(&path->kobj), attr->attr.name);
		return -EBUSY;
	}
	return may_change_paths(path->clt, &path->kobj, attr->attr.name);
}

static ssize_t reconnect_store(struct kobject *kobj, struct kobj_attribute *attr,
			       const char *buf, size_t count)
{
	struct rtrs_clt_path *path = kobj_to_path(kobj);
	int err = action_check(path, attr, buf);

	if (err)
		return err;
	err = rtrs_clt_path_reconnect(path);
	if (err == -EBUSY)
		rtrs_err(path->clt, "%s/%s: refused, the path is connecting, closing or removed\n",
			 kobject_name(kobj), attr->attr.name);
	return err ? err : count;
}

static struct kobj_attribute reconnect_attr =
	__ATTR(reconnect, 0644, action_show, reconnect_store);

static ssize_t disconnect_store(struct kobject *kobj, struct kobj_attribute *attr,
				const char *buf, size_t count)
{
	struct rtrs_clt_path *path = kobj_to_path(kobj);
	int err = action_check(path, attr, buf);

	if (err)
		return err;
	rtrs_clt_path_disconnect(path);
	return count;
}

static struct kobj_attribute disconnect_attr =
	__ATTR(disconnect, 0644, action_show, disconnect_store);

static ssize_t remove_path_store(struct kobject *kobj, struct kobj_attribute *attr,
				 const char *buf, size_t count)
{
	struct rtrs_clt_path *path = kobj_to_path(kobj);
	int err = action_check(path, attr, buf);

	if (err)
		return err;

	/*
	 * Removing the folder waits for all who are inside its files. We step
	 * out by removing our own file first; from then on nothing but the
	 * reference keeps a closing session from freeing the path.
	 */
	kobject_get(kobj);
	if (sysfs_remove_file_self(kobj, &attr->attr))
		err = rtrs_clt_path_remove(path);
	kobject_put(kobj);
	return err ? err : count;
}

/*
 * Lockdep does not know that the writer has stepped out. It would see a
 * deadlock with those who remove the folder of another path.
 */
static struct kobj_attribute remove_path_attr =
	__ATTR_IGNORE_LOCKDEP(remove_path, 0644, action_show, remove_path_store);

static struct attribute *rtrs_clt_path_attrs[] = {
	&hca_name_attr.attr,
	&hca_port_attr.attr,
	&src_addr_attr.attr,
	&dst_addr_attr.attr,
	&state_attr.attr,
	&state_detail_attr.attr,
	&state_ms_attr.attr,
	&last_error_attr.attr,
	&last_error_reason_attr.attr,
	&cur_latency_attr.attr,
	&reconnect_attr.attr,
	&disconnect_attr.attr,
	&remove_path_attr.attr,
	NULL
};

ATTRIBUTE_GROUPS(rtrs_clt_path);
__ATTRIBUTE_GROUPS(rtrs_clt_stats);

static void path_release(struct kobject *kobj)
{
	rtrs_clt_path_free(kobj_to_path(kobj));
}

const struct kobj_type rtrs_clt_path_ktype = {
	.sysfs_ops = &kobj_sysfs_ops,
	.release = path_release,
	.default_groups = rtrs_clt_path_groups,
};

/* The statistics are a part of their path and hold a reference to it. */
static void stats_release(struct kobject *kobj)
{
	kobject_put(&container_of(kobj, struct rtrs_clt_path, stats.kobj_stats)->kobj);
}

const struct kobj_type rtrs_clt_stats_ktype = {
	.sysfs_ops = &kobj_sysfs_ops,
	.release = stats_release,
	.default_groups = rtrs_clt_stats_groups,
};

/* Paths that differ in a scope or a port only would have the same name. */
static bool name_is_taken(struct rtrs_clt_sess *clt, const char *name)
{
	struct kernfs_node *kn = sysfs_get_dirent(clt->kobj_paths->sd, name);

	/* NULL is allowed */
	sysfs_put(kn);
	return kn;
}

/**
 * rtrs_clt_create_path_files() - show a path in sysfs
 * @path: path that knows its source address
 *
 * Nothing can be asked of the path by its files until all of them are there.
 *
 * Context: process, takes paths_mutex.
 * Return: 0; -EEXIST if a path of that name is shown already; other errors of
 * sysfs. Nothing is shown in case of error.
 */
int rtrs_clt_create_path_files(struct rtrs_clt_path *path)
{
	struct rtrs_clt_sess *clt = path->clt;
	char name[RTRS_CLT_PATH_NAME];
	int err;

	rtrs_clt_path_name(path, name, sizeof(name));
	mutex_lock(&clt->paths_mutex);
	err = name_is_taken(clt, name) ? -EEXIST : 0;
	if (!err)
		err = kobject_add(&path->kobj, clt->kobj_paths, "%s", name);
	if (!err) {
		err = kobject_add(&path->stats.kobj_stats, &path->kobj, "stats");
		if (err)
			kobject_del(&path->kobj);
	}
	mutex_unlock(&clt->paths_mutex);
	/* pairs with the acquire in action_check() */
	smp_store_release(&path->shown, !err);
	if (err)
		rtrs_err(clt, "path %s cannot be shown in sysfs: %pe\n", name, ERR_PTR(err));
	return err;
}

/**
 * rtrs_clt_destroy_path_files() - take a path out of sysfs
 * @path: any path, shown or not
 *
 * Waits for those who are inside its files, except for a writer of remove_path.
 *
 * Context: process, without a lock that an attribute may need; one caller at a
 * time for a path.
 */
void rtrs_clt_destroy_path_files(struct rtrs_clt_path *path)
{
	if (path->stats.kobj_stats.state_in_sysfs)
		kobject_del(&path->stats.kobj_stats);
	if (path->kobj.state_in_sysfs)
		kobject_del(&path->kobj);
}
