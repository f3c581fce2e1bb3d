/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RDMA Transport client: tracepoints
 *
 * The three events of rtrs_clt_conn_class are ABI to the byte. The others name
 * session and path apart, each as long as it is.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rtrs_clt

#if !defined(_RTRS_CLT_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _RTRS_CLT_TRACE_H

#include <linux/limits.h>
#include <linux/tracepoint.h>
#include <rdma/ib_cm.h>
#include <rdma/rdma_cm.h>
#include <trace/misc/rdma.h>

#include "rtrs-clt.h"

/* Tells user space the values of the names that the formats below use */
#define DEFINE_CLT_ENUM(name) TRACE_DEFINE_ENUM(RTRS_CLT_##name)

DEFINE_CLT_ENUM(CONNECTING);
DEFINE_CLT_ENUM(CONNECTING_ERR);
DEFINE_CLT_ENUM(RECONNECTING);
DEFINE_CLT_ENUM(CONNECTED);
DEFINE_CLT_ENUM(CLOSING);
DEFINE_CLT_ENUM(CLOSED);
DEFINE_CLT_ENUM(DEAD);
DEFINE_CLT_ENUM(LINK_EV_RECONNECTED);
DEFINE_CLT_ENUM(LINK_EV_DISCONNECTED);

#define clt_state(name) { RTRS_CLT_##name, #name }
#define clt_link_ev(name) { RTRS_CLT_LINK_EV_##name, #name }

#define show_clt_state(val)							\
	__print_symbolic(val, clt_state(CONNECTING), clt_state(CONNECTING_ERR),	\
			 clt_state(RECONNECTING), clt_state(CONNECTED),		\
			 clt_state(CLOSING), clt_state(CLOSED), clt_state(DEAD))

#define show_clt_link_ev(val)							\
	__print_symbolic(val, clt_link_ev(RECONNECTED), clt_link_ev(DISCONNECTED))

/* What __string() does, but the same on kernels that disagree on __assign_str() */
#define rtrs_clt_str(item, str) \
	__dynamic_array(char, item, strlen(str) + 1)
#define rtrs_clt_assign_str(item, str) \
	strscpy(__get_str(item), str, __get_dynamic_array_len(item))

DECLARE_EVENT_CLASS(rtrs_clt_conn_class,
		    TP_PROTO(struct rtrs_clt_path *path),
		    TP_ARGS(path),
		    TP_STRUCT__entry(__field(int, state)
				     __field(int, reconnect_attempts)
				     __field(int, max_reconnect_attempts)
				     __field(int, fail_cnt)
				     __field(int, success_cnt)
				     __array(char, sessname, NAME_MAX)),
		    TP_fast_assign(__entry->state = rtrs_clt_path_state(path);
				   __entry->reconnect_attempts =
					READ_ONCE(path->reconnect_attempts);
				   __entry->max_reconnect_attempts =
					READ_ONCE(path->clt->max_reconnect_attempts);
				   __entry->fail_cnt = atomic_read(&path->stats.reconnects_failed);
				   __entry->success_cnt = atomic_read(&path->stats.reconnects_ok);
				   strscpy(__entry->sessname, path_name(path), NAME_MAX);),
		    TP_printk("RTRS-CLT: sess='%s' state=%s attempts='%d' max-attempts='%d' fail='%d' success='%d'",
			      __entry->sessname, show_clt_state(__entry->state),
			      __entry->reconnect_attempts, __entry->max_reconnect_attempts,
			      __entry->fail_cnt, __entry->success_cnt)
);

#define DEFINE_CLT_CONN_EVENT(name)			\
DEFINE_EVENT(rtrs_clt_conn_class, name,			\
	TP_PROTO(struct rtrs_clt_path *path),		\
	TP_ARGS(path))

DEFINE_CLT_CONN_EVENT(rtrs_clt_reconnect_work);
DEFINE_CLT_CONN_EVENT(rtrs_clt_close_conns);
DEFINE_CLT_CONN_EVENT(rtrs_rdma_error_recovery);

TRACE_EVENT(rtrs_clt_state_change,
	    TP_PROTO(const struct rtrs_clt_path *path, enum rtrs_clt_state from,
		     enum rtrs_clt_state to),
	    TP_ARGS(path, from, to),
	    TP_STRUCT__entry(rtrs_clt_str(sess, path->clt->sessname)
			     rtrs_clt_str(path, path_name(path))
			     __field(int, from)
			     __field(int, to)),
	    TP_fast_assign(rtrs_clt_assign_str(sess, path->clt->sessname);
			   rtrs_clt_assign_str(path, path_name(path));
			   __entry->from = from;
			   __entry->to = to;),
	    TP_printk("sess='%s' path='%s' from=%s to=%s", __get_str(sess), __get_str(path),
		      show_clt_state(__entry->from), show_clt_state(__entry->to))
);

TRACE_EVENT(rtrs_clt_cm_event,
	    TP_PROTO(const struct rtrs_clt_path *path, unsigned int cid,
		     enum rdma_cm_event_type event, int status),
	    TP_ARGS(path, cid, event, status),
	    TP_STRUCT__entry(rtrs_clt_str(sess, path->clt->sessname)
			     rtrs_clt_str(path, path_name(path))
			     __field(unsigned int, cid)
			     __field(int, event)
			     __field(int, status)),
	    TP_fast_assign(rtrs_clt_assign_str(sess, path->clt->sessname);
			   rtrs_clt_assign_str(path, path_name(path));
			   __entry->cid = cid;
			   __entry->event = event;
			   __entry->status = status;),
	    TP_printk("sess='%s' path='%s' cid=%u event=%s status=%d", __get_str(sess),
		      __get_str(path), __entry->cid, rdma_show_cm_event(__entry->event),
		      __entry->status)
);

TRACE_EVENT(rtrs_clt_path_failure,
	    TP_PROTO(const struct rtrs_clt_path *path, int err, const char *why),
	    TP_ARGS(path, err, why),
	    TP_STRUCT__entry(rtrs_clt_str(sess, path->clt->sessname)
			     rtrs_clt_str(path, path_name(path))
			     rtrs_clt_str(why, why)
			     __field(int, err)),
	    TP_fast_assign(rtrs_clt_assign_str(sess, path->clt->sessname);
			   rtrs_clt_assign_str(path, path_name(path));
			   rtrs_clt_assign_str(why, why);
			   __entry->err = err;),
	    TP_printk("sess='%s' path='%s' err=%d why='%s'", __get_str(sess), __get_str(path),
		      __entry->err, __get_str(why))
);

/* @to is NULL if no path took the request, which then ends with @err */
TRACE_EVENT(rtrs_clt_failover,
	    TP_PROTO(const struct rtrs_clt_path *from, const struct rtrs_clt_path *to,
		     unsigned int mem_id, int err),
	    TP_ARGS(from, to, mem_id, err),
	    TP_STRUCT__entry(rtrs_clt_str(sess, from->clt->sessname)
			     rtrs_clt_str(from, path_name(from))
			     rtrs_clt_str(to, path_name(to))
			     __field(unsigned int, mem_id)
			     __field(int, err)),
	    TP_fast_assign(rtrs_clt_assign_str(sess, from->clt->sessname);
			   rtrs_clt_assign_str(from, path_name(from));
			   rtrs_clt_assign_str(to, path_name(to));
			   __entry->mem_id = mem_id;
			   __entry->err = err;),
	    TP_printk("sess='%s' from='%s' to='%s' mem_id=%u err=%d", __get_str(sess),
		      __get_str(from), __get_str(to), __entry->mem_id, __entry->err)
);

/* @dir is READ or WRITE, @latency in nanoseconds */
TRACE_EVENT(rtrs_clt_req_done,
	    TP_PROTO(const struct rtrs_clt_path *path, unsigned int cid, unsigned int mem_id,
		     int dir, size_t bytes, int err, s64 latency),
	    TP_ARGS(path, cid, mem_id, dir, bytes, err, latency),
	    TP_STRUCT__entry(rtrs_clt_str(sess, path->clt->sessname)
			     rtrs_clt_str(path, path_name(path))
			     __field(s64, latency)
			     __field(size_t, bytes)
			     __field(unsigned int, cid)
			     __field(unsigned int, mem_id)
			     __field(int, dir)
			     __field(int, err)),
	    TP_fast_assign(rtrs_clt_assign_str(sess, path->clt->sessname);
			   rtrs_clt_assign_str(path, path_name(path));
			   __entry->latency = latency;
			   __entry->bytes = bytes;
			   __entry->cid = cid;
			   __entry->mem_id = mem_id;
			   __entry->dir = dir;
			   __entry->err = err;),
	    TP_printk("sess='%s' path='%s' cid=%u mem_id=%u dir=%s bytes=%zu err=%d latency=%lld ns",
		      __get_str(sess), __get_str(path), __entry->cid, __entry->mem_id,
		      __print_symbolic(__entry->dir, { READ, "READ" }, { WRITE, "WRITE" }),
		      __entry->bytes, __entry->err, __entry->latency)
);

TRACE_EVENT(rtrs_clt_link_event,
	    TP_PROTO(const struct rtrs_clt_sess *clt, enum rtrs_clt_link_ev ev),
	    TP_ARGS(clt, ev),
	    TP_STRUCT__entry(rtrs_clt_str(sess, clt->sessname)
			     __field(int, ev)),
	    TP_fast_assign(rtrs_clt_assign_str(sess, clt->sessname);
			   __entry->ev = ev;),
	    TP_printk("sess='%s' event=%s", __get_str(sess), show_clt_link_ev(__entry->ev))
);

#endif /* _RTRS_CLT_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE rtrs-clt-trace

#include <trace/define_trace.h>
