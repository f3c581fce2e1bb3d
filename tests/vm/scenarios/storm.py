# SPDX-License-Identifier: GPL-2.0-or-later
"""Administrators at odds: parallel writers on every attribute, under verified IO"""

import os

import links

topology = "two"
SECONDS = int(os.environ.get("RTRS_STORM_SECONDS") or 60)
limit = SECONDS + 120

WRITERS = [
    'for p in paths/*@*.1.1; do echo 1 >"$p/reconnect"; done',
    'for p in paths/*@*.1.1; do echo 1 >"$p/reconnect"; done',
    'for p in paths/*@*.1.1; do echo 1 >"$p/disconnect"; done',
    'for p in paths/*@*.1.1; do echo 1 >"$p/remove_path"; done',
    "echo {path} >add_path",
    "echo {path} >add_path",
    "for m in rr mi ml; do echo $m >mpath_policy; done",
    "echo 0 >max_reconnect_attempts; echo -1 >max_reconnect_attempts",
    "for i in 100 250 5000; do echo $i >hb_interval_ms; done",
    "cat paths/*/state paths/*/stats/* paths/*/last_error*",
]


def run(t):
    t.server.run("disk_up disk0 64; server_up")
    disk = t.client.run(f"map storm disk0 {t.paths()}").strip()
    links.set_attr(t, "storm", "reconnect_delay_sec", 0)

    with t.check(f"{len(WRITERS)} writers for {SECONDS} s, one path is left alone"):
        job = t.fio(disk, rw="randrw", time_based=1, runtime=SECONDS)
        writers = [t.client.spawn(
            "cd /sys/class/rtrs-client/storm; touch /tmp/storm; "
            f"while [ -e /tmp/storm ]; do {{ {w.format(path=t.path(1))}; }} "
            ">/dev/null 2>&1 || true; sleep 0.01; done") for w in WRITERS]
        result = job.wait(SECONDS + 60)
        t.client.run("rm -f /tmp/storm")
        for writer in writers:
            writer.wait(60)
    print(f"      {result['ios']} requests, longest {result['stall']:.2f} s")
    with t.check("after the storm the session is whole"):
        links.set_attr(t, "storm", "max_reconnect_attempts", -1)
        status, _ = t.client.status(
            f"echo {t.path(1)} >/sys/class/rtrs-client/storm/add_path", timeout=10)
        if status:
            links.reconnect(t, "storm", t.path(1))
        links.wait_all_up(t, "storm")
        assert len(t.states("storm")) == 2, t.states("storm")
    links.check_idle(t, "storm")
    links.check_unload(t, disk)
