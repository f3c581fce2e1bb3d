# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=dash
#
# What a command sent to a test machine may call. busybox's shell prefers its own
# applets, so the real programs get their full paths here.

set -e
ip() { /sbin/ip "$@"; }
tc() { /sbin/tc "$@"; }

# link_up N HOST: the N'th link, 10.0.N.HOST and fd00:N::HOST, with an rxe device
# rxeN on it. A machine without a network card for it (both ends in one machine)
# gets a dummy interface. A real link has netem from the beginning, which does
# nothing yet: while a queue discipline is replaced the kernel refuses packets, and
# an rxe queue pair dies of one that is refused.
link_up()
{
	local dev=eth$1

	modprobe rdma_rxe
	if [ -e "/sys/class/net/$dev" ]; then
		modprobe sch_netem
		tc qdisc replace dev "$dev" root netem limit 10000
	else
		dev=dummy$1
		[ -e "/sys/class/net/$dev" ] || ip link add "$dev" type dummy
		ip link set "$dev" mtu 4200
	fi
	ip link set "$dev" up
	ip addr add "10.0.$1.$2/24" dev "$dev"
	ip addr add "fd00:$1::$2/64" dev "$dev" nodad
	rdma link add "rxe$1" type rxe netdev "$dev"
}

# meet N HOST: find the other end of a link. An address resolution by the RDMA core
# can miss the neighbour's first answer, and then sleeps until its time is up.
meet()
{
	ping -q -c 1 -w 10 "10.0.$1.$2"
	ping -q -c 1 -w 10 "fd00:$1::$2"
}

# disk_up NAME MB: a RAM disk /dev/NAME that keeps what is written to it
disk_up()
{
	local conf=/sys/kernel/config/nullb/$1

	modprobe null_blk nr_devices=0
	mkdir "$conf"
	echo "$2" >"$conf/size"
	echo 1 >"$conf/memory_backed"
	echo 2 >"$conf/queue_mode"
	echo 1 >"$conf/power"
}

# server_up PARAMETER...: rnbd-server on rtrs-server with these parameters
server_up()
{
	modprobe rtrs-server "$@"
	modprobe rnbd-server
}

# map SESSION DISK PATH...: map DISK of the server, print the block device's name
map()
{
	local session=$1 disk=$2 args='' path

	shift 2
	for path; do
		args="$args path=$path"
	done
	modprobe rnbd-client
	echo "sessname=$session$args device_path=dev/$disk" \
		>/sys/class/rnbd-client/ctl/map_device
	basename "$(readlink "/sys/class/rnbd-client/ctl/devices/dev!$disk@$session")"
}

unmap()
{
	echo normal >"/sys/block/$1/rnbd/unmap_device"
}

# rnbd closes a session from a work of its own, perhaps after unmap has returned, and
# warns, and worse, when its module goes meanwhile. With upstream's client as well.
rnbd_idle()
{
	for _ in 1 2 3 4 5 6 7 8 9; do
		[ -n "$(ls -A /sys/class/rtrs-client 2>/dev/null)" ] || break
		sleep 0.3
	done
	sleep 0.5
}

# unload MODULE...: in this order; each must be in, and must go
unload()
{
	local module

	for module; do
		[ "$module" != rnbd_client ] || rnbd_idle
		rmmod "$module"
		[ ! -e "/sys/module/$module" ]
	done
}

# the paths of a session, one line each: NAME STATE
path_states()
{
	local path

	for path in "/sys/class/rtrs-client/$1"/paths/*; do
		echo "${path##*/} $(cat "$path/state")"
	done
}

# Last words. On a debug kernel look for leaked memory first: an object counts when
# it is older than five seconds and did not change between two scans. slab_debug= is
# the harness's word for such a kernel; one without kmemleak, or with a kmemleak that
# takes no order any more, fails here.
finish()
{
	local leaks=/sys/kernel/debug/kmemleak

	if grep -q slab_debug= /proc/cmdline; then
		echo scan >"$leaks"
		sleep 6
		echo scan >"$leaks"
		cat "$leaks" >/dev/console
	fi
	echo "vm: end" >/dev/kmsg
	(sleep 0.2; poweroff -f) &
}
