# SPDX-License-Identifier: GPL-2.0-or-later
"""Nothing waits for a peer that is gone: open, notice, disconnect, remove, unmap"""

import time

import links

topology = "two"
limit = 180


def timed(function):
    start = time.monotonic()
    result = function()
    return result, time.monotonic() - start


def run(t):
    t.server.run("disk_up disk0 64; server_up")

    with t.check("open towards an address nobody has: an error within 2.5 s"):
        (status, _), took = timed(lambda: t.client.status(
            "map hole disk0 ip:10.0.0.2@ip:10.0.0.77"))
        assert status, "map has succeeded"
        links.within(t, took, 2.5)
    with t.check("open towards a host that is silent: an error within 2.5 s"):
        links.cut(t, 0)
        (status, _), took = timed(lambda: t.client.status(f"map hole disk0 {t.path(0)}"))
        links.heal(t, 0)
        assert status, "map has succeeded"
        links.within(t, took, 2.5)

    disk = t.client.run(f"map dead disk0 {t.paths()}").strip()
    links.set_attr(t, "dead", "reconnect_delay_sec", 1)
    first, second = t.path(0), t.path(1)

    with t.check("hb_interval_ms=200, hb_missed_max=3: idle dead path noticed within 1.5 s"):
        links.set_attr(t, "dead", "hb_interval_ms", 200)
        links.set_attr(t, "dead", "hb_missed_max", 3)
        links.cut(t, 0)
        links.within(t, links.wait_state(t, "dead", first, "disconnected"), 1.5)
        reason = links.path_attr(t, "dead", first, "last_error_reason")
        assert reason, "no reason given"
    links.heal(t, 0)
    links.wait_all_up(t, "dead")

    with t.check("defaults: idle dead path noticed within 33 s"):
        links.set_attr(t, "dead", "hb_interval_ms", 5000)
        links.set_attr(t, "dead", "hb_missed_max", 5)
        links.cut(t, 0)
        links.within(t, links.wait_state(t, "dead", first, "disconnected", 40), 35)
    links.heal(t, 0)
    links.wait_all_up(t, "dead")

    for action in "disconnect", "remove_path":
        with t.check(f"{action} with a dead peer within 1 s"):
            links.cut(t, 0)
            status, took = links.write_path(t, "dead", first, action)
            links.heal(t, 0)
            assert not status
            links.within(t, took, 1)
    with t.check("unmap with a dead peer within 1 s"):
        t.server.kill()
        _, took = timed(lambda: t.client.run(f"unmap {disk}"))
        assert second not in t.client.run("ls /sys/class/rtrs-client || true")
        links.within(t, took, 1)
    with t.check("the modules unload"):
        t.client.run("unload rnbd_client rtrs_client rtrs_core")
