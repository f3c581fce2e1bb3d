// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RDMA Transport client: the published path set
 *
 * A set is immutable: readers take it once in an RCU read section, who changes
 * it publishes another one under paths_mutex. Here is also when two paths are
 * the same.
 */
#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME " L" __stringify(__LINE__) ": " fmt

#include <net/ipv6.h>

#include "rtrs-clt.h"
#include "rtrs-log.h"

static bool rtrs_clt_same_sockaddr(const struct sockaddr_storage *a,
				   const struct sockaddr_storage *b)
{
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;
	const struct sockaddr_ib *ai = (const void *)a, *bi = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	switch (a->ss_family) {
	case AF_INET:
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	case AF_INET6:
		return ipv6_addr_equal(&a6->sin6_addr, &b6->sin6_addr) &&
		       a6->sin6_scope_id == b6->sin6_scope_id;
	case AF_IB:
		return !memcmp(&ai->sib_addr, &bi->sib_addr, sizeof(ai->sib_addr));
	}
	return true;
}

/**
 * rtrs_clt_path_same_addr() - does a path lead over these addresses?
 * @path: the path
 * @addr: addresses; src may be NULL
 *
 * Ports do not count, as with the server.
 *
 * Return: true if it does.
 */
bool rtrs_clt_path_same_addr(const struct rtrs_clt_path *path, const struct rtrs_addr *addr)
{
	if (!rtrs_clt_same_sockaddr(&path->s.dst_addr, addr->dst))
		return false;
	if (!addr->src)
		return !path->s.src_addr.ss_family;
	return rtrs_clt_same_sockaddr(&path->s.src_addr, addr->src);
}

static bool rtrs_clt_set_has_addr(const struct rtrs_clt_path_set *set,
				  const struct rtrs_clt_path *path)
{
	struct rtrs_addr addr = {
		.src = path->s.src_addr.ss_family ?
			(struct sockaddr_storage *)&path->s.src_addr : NULL,
		.dst = (struct sockaddr_storage *)&path->s.dst_addr,
	};
	unsigned int i;

	for (i = 0; i < set->nr; i++)
		if (rtrs_clt_path_same_addr(set->path[i], &addr))
			return true;
	return false;
}

/**
 * rtrs_clt_path_is_twin() - has the session another path of these addresses?
 * @path: member of its session
 * @src: source address that the path is about to have
 *
 * For a path without a given source that is known only once cid 0 is accepted.
 *
 * Return: true if it has.
 */
bool rtrs_clt_path_is_twin(struct rtrs_clt_path *path, struct sockaddr_storage *src)
{
	struct rtrs_addr addr = { .src = src, .dst = &path->s.dst_addr };
	const struct rtrs_clt_path_set *set;
	bool twin = false;
	unsigned int i;

	rcu_read_lock();
	set = rcu_dereference(path->clt->paths);
	for (i = 0; i < set->nr && !twin; i++) {
		struct rtrs_clt_path *other = set->path[i];

		if (other == path)
			continue;
		spin_lock_irq(&other->lock);
		twin = rtrs_clt_path_same_addr(other, &addr);
		spin_unlock_irq(&other->lock);
	}
	rcu_read_unlock();
	return twin;
}

static struct rtrs_clt_path_set *rtrs_clt_set_alloc(unsigned int nr)
{
	struct rtrs_clt_path_set *set;

	set = kzalloc(struct_size(set, path, nr), GFP_KERNEL);
	if (set)
		set->nr = nr;
	return set;
}

static struct rtrs_clt_path_set *rtrs_clt_cur_set(struct rtrs_clt_sess *clt)
{
	return rcu_dereference_protected(clt->paths, lockdep_is_held(&clt->paths_mutex));
}

/* A set is small, so the one that replaces it is always a copy. */
static int rtrs_clt_set_add(struct rtrs_clt_sess *clt, struct rtrs_clt_path *path)
{
	struct rtrs_clt_path_set *old = rtrs_clt_cur_set(clt), *new;

	if (READ_ONCE(clt->closing))
		return -EBUSY;
	if (rtrs_clt_set_has_addr(old, path))
		return -EEXIST;
	if (old->nr == MAX_PATHS_NUM)
		return -ENOSPC;
	new = rtrs_clt_set_alloc(old->nr + 1);
	if (!new)
		return -ENOMEM;
	memcpy(new->path, old->path, old->nr * sizeof(*old->path));
	new->path[old->nr] = path;
	path->first_conn = !old->nr;
	path->published = true;
	rcu_assign_pointer(clt->paths, new);
	kfree_rcu(old, rcu);
	return 0;
}

/**
 * rtrs_clt_path_publish() - make a new path a member of its session
 * @path: the path
 *
 * The first member may create the session at the server.
 *
 * Context: process, sleeps.
 * Return: 0, -EEXIST, -ENOSPC, -ENOMEM, -EBUSY as rtrs_clt_path_add().
 */
int rtrs_clt_path_publish(struct rtrs_clt_path *path)
{
	struct rtrs_clt_sess *clt = path->clt;
	char name[RTRS_CLT_PATH_NAME];
	int err;

	mutex_lock(&clt->paths_mutex);
	err = rtrs_clt_set_add(clt, path);
	mutex_unlock(&clt->paths_mutex);
	if (err)
		rtrs_err(clt, "path %s cannot be added: %pe\n",
			 rtrs_clt_path_name(path, name, sizeof(name)), ERR_PTR(err));
	return err;
}

/**
 * rtrs_clt_path_unpublish() - take a path out of its session
 * @path: member that is DEAD
 *
 * Context: process; sleeps for a grace period, so nobody sees the path after.
 */
void rtrs_clt_path_unpublish(struct rtrs_clt_path *path)
{
	struct rtrs_clt_sess *clt = path->clt;
	struct rtrs_clt_path_set *old, *new;
	unsigned int i, n = 0;

	/* removing must not fail; the set is a few pointers */
	new = kzalloc(struct_size(new, path, MAX_PATHS_NUM), GFP_KERNEL | __GFP_NOFAIL);
	mutex_lock(&clt->paths_mutex);
	old = rtrs_clt_cur_set(clt);
	new->nr = old->nr - 1;
	for (i = 0; i < old->nr; i++)
		if (old->path[i] != path)
			new->path[n++] = old->path[i];
	rcu_assign_pointer(clt->paths, new);
	mutex_unlock(&clt->paths_mutex);
	synchronize_rcu();
	kfree(old);
	WRITE_ONCE(path->published, false);
	wake_up_all(&clt->permits_wait);
}
