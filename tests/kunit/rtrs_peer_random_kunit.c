// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit test of the client in front of a server that does anything
 *
 * Each round is a script drawn at random, and requests to which it happens.
 * Whatever the server does: each request is confirmed once and in time, the
 * client keeps to the protocol, and works when the server behaves again. The
 * seed is printed, and no test follows one that has failed.
 *
 * Each round of each session has random numbers of its own, so that with the same
 * seed the same is drawn for it, however long those before have taken. How
 * requests, answers and heartbeats overtake each other is not repeated. A failure
 * says in which session it was, and this begins with it:
 *
 *	tests/kunit/run fuzz --seed SEED --session N --rounds 1
 *
 * Unless told otherwise the seed is always the same, so that a check does not
 * depend on luck; "make fuzz" draws seeds until it is stopped.
 *
 * Answers name a chunk and nothing else. One that a lying server still owes from
 * a wild round would be taken for the answer to the next request with this chunk,
 * which no client can tell. So all paths are connected anew after a wild round,
 * and data are looked at in tame ones only. For the same reason each path has
 * chunks of its own at the fake server: what upstream's server still does with
 * the chunk of a request that has failed over is told in
 * Documentation/architecture.rst, "Failover".
 */
#define pr_fmt(fmt) "rtrs_peer_random: " fmt

#include <linux/delay.h>
#include <linux/hash.h>
#include <linux/moduleparam.h>
#include <linux/prandom.h>
#include <linux/random.h>

#include "rtrs_peer.h"

#define MAX_REQS 6
#define ROUNDS_PER_SESSION 50
#define STEPS_PER_TEST 500UL
#define TEST_SECONDS 40
#define CONF_MS 400

/* Any will do; with this one the test has once been wrong itself. */
static unsigned long random_seed = 3008804681U;
module_param(random_seed, ulong, 0444);
MODULE_PARM_DESC(random_seed, "Seed of the random server (0: draws one)");

static unsigned long random_steps = 10000 / (PEER_SCALE * PEER_SCALE);
module_param(random_steps, ulong, 0444);
MODULE_PARM_DESC(random_steps, "Steps of the random server (default 10000, less on a slow kernel)");

static unsigned int random_session = 1;
module_param(random_session, uint, 0444);
MODULE_PARM_DESC(random_session, "First session of the random server (default 1)");

static u32 below(struct rnd_state *rnd, u32 n)
{
	return prandom_u32_state(rnd) % n;
}

static bool one_in(struct rnd_state *rnd, u32 n)
{
	return !below(rnd, n);
}

/* Parts of answers, repeated according to how often they shall come */
static const enum fs_op some_ops[] = {
	FS_ANSWER, FS_ANSWER, FS_ANSWER, FS_DATA, FS_DATA, FS_NEW_KEY, FS_INV, FS_INV, FS_IMM,
	FS_IMM, FS_IMM, FS_MSG, FS_MSG, FS_MSG, FS_HB, FS_HB_ACK, FS_SEND, FS_STEAL, FS_WAIT,
	FS_HOLD, FS_DISCONNECT, FS_KILL_QP, FS_SILENCE,
};

static const u32 some_values[] = {
	0, 1, 2, 3, 4, 5, 7, 8, 9, 255, 256, 4095, 4096, 32768, 65535, 65536, 0x7fffffff,
	0x80000000, 0xfffffff8, 0xffffffff,
};

static void draw_patch(struct rnd_state *rnd, struct fs_patch *patch)
{
	patch->off = below(rnd, 40);
	patch->width = 1 << below(rnd, 4);
	patch->val = some_values[below(rnd, ARRAY_SIZE(some_values))];
	if (one_in(rnd, 3))
		patch->val = (u64)prandom_u32_state(rnd) << 32 | prandom_u32_state(rnd);
}

/* Any field of a step may be wrong, most of them are not. */
static void draw_step(struct rnd_state *rnd, struct fs_step *s)
{
	s->op = some_ops[below(rnd, ARRAY_SIZE(some_ops))];
	s->ms = below(rnd, 10);
	if (one_in(rnd, 6))
		s->nr = below(rnd, 40);
	if (one_in(rnd, 4))
		s->on = below(rnd, FS_ON_OTHER_PATH + 1);
	if (one_in(rnd, 4))
		s->key = below(rnd, FS_KEY_HELD + 1);
	if (one_in(rnd, 6))
		s->id = below(rnd, 2) ? below(rnd, 16) : prandom_u32_state(rnd);
	if (one_in(rnd, 6))
		s->other = below(rnd, 4);
	if (one_in(rnd, 5))
		s->type = FS_TYPE(below(rnd, 16));
	if (one_in(rnd, 6))
		s->err = FS_ERR(below(rnd, 512));
	if (one_in(rnd, 6))
		s->len = FS_LEN(below(rnd, 20));
	if (one_in(rnd, 6))
		draw_patch(rnd, &s->patch[0]);
	if (s->op == FS_HB || s->op == FS_HB_ACK)
		s->on = one_in(rnd, 8) ? s->on : FS_ON_CID0;
}

static void draw_wild(struct rnd_state *rnd, struct fs_script *script)
{
	unsigned int i, n = 1 + below(rnd, FS_STEPS - 1);

	for (i = 0; i < n; i++)
		draw_step(rnd, &script->step[i]);
}

/* What a server may do: noise around the right answer */
static void draw_tame(struct rnd_state *rnd, struct fs_script *script)
{
	static const enum fs_op noise[] = { FS_HB, FS_HB_ACK, FS_WAIT };
	unsigned int i, n = below(rnd, 3);

	for (i = 0; i < n; i++)
		script->step[i] = (struct fs_step) {
			.op = noise[below(rnd, ARRAY_SIZE(noise))], .on = FS_ON_CID0,
			.ms = below(rnd, 4), .nr = below(rnd, 4),
		};
	script->step[n].op = FS_ANSWER;
	/* not FS_ERR(0): an answer that says no error, and brings no data */
	script->step[n].err = one_in(rnd, 8) ? FS_ERR(1 + below(rnd, 511)) : 0;
}

static bool draw_script(struct rnd_state *rnd, struct fs_script *script)
{
	bool wild = one_in(rnd, 6);

	memset(script, 0, sizeof(*script));
	script->at = wild && one_in(rnd, 4) ? FS_AT_HB : FS_AT_REQUEST;
	script->times = below(rnd, 4);
	script->skip = below(rnd, 3);
	if (wild)
		draw_wild(rnd, script);
	else
		draw_tame(rnd, script);
	return wild;
}

/* Something is wrong with how the server connects. */
static void draw_connect_script(struct rnd_state *rnd, struct fs_script *script)
{
	static const struct {
		enum fs_at at;
		enum fs_op op;
	} kinds[] = {
		{ FS_AT_CONN_REQ, FS_ACCEPT }, { FS_AT_CONN_REQ, FS_REJECT },
		{ FS_AT_INFO_REQ, FS_INFO_RSP }, { FS_AT_INFO_REQ, FS_INFO_RSP },
		/* where nothing happens otherwise */
		{ FS_AT_ESTABLISHED }, { FS_AT_UP },
	};
	unsigned int kind = below(rnd, ARRAY_SIZE(kinds));
	struct fs_step *s = &script->step[0];

	memset(script, 0, sizeof(*script));
	script->at = kinds[kind].at;
	script->skip = below(rnd, 3);
	if (one_in(rnd, 3))
		draw_step(rnd, s++);
	if (kinds[kind].op) {
		s->op = kinds[kind].op;
		s->err = below(rnd, 6000);
		draw_patch(rnd, &s->patch[0]);
	} else {
		draw_step(rnd, s);
	}
	if (one_in(rnd, 3))
		draw_step(rnd, s + 1);
}

static unsigned long steps_done(struct peer *p)
{
	struct fs_stats stats;

	fake_srv_stats(p->srv, &stats);
	return stats.steps;
}

/*
 * Brings back what is down, with some more trouble on the way; if @all, takes
 * down the others first.
 */
static void repair(struct rnd_state *rnd, struct peer *p, bool all)
{
	static const struct fs_step none[FS_STEPS];
	struct fs_script script;
	unsigned int i;
	bool trouble;

	fake_srv_heal(p->srv);
	fake_srv_release(p->srv, none);
	for (i = 0; i < p->paths; i++) {
		/* drawn whether it is needed or not, which is not known beforehand */
		trouble = one_in(rnd, 3);
		draw_connect_script(rnd, &script);
		if (all)
			peer_path_write(p, i, "disconnect", "1");
		if (peer_path_is_up(p, i))
			continue;
		if (trouble) {
			fake_srv_script(p->srv, &script);
			peer_connect_ms(p->test, 150 * PEER_SCALE);
			peer_reconnect(p, i);
			fake_srv_heal(p->srv);
			peer_connect_ms(p->test, PEER_CONNECT_MS * PEER_SCALE);
		}
		if (peer_reconnect(p, i))
			KUNIT_EXPECT_TRUE_MSG(p->test, peer_wait_path(p, i, true, 5000),
					      "path %u does not come back", i);
	}
}

static void submit_some(struct rnd_state *rnd, struct peer *p)
{
	unsigned int i, n = 1 + below(rnd, MAX_REQS);

	for (i = 0; i < n; i++) {
		/* each draws in its place: the order of arguments is not defined */
		int dir = below(rnd, 2) ? READ : WRITE;
		size_t len = one_in(rnd, 8) ? 0 : 1 + below(rnd, 4 * PAGE_SIZE);

		peer_submit(p, dir, len, one_in(rnd, 6) ? RTRS_ADMIN_CON : RTRS_IO_CON);
	}
}

/* All are confirmed; if need be since their path is taken down. */
static void finish_all(struct peer *p, bool tame)
{
	struct peer_req *req, *next;
	bool stuck = false;
	unsigned int i;

	list_for_each_entry(req, &p->reqs, entry)
		if (!stuck && !peer_wait(req, tame ? 5000 : CONF_MS))
			stuck = true;
	KUNIT_EXPECT_FALSE_MSG(p->test, stuck && tame, "a request hangs");
	fake_srv_script(p->srv, NULL);
	for (i = 0; stuck && i < p->paths; i++)
		peer_path_write(p, i, "disconnect", "1");
	list_for_each_entry_safe(req, next, &p->reqs, entry) {
		KUNIT_ASSERT_TRUE_MSG(p->test, peer_wait(req, 5000),
				      "not confirmed although its path is closed");
		KUNIT_EXPECT_TRUE_MSG(p->test, req->err <= 0 && req->err >= -511,
				      "confirmed with %d", req->err);
		if (tame && !req->err)
			KUNIT_EXPECT_TRUE(p->test, peer_data_ok(req));
		peer_free(req);
	}
}

/*
 * Each test does a share of the steps: what takes minutes without an end looks
 * to the kernel as if it hung.
 */
static struct random_share {
	u64 seed;
	unsigned int session;
	unsigned long left;
	unsigned long wild;
	unsigned int nr;
	bool failed;
} random_part;

/* Round 0 is what the session is like. */
static void seed_round(struct rnd_state *rnd, unsigned int round)
{
	u64 place = (u64)random_part.session << 32 | round;

	prandom_seed_state(rnd, (random_part.seed + place) * GOLDEN_RATIO_64);
}

static void draw_mode(struct rnd_state *rnd, struct peer_mode *mode)
{
	mode->new_rkey = below(rnd, 2);
	mode->reads = below(rnd, 2);
	mode->hb_ms = 20 + below(rnd, 200);
	mode->chunks_per_desc = below(rnd, 4);
}

/* Returns the number of steps that the server has done. */
static unsigned long run_round(struct rnd_state *rnd, struct peer *p)
{
	unsigned long done, before = steps_done(p);
	struct fs_script script;
	bool wild = draw_script(rnd, &script);

	fake_srv_script(p->srv, &script);
	submit_some(rnd, p);
	finish_all(p, !wild);
	repair(rnd, p, wild);
	done = steps_done(p) - before;
	random_part.wild += wild ? done : 0;
	return done;
}

static void run_session(struct kunit *test, unsigned long *left)
{
	struct peer_mode mode = {};
	unsigned long done = 0;
	struct rnd_state rnd;
	unsigned int round;
	struct peer *p;

	seed_round(&rnd, 0);
	draw_mode(&rnd, &mode);
	p = peer_start(test, &mode);
	KUNIT_ASSERT_EQ(test, 0, peer_open(p, 2, PEER_CONNECT_MS * PEER_SCALE));
	KUNIT_EXPECT_EQ(test, 0, peer_sess_write(p, "hb_interval_ms", "100"));
	KUNIT_EXPECT_EQ(test, 0, peer_sess_write(p, "hb_missed_max", "2"));
	for (round = 1; round <= ROUNDS_PER_SESSION && done < *left; round++) {
		seed_round(&rnd, round);
		done += run_round(&rnd, p);
		if (test->status == KUNIT_FAILURE)
			break;
	}
	repair(&rnd, p, false);
	peer_expect_works(p);
	peer_stop(p);
	if (test->status == KUNIT_FAILURE)
		kunit_err(test, "seed %llu, session %u, round %u or after it\n",
			  random_part.seed, random_part.session, round);
	random_part.session++;
	*left -= min(*left, done);
}

static const void *random_gen_params(struct kunit *test, const void *prev, char *desc)
{
	if (!prev) {
		random_part = (struct random_share){
			.seed = random_seed ?: get_random_u32(),
			.session = random_session,
			.left = random_steps,
		};
		pr_info("random_seed=%llu random_session=%u random_steps=%lu\n",
			random_part.seed, random_session, random_steps);
	}
	if (!random_part.left && !random_part.failed)
		pr_info("%lu steps done, %lu of them in wild rounds, in %u sessions\n",
			random_steps, random_part.wild, random_part.session - random_session);
	if (!random_part.left || random_part.failed)
		return NULL;
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "share %u", ++random_part.nr);
	return &random_part;
}

static void random_test(struct kunit *test)
{
	unsigned long steps = min(random_part.left, STEPS_PER_TEST), left = steps;
	unsigned long end = jiffies + TEST_SECONDS * HZ;

	/* should the test be broken off, or skipped */
	random_part.failed = true;
	while (left && time_before(jiffies, end) && test->status != KUNIT_FAILURE)
		run_session(test, &left);
	random_part.left -= steps - left;
	random_part.failed = test->status == KUNIT_FAILURE;
}

static struct kunit_case random_cases[] = {
	KUNIT_CASE_PARAM(random_test, random_gen_params),
	{}
};

static struct kunit_suite random_suite = {
	.name = "rtrs_peer_random",
	.suite_init = peer_suite_init,
	.suite_exit = peer_suite_exit,
	.test_cases = random_cases,
};

kunit_test_suite(random_suite);
