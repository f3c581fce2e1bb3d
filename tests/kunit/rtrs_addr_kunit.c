// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of reading and printing addresses, rtrs.c
 */

#include <kunit/test.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <rdma/ib.h>

#include "../../rtrs.h"

/* One address: the family decides how many bytes count. 0: there is none. */
struct addr {
	sa_family_t family;
	u16 port;
	u32 scope;
	u8 bytes[16];
};

#define V4(port, ...)	{ AF_INET,  port, 0, { __VA_ARGS__ } }
#define V6(port, ...)	{ AF_INET6, port, 0, { __VA_ARGS__ } }
#define GID(port, ...)	{ AF_IB,    port, 0, { __VA_ARGS__ } }

/* fe80::1 */
#define LOCAL_BYTES	      { 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 }
#define LOCAL_V6(port)	      { AF_INET6, port, 0, LOCAL_BYTES }
#define LOCAL_V6_SCOPE(scope) { AF_INET6, 1234, scope, LOCAL_BYTES }
#define LOCAL_GID(port)	      { AF_IB, port, 0, LOCAL_BYTES }

/* The bytes of the address, written without the code under test. */
static void fill(struct sockaddr_storage *ss, const struct addr *addr)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *in = (struct sockaddr_in *)ss;
	struct sockaddr_ib *ib = (struct sockaddr_ib *)ss;

	memset(ss, 0, sizeof(*ss));
	ss->ss_family = addr->family;
	switch (addr->family) {
	case AF_INET:
		memcpy(&in->sin_addr, addr->bytes, 4);
		in->sin_port = htons(addr->port);
		break;
	case AF_INET6:
		memcpy(&in6->sin6_addr, addr->bytes, 16);
		in6->sin6_port = htons(addr->port);
		in6->sin6_scope_id = addr->scope;
		break;
	case AF_IB:
		memcpy(&ib->sib_addr, addr->bytes, 16);
		ib->sib_pkey = htons(0xffff);
		ib->sib_sid = cpu_to_be64(0x00000000013f0000ULL + addr->port);
		ib->sib_sid_mask = cpu_to_be64(0xffffffffffffffffULL);
		break;
	}
}

/*
 * Reading
 */

struct good_row {
	const char *desc;
	const char *str;
	u16 port;
	struct addr src;
	struct addr dst;
	size_t len;	/* 0: all of it */
};

static const struct good_row good_rows[] = {
	{ "IPv4", "ip:10.0.0.2", 1234, {}, V4(1234, 10, 0, 0, 2) },
	{ "IPv4, all ones", "ip:255.255.255.255", 1234, {}, V4(1234, 255, 255, 255, 255) },
	{ "IPv4, port 0", "ip:10.0.0.2", 0, {}, V4(0, 10, 0, 0, 2) },
	{ "IPv4, last port", "ip:10.0.0.2", 65535, {}, V4(65535, 10, 0, 0, 2) },
	{ "IPv6", "ip:2001:db8:1:2:3:4:5:6", 1234, {},
	  V6(1234, 0x20, 1, 0xd, 0xb8, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6) },
	{ "IPv6, gap", "ip:2001:db8::6", 32768, {},
	  V6(32768, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6) },
	{ "IPv6, any", "ip:::", 1234, {}, V6(1234, 0) },
	{ "IPv6, upper case", "ip:FE80::1", 1234, {}, LOCAL_V6(1234) },
	{ "IPv6, dotted end", "ip:::ffff:10.0.0.2", 1234, {},
	  V6(1234, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2) },
	{ "IPv6, link-local without scope", "ip:fe80::1", 1234, {}, LOCAL_V6(1234) },
	{ "IPv6, scope by name", "ip:fe80::1%lo", 1234, {}, LOCAL_V6_SCOPE(1) },
	{ "IPv6, scope by index", "ip:fe80::1%77", 1234, {}, LOCAL_V6_SCOPE(77) },
	{ "GID", "gid:fe80:0000:0000:0000:0000:0000:0000:0001", 1234, {}, LOCAL_GID(1234) },
	{ "GID, gap", "gid:fe80::1", 1234, {}, LOCAL_GID(1234) },
	{ "GID, port 0", "gid:fe80::1", 0, {}, LOCAL_GID(0) },
	{ "GID, last port of 15 bits", "gid:fe80::1", 32767, {}, LOCAL_GID(32767) },
	{ "GID, first port of 16 bits", "gid:fe80::1", 32768, {}, LOCAL_GID(32768) },
	{ "GID, last port", "gid:fe80::1", 65535, {}, LOCAL_GID(65535) },

	{ "source before a comma", "ip:10.0.0.1,ip:10.0.0.2", 1234,
	  V4(0, 10, 0, 0, 1), V4(1234, 10, 0, 0, 2) },
	{ "source before an at sign", "ip:10.0.0.1@ip:10.0.0.2", 1234,
	  V4(0, 10, 0, 0, 1), V4(1234, 10, 0, 0, 2) },
	{ "IPv6 source", "ip:fe80::1@ip:::", 1234, LOCAL_V6(0), V6(1234, 0) },
	{ "GID source", "gid:fe80::1,gid:::1", 1234,
	  LOCAL_GID(0), GID(1234, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1) },
	{ "families differ", "ip:10.0.0.1,gid:fe80::1", 1234,
	  V4(0, 10, 0, 0, 1), LOCAL_GID(1234) },

	{ "cut before more digits", "ip:10.0.0.25", 1234, {}, V4(1234, 10, 0, 0, 2), 11 },
	{ "cut before a newline", "ip:10.0.0.2\n", 1234, {}, V4(1234, 10, 0, 0, 2), 11 },
	{ "comma behind the end", "ip:10.0.0.2,ip:10.0.0.3", 1234, {},
	  V4(1234, 10, 0, 0, 2), 11 },
	{ "at sign behind the end", "ip:10.0.0.2@ip:10.0.0.3", 1234, {},
	  V4(1234, 10, 0, 0, 2), 11 },
	{ "comma behind the end, at sign before",
	  "ip:10.0.0.1@ip:10.0.0.2,ip:10.0.0.3", 1234,
	  V4(0, 10, 0, 0, 1), V4(1234, 10, 0, 0, 2), 23 },
	{ "NUL before the end", "ip:10.0.0.2\0,ip:10.0.0.3", 1234, {},
	  V4(1234, 10, 0, 0, 2), 24 },
};

KUNIT_ARRAY_PARAM_DESC(good, good_rows, desc);

/* Storage full of garbage, as it comes off a stack. */
struct ends {
	struct sockaddr_storage src, dst;
	struct rtrs_addr addr;
};

static void init_ends(struct ends *ends)
{
	memset(ends, 0xa5, sizeof(*ends));
	ends->addr.src = &ends->src;
	ends->addr.dst = &ends->dst;
}

/* A copy that ends where the string does, so that KASAN sees who reads on. */
static int parse(struct kunit *test, const char *str, size_t len, u16 port, struct ends *ends)
{
	char *copy = kunit_kmalloc(test, len, GFP_KERNEL);
	int err;

	KUNIT_ASSERT_NOT_NULL(test, copy);
	memcpy(copy, str, len);
	init_ends(ends);
	err = rtrs_addr_to_sockaddr(copy, len, port, &ends->addr);
	kunit_kfree(test, copy);
	return err;
}

/* All of the storage, since what is not set must be zero. */
static void parse_good_test(struct kunit *test)
{
	const struct good_row *row = test->param_value;
	struct sockaddr_storage want;
	struct ends ends;

	KUNIT_ASSERT_EQ(test, parse(test, row->str, row->len ?: strlen(row->str), row->port,
				    &ends), 0);
	fill(&want, &row->dst);
	KUNIT_EXPECT_MEMEQ(test, &ends.dst, &want, sizeof(want));
	KUNIT_EXPECT_PTR_EQ(test, ends.addr.dst, &ends.dst);

	if (!row->src.family) {
		KUNIT_EXPECT_NULL(test, ends.addr.src);
		return;
	}
	fill(&want, &row->src);
	KUNIT_EXPECT_MEMEQ(test, &ends.src, &want, sizeof(want));
	KUNIT_EXPECT_PTR_EQ(test, ends.addr.src, &ends.src);
}

struct bad_row {
	const char *desc;
	const char *str;
	int err;
	size_t len;	/* 0: all of it */
};

static const struct bad_row bad_rows[] = {
	{ "empty",			"",				-EPROTONOSUPPORT },
	{ "no prefix",			"10.0.0.2",			-EPROTONOSUPPORT },
	{ "prefix cut off",		"ip:10.0.0.2",			-EPROTONOSUPPORT, 2 },
	{ "unknown prefix",		"ib:fe80::1",			-EPROTONOSUPPORT },
	{ "upper-case prefix",		"IP:10.0.0.2",			-EPROTONOSUPPORT },
	{ "space before the prefix",	" ip:10.0.0.2",			-EPROTONOSUPPORT },
	{ "destination missing",	"ip:10.0.0.1,",			-EPROTONOSUPPORT },
	{ "destination without prefix",	"ip:10.0.0.1@10.0.0.2",		-EPROTONOSUPPORT },
	{ "at sign after a comma",	"ip:10.0.0.1,x@ip:10.0.0.2",	-EPROTONOSUPPORT },

	{ "ip: alone",			"ip:",				-EINVAL },
	{ "gid: alone",			"gid:",				-EINVAL },
	{ "IPv4, a part missing",	"ip:10.0.0",			-EINVAL },
	{ "IPv4, a part too many",	"ip:10.0.0.2.3",		-EINVAL },
	{ "IPv4, a part too large",	"ip:10.0.0.256",		-EINVAL },
	{ "IPv4, hexadecimal",		"ip:10.0.0.a",			-EINVAL },
	{ "IPv4, port behind",		"ip:10.0.0.2:1234",		-EINVAL },
	{ "IPv4, scope behind",		"ip:10.0.0.2%lo",		-EINVAL },
	{ "IPv4, space behind",		"ip:10.0.0.2 ",			-EINVAL },
	{ "IPv4, newline behind",	"ip:10.0.0.2\n",		-EINVAL },
	{ "IPv4, space before",		"ip: 10.0.0.2",			-EINVAL },
	{ "IPv6, two gaps",		"ip:fe80::1::2",		-EINVAL },
	{ "IPv6, a part missing",	"ip:1:2:3:4:5:6:7",		-EINVAL },
	{ "IPv6, a part too many",	"ip:1:2:3:4:5:6:7:8:9",		-EINVAL },
	{ "IPv6, a part too large",	"ip:fe80::12345",		-EINVAL },
	{ "IPv6, no hexadecimal",	"ip:fe80::g",			-EINVAL },
	{ "IPv6, newline behind",	"ip:fe80::1\n",			-EINVAL },
	{ "IPv6, in brackets",		"ip:[fe80::1]",			-EINVAL },
	{ "IPv6, empty scope",		"ip:fe80::1%",			-EINVAL },
	{ "IPv6, unknown scope",	"ip:fe80::1%nosuchlink",	-EINVAL },
	{ "IPv6, scope 0",		"ip:fe80::1%0",			-EINVAL },
	{ "IPv6, scope of a global one", "ip:2001:db8::1%lo",		-EINVAL },
	{ "host name",			"ip:localhost",			-EINVAL },
	{ "GID, dotted",		"gid:10.0.0.2",			-EINVAL },
	{ "GID, scope behind",		"gid:fe80::1%lo",		-EINVAL },
	{ "GID, newline behind",	"gid:fe80::1\n",		-EINVAL },
	{ "GID, garbage behind",	"gid:fe80::1x",			-EINVAL },
	{ "GID, a part missing",	"gid:1:2:3:4:5:6:7",		-EINVAL },
	{ "too long to look at",
	  "ip:0000000000000000000000000000000000000000000000010.0.0.2",	-EINVAL },

	{ "source missing",		",ip:10.0.0.2",			-EINVAL },
	{ "source of unknown kind",	"ib:fe80::1,ip:10.0.0.2",	-EINVAL },
	{ "source wrong",		"ip:10.0.0@ip:10.0.0.2",	-EINVAL },
	{ "source and destination wrong", "ip:10.0.0,10.0.0.2",		-EINVAL },
	{ "destination wrong",		"ip:10.0.0.1,ip:10.0.0",	-EINVAL },
	{ "destination empty",		"ip:10.0.0.1@ip:",		-EINVAL },
	{ "two commas",			"ip:10.0.0.1,ip:10.0.0.2,ip:10.0.0.3", -EINVAL },
	{ "two at signs",		"ip:10.0.0.1@ip:10.0.0.2@ip:10.0.0.3", -EINVAL },
	{ "comma goes before at sign",	"ip:10.0.0.1@ip:10.0.0.2,ip:10.0.0.3", -EINVAL },
	{ "NUL inside",			"ip:10.0.0\0.2",		-EINVAL, 12 },
};

KUNIT_ARRAY_PARAM_DESC(bad, bad_rows, desc);

static void parse_bad_test(struct kunit *test)
{
	const struct bad_row *row = test->param_value;
	struct ends ends;

	KUNIT_EXPECT_EQ(test, parse(test, row->str, row->len ?: strlen(row->str), 1234, &ends),
			row->err);
}

/*
 * Printing
 */

struct print_row {
	const char *desc;
	struct addr addr;
	const char *want;
};

static const struct print_row print_rows[] = {
	{ "IPv4", V4(1234, 10, 0, 0, 2), "ip:10.0.0.2" },
	{ "longest IPv4", V4(1234, 255, 255, 255, 255), "ip:255.255.255.255" },
	{ "IPv6, any", V6(1234, 0), "ip:::" },
	{ "IPv6, gap", LOCAL_V6(1234), "ip:fe80::1" },
	{ "IPv6, scope", LOCAL_V6_SCOPE(1), "ip:fe80::1" },
	{ "longest IPv6",
	  V6(1234, 0x20, 0x01, 0x0d, 0xb8, 0x11, 0x11, 0x22, 0x22,
	     0x33, 0x33, 0x44, 0x44, 0x55, 0x55, 0x66, 0x66),
	  "ip:2001:db8:1111:2222:3333:4444:5555:6666" },
	{ "GID", LOCAL_GID(1234), "gid:fe80:0000:0000:0000:0000:0000:0000:0001" },
	{ "no family", { AF_UNSPEC }, "<invalid address family>" },
	{ "another family", { AF_UNIX }, "<invalid address family>" },
};

KUNIT_ARRAY_PARAM_DESC(print, print_rows, desc);

/* What must have happened to @buf, @size bytes of 0xa5, for @len of them. */
static void expect_cut(struct kunit *test, const char *buf, size_t size, size_t len, int ret,
		       const char *want)
{
	size_t n = len ? min(len - 1, strlen(want)) : 0;
	size_t written = len ? n + 1 : 0;

	KUNIT_EXPECT_EQ(test, ret, n);
	KUNIT_EXPECT_MEMEQ(test, buf, want, n);
	if (len)
		KUNIT_EXPECT_EQ(test, buf[n], '\0');
	KUNIT_EXPECT_NULL(test, memchr_inv(buf + written, 0xa5, size - written));
}

/* Into every length of buffer, from none at all to more than enough. */
static void print_test(struct kunit *test)
{
	const struct print_row *row = test->param_value;
	struct sockaddr_storage ss;
	char buf[64];
	size_t len;
	int ret;

	fill(&ss, &row->addr);
	for (len = 0; len <= strlen(row->want) + 2; len++) {
		memset(buf, 0xa5, sizeof(buf));
		ret = sockaddr_to_str((struct sockaddr *)&ss, buf, len);
		expect_cut(test, buf, sizeof(buf), len, ret, row->want);
	}
}

struct pair_row {
	const char *desc;
	struct addr src;
	struct addr dst;
	const char *want;
};

static const struct pair_row pair_rows[] = {
	{ "IPv4", V4(0, 10, 0, 0, 1), V4(1234, 10, 0, 0, 2), "ip:10.0.0.1@ip:10.0.0.2" },
	{ "IPv6", LOCAL_V6(0), V6(1234, 0), "ip:fe80::1@ip:::" },
	{ "GID", LOCAL_GID(0), GID(1234, 0),
	  "gid:fe80:0000:0000:0000:0000:0000:0000:0001@gid:0000:0000:0000:0000:0000:0000:0000:0000"
	},
	{ "no source", {}, V4(1234, 10, 0, 0, 2), "ip:10.0.0.2" },
};

KUNIT_ARRAY_PARAM_DESC(pair, pair_rows, desc);

static void print_pair_test(struct kunit *test)
{
	const struct pair_row *row = test->param_value;
	struct ends ends;
	char buf[128];
	size_t len;
	int ret;

	init_ends(&ends);
	fill(&ends.src, &row->src);
	fill(&ends.dst, &row->dst);
	if (!row->src.family)
		ends.addr.src = NULL;

	for (len = 0; len <= strlen(row->want) + 2; len++) {
		memset(buf, 0xa5, sizeof(buf));
		ret = rtrs_addr_to_str(&ends.addr, buf, len);
		expect_cut(test, buf, sizeof(buf), len, ret, row->want);
	}
}

/* What was printed can be read again and means the same. */
static void round_trip_test(struct kunit *test)
{
	const struct pair_row *row = test->param_value;
	struct sockaddr_storage want;
	struct ends ends;

	KUNIT_ASSERT_EQ(test, parse(test, row->want, strlen(row->want), 1234, &ends), 0);
	fill(&want, &row->dst);
	KUNIT_EXPECT_MEMEQ(test, &ends.dst, &want, sizeof(want));
	KUNIT_EXPECT_EQ(test, !ends.addr.src, !row->src.family);
	if (!ends.addr.src)
		return;
	fill(&want, &row->src);
	KUNIT_EXPECT_MEMEQ(test, &ends.src, &want, sizeof(want));
}

static struct kunit_case rtrs_addr_cases[] = {
	KUNIT_CASE_PARAM(parse_good_test, good_gen_params),
	KUNIT_CASE_PARAM(parse_bad_test, bad_gen_params),
	KUNIT_CASE_PARAM(print_test, print_gen_params),
	KUNIT_CASE_PARAM(print_pair_test, pair_gen_params),
	KUNIT_CASE_PARAM(round_trip_test, pair_gen_params),
	{}
};

static struct kunit_suite rtrs_addr_suite = {
	.name		= "rtrs_addr",
	.test_cases	= rtrs_addr_cases,
};

kunit_test_suite(rtrs_addr_suite);
