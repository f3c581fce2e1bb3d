# SPDX-License-Identifier: GPL-2.0-or-later
"""Things stopped half way: close while connecting, signal, unmap under IO, HCA gone"""

import time

import links

topology = "two"
limit = 120


def run(t):
    t.server.run("disk_up disk0 64; server_up")
    with t.check("a signal during map: it ends at once, nothing is left"):
        links.cut(t, 0)
        # the shell that writes is killed while it waits in map_device
        start = time.monotonic()
        t.client.status("modprobe rnbd-client; "
                        f"(echo sessname=sig path={t.path(0)} device_path=dev/disk0 "
                        ">/sys/class/rnbd-client/ctl/map_device) & pid=$!; sleep 0.5; "
                        "kill -9 $pid; wait $pid", 10)
        took = time.monotonic() - start
        assert took < 2 * t.scale, f"{took:.2f} s"
        t.wait_until("the session is gone", lambda: t.client.status(
            "[ ! -e /sys/class/rtrs-client/sig ]")[0] == 0, 3)
        links.heal(t, 0)

    disk = t.client.run(f"map half disk0 {t.paths()}").strip()
    links.set_attr(t, "half", "reconnect_delay_sec", 1)
    with t.check("paths removed and added under IO: no IO error"):
        job = t.fio(disk, rw="randrw", time_based=1, runtime=6)
        for _ in range(3):
            for n in 0, 1:
                status, _ = links.write_path(t, "half", t.path(n), "remove_path")
                assert not status
                links.set_attr(t, "half", "add_path", t.path(n))
        job.wait()
    with t.check("policy changed under IO: no IO error, inflight balanced"):
        job = t.fio(disk, rw="randrw", time_based=1, runtime=4)
        while not job.job.done():
            for policy in "rr", "mi", "ml":
                links.set_attr(t, "half", "mpath_policy", policy)
        job.wait()
    links.check_idle(t, "half")

    with t.check("HCA removed under IO: no IO error, its path is closed"):
        job = t.fio(disk, rw="randrw", time_based=1, runtime=5)
        t.client.run("sleep 1; rdma link delete rxe0", timeout=15)
        job.wait()
        detail = links.path_attr(t, "half", t.path(0), "state_detail")
        assert detail == "closed", detail
    with t.check("HCA there again: a manual reconnect brings the path back"):
        t.client.run("rdma link add rxe0 type rxe netdev eth0")
        links.reconnect(t, "half", t.path(0))

    with t.check("session closed while a path connects: within 1 s"):
        links.cut(t, 0)
        t.client.spawn(f"echo 1 >'{links.SESSION}/half/paths/{t.path(0)}/reconnect'")
        t.client.run("sleep 0.3")
        start = time.monotonic()
        t.client.run(f"unmap {disk}")
        took = time.monotonic() - start
        links.heal(t, 0)
        assert took < 1 * t.scale, f"{took:.2f} s"

    disk = t.client.run(f"map again disk0 {t.paths()}").strip()
    with t.check("unmap with IO in flight: all requests end"):
        job = t.fio(disk, time_based=1, runtime=30, verify=None)
        t.client.run(f"sleep 1; echo force >/sys/block/{disk}/rnbd/unmap_device", timeout=15)
        # fio goes on trying, or not; killed it ends, unless a request of its is left
        t.client.run("killall -9 fio || true")
        job.job.wait(10, check=False)
    with t.check("the modules unload"):
        t.client.run("unload rnbd_client rtrs_client rtrs_core")
