/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RTRS: reliable multipath transport over RDMA, for users inside the kernel
 *
 * The client half is implemented by rtrs-client, the server half by
 * rtrs-server and the address helpers by rtrs-core. All lengths are in bytes.
 */
#ifndef RTRS_H
#define RTRS_H

#include <linux/scatterlist.h>
#include <linux/socket.h>
#include <linux/types.h>

struct kvec;
struct rtrs_clt_sess;
struct rtrs_permit;
struct rtrs_srv_ctx;
struct rtrs_srv_op;
struct rtrs_srv_sess;

/*
 * Client
 */

/**
 * enum rtrs_clt_link_ev - what happened to the link of a client session
 * @RTRS_CLT_LINK_EV_RECONNECTED: the first path is up again after none was;
 *	requests and rtrs_clt_query() work from here on, also in the handler
 * @RTRS_CLT_LINK_EV_DISCONNECTED: the last path has gone down; whatever was
 *	in flight on it has been confirmed
 */
enum rtrs_clt_link_ev {
	RTRS_CLT_LINK_EV_RECONNECTED,
	RTRS_CLT_LINK_EV_DISCONNECTED,
};

/**
 * struct rtrs_addr - the two ends of one path
 * @src: address to connect from, NULL lets routing choose it
 * @dst: address to connect to, with port or service id
 */
struct rtrs_addr {
	struct sockaddr_storage *src;
	struct sockaddr_storage *dst;
};

/**
 * struct rtrs_clt_ops - how a client session reports to its user
 * @priv: handed to @link_ev unchanged
 * @link_ev: called in process context, one event at a time, strictly
 *	alternating and never before rtrs_clt_open() has succeeded; may sleep,
 *	may send requests, must not open or close a session
 */
struct rtrs_clt_ops {
	void	*priv;
	void	(*link_ev)(void *priv, enum rtrs_clt_link_ev ev);
};

/**
 * enum wait_type - what to do when all permits are taken
 * @RTRS_PERMIT_NOWAIT: give up at once; legal in any context
 * @RTRS_PERMIT_WAIT: sleep, without a time limit, until one is put
 */
enum wait_type {
	RTRS_PERMIT_NOWAIT,
	RTRS_PERMIT_WAIT,
};

/**
 * enum rtrs_clt_con_type - which connection of a path a permit is for
 * @RTRS_ADMIN_CON: the service connection, for rare management requests
 * @RTRS_IO_CON: the connection that belongs to the CPU getting the permit
 */
enum rtrs_clt_con_type {
	RTRS_ADMIN_CON,
	RTRS_IO_CON,
};

/**
 * struct rtrs_clt_req_ops - how one request reports its end
 * @priv: handed to @conf_fn unchanged
 * @conf_fn: called exactly once for each accepted request, with 0 or a
 *	negative errno; often in softirq, so it must not sleep. The transport
 *	has let go of the request's buffers by then
 */
struct rtrs_clt_req_ops {
	void	*priv;
	void	(*conf_fn)(void *priv, int errno);
};

/**
 * struct rtrs_attrs - what a client session can carry
 * @queue_depth: number of permits, 1..65535
 * @max_io_size: largest data length of one request
 * @max_segments: largest number of 4096-byte segments in one request
 */
struct rtrs_attrs {
	u32	queue_depth;
	u32	max_io_size;
	u32	max_segments;
};

struct rtrs_clt_sess *rtrs_clt_open(struct rtrs_clt_ops *ops, const char *pathname,
				    const struct rtrs_addr *paths, size_t path_cnt, u16 port,
				    size_t pdu_sz, u8 reconnect_delay_sec,
				    s16 max_reconnect_attempts, u32 nr_poll_queues);

void rtrs_clt_close(struct rtrs_clt_sess *clt);

struct rtrs_permit *rtrs_clt_get_permit(struct rtrs_clt_sess *sess,
					enum rtrs_clt_con_type con_type, enum wait_type wait);

void rtrs_clt_put_permit(struct rtrs_clt_sess *sess, struct rtrs_permit *permit);

int rtrs_clt_request(int dir, struct rtrs_clt_req_ops *ops, struct rtrs_clt_sess *sess,
		     struct rtrs_permit *permit, const struct kvec *vec, size_t nr, size_t len,
		     struct scatterlist *sg, unsigned int sg_cnt);

int rtrs_clt_rdma_cq_direct(struct rtrs_clt_sess *clt, unsigned int index);

int rtrs_clt_query(struct rtrs_clt_sess *sess, struct rtrs_attrs *attr);

/*
 * Server
 */

/**
 * enum rtrs_srv_link_ev - what happened to the link of a server session
 * @RTRS_SRV_LINK_EV_CONNECTED: the first path of the session is up
 * @RTRS_SRV_LINK_EV_DISCONNECTED: the last path of the session is gone
 */
enum rtrs_srv_link_ev {
	RTRS_SRV_LINK_EV_CONNECTED,
	RTRS_SRV_LINK_EV_DISCONNECTED,
};

/**
 * struct rtrs_srv_ops - how a server hands requests and events to its user
 * @rdma_ev: a request has arrived. @data is the start of its chunk: it holds
 *	@datalen bytes of a write, or is where the data of a read is wanted;
 *	the user message of @usrlen bytes is at @usr. Process context, may
 *	sleep. 0: rtrs_srv_resp_rdma() will be called for @id, once; anything
 *	else is answered to the client as error
 * @link_ev: a session came or went. @priv is what rtrs_srv_set_sess_priv()
 *	has set, NULL before. Process context, may sleep. A nonzero result
 *	closes the path
 */
struct rtrs_srv_ops {
	int	(*rdma_ev)(void *priv, struct rtrs_srv_op *id, void *data, size_t datalen,
			   const void *usr, size_t usrlen);
	int	(*link_ev)(struct rtrs_srv_sess *sess, enum rtrs_srv_link_ev ev, void *priv);
};

struct rtrs_srv_ctx *rtrs_srv_open(struct rtrs_srv_ops *ops, u16 port);

void rtrs_srv_close(struct rtrs_srv_ctx *ctx);

bool rtrs_srv_resp_rdma(struct rtrs_srv_op *id, int errno);

void rtrs_srv_set_sess_priv(struct rtrs_srv_sess *sess, void *priv);

int rtrs_srv_get_path_name(struct rtrs_srv_sess *sess, char *pathname, size_t len);

int rtrs_srv_get_queue_depth(struct rtrs_srv_sess *sess);

/*
 * Addresses
 */

int rtrs_addr_to_sockaddr(const char *str, size_t len, u16 port, struct rtrs_addr *addr);

int sockaddr_to_str(const struct sockaddr *addr, char *buf, size_t len);

int rtrs_addr_to_str(const struct rtrs_addr *addr, char *buf, size_t len);

#endif /* RTRS_H */
