# SPDX-License-Identifier: GPL-2.0-or-later
"""The server is killed under IO and comes back, the same or another one"""

import links

topology = "two"
limit = 240


def restart(t, parameters=""):
    t.up(t.server)
    t.server.run(f"disk_up disk0 64; server_up {parameters}")
    t.client.run("for n in 0 1; do ping -q -c 1 -w 10 10.0.$n.1; done")


def kill_under_io(t, disk):
    job = t.fio(disk, time_based=1, runtime=30, verify=None)
    t.client.run("sleep 1")
    t.server.kill()
    job.job.wait(20, check=False)
    t.wait_until("no path is connected",
                 lambda: set(t.states("death").values()) == {"disconnected"}, 10)


def run(t):
    t.server.run("disk_up disk0 64; server_up")
    disk = t.client.run(f"map death disk0 {t.paths()}").strip()
    links.set_attr(t, "death", "reconnect_delay_sec", 1)
    links.set_attr(t, "death", "hb_interval_ms", 200)

    for parameters in "", "always_invalidate=N", "always_invalidate=Y":
        with t.check("server killed under IO: all requests end"):
            kill_under_io(t, disk)
        with t.check(f"server back ({parameters or 'the same'}): verified IO"):
            restart(t, parameters)
            links.wait_all_up(t, "death", 20)
            t.wait_until("the disk takes writes", lambda: not t.client.status(
                f"dd if=/dev/zero of=/dev/{disk} bs=4k count=1 oflag=direct")[0], 15)
            t.fio(disk, rw="randrw", size="4m").wait()

    for parameters in "sess_queue_depth=256", "max_chunk_size=65536":
        kill_under_io(t, disk)
        restart(t, parameters)
        with t.check(f"server back with {parameters}: refused, with the reason"):
            path = t.path(0)
            t.wait_until("the path gives up", lambda: links.path_attr(
                t, "death", path, "state_detail") == "closed", 20)
            reason = links.path_attr(t, "death", path, "last_error_reason")
            assert "promised" in reason, reason
        t.server.kill()
        restart(t)
        with t.check("the right server again: a manual reconnect brings the paths back"):
            for path in t.states("death"):
                links.reconnect(t, "death", path)
            t.wait_until("the disk takes writes", lambda: not t.client.status(
                f"dd if=/dev/zero of=/dev/{disk} bs=4k count=1 oflag=direct")[0], 15)
    links.check_idle(t, "death")
    links.check_unload(t, disk)
