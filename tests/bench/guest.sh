# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=dash
#
# What the benchmark runs in its machine, on top of tests/vm/guest/lib.sh. Each
# result is a line "@NAME VALUE" or "@NAME {" with fio's JSON behind it.

nqn=nqn.2014-08.org.nvmexpress:bench

# null_disk: /dev/bench, which does nothing with the data
null_disk()
{
	local conf=/sys/kernel/config/nullb/bench

	modprobe null_blk nr_devices=0
	mkdir "$conf"
	echo 1024 >"$conf/size"
	echo 2 >"$conf/queue_mode"
	echo 1 >"$conf/power"
}

# clock: nanoseconds of the machine, in $clock. Nothing is started for it.
clock()
{
	local word rest

	while read -r word _ clock rest; do
		[ "$word" != now ] || return 0
	done </proc/timer_list
	return 1
}

# timed NAME COMMAND...: how long it takes, less what it takes to ask
timed()
{
	local name=$1 begin middle

	shift
	clock
	begin=$clock
	clock
	middle=$clock
	"$@"
	clock
	echo "@$name $((clock - middle - (middle - begin)))"
}

# measure NAME DEVICE RW SIZE DEPTH RAMP TIME: one run of fio
measure()
{
	echo "bench: $1" >/dev/kmsg
	echo "@$1 {"
	fio --name=bench --filename="/dev/$2" --direct=1 --ioengine=libaio --rw="$3" --bs="$4" \
		--iodepth="$5" --ramp_time="$6" --time_based --runtime="$7" --size=1g \
		--output-format=json
}

# rtrs_open MODE ARGUMENT...: server in this mode of always_invalidate, client with
# these module parameters, a session over one path; the block device in $disk
rtrs_open()
{
	local mode=$1

	shift
	server_up always_invalidate="$mode"
	modprobe rtrs-client "$@"
	modprobe rnbd-client
	timed open map_bench
	disk=$(basename "$(readlink "/sys/class/rnbd-client/ctl/devices/dev!bench@bench")")
}

map_bench()
{
	echo "sessname=bench path=ip:10.0.0.1@ip:10.0.0.1 device_path=dev/bench" \
		>/sys/class/rnbd-client/ctl/map_device
}

rtrs_close()
{
	unmap "$disk"
	unload rnbd_client rtrs_client rnbd_server rtrs_server rtrs_core
}

nvme_target()
{
	local conf=/sys/kernel/config/nvmet

	modprobe nvmet-rdma
	mkdir "$conf/subsystems/$nqn"
	echo 1 >"$conf/subsystems/$nqn/attr_allow_any_host"
	mkdir "$conf/subsystems/$nqn/namespaces/1"
	echo /dev/bench >"$conf/subsystems/$nqn/namespaces/1/device_path"
	echo 1 >"$conf/subsystems/$nqn/namespaces/1/enable"
	mkdir "$conf/ports/1"
	echo rdma >"$conf/ports/1/addr_trtype"
	echo ipv4 >"$conf/ports/1/addr_adrfam"
	echo 10.0.0.1 >"$conf/ports/1/addr_traddr"
	echo 4420 >"$conf/ports/1/addr_trsvcid"
	ln -s "$conf/subsystems/$nqn" "$conf/ports/1/subsystems/$nqn"
}

nvme_connect()
{
	echo "transport=rdma,traddr=10.0.0.1,trsvcid=4420,nqn=$nqn" >/dev/nvme-fabrics
}

# nvme_open ARGUMENT...: nvme-rdma with these module parameters; device in $disk
nvme_open()
{
	modprobe nvme-rdma "$@"
	timed open nvme_connect
	disk=nvme0n1
	until [ -e "/dev/$disk" ]; do
		sleep 0.1
	done
}

nvme_close()
{
	echo 1 >/sys/class/nvme/nvme0/delete_controller
	unload nvme_rdma
}

# memory NAME: KiB that are free when all that can be freed has been
memory()
{
	local word value

	sleep 2
	sync
	echo 3 >/proc/sys/vm/drop_caches
	sleep 1
	while read -r word value _; do
		[ "$word" != MemFree: ] || echo "@$1 $value"
	done </proc/meminfo
}
