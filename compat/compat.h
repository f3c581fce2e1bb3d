/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stands before each source file in builds outside of the kernel tree: what
 * kernels older than the source lack. Includes no headers of the kernel, so that
 * the file still decides what comes first.
 */
#ifndef RTRS_COMPAT_H
#define RTRS_COMPAT_H

#ifndef RTRS_PROBE
#include <rtrs-probed.h>

#ifndef RTRS_HAVE___counted_by
#define __counted_by(member)
#endif

#ifndef RTRS_HAVE___uninitialized
#define __uninitialized
#endif

#ifndef RTRS_HAVE_struct_size_t
#define struct_size_t(type, member, nr) struct_size((type *)NULL, member, nr)
#endif

#ifndef RTRS_HAVE_kzalloc_obj
#define kzalloc_obj(obj) kzalloc(sizeof(obj), GFP_KERNEL)
#endif

#ifndef RTRS_HAVE_kzalloc_objs
#define kzalloc_objs(obj, nr) kcalloc(nr, sizeof(obj), GFP_KERNEL)
#endif

#ifndef RTRS_HAVE_kvzalloc_objs
#define kvzalloc_objs(obj, nr) kvcalloc(nr, sizeof(obj), GFP_KERNEL)
#endif

#endif /* RTRS_PROBE */

#endif /* RTRS_COMPAT_H */
