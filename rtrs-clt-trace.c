// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RDMA Transport client: tracepoints
 */
#include "rtrs-clt.h"

/* A path is traced from its allocation on and named only when it is up. */
static const char *path_name(const struct rtrs_clt_path *path)
{
	const char *name = path ? kobject_name(&path->kobj) : NULL;

	return name ?: "";
}

#define CREATE_TRACE_POINTS
#include "rtrs-clt-trace.h"
