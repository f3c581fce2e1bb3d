// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the client's link events, limits and calls, included by rtrs_clt_kunit.c
 */

/*
 * Link events. A script is worked off letter by letter: A and B say that a path
 * has come up, a and b that it has gone down, O that open has succeeded. ( makes
 * the next event stay in the caller's callback and waits for that, ) lets it go
 * on; . waits until all events are delivered.
 */

struct events_row {
	const char *desc;
	const char *script;
	const char *expect;	/* R and D, as delivered */
};

static const struct events_row events_rows[] = {
	{ "initial connects are silent", "ABO.", "" },
	{ "down during open is told after it", "AaO.", "D" },
	{ "down and up during open is nothing", "AaAO.", "" },
	{ "one of two down during open is nothing", "ABaO.", "" },
	{ "open fails", "ABab.", "" },
	{ "one of two goes", "ABOa.", "" },
	{ "one of two goes and comes", "ABOa.A.", "" },
	{ "both go", "ABOab.", "D" },
	{ "both go and come", "ABOab.AB.", "DR" },
	{ "both go, one comes", "ABOab.B.", "DR" },
	{ "they take turns", "ABOaAbBaA.", "" },
	{ "the only one goes, comes and goes", "AOa.A.a.", "DRD" },
	{ "goes twice, counts once", "AOaa.", "D" },
	{ "was never up", "AOb.", "" },
	{ "another one is added to a dead session", "AOa.B.", "DR" },
	{ "down and up in a row are two events", "AOaA.", "DR" },
	{ "up while down is being told", "AO(aA).", "DR" },
	{ "up and down while down is being told", "AO(aAa).", "DRD" },
	{ "up, down, up while down is being told", "AO(aAaA).", "DR" },
	{ "twice up and down while down is being told", "AO(aAaAa).", "DRD" },
	{ "many ups and downs while down is being told", "AO(aAaAaAaAaA).", "DR" },
	{ "down while up is being told", "AOa.(Aa).", "DRD" },
	{ "down and up while up is being told", "AOa.(AaA).", "DRDR" },
	{ "down, up, down while up is being told", "AOa.(AaAa).", "DRD" },
	{ "the other path is up while down is being told", "AO(aB).", "DR" },
};

KUNIT_ARRAY_PARAM_DESC(events, events_rows, desc);

struct events {
	struct rtrs_clt_sess *clt;
	char got[16];
	unsigned int n;
	bool hold;
	struct completion entered, go;
};

static void kunit_link_ev(void *priv, enum rtrs_clt_link_ev ev)
{
	struct events *e = priv;
	char what = ev == RTRS_CLT_LINK_EV_RECONNECTED ? 'R' : 'D';

	might_sleep();
	/* no lock that a caller of the API could need */
	if (mutex_trylock(&e->clt->paths_mutex))
		mutex_unlock(&e->clt->paths_mutex);
	else
		what = '!';
	if (e->n < sizeof(e->got) - 1)
		e->got[e->n++] = what;
	if (e->hold) {
		e->hold = false;
		complete(&e->entered);
		wait_for_completion_timeout(&e->go, KUNIT_WAIT);
	}
}

static void events_step(struct kunit *test, struct events *e, char step)
{
	struct rtrs_clt_path *path = find_path(e->clt, tolower(step));

	switch (step) {
	case 'A' ... 'B':
		path->state = RTRS_CLT_CONNECTED;
		spin_lock(&e->clt->lock);
		rtrs_clt_count_up(path);
		spin_unlock(&e->clt->lock);
		rtrs_clt_path_up(path);
		break;
	case 'a' ... 'b':
		path->state = RTRS_CLT_RECONNECTING;
		rtrs_clt_path_down(path);
		break;
	case 'O':
		rtrs_clt_start_events(e->clt);
		break;
	case ')':
		complete(&e->go);
		break;
	case '.':
		flush_work(&e->clt->ev_work);
		break;
	}
}

static void events_test(struct kunit *test)
{
	const struct events_row *row = test->param_value;
	struct events e = { .clt = test->priv };
	unsigned long left;
	const char *p;

	init_completion(&e.entered);
	init_completion(&e.go);
	e.clt->ops.priv = &e;
	e.clt->ops.link_ev = kunit_link_ev;
	add_path(test, 'a', RTRS_CLT_RECONNECTING);
	add_path(test, 'b', RTRS_CLT_RECONNECTING);

	for (p = row->script; *p; p++) {
		e.hold = *p == '(';
		if (e.hold) {
			events_step(test, &e, *++p);
			left = wait_for_completion_timeout(&e.entered, KUNIT_WAIT);
			KUNIT_EXPECT_NE(test, left, 0);
		} else {
			events_step(test, &e, *p);
		}
	}
	flush_work(&e.clt->ev_work);
	KUNIT_EXPECT_STREQ(test, e.got, row->expect);
}

static struct kunit_case rtrs_clt_events_cases[] = {
	KUNIT_CASE_PARAM(events_test, events_gen_params),
	{}
};

static struct kunit_suite rtrs_clt_events_suite = {
	.name		= "rtrs_clt_events",
	.init		= kunit_clt_init,
	.exit		= kunit_clt_exit,
	.test_cases	= rtrs_clt_events_cases,
};

/*
 * Limits of a session, and the paths that it accepts
 */

struct limits {
	u32 depth, io, hdr, segs;
};

struct limits_row {
	const char *desc;
	bool promised;
	struct limits sess;
	struct limits offer;
	int err;
	struct limits after;
};

#define NEW { 0, U32_MAX, U32_MAX, 128 }
#define USUAL { 512, 126976, 4096, 128 }

static const struct limits_row limits_rows[] = {
	{ "first path settles all", false, NEW, USUAL, 0, USUAL },
	{ "first path, smallest", false, NEW, { 1, 4096, 64, 1 }, 0, { 1, 4096, 64, 1 } },
	{ "first path, largest depth", false, NEW, { 65535, 4096, 64, 128 }, 0,
	  { 65535, 4096, 64, 128 } },
	{ "open, the same", false, USUAL, USUAL, 0, USUAL },
	{ "open, larger", false, USUAL, { 512, 126977, 4097, 256 }, 0, USUAL },
	{ "open, smaller IO", false, USUAL, { 512, 65536, 4096, 128 }, 0,
	  { 512, 65536, 4096, 128 } },
	{ "open, smaller header", false, USUAL, { 512, 126976, 2048, 128 }, 0,
	  { 512, 126976, 2048, 128 } },
	{ "open, fewer segments", false, USUAL, { 512, 126976, 4096, 64 }, 0,
	  { 512, 126976, 4096, 64 } },
	{ "open, smaller depth", false, USUAL, { 511, 126976, 4096, 128 }, -ECONNRESET, USUAL },
	{ "open, larger depth", false, USUAL, { 513, 126976, 4096, 128 }, -ECONNRESET, USUAL },

	{ "promised, the same", true, USUAL, USUAL, 0, USUAL },
	{ "promised, larger", true, USUAL, { 512, 200000, 8192, 128 }, 0, USUAL },
	{ "promised, smaller IO", true, USUAL, { 512, 126975, 4096, 128 }, -ECONNRESET, USUAL },
	{ "promised, smaller header", true, USUAL, { 512, 126976, 4095, 128 }, -ECONNRESET,
	  USUAL },
	{ "promised, fewer segments", true, USUAL, { 512, 126976, 4096, 127 }, -ECONNRESET,
	  USUAL },
	{ "promised, smaller depth", true, USUAL, { 511, 126976, 4096, 128 }, -ECONNRESET, USUAL },
	{ "promised, larger depth", true, USUAL, { 513, 126976, 4096, 128 }, -ECONNRESET, USUAL },
};

#undef NEW
#undef USUAL

KUNIT_ARRAY_PARAM_DESC(limits, limits_rows, desc);

static void limits_test(struct kunit *test)
{
	const struct limits_row *row = test->param_value;
	struct rtrs_clt_path *path = add_path(test, 'a', RTRS_CLT_CONNECTING);
	struct rtrs_clt_sess *clt = test->priv;

	/* what a session begins with */
	KUNIT_EXPECT_EQ(test, clt->queue_depth, 0);
	KUNIT_EXPECT_EQ(test, clt->max_segments, 128);
	KUNIT_EXPECT_FALSE(test, clt->promised);

	clt->promised = row->promised;
	clt->queue_depth = row->sess.depth;
	clt->max_io_size = row->sess.io;
	clt->max_hdr_size = row->sess.hdr;
	clt->max_segments = row->sess.segs;
	path->prm.queue_depth = row->offer.depth;
	path->prm.max_io_size = row->offer.io;
	path->prm.max_hdr_size = row->offer.hdr;
	path->max_pages_per_mr = row->offer.segs;

	KUNIT_EXPECT_EQ(test, rtrs_clt_sess_accept_limits(path), row->err);

	KUNIT_EXPECT_EQ(test, clt->queue_depth, row->after.depth);
	KUNIT_EXPECT_EQ(test, clt->max_io_size, row->after.io);
	KUNIT_EXPECT_EQ(test, clt->max_hdr_size, row->after.hdr);
	KUNIT_EXPECT_EQ(test, clt->max_segments, row->after.segs);
}

struct query_row {
	const char *desc;
	struct limits sess;
	u32 max_io_size;
};

static const struct query_row query_rows[] = {
	{ "the server is the limit", { 512, 126976, 4096, 128 }, 126976 },
	{ "the HCA is the limit", { 64, 1048576, 4096, 128 }, 524288 },
	{ "a weak HCA", { 64, 126976, 4096, 16 }, 65536 },
	{ "both the same", { 1, 8192, 64, 2 }, 8192 },
	{ "above the signed range", { 1, 0x80000000, 64, 128 }, 524288 },
};

KUNIT_ARRAY_PARAM_DESC(query, query_rows, desc);

static void query_test(struct kunit *test)
{
	const struct query_row *row = test->param_value;
	struct rtrs_attrs attr = { 1, 2, 3 }, before = attr;
	struct rtrs_clt_sess *clt = test->priv;
	struct rtrs_clt_path *path;

	clt->queue_depth = row->sess.depth;
	clt->max_io_size = row->sess.io;
	clt->max_segments = row->sess.segs;
	KUNIT_EXPECT_EQ(test, rtrs_clt_query(clt, &attr), -ECOMM);
	add_path(test, 'a', RTRS_CLT_RECONNECTING);
	path = add_path(test, 'b', RTRS_CLT_RECONNECTING);
	KUNIT_EXPECT_EQ(test, rtrs_clt_query(clt, &attr), -ECOMM);
	KUNIT_EXPECT_MEMEQ(test, &attr, &before, sizeof(attr));

	path->state = RTRS_CLT_CONNECTED;
	KUNIT_EXPECT_EQ(test, rtrs_clt_query(clt, &attr), 0);
	KUNIT_EXPECT_EQ(test, attr.queue_depth, row->sess.depth);
	KUNIT_EXPECT_EQ(test, attr.max_segments, row->sess.segs);
	KUNIT_EXPECT_EQ(test, attr.max_io_size, row->max_io_size);
}

/*
 * Calls that come to nothing
 */

struct args_row {
	const char *desc;
	const char *name;
	size_t len;	/* the name again and again, up to so many characters */
	size_t paths_num;
	u32 nr_poll_queues;
	int err;
};

static const struct args_row args_rows[] = {
	{ "usual", "session", 7, 1, 0, 0 },
	{ "one character", "s", 1, 1, 0, 0 },
	{ "any other character", "a b-c_d:e@f\xff", 12, 1, 0, 0 },
	{ "254 characters", "s", 254, 1, 0, 0 },
	{ "255 characters", "s", 255, 1, 0, -EINVAL },
	{ "256 characters", "s", 256, 1, 0, -EINVAL },
	{ "5000 characters", "s", 5000, 1, 0, -EINVAL },
	{ "empty", "", 0, 1, 0, -EINVAL },
	{ "slash", "/", 1, 1, 0, -EINVAL },
	{ "slash first", "/s", 2, 1, 0, -EINVAL },
	{ "slash last", "s/", 2, 1, 0, -EINVAL },
	{ "slash far behind", "sssssssssssssssssssssssssss/", 28 * 9, 1, 0, -EINVAL },
	{ "dot", ".", 1, 1, 0, -EINVAL },
	{ "two dots", "..", 2, 1, 0, -EINVAL },
	{ "dot inside", "a.b", 3, 1, 0, -EINVAL },
	{ "no path", "s", 1, 0, 0, -EINVAL },
	{ "128 paths", "s", 1, 128, 0, 0 },
	{ "129 paths", "s", 1, 129, 0, -EINVAL },
	{ "poll queues", "s", 1, 1, 16, 0 },
	{ "poll queues past what a server takes", "s", 1, 1, 4096, -EINVAL },
	{ "as many poll queues as can be", "s", 1, 1, U32_MAX, -EINVAL },
	{ "as many paths as can be", "s", 1, SIZE_MAX, 0, -EINVAL },
};

KUNIT_ARRAY_PARAM_DESC(args, args_rows, desc);

/* No byte behind the end of the name, so that KASAN sees who reads on */
static void args_test(struct kunit *test)
{
	const struct args_row *row = test->param_value;
	char *name = kunit_kzalloc(test, row->len + 1, GFP_KERNEL);
	size_t i;

	KUNIT_ASSERT_NOT_NULL(test, name);
	for (i = 0; i < row->len; i++)
		name[i] = row->name[i % strlen(row->name)];

	KUNIT_EXPECT_EQ(test, rtrs_clt_check_args(name, row->paths_num, row->nr_poll_queues),
			row->err);
}

/* Connection 0, one for each CPU, and the polled ones: as many as a server takes */
static void args_poll_queues_test(struct kunit *test)
{
	unsigned int most = 4096 - 1 - nr_cpu_ids;

	KUNIT_EXPECT_EQ(test, rtrs_clt_check_args("s", 1, most), 0);
	KUNIT_EXPECT_EQ(test, rtrs_clt_check_args("s", 1, most + 1), -EINVAL);
}

/* A name is taken as long as its session is listed. */
static void name_is_unique_test(struct kunit *test)
{
	static const struct rtrs_clt_ops ops = { .link_ev = kunit_no_link_ev };
	struct rtrs_clt_sess *clt = test->priv, *twin;

	twin = rtrs_clt_alloc_sess(&ops, "kunit");
	KUNIT_ASSERT_NOT_NULL(test, twin);

	KUNIT_EXPECT_EQ(test, rtrs_clt_list_sess(clt), 0);
	KUNIT_EXPECT_EQ(test, rtrs_clt_list_sess(twin), -EEXIST);
	rtrs_clt_unlist_sess(clt);
	KUNIT_EXPECT_EQ(test, rtrs_clt_list_sess(twin), 0);
	rtrs_clt_unlist_sess(twin);
	put_device(&twin->dev);
}

struct refused_row {
	const char *desc;
	const char *paths;
	int dir;
	size_t usr_len, data_len;
	unsigned int sg_cnt;
	int err;
};

static const struct refused_row refused_rows[] = {
	{ "no path", "", READ, 8, 0, 0, -ECONNABORTED },
	{ "no path connected", "ab", READ, 8, 0, 0, -ECONNABORTED },
	{ "message too long", "A", WRITE, 4096, 0, 0, -EMSGSIZE },
	{ "message and header too long", "A", WRITE, 4093, 0, 0, -EMSGSIZE },
	{ "message and descriptor too long", "A", READ, 4073, 512, 1, -EMSGSIZE },
	{ "message beyond 16 bits", "A", WRITE, 65536 + 8, 0, 0, -EMSGSIZE },
	{ "data too long", "A", WRITE, 8, 126976 + 4096 - 11, 1, -EMSGSIZE },
	{ "length wraps", "A", WRITE, 8, SIZE_MAX, 1, -EMSGSIZE },
	{ "too many segments", "A", WRITE, 8, 512, 129, -EMSGSIZE },
	{ "too large for each path", "AbC", WRITE, 4096, 0, 0, -EMSGSIZE },
};

KUNIT_ARRAY_PARAM_DESC(refused, refused_rows, desc);

static void kunit_conf(void *priv, int errno)
{
	(*(int *)priv)++;
}

/* The paths have no slots: a refused request may not even look for one. */
static void refused_test(struct kunit *test)
{
	const struct refused_row *row = test->param_value;
	void *usr = kunit_kzalloc(test, row->usr_len, GFP_KERNEL);
	struct kvec vec = { .iov_base = usr, .iov_len = row->usr_len };
	struct rtrs_clt_req_ops ops = { .conf_fn = kunit_conf };
	struct rtrs_clt_sess *clt = test->priv;
	struct rtrs_permit *permit;
	struct rtrs_clt_path *path;
	struct scatterlist sg[1];
	int i, confirmed = 0;

	KUNIT_ASSERT_NOT_NULL(test, usr);
	for (i = 0; row->paths[i]; i++) {
		path = add_path(test, tolower(row->paths[i]), state_of(row->paths[i]));
		path->prm.max_io_size = 126976;
		path->prm.max_hdr_size = 4096;
		path->prm.chunk_size = 126976 + 4096;
	}
	make_permits(test, 1, 0);
	permit = get_permit(clt);
	ops.priv = &confirmed;
	sg_init_table(sg, 1);

	KUNIT_EXPECT_EQ(test, rtrs_clt_request(row->dir, &ops, clt, permit, &vec, 1, row->data_len,
					       sg, row->sg_cnt), row->err);
	KUNIT_EXPECT_EQ(test, confirmed, 0);
	rtrs_clt_put_permit(clt, permit);
}

/*
 * Only connections with a polled queue are polled, and none that is not there;
 * nothing else is touched, as these have no queues at all.
 */
static void poll_test(struct kunit *test)
{
	struct rtrs_clt_sess *clt = test->priv;
	unsigned int i;

	KUNIT_EXPECT_EQ(test, rtrs_clt_rdma_cq_direct(clt, 0), -1);
	add_path(test, 'a', RTRS_CLT_RECONNECTING);
	KUNIT_EXPECT_EQ(test, rtrs_clt_rdma_cq_direct(clt, 0), -1);

	add_path(test, 'b', RTRS_CLT_CONNECTED);
	for (i = 0; i < nr_cpu_ids + 8; i++)
		KUNIT_EXPECT_EQ_MSG(test, rtrs_clt_rdma_cq_direct(clt, i), 0, "index %u", i);
	KUNIT_EXPECT_EQ(test, rtrs_clt_rdma_cq_direct(clt, INT_MAX), 0);
	KUNIT_EXPECT_EQ(test, rtrs_clt_rdma_cq_direct(clt, UINT_MAX), 0);
}

static struct kunit_case rtrs_clt_calls_cases[] = {
	KUNIT_CASE_PARAM(limits_test, limits_gen_params),
	KUNIT_CASE_PARAM(query_test, query_gen_params),
	KUNIT_CASE_PARAM(args_test, args_gen_params),
	KUNIT_CASE(args_poll_queues_test),
	KUNIT_CASE(name_is_unique_test),
	KUNIT_CASE_PARAM(refused_test, refused_gen_params),
	KUNIT_CASE(poll_test),
	{}
};

static struct kunit_suite rtrs_clt_calls_suite = {
	.name		= "rtrs_clt_calls",
	.init		= kunit_clt_init,
	.exit		= kunit_clt_exit,
	.test_cases	= rtrs_clt_calls_cases,
};
