// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of rtrs-core, rtrs.c, on a device that only writes down what is
 * posted to it
 *
 * Queue pairs need the RDMA CM and are left to the tests with two machines.
 */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/workqueue.h>

#include "../../rtrs-pri.h"

#define LKEY 0x4711

struct posted {
	enum ib_wr_opcode opcode;
	struct ib_cqe *cqe;
	int flags;
	__be32 imm;
	u64 addr;
	u32 rkey;
	int num_sge;
	struct ib_sge sge[2];
};

/* A device with one path and one connection, as little as the core needs. */
struct fake {
	struct ib_device ib;

	struct rtrs_path path;
	struct rtrs_con con;
	struct rtrs_con *cons[1];
	struct rtrs_ib_dev dev;
	struct ib_pd pd;
	struct ib_qp qp;
	struct ib_cqe hb_cqe;
	struct ib_cqe ack_cqe;

	struct posted posted[8];
	unsigned int nr_posted;
	int post_err;
	bool answer_at_once;
	int outstanding_at_post;
	unsigned int nr_errors;

	atomic_t pds;
	int pd_err;
};

static struct fake *to_fake(struct ib_device *ib)
{
	return container_of(ib, struct fake, ib);
}

static int fake_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			  const struct ib_send_wr **bad)
{
	struct fake *f = to_fake(qp->device);
	struct posted *p;

	if (f->post_err)
		return f->post_err;
	for (; wr; wr = wr->next) {
		if (f->nr_posted == ARRAY_SIZE(f->posted))
			return -ENOMEM;
		p = &f->posted[f->nr_posted++];
		p->opcode = wr->opcode;
		p->cqe = wr->wr_cqe;
		p->flags = wr->send_flags;
		p->imm = wr->ex.imm_data;
		p->num_sge = wr->num_sge;
		memcpy(p->sge, wr->sg_list, wr->num_sge * sizeof(*p->sge));
		if (wr->opcode == IB_WR_RDMA_WRITE_WITH_IMM) {
			p->addr = rdma_wr(wr)->remote_addr;
			p->rkey = rdma_wr(wr)->rkey;
		}
	}
	f->outstanding_at_post = atomic_read(&f->path.hb_outstanding);
	if (f->answer_at_once)
		WRITE_ONCE(f->path.hb_missed_cnt, 0);
	return 0;
}

static int fake_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad)
{
	struct fake *f = to_fake(qp->device);
	struct posted *p = &f->posted[f->nr_posted];

	if (f->nr_posted == ARRAY_SIZE(f->posted) || wr->next)
		return -ENOMEM;
	p->cqe = wr->wr_cqe;
	p->num_sge = wr->num_sge;
	memcpy(p->sge, wr->sg_list, wr->num_sge * sizeof(*p->sge));
	f->nr_posted++;
	return 0;
}

static int fake_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	struct fake *f = to_fake(pd->device);

	if (f->pd_err)
		return f->pd_err;
	atomic_inc(&f->pds);
	return 0;
}

static int fake_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	atomic_dec(&to_fake(pd->device)->pds);
	return 0;
}

struct fake_pd {
	struct ib_pd ib;
};

static const struct ib_device_ops fake_ops = {
	.owner = THIS_MODULE,
	.post_send = fake_post_send,
	.post_recv = fake_post_recv,
	.alloc_pd = fake_alloc_pd,
	.dealloc_pd = fake_dealloc_pd,
	INIT_RDMA_OBJ_SIZE(ib_pd, fake_pd, ib),
};

static struct fake *fake_new(struct kunit *test)
{
	struct fake *f = ib_alloc_device(fake, ib);

	KUNIT_ASSERT_NOT_NULL(test, f);
	ib_set_device_ops(&f->ib, &fake_ops);
	f->ib.attrs.kernel_cap_flags |= IBK_LOCAL_DMA_LKEY;
	f->ib.local_dma_lkey = LKEY;

	f->pd.local_dma_lkey = LKEY;
	f->dev.ib_dev = &f->ib;
	f->dev.ib_pd = &f->pd;
	f->qp.device = &f->ib;
	f->con.path = &f->path;
	f->con.qp = &f->qp;
	f->cons[0] = &f->con;
	f->path.dev = &f->dev;
	f->path.con = f->cons;
	f->path.signal_interval = 1;
	strscpy(f->path.sessname, "kunit", sizeof(f->path.sessname));
	return f;
}

static void fake_free(struct kunit *test, struct fake *f)
{
	KUNIT_EXPECT_EQ(test, atomic_read(&f->pds), 0);
	ib_dealloc_device(&f->ib);
}

static int core_init(struct kunit *test)
{
	test->priv = fake_new(test);
	return 0;
}

static void core_exit(struct kunit *test)
{
	struct fake *f = test->priv;

	if (!f)
		return;
	if (f->path.hb_wq)
		rtrs_stop_hb(&f->path);
	fake_free(test, f);
}

static void destroy_wq(void *wq)
{
	destroy_workqueue(wq);
}

static struct workqueue_struct *new_wq(struct kunit *test)
{
	struct workqueue_struct *wq = alloc_workqueue("rtrs_kunit", WQ_UNBOUND, 0);

	KUNIT_ASSERT_NOT_NULL(test, wq);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, destroy_wq, wq), 0);
	return wq;
}

/*
 * Buffers and work requests
 */

static void done(struct ib_cq *cq, struct ib_wc *wc)
{
}

static void iu_alloc_test(struct kunit *test)
{
	struct fake *f = test->priv;
	struct rtrs_iu *ius = rtrs_iu_alloc(3, 100, GFP_KERNEL, &f->ib, DMA_FROM_DEVICE, done);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, ius);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, ius[i].size, 100);
		KUNIT_EXPECT_EQ(test, (int)ius[i].direction, (int)DMA_FROM_DEVICE);
		KUNIT_EXPECT_PTR_EQ(test, ius[i].cqe.done, &done);
		KUNIT_EXPECT_EQ(test, ius[i].dma_addr, (dma_addr_t)(uintptr_t)ius[i].buf);
		KUNIT_EXPECT_NULL(test, memchr_inv(ius[i].buf, 0, 100));
	}
	rtrs_iu_free(ius, &f->ib, 3);
	rtrs_iu_free(NULL, &f->ib, 3);
}

/* No buffer, no length, or no memory: never a part of what was asked for. */
static void iu_alloc_fail_test(struct kunit *test)
{
	struct fake *f = test->priv;

	KUNIT_EXPECT_NULL(test, rtrs_iu_alloc(0, 100, GFP_KERNEL, &f->ib, DMA_TO_DEVICE, done));
	KUNIT_EXPECT_NULL(test, rtrs_iu_alloc(3, 0, GFP_KERNEL, &f->ib, DMA_TO_DEVICE, done));
	KUNIT_EXPECT_NULL(test, rtrs_iu_alloc(3, SIZE_MAX / 4, GFP_KERNEL | __GFP_NOWARN, &f->ib,
					      DMA_TO_DEVICE, done));
}

static void post_recv_test(struct kunit *test)
{
	struct rtrs_iu iu = { .dma_addr = 0x1000, .size = 272 };
	struct fake *f = test->priv;
	struct posted *p = f->posted;

	KUNIT_ASSERT_EQ(test, rtrs_iu_post_recv(&f->con, &iu), 0);
	KUNIT_ASSERT_EQ(test, f->nr_posted, 1);
	KUNIT_EXPECT_PTR_EQ(test, p[0].cqe, &iu.cqe);
	KUNIT_ASSERT_EQ(test, p[0].num_sge, 1);
	KUNIT_EXPECT_EQ(test, p[0].sge[0].addr, 0x1000);
	KUNIT_EXPECT_EQ(test, p[0].sge[0].length, 272);
	KUNIT_EXPECT_EQ(test, p[0].sge[0].lkey, LKEY);

	KUNIT_ASSERT_EQ(test, rtrs_post_recv_empty(&f->con, &f->hb_cqe), 0);
	KUNIT_ASSERT_EQ(test, f->nr_posted, 2);
	KUNIT_EXPECT_PTR_EQ(test, p[1].cqe, &f->hb_cqe);
	KUNIT_EXPECT_EQ(test, p[1].num_sge, 0);

	iu.size = 0;
	KUNIT_EXPECT_EQ(test, rtrs_iu_post_recv(&f->con, &iu), -EINVAL);
	KUNIT_EXPECT_EQ(test, f->nr_posted, 2);
}

/* Behind the chain, and the chain is as before when it comes back. */
static void post_send_test(struct kunit *test)
{
	struct ib_send_wr inv = { .opcode = IB_WR_LOCAL_INV };
	struct ib_send_wr reg = { .opcode = IB_WR_REG_MR, .next = &inv };
	struct rtrs_iu iu = { .dma_addr = 0x1000, .size = 272 };
	struct fake *f = test->priv;
	struct posted *p = f->posted;

	KUNIT_ASSERT_EQ(test, rtrs_iu_post_send(&f->con, &iu, 24, &reg), 0);
	KUNIT_ASSERT_EQ(test, f->nr_posted, 3);
	KUNIT_EXPECT_EQ(test, (int)p[0].opcode, (int)IB_WR_REG_MR);
	KUNIT_EXPECT_EQ(test, (int)p[1].opcode, (int)IB_WR_LOCAL_INV);
	KUNIT_EXPECT_PTR_EQ(test, reg.next, &inv);
	KUNIT_EXPECT_NULL(test, inv.next);

	KUNIT_EXPECT_EQ(test, (int)p[2].opcode, (int)IB_WR_SEND);
	KUNIT_EXPECT_EQ(test, p[2].flags, (int)IB_SEND_SIGNALED);
	KUNIT_EXPECT_PTR_EQ(test, p[2].cqe, &iu.cqe);
	KUNIT_ASSERT_EQ(test, p[2].num_sge, 1);
	KUNIT_EXPECT_EQ(test, p[2].sge[0].addr, 0x1000);
	KUNIT_EXPECT_EQ(test, p[2].sge[0].length, 24);
	KUNIT_EXPECT_EQ(test, p[2].sge[0].lkey, LKEY);

	KUNIT_ASSERT_EQ(test, rtrs_iu_post_send(&f->con, &iu, 272, NULL), 0);
	KUNIT_ASSERT_EQ(test, f->nr_posted, 4);
	KUNIT_EXPECT_EQ(test, p[3].sge[0].length, 272);

	KUNIT_EXPECT_EQ(test, rtrs_iu_post_send(&f->con, &iu, 0, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, rtrs_iu_post_send(&f->con, &iu, 273, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, f->nr_posted, 4);

	f->post_err = -ENOMEM;
	KUNIT_EXPECT_EQ(test, rtrs_iu_post_send(&f->con, &iu, 24, &reg), -ENOMEM);
	KUNIT_EXPECT_NULL(test, inv.next);
}

static void post_write_imm_test(struct kunit *test)
{
	struct ib_send_wr reg = { .opcode = IB_WR_REG_MR };
	struct ib_send_wr inv = { .opcode = IB_WR_LOCAL_INV };
	struct ib_sge sge[2] = { { 0x1000, 32, LKEY }, { 0x2000, 4, LKEY } };
	struct fake *f = test->priv;
	struct posted *p = f->posted;
	struct rtrs_iu iu = {};

	KUNIT_ASSERT_EQ(test, rtrs_iu_post_rdma_write_imm(&f->con, &iu, sge, 2, 0xabcd, 0x123456789,
							  0x00281020, IB_SEND_SIGNALED, &reg,
							  &inv), 0);
	KUNIT_ASSERT_EQ(test, f->nr_posted, 3);
	KUNIT_EXPECT_EQ(test, (int)p[0].opcode, (int)IB_WR_REG_MR);
	KUNIT_EXPECT_EQ(test, (int)p[1].opcode, (int)IB_WR_RDMA_WRITE_WITH_IMM);
	KUNIT_EXPECT_EQ(test, (int)p[2].opcode, (int)IB_WR_LOCAL_INV);
	KUNIT_EXPECT_NULL(test, reg.next);

	KUNIT_EXPECT_PTR_EQ(test, p[1].cqe, &iu.cqe);
	KUNIT_EXPECT_EQ(test, p[1].flags, (int)IB_SEND_SIGNALED);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(p[1].imm), 0x00281020);
	KUNIT_EXPECT_EQ(test, p[1].rkey, 0xabcd);
	KUNIT_EXPECT_EQ(test, p[1].addr, 0x123456789);
	KUNIT_ASSERT_EQ(test, p[1].num_sge, 2);
	KUNIT_EXPECT_MEMEQ(test, p[1].sge, sge, sizeof(sge));

	/* An element without length, wherever it is, and nothing is posted. */
	sge[1].length = 0;
	KUNIT_EXPECT_EQ(test, rtrs_iu_post_rdma_write_imm(&f->con, &iu, sge, 2, 0, 0, 0, 0, NULL,
							  NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, f->nr_posted, 3);
	KUNIT_EXPECT_EQ(test, rtrs_iu_post_rdma_write_imm(&f->con, &iu, sge, 1, 0, 0, 0, 0, NULL,
							  NULL), 0);
	KUNIT_EXPECT_EQ(test, f->nr_posted, 4);
}

/*
 * Heartbeat
 */

static void hb_error(struct rtrs_con *con)
{
	container_of(con, struct fake, con)->nr_errors++;
}

/* An interval that no test lives to see: ticks come from tick() alone. */
static struct fake *hb_prepare(struct kunit *test)
{
	struct fake *f = test->priv;

	rtrs_init_hb(&f->path, &f->hb_cqe, 3600 * 1000, 5, hb_error, new_wq(test));
	return f;
}

/* What the workqueue does when the timer fires. True: there will be another. */
static bool tick(struct fake *f)
{
	struct delayed_work *dwork = &f->path.hb_dwork;

	cancel_delayed_work_sync(dwork);
	dwork->work.func(&dwork->work);
	return delayed_work_pending(dwork);
}

static void hb_first_tick_test(struct kunit *test)
{
	struct fake *f = hb_prepare(test);
	struct posted *p = f->posted;
	ktime_t before;

	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&f->path.hb_dwork));
	rtrs_start_hb(&f->path);
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&f->path.hb_dwork));
	KUNIT_EXPECT_EQ(test, f->nr_posted, 0);

	before = ktime_get();
	KUNIT_EXPECT_TRUE(test, tick(f));
	KUNIT_ASSERT_EQ(test, f->nr_posted, 1);
	KUNIT_EXPECT_EQ(test, (int)p[0].opcode, (int)IB_WR_RDMA_WRITE_WITH_IMM);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(p[0].imm), 0x80000000);
	KUNIT_EXPECT_PTR_EQ(test, p[0].cqe, &f->hb_cqe);
	KUNIT_EXPECT_EQ(test, p[0].num_sge, 0);
	KUNIT_EXPECT_EQ(test, p[0].rkey, 0);
	KUNIT_EXPECT_EQ(test, p[0].addr, 0);

	/* The answer may come before the post returns. */
	KUNIT_EXPECT_EQ(test, f->outstanding_at_post, 1);
	KUNIT_EXPECT_GE(test, ktime_to_ns(f->path.hb_last_sent), ktime_to_ns(before));
	KUNIT_EXPECT_LE(test, ktime_to_ns(f->path.hb_last_sent), ktime_to_ns(ktime_get()));
	KUNIT_EXPECT_EQ(test, f->path.hb_missed_cnt, 1);
}

/* One message, five ticks of patience, and the sixth tick after it gives up. */
static void hb_silent_peer_test(struct kunit *test)
{
	struct fake *f = hb_prepare(test);
	int i;

	for (i = 0; i < 6; i++)
		KUNIT_EXPECT_TRUE(test, tick(f));
	KUNIT_EXPECT_EQ(test, f->nr_errors, 0);
	KUNIT_EXPECT_FALSE(test, tick(f));
	KUNIT_EXPECT_EQ(test, f->nr_errors, 1);
	KUNIT_EXPECT_EQ(test, f->nr_posted, 1);
}

/* A peer that has been heard is asked again, however late it was. */
static void hb_heard_test(struct kunit *test)
{
	struct fake *f = hb_prepare(test);
	int i, round;

	for (round = 1; round <= 3; round++) {
		for (i = 0; i < 6; i++)
			KUNIT_EXPECT_TRUE(test, tick(f));
		KUNIT_EXPECT_EQ(test, f->nr_posted, round);
		WRITE_ONCE(f->path.hb_missed_cnt, 0);
	}
	KUNIT_EXPECT_EQ(test, f->nr_errors, 0);
}

/* An answer that comes while the message is posted counts. */
static void hb_fast_answer_test(struct kunit *test)
{
	struct fake *f = hb_prepare(test);

	f->answer_at_once = true;
	KUNIT_EXPECT_TRUE(test, tick(f));
	KUNIT_EXPECT_EQ(test, f->path.hb_missed_cnt, 0);
	KUNIT_EXPECT_TRUE(test, tick(f));
	KUNIT_EXPECT_EQ(test, f->nr_posted, 2);
}

static void hb_post_failure_test(struct kunit *test)
{
	struct fake *f = hb_prepare(test);

	f->post_err = -ENOMEM;
	KUNIT_EXPECT_FALSE(test, tick(f));
	KUNIT_EXPECT_EQ(test, f->nr_errors, 1);

	rtrs_send_hb_ack(&f->path);
	KUNIT_EXPECT_EQ(test, f->nr_errors, 2);
}

/* Both limits are read at each tick. */
static void hb_run_time_limits_test(struct kunit *test)
{
	struct fake *f = hb_prepare(test);
	long left;

	WRITE_ONCE(f->path.hb_interval_ms, 7200 * 1000);
	KUNIT_EXPECT_TRUE(test, tick(f));
	left = f->path.hb_dwork.timer.expires - jiffies;
	KUNIT_EXPECT_GT(test, left, 7000L * HZ);
	KUNIT_EXPECT_LE(test, left, 7200L * HZ + 1);

	WRITE_ONCE(f->path.hb_missed_max, 1);
	KUNIT_EXPECT_TRUE(test, tick(f));
	KUNIT_EXPECT_FALSE(test, tick(f));
	KUNIT_EXPECT_EQ(test, f->nr_errors, 1);
}

static void hb_ack_test(struct kunit *test)
{
	struct fake *f = hb_prepare(test);
	struct posted *p = f->posted;

	rtrs_send_hb_ack(&f->path);
	f->path.hb_ack_cqe = &f->ack_cqe;
	rtrs_send_hb_ack(&f->path);

	KUNIT_ASSERT_EQ(test, f->nr_posted, 2);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(p[0].imm), 0x90000000);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(p[1].imm), 0x90000000);
	KUNIT_EXPECT_PTR_EQ(test, p[0].cqe, &f->hb_cqe);
	KUNIT_EXPECT_PTR_EQ(test, p[1].cqe, &f->ack_cqe);

	/* Answering is no question: nothing is waited for. */
	KUNIT_EXPECT_EQ(test, atomic_read(&f->path.hb_outstanding), 0);
	KUNIT_EXPECT_EQ(test, f->path.hb_missed_cnt, 0);
}

/* Each third, counting what others have posted, and no entry below zero. */
static void hb_signal_test(struct kunit *test)
{
	static const int want[] = { 0, IB_SEND_SIGNALED, 0, 0, IB_SEND_SIGNALED };
	struct fake *f = hb_prepare(test);
	size_t i;

	f->path.signal_interval = 3;
	atomic_set(&f->con.wr_cnt, 1);
	atomic_set(&f->con.sq_wr_avail, 2);
	for (i = 0; i < ARRAY_SIZE(want); i++) {
		rtrs_send_hb_ack(&f->path);
		KUNIT_EXPECT_EQ(test, f->posted[i].flags, want[i]);
		KUNIT_EXPECT_EQ(test, atomic_read(&f->con.sq_wr_avail), i ? 0 : 1);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&f->con.wr_cnt), 6);

	f->path.signal_interval = 1;
	rtrs_send_hb_ack(&f->path);
	rtrs_send_hb_ack(&f->path);
	KUNIT_EXPECT_EQ(test, f->posted[5].flags, (int)IB_SEND_SIGNALED);
	KUNIT_EXPECT_EQ(test, f->posted[6].flags, (int)IB_SEND_SIGNALED);
}

static void hb_stop_test(struct kunit *test)
{
	struct fake *f = hb_prepare(test);

	rtrs_stop_hb(&f->path);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&f->path.hb_dwork));

	f->path.hb_cur_latency = 4711;
	rtrs_start_hb(&f->path);
	tick(f);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->path.hb_outstanding), 1);
	rtrs_stop_hb(&f->path);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&f->path.hb_dwork));
	KUNIT_EXPECT_EQ(test, f->path.hb_missed_cnt, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->path.hb_outstanding), 0);
	KUNIT_EXPECT_EQ(test, f->path.hb_cur_latency, 4711);

	rtrs_start_hb(&f->path);
	KUNIT_EXPECT_TRUE(test, tick(f));
	KUNIT_EXPECT_EQ(test, f->nr_posted, 2);
}

/*
 * Devices
 */

static atomic_t nr_init, nr_deinit;
static int init_err;

static int count_init(struct rtrs_ib_dev *dev)
{
	atomic_inc(&nr_init);
	/* Long enough for everybody else to look for the device too. */
	msleep(20);
	return init_err;
}

static void count_deinit(struct rtrs_ib_dev *dev)
{
	atomic_inc(&nr_deinit);
}

static const struct rtrs_rdma_dev_pd_ops counting_ops = {
	.init	= count_init,
	.deinit	= count_deinit,
};

static void pool_prepare(struct rtrs_rdma_dev_pd *pool, const struct rtrs_rdma_dev_pd_ops *ops)
{
	atomic_set(&nr_init, 0);
	atomic_set(&nr_deinit, 0);
	init_err = 0;
	pool->ops = ops;
	rtrs_rdma_dev_pd_init(0, pool);
}

static void pool_share_test(struct kunit *test)
{
	struct rtrs_ib_dev *dev, *same;
	struct fake *f = test->priv;
	struct rtrs_rdma_dev_pd pool;

	pool_prepare(&pool, &counting_ops);
	dev = rtrs_ib_dev_get(&f->ib, &pool);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, dev);
	KUNIT_EXPECT_PTR_EQ(test, dev->ib_dev, &f->ib);
	KUNIT_EXPECT_PTR_EQ(test, dev->pool, &pool);
	KUNIT_EXPECT_EQ(test, dev->ib_pd->local_dma_lkey, LKEY);
	same = rtrs_ib_dev_find_or_add(&f->ib, &pool);
	KUNIT_EXPECT_PTR_EQ(test, same, dev);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->pds), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&nr_init), 1);

	KUNIT_EXPECT_EQ(test, rtrs_ib_dev_put(same), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&nr_deinit), 0);
	KUNIT_EXPECT_EQ(test, rtrs_ib_dev_put(dev), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&nr_deinit), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->pds), 0);
	rtrs_rdma_dev_pd_deinit(&pool);
}

/* Software devices may carry the same node_guid; they are two all the same. */
static void pool_same_guid_test(struct kunit *test)
{
	struct fake *f = test->priv, *g = fake_new(test);
	struct rtrs_ib_dev *dev, *other;
	struct rtrs_rdma_dev_pd pool;

	g->ib.node_guid = f->ib.node_guid;
	pool_prepare(&pool, NULL);
	dev = rtrs_ib_dev_get(&f->ib, &pool);
	other = rtrs_ib_dev_get(&g->ib, &pool);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, dev);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, other);
	KUNIT_EXPECT_PTR_NE(test, other, dev);
	KUNIT_EXPECT_PTR_EQ(test, dev->ib_dev, &f->ib);
	KUNIT_EXPECT_PTR_EQ(test, other->ib_dev, &g->ib);
	KUNIT_EXPECT_EQ(test, rtrs_ib_dev_put(dev), 1);
	KUNIT_EXPECT_EQ(test, rtrs_ib_dev_put(other), 1);
	rtrs_rdma_dev_pd_deinit(&pool);
	fake_free(test, g);
}

/* The reason comes through, and nothing stays behind. */
static void pool_errors_test(struct kunit *test)
{
	struct fake *f = test->priv;
	struct rtrs_rdma_dev_pd pool;

	pool_prepare(&pool, &counting_ops);
	f->pd_err = -EDQUOT;
	KUNIT_EXPECT_EQ(test, PTR_ERR(rtrs_ib_dev_get(&f->ib, &pool)), -EDQUOT);
	KUNIT_EXPECT_NULL(test, rtrs_ib_dev_find_or_add(&f->ib, &pool));
	KUNIT_EXPECT_EQ(test, atomic_read(&nr_init), 0);

	f->pd_err = 0;
	init_err = -EOPNOTSUPP;
	KUNIT_EXPECT_EQ(test, PTR_ERR(rtrs_ib_dev_get(&f->ib, &pool)), -EOPNOTSUPP);
	KUNIT_EXPECT_NULL(test, rtrs_ib_dev_find_or_add(&f->ib, &pool));
	KUNIT_EXPECT_EQ(test, atomic_read(&nr_init), 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&nr_deinit), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->pds), 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&pool.list));
	rtrs_rdma_dev_pd_deinit(&pool);
}

#define NR_GETTERS 8

struct getter {
	struct work_struct work;
	struct ib_device *ib;
	struct rtrs_rdma_dev_pd *pool;
	struct rtrs_ib_dev *dev;
};

static void get_work(struct work_struct *work)
{
	struct getter *g = container_of(work, struct getter, work);

	g->dev = rtrs_ib_dev_get(g->ib, g->pool);
}

/* However many come for a new device at once, it is added once. */
static void pool_race_test(struct kunit *test)
{
	struct getter *g = kunit_kcalloc(test, NR_GETTERS, sizeof(*g), GFP_KERNEL);
	struct workqueue_struct *wq = new_wq(test);
	struct fake *f = test->priv;
	struct rtrs_rdma_dev_pd pool;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, g);
	pool_prepare(&pool, &counting_ops);
	for (i = 0; i < NR_GETTERS; i++) {
		g[i].ib = &f->ib;
		g[i].pool = &pool;
		INIT_WORK(&g[i].work, get_work);
		queue_work(wq, &g[i].work);
	}
	for (i = 0; i < NR_GETTERS; i++)
		flush_work(&g[i].work);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, g[0].dev);
	for (i = 1; i < NR_GETTERS; i++)
		KUNIT_ASSERT_PTR_EQ(test, g[i].dev, g[0].dev);
	KUNIT_EXPECT_EQ(test, atomic_read(&nr_init), 1);
	for (i = 0; i < NR_GETTERS; i++)
		KUNIT_EXPECT_EQ(test, rtrs_ib_dev_put(g[i].dev), i == NR_GETTERS - 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&nr_deinit), 1);
	rtrs_rdma_dev_pd_deinit(&pool);
}

static struct kunit_case rtrs_core_cases[] = {
	KUNIT_CASE(iu_alloc_test),
	KUNIT_CASE(iu_alloc_fail_test),
	KUNIT_CASE(post_recv_test),
	KUNIT_CASE(post_send_test),
	KUNIT_CASE(post_write_imm_test),
	KUNIT_CASE(hb_first_tick_test),
	KUNIT_CASE(hb_silent_peer_test),
	KUNIT_CASE(hb_heard_test),
	KUNIT_CASE(hb_fast_answer_test),
	KUNIT_CASE(hb_post_failure_test),
	KUNIT_CASE(hb_run_time_limits_test),
	KUNIT_CASE(hb_ack_test),
	KUNIT_CASE(hb_signal_test),
	KUNIT_CASE(hb_stop_test),
	KUNIT_CASE(pool_share_test),
	KUNIT_CASE(pool_same_guid_test),
	KUNIT_CASE(pool_errors_test),
	KUNIT_CASE(pool_race_test),
	{}
};

static struct kunit_suite rtrs_core_suite = {
	.name		= "rtrs_core",
	.init		= core_init,
	.exit		= core_exit,
	.test_cases	= rtrs_core_cases,
};

kunit_test_suite(rtrs_core_suite);
