// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What we use of the kernel and not every kernel has. One line is one probe, see
 * Kbuild: compat.h replaces a SHIM that is missing, a NEED it cannot replace.
 */
#include <linux/device.h>
#include <linux/irq_poll.h>
#include <linux/kstrtox.h>
#include <linux/overflow.h>
#include <linux/random.h>
#include <linux/sbitmap.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/uio.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#define SHIM(name, code) static void __maybe_unused probe_##name(void) { code; }
#define NEED(name, ...) SHIM(name, __VA_ARGS__)
/* There is a function of this type */
#define FUNC(name, type) static_assert(__same_type(name, type))

SHIM(__counted_by, struct { int nr; int i[] __counted_by(nr); } *p = NULL; (void)p)
SHIM(__uninitialized, int i __uninitialized; (void)&i)
SHIM(struct_size_t, struct s { int nr; int i[]; }; (void)struct_size_t(struct s, i, 2))
SHIM(kzalloc_obj, int *p = kzalloc_obj(*p); (void)p)
SHIM(kzalloc_objs, int *p = kzalloc_objs(*p, 2); (void)p)
SHIM(kvzalloc_objs, int *p = kvzalloc_objs(*p, 2); (void)p)

NEED(get_random_u32_below, (void)get_random_u32_below(2))
NEED(ITER_SOURCE, (void)ITER_SOURCE)
NEED(io_wait_event, struct wait_queue_head *wq = NULL; io_wait_event(*wq, true))
NEED(sysfs_emit_at, FUNC(sysfs_emit_at, int (char *, int, const char *, ...)))
NEED(kobject_init, FUNC(kobject_init, void (struct kobject *, const struct kobj_type *)))
NEED(class_register, struct class *c = NULL; (void)class_register(c))
NEED(sbitmap_get, FUNC(sbitmap_get, int (struct sbitmap *)))
NEED(sbitmap_init_node, (void)sbitmap_init_node(NULL, 1, -1, 0, 0, false, true))
NEED(irq_poll_init, FUNC(irq_poll_init, void (struct irq_poll *, int, irq_poll_fn *)))
NEED(ib_client, FUNC(((struct ib_client *)NULL)->add, int (*)(struct ib_device *)))
NEED(rdma_connect_locked, (void)rdma_connect_locked(NULL, NULL))
NEED(rdma_set_reuseaddr, FUNC(rdma_set_reuseaddr, int (struct rdma_cm_id *, int)))
