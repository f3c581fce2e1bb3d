# SPDX-License-Identifier: GPL-2.0-or-later
"""How soon a path is back once its link is"""

import time

import links

topology = "two"
limit = 120


def run(t):
    t.server.run("disk_up disk0 64; server_up")
    disk = t.client.run(f"map back disk0 {t.paths()}").strip()
    path = t.path(0)
    job = t.fio(disk, rw="randrw", time_based=1, runtime=40)

    with t.check("silent cut, reconnect_delay_sec=1: back within 4 s"):
        links.set_attr(t, "back", "reconnect_delay_sec", 1)
        links.cut(t, 0)
        links.wait_state(t, "back", path, "disconnected")
        time.sleep(5)
        links.heal(t, 0)
        links.within(t, links.wait_state(t, "back", path, "connected"), 4)
    with t.check("link down and up, reconnect_delay_sec=30: back within 3 s"):
        links.set_attr(t, "back", "reconnect_delay_sec", 30)
        t.client.run("ip link set eth0 down")
        links.wait_state(t, "back", path, "disconnected")
        time.sleep(2)
        t.client.run("ip link set eth0 up")
        links.within(t, links.wait_state(t, "back", path, "connected"), 3)
    with t.check("manual reconnect does not wait for the delay"):
        links.cut(t, 0)
        links.wait_state(t, "back", path, "disconnected")
        links.heal(t, 0)
        links.within(t, links.reconnect(t, "back", path), 2.5)
    with t.check("no IO error meanwhile, no request took 2 s"):
        result = job.wait()
        links.within(t, result["stall"], 2)
    links.check_idle(t, "back")
    links.check_unload(t, disk)
