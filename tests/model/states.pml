/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The names and the steps of rtrs-clt.h and rtrs-clt.c that both models use. The
 * runner compares them with the code: the state names in both directions, the
 * table of path states row by row.
 */
mtype:path_state = {
	RTRS_CLT_CONNECTING,
	RTRS_CLT_CONNECTING_ERR,
	RTRS_CLT_RECONNECTING,
	RTRS_CLT_CONNECTED,
	RTRS_CLT_CLOSING,
	RTRS_CLT_CLOSED,
	RTRS_CLT_DEAD
};

mtype:req_state = {
	RTRS_REQ_FREE,
	RTRS_REQ_PREPARING,
	RTRS_REQ_POSTED,
	RTRS_REQ_ANSWERED
};

/* rtrs_clt_transitions[] */
#define MAY_CHANGE(old, new) ( \
	(old == RTRS_CLT_CONNECTING && (new == RTRS_CLT_CONNECTING_ERR || \
		new == RTRS_CLT_CONNECTED || new == RTRS_CLT_CLOSING)) || \
	(old == RTRS_CLT_CONNECTING_ERR && (new == RTRS_CLT_RECONNECTING || \
		new == RTRS_CLT_CLOSING)) || \
	(old == RTRS_CLT_RECONNECTING && (new == RTRS_CLT_CONNECTING || \
		new == RTRS_CLT_CLOSING)) || \
	(old == RTRS_CLT_CONNECTED && (new == RTRS_CLT_RECONNECTING || \
		new == RTRS_CLT_CLOSING)) || \
	(old == RTRS_CLT_CLOSING && (new == RTRS_CLT_CLOSED)) || \
	(old == RTRS_CLT_CLOSED && (new == RTRS_CLT_RECONNECTING || \
		new == RTRS_CLT_DEAD)))

/*
 * A rule that is broken says its name: a hidden variable is no part of the state and
 * never set, so "rule || condition" is the condition, with a name.
 */
#define RULE(name, condition) assert(name || (condition))
