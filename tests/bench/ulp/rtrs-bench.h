/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RTRS bench: what its client and its server say to each other
 *
 * A request is one block of the server's store, written or read. Its user message
 * says which, and what is in it: the data follow from seed, block and generation,
 * so whoever holds them can tell whether they are the right ones, of the right
 * block, and the newest.
 */
#ifndef RTRS_BENCH_H
#define RTRS_BENCH_H

#include <linux/hash.h>
#include <linux/types.h>

/* RNBD has the one below */
#define RTRS_BENCH_PORT 1235

/* Each byte of a buffer that nobody is to read or write any more */
#define RTRS_BENCH_POISON 0xa5

/**
 * enum rtrs_bench_op - what a request is for
 * @RTRS_BENCH_HELLO: read: the answer is a struct rtrs_bench_hello
 * @RTRS_BENCH_READ: read: the answer is the block
 * @RTRS_BENCH_WRITE: write: the data are the block
 * @RTRS_BENCH_OP_NR: how many there are
 */
enum rtrs_bench_op {
	RTRS_BENCH_HELLO,
	RTRS_BENCH_READ,
	RTRS_BENCH_WRITE,
	RTRS_BENCH_OP_NR
};

/**
 * struct rtrs_bench_msg - user message of a request
 * @op: enum rtrs_bench_op
 * @keep: 1: the server keeps what is written, having looked at it, and gives back
 *	  what it kept; 0: it leaves the data alone
 * @reserved: 0
 * @seed: of all blocks of the client
 * @block: number of the block; it is block * length of the data into the store
 * @gen: how many times the client has written the block; of a read 0
 */
struct rtrs_bench_msg {
	__le16	op;
	__le16	keep;
	__le32	reserved;
	__le64	seed;
	__le64	block;
	__le64	gen;
};

/**
 * struct rtrs_bench_hello - what the server tells of itself
 * @store: bytes that it can keep
 */
struct rtrs_bench_hello {
	__le64	store;
};

/**
 * rtrs_bench_first() - the first word of a block
 * @seed: seed of the client
 * @block: number of the block
 * @gen: generation of what is in it
 *
 * Return: the word; rtrs_bench_next() makes the others from it.
 */
static inline u64 rtrs_bench_first(u64 seed, u64 block, u64 gen)
{
	u64 word = (seed ^ block) * GOLDEN_RATIO_64;

	word = ((word ^ word >> 32) + gen) * GOLDEN_RATIO_64;
	return word ^ word >> 29;
}

/**
 * rtrs_bench_next() - the word behind a word of a block
 * @word: word of a block
 *
 * Return: the word that stands eight bytes further on.
 */
static inline u64 rtrs_bench_next(u64 word)
{
	return word + GOLDEN_RATIO_64;
}

/**
 * rtrs_bench_check() - look for what does not belong there
 * @data: a block or a part of one
 * @len: its length, a multiple of eight
 * @word: the first word that is wanted; left at the one behind the last
 *
 * Return: true if all of it is as it should be.
 */
static inline bool rtrs_bench_check(const void *data, size_t len, u64 *word)
{
	const u64 *have = data;
	u64 diff = 0;

	for (; len; len -= sizeof(*have), *word = rtrs_bench_next(*word))
		diff |= *have++ ^ *word;
	return !diff;
}

#endif /* RTRS_BENCH_H */
