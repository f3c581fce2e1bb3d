// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * First and only program of a machine that has no other: load the modules that
 * /modules/order names, one a line with its parameters, and power off. A line
 * "links" stands where two links with an RDMA device on each are to be made; each
 * other line that begins with a "!" is a mark on the console.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <rdma/rdma_netlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/netlink.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A line of the kernel's log, so that it stands where it belongs */
static void say(const char *format, ...)
{
	char line[256];
	va_list args;
	int fd, len;

	va_start(args, format);
	len = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fd = open("/dev/kmsg", O_WRONLY);
	if (fd < 0 || write(fd, line, len) != len)
		perror("/dev/kmsg");
	close(fd);
}

/* Without the end marker the run has failed, whatever comes before */
static void die(const char *what)
{
	say("vm: %s: %m", what);
	sleep(1);
	reboot(RB_POWER_OFF);
	exit(1);
}

static void load(const char *module, const char *parameters)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "/modules/%s", module);
	fd = open(path, O_RDONLY);
	if (fd < 0 || syscall(SYS_finit_module, fd, parameters, 0))
		die(path);
	close(fd);
}

static void address_up(int nr)
{
	int sock = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq req = {};
	struct sockaddr_in *addr = (struct sockaddr_in *)&req.ifr_addr;
	char text[32];

	snprintf(req.ifr_name, IFNAMSIZ, "dummy%d", nr);
	req.ifr_mtu = 4200;
	if (ioctl(sock, SIOCSIFMTU, &req))
		die("SIOCSIFMTU");
	snprintf(text, sizeof(text), "10.0.%d.1", nr);
	addr->sin_family = AF_INET;
	inet_pton(AF_INET, text, &addr->sin_addr);
	if (ioctl(sock, SIOCSIFADDR, &req))
		die("SIOCSIFADDR");
	inet_pton(AF_INET, "255.255.255.0", &addr->sin_addr);
	if (ioctl(sock, SIOCSIFNETMASK, &req))
		die("SIOCSIFNETMASK");
	req.ifr_flags = IFF_UP | IFF_NOARP;
	if (ioctl(sock, SIOCSIFFLAGS, &req))
		die("SIOCSIFFLAGS");
	close(sock);
}

static void put(struct nlmsghdr *msg, int type, const char *text)
{
	struct nlattr *attr = (void *)((char *)msg + NLMSG_ALIGN(msg->nlmsg_len));

	attr->nla_type = type;
	attr->nla_len = NLA_HDRLEN + strlen(text) + 1;
	memcpy((char *)attr + NLA_HDRLEN, text, strlen(text) + 1);
	msg->nlmsg_len = NLMSG_ALIGN(msg->nlmsg_len) + NLA_ALIGN(attr->nla_len);
}

/* rdma link add rxeN type rxe netdev dummyN */
static void rxe_up(int nr)
{
	union {
		struct nlmsghdr msg;
		char bytes[1024];
	} buf = { .msg = {
		.nlmsg_len = NLMSG_HDRLEN,
		.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_NEWLINK),
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
	} };
	int sock = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
	struct nlmsgerr *answer = NLMSG_DATA(&buf.msg);
	char name[32];

	snprintf(name, sizeof(name), "rxe%d", nr);
	put(&buf.msg, RDMA_NLDEV_ATTR_DEV_NAME, name);
	put(&buf.msg, RDMA_NLDEV_ATTR_LINK_TYPE, "rxe");
	snprintf(name, sizeof(name), "dummy%d", nr);
	put(&buf.msg, RDMA_NLDEV_ATTR_NDEV_NAME, name);
	if (send(sock, &buf, buf.msg.nlmsg_len, 0) < 0 || recv(sock, &buf, sizeof(buf), 0) < 0)
		die("NETLINK_RDMA");
	errno = -answer->error;
	if (answer->error)
		die("RDMA_NLDEV_CMD_NEWLINK");
	close(sock);
}

static void links_up(void)
{
	int nr;

	for (nr = 0; nr < 2; nr++) {
		address_up(nr);
		rxe_up(nr);
	}
}

int main(void)
{
	char line[256], *rest;
	FILE *order;

	mount("dev", "/dev", "devtmpfs", 0, NULL);
	mount("sys", "/sys", "sysfs", 0, NULL);
	mount("proc", "/proc", "proc", 0, NULL);
	order = fopen("/modules/order", "r");
	if (!order)
		die("/modules/order");
	while (fgets(line, sizeof(line), order)) {
		line[strcspn(line, "\n")] = '\0';
		rest = line + strcspn(line, " ");
		if (*rest)
			*rest++ = '\0';
		if (line[0] == '!')
			say("%s %s", line + 1, rest);
		else if (!strcmp(line, "links"))
			links_up();
		else
			load(line, rest);
	}
	say("vm: end");
	sleep(1);
	reboot(RB_POWER_OFF);
	return 1;
}
