// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RDMA Transport client: the HCAs that paths lead over
 *
 * Whether an HCA can carry RTRS; what a path takes of it and gives back; what
 * the HCA tells us: a link that is back, and that it is going to be removed.
 */
#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME " L" __stringify(__LINE__) ": " fmt

#include "rtrs-clt.h"
#include "rtrs-log.h"

static struct ib_client rtrs_clt_ib_client;

/* The number of pages may only shrink: users were told a maximum. */
static void rtrs_clt_device_limits(struct rtrs_clt_path *path)
{
	const struct ib_device_attr *attr = &path->s.dev->ib_dev->attrs;
	unsigned int shift = ilog2(RTRS_CLT_MR_PAGE_SIZE);
	u64 pages;

	if (attr->page_size_cap)
		shift = max_t(unsigned int, shift, __ffs64(attr->page_size_cap));
	pages = min_t(u64, attr->max_mr_size >> shift, attr->max_fast_reg_page_list_len);
	path->max_pages_per_mr = min_t(u64, pages, path->max_pages_per_mr);
}

/* soft-iWARP and most iWARP HCAs lack the one operation that requests need */
static bool rtrs_clt_has_write_imm(const struct rdma_cm_id *id)
{
	return !rdma_protocol_iwarp(id->device, id->port_num) ||
	       id->device->ops.driver_id == RDMA_DRIVER_CXGB4;
}

/**
 * rtrs_clt_use_device() - have a path stand on the HCA that its cid 0 leads over
 * @path: path without queues, in the CM handler of cid 0
 * @id: resolved CM id
 *
 * What belonged to another HCA goes.
 *
 * Context: process, sleeps.
 * Return: 0; -EOPNOTSUPP if the HCA cannot carry RTRS; -ENOMEM; what the HCA says.
 */
int rtrs_clt_use_device(struct rtrs_clt_path *path, struct rdma_cm_id *id)
{
	struct rtrs_ib_dev *dev;

	if (path->s.dev && path->s.dev->ib_dev == id->device)
		return 0;
	rtrs_clt_path_release_device(path);
	if (!rtrs_clt_has_write_imm(id)) {
		rtrs_err(&path->s, "%s cannot do RDMA writes with an immediate\n",
			 dev_name(&id->device->dev));
		return -EOPNOTSUPP;
	}
	if (id->device->attrs.max_send_sge < 2) {
		rtrs_err(&path->s, "%s sends no more than %d segment\n",
			 dev_name(&id->device->dev), id->device->attrs.max_send_sge);
		return -EOPNOTSUPP;
	}
	WRITE_ONCE(path->hca, id->device);
	/*
	 * Either we see here that the HCA goes, or rtrs_clt_ib_remove() sees
	 * that we have it. Pairs with the barrier there.
	 */
	smp_mb();
	if (!ib_get_client_data(id->device, &rtrs_clt_ib_client)) {
		WRITE_ONCE(path->hca, NULL);
		return -ENODEV;
	}
	dev = rtrs_ib_dev_get(id->device, &path->clt->dev_pd);
	if (IS_ERR(dev)) {
		WRITE_ONCE(path->hca, NULL);
		return PTR_ERR(dev);
	}
	WRITE_ONCE(path->s.dev, dev);
	rtrs_clt_device_limits(path);
	return 0;
}

/**
 * rtrs_clt_path_release_device() - give up what a path has on its HCA
 * @path: path without queues, in its worker or in the CM handler of cid 0
 *
 * Context: process, sleeps.
 */
void rtrs_clt_path_release_device(struct rtrs_clt_path *path)
{
	struct rtrs_ib_dev *dev = path->s.dev;
	unsigned int i;

	if (!dev)
		return;
	rtrs_clt_free_reqs(path);
	for (i = 0; i < path->s.con_num; i++)
		rtrs_clt_con_free_msgs(to_clt_con(path->s.con[i]));
	WRITE_ONCE(path->s.dev, NULL);
	rtrs_ib_dev_put(dev);
	/* last: who removes the HCA waits for it; pairs with the acquire there */
	smp_store_release(&path->hca, NULL);
}

/* The link is back, or our address is: those who wait for it try at once. */
static void rtrs_clt_link_back(struct rtrs_clt_sess *clt, struct rtrs_ib_dev *dev)
{
	struct rtrs_clt_path_set *set;
	unsigned int i;

	rcu_read_lock();
	set = rcu_dereference(clt->paths);
	for (i = 0; i < set->nr; i++)
		if (READ_ONCE(set->path[i]->s.dev) == dev)
			rtrs_clt_path_try_now(set->path[i]);
	rcu_read_unlock();
}

static void rtrs_clt_ib_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct rtrs_ib_dev *dev = container_of(handler, struct rtrs_ib_dev, event_handler);
	struct rtrs_clt_sess *clt = container_of(dev->pool, struct rtrs_clt_sess, dev_pd);

	rtrs_info_rl(clt, "%s port %u: %s\n", dev_name(&dev->ib_dev->dev),
		     event->element.port_num, ib_event_msg(event->event));
	if (event->event == IB_EVENT_PORT_ACTIVE || event->event == IB_EVENT_GID_CHANGE)
		rtrs_clt_link_back(clt, dev);
}

static int rtrs_clt_ib_dev_init(struct rtrs_ib_dev *dev)
{
	struct rtrs_clt_sess *clt = container_of(dev->pool, struct rtrs_clt_sess, dev_pd);

	if (!(dev->ib_dev->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS)) {
		rtrs_err(clt, "%s cannot register memory by work request\n",
			 dev_name(&dev->ib_dev->dev));
		return -EOPNOTSUPP;
	}
	INIT_IB_EVENT_HANDLER(&dev->event_handler, dev->ib_dev, rtrs_clt_ib_event);
	ib_register_event_handler(&dev->event_handler);
	return 0;
}

static void rtrs_clt_ib_dev_deinit(struct rtrs_ib_dev *dev)
{
	ib_unregister_event_handler(&dev->event_handler);
}

static const struct rtrs_rdma_dev_pd_ops rtrs_clt_dev_pd_ops = {
	.init = rtrs_clt_ib_dev_init,
	.deinit = rtrs_clt_ib_dev_deinit,
};

/**
 * rtrs_clt_sess_init_dev_pd() - give a session a device pool of its own
 * @clt: session with register_always set
 *
 * A key of one server's session means nothing in the PD of another's.
 */
void rtrs_clt_sess_init_dev_pd(struct rtrs_clt_sess *clt)
{
	clt->dev_pd.ops = &rtrs_clt_dev_pd_ops;
	rtrs_rdma_dev_pd_init(clt->register_always ? 0 : IB_PD_UNSAFE_GLOBAL_RKEY, &clt->dev_pd);
}

/* An HCA goes: paths that have something of it close, and we wait for that. */
static void rtrs_clt_sess_leave_device(struct rtrs_clt_sess *clt, struct ib_device *ib_dev)
{
	struct rtrs_clt_path_set *set;
	unsigned int i;

	mutex_lock(&clt->paths_mutex);
	set = rcu_dereference_protected(clt->paths, lockdep_is_held(&clt->paths_mutex));
	for (i = 0; i < set->nr; i++) {
		/* pairs with the release in rtrs_clt_path_release_device() */
		if (smp_load_acquire(&set->path[i]->hca) == ib_dev)
			rtrs_clt_path_close(set->path[i], -ENODEV, "the HCA was removed");
	}
	mutex_unlock(&clt->paths_mutex);
}

/* The client data of an HCA says that it may be used. */
static int rtrs_clt_ib_add(struct ib_device *ib_dev)
{
	ib_set_client_data(ib_dev, &rtrs_clt_ib_client, &rtrs_clt_ib_client);
	return 0;
}

static void rtrs_clt_ib_remove(struct ib_device *ib_dev, void *client_data)
{
	struct rtrs_clt_sess *clt;

	ib_set_client_data(ib_dev, &rtrs_clt_ib_client, NULL);
	/* pairs with the barrier in rtrs_clt_use_device() */
	smp_mb();
	mutex_lock(&rtrs_clt_sess_mutex);
	list_for_each_entry(clt, &rtrs_clt_sess_list, entry)
		rtrs_clt_sess_leave_device(clt, ib_dev);
	mutex_unlock(&rtrs_clt_sess_mutex);
}

static struct ib_client rtrs_clt_ib_client = {
	.name = "rtrs_client",
	.add = rtrs_clt_ib_add,
	.remove = rtrs_clt_ib_remove,
};

/**
 * rtrs_clt_ib_client_register() - hear of HCAs that go
 *
 * Return: 0 or negative errno.
 */
int rtrs_clt_ib_client_register(void)
{
	return ib_register_client(&rtrs_clt_ib_client);
}

/**
 * rtrs_clt_ib_client_unregister() - the opposite
 */
void rtrs_clt_ib_client_unregister(void)
{
	ib_unregister_client(&rtrs_clt_ib_client);
}
