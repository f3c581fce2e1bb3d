# SPDX-License-Identifier: GPL-2.0-or-later
"""Both links at once, then heal; no path left, then one added"""

import links

topology = "two"
limit = 120


def write_and_verify(t, disk):
    t.fio(disk, rw="randrw", size="4m").wait()


def run(t):
    t.server.run("disk_up disk0 64; server_up")
    disk = t.client.run(f"map both disk0 {t.paths()}").strip()
    links.set_attr(t, "both", "reconnect_delay_sec", 1)
    links.set_attr(t, "both", "hb_interval_ms", 200)

    with t.check("both links cut under IO: requests fail, none hangs"):
        job = t.fio(disk, time_based=1, runtime=20, verify=None)
        for link in 0, 1:
            links.cut(t, link)
        job.job.wait(15, check=False)
    with t.check("both paths are noticed to be down"):
        t.wait_until("no path is connected",
                     lambda: set(t.states("both").values()) == {"disconnected"}, 10)
    with t.check("a request without a path fails at once"):
        status, _ = t.client.status(f"dd if=/dev/{disk} of=/dev/null bs=4k count=1 "
                                    "iflag=direct", 5)
        assert status, "the read has succeeded"
    for link in 0, 1:
        links.heal(t, link)
    with t.check("healed: both paths come back and the disk works"):
        links.wait_all_up(t, "both")
        t.wait_until("the disk takes writes", lambda: not t.client.status(
            f"dd if=/dev/zero of=/dev/{disk} bs=4k count=1 oflag=direct")[0])
        write_and_verify(t, disk)

    with t.check("all paths removed: the session stays, requests fail"):
        for path in t.states("both"):
            status, _ = links.write_path(t, "both", path, "remove_path")
            assert not status
        assert not t.client.run("ls /sys/class/rtrs-client/both/paths").split()
        status, _ = t.client.status(f"dd if=/dev/{disk} of=/dev/null bs=4k count=1 "
                                    "iflag=direct", 5)
        assert status, "the read has succeeded"
    with t.check("one path added: the disk works"):
        links.set_attr(t, "both", "add_path", t.path(1))
        t.wait_until("the disk takes writes", lambda: not t.client.status(
            f"dd if=/dev/zero of=/dev/{disk} bs=4k count=1 oflag=direct")[0])
        write_and_verify(t, disk)
    links.check_idle(t, "both")
    links.check_unload(t, disk)
