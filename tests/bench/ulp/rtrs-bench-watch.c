// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RTRS bench watch: looks at what this machine sends
 *
 * A buffer that the bench client has poisoned is one that was confirmed, so none of
 * its bytes may leave the machine any more. If one does, a packet was repeated whose
 * memory the transport had already given back. The other end drops such a packet as a
 * duplicate and nobody there would notice; here it is counted. In debugfs, in the
 * folder rtrs-bench-watch:
 *
 *	large		packets that carry data
 *	poisoned	those among them that have poison in their middle
 */
#include <linux/debugfs.h>
#include <linux/if_ether.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include "rtrs-bench.h"

MODULE_DESCRIPTION("Counts packets that carry poison of the RTRS benchmark");
MODULE_LICENSE("GPL");

/* Headers and user messages are shorter, data are longer */
#define WATCH_LARGE 1024

static struct dentry *watch_dir;
static atomic_t watch_large, watch_poisoned;

static int watch_packet(struct sk_buff *skb, struct net_device *dev, struct packet_type *type,
			struct net_device *orig_dev)
{
	u8 buf[16];
	const u8 *middle;

	if (skb->pkt_type == PACKET_OUTGOING && skb->len >= WATCH_LARGE) {
		atomic_inc(&watch_large);
		middle = skb_header_pointer(skb, skb->len / 2, sizeof(buf), buf);
		if (middle && !memchr_inv(middle, RTRS_BENCH_POISON, sizeof(buf)))
			atomic_inc(&watch_poisoned);
	}
	consume_skb(skb);
	return 0;
}

static struct packet_type watch_type = {
	.type = htons(ETH_P_ALL),
	.func = watch_packet,
	.af_packet_net = &init_net,
};

static int __init rtrs_bench_watch_init(void)
{
	watch_dir = debugfs_create_dir("rtrs-bench-watch", NULL);
	debugfs_create_atomic_t("large", 0444, watch_dir, &watch_large);
	debugfs_create_atomic_t("poisoned", 0444, watch_dir, &watch_poisoned);
	dev_add_pack(&watch_type);
	return 0;
}

static void __exit rtrs_bench_watch_exit(void)
{
	dev_remove_pack(&watch_type);
	debugfs_remove(watch_dir);
}

module_init(rtrs_bench_watch_init);
module_exit(rtrs_bench_watch_exit);
