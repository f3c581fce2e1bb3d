# SPDX-License-Identifier: GPL-2.0-or-later
"""One link after the other is cut under verified IO: no error, no stall, back again"""

import time

import links
from attributes import read, write

topology = "two"
limit = 240

SESSION = "/sys/class/rtrs-client/cut"


def down_at_server(t, n):
    t.server.run(f"ip link set eth{n} down")


def up_at_server(t, n):
    """The stock server has said goodbye without a route meanwhile, and its rxe device
    has not survived that (see Documentation/testing.rst)."""
    links.heal(t, n)
    t.server.run(f"rdma link delete rxe{n}; rdma link add rxe{n} type rxe netdev eth{n}")


# How to cut a link, and to heal it. What the server's end drops is missed by the
# heartbeat or a retry; a link that is down, at once by its own end.
CUTS = {
    "answers lost": (lambda t, n: links.cut(t, n, [t.server]), links.heal),
    "link down": (lambda t, n: t.client.run(f"ip link set eth{n} down"), links.heal),
    "link down at the server": (down_at_server, up_at_server),
}


def counters(t, n):
    """{name: number} of the statistics of path n"""
    names = "reads", "read_bytes", "writes", "write_bytes", "inflight", "failovers"
    words = read(t.client, f"{SESSION}/paths/{t.path(n)}/stats/rdma").split()
    return dict(zip(names, map(int, words)))


def connected(t, n):
    return t.states("cut")[t.path(n)] == "connected"


def idle(t):
    """Nothing is in flight on any path when nobody asks for anything."""
    for n in 0, 1:
        assert counters(t, n)["inflight"] == 0, f"path {n}: {counters(t, n)}"


def cut(t, disk, n, what):
    begin, heal = CUTS[what]
    other = 1 - n
    before = counters(t, other)["failovers"]
    with t.check(f"link {n}, {what}: no IO error, stall below 2 s"):
        job = t.fio(disk, time_based=1, runtime=int(8 * t.scale))
        time.sleep(t.scale)
        begin(t, n)
        t.wait_until("the path is given up", lambda: not connected(t, n), 5)
        t.client.run("sleep 1")
        assert connected(t, other), t.states("cut")
        result = job.wait(timeout=60)
        assert result["stall"] < 2 * t.scale, f"{result['stall']:.2f} s"
    with t.check(f"link {n}, {what}: requests have failed over"):
        after = counters(t, other)["failovers"]
        assert after > before, f"failovers of path {other}: {before}, then {after}"
    with t.check(f"link {n}, {what}: reconnect says that it cannot"):
        done = write(t.client, f"{SESSION}/paths/{t.path(n)}/reconnect", "1")
        assert done.error, str(done)
        assert done.seconds < 2.5 * t.scale, str(done)
    with t.check(f"link {n}, {what}: healed, the path comes back"):
        heal(t, n)
        t.wait_until("the path is back", lambda: connected(t, n), 8)
        old = counters(t, n)
        t.fio(disk, size="4m").wait()
        assert counters(t, n)["writes"] > old["writes"], "no request takes the path"
    with t.check(f"link {n}, {what}: nothing in flight", fatal=False):
        idle(t)


def run(t):
    t.server.run("disk_up disk0 64; server_up")
    with t.check("map over two links"):
        disk = t.client.run(f"map cut disk0 {t.paths()}").strip()
        assert not write(t.client, f"{SESSION}/reconnect_delay_sec", "1").error
    for what in CUTS:
        # rxe 7.3 frees a packet with interrupts off there, of which the debug kernel's
        # page pool warns, at the server
        if t.flavour == "debug" and what == "link down at the server":
            continue
        for n in 0, 1:
            cut(t, disk, n, what)
    with t.check("unmap, unload"):
        t.client.run(f"unmap {disk}")
        t.client.run("unload rnbd_client rtrs_client rtrs_core")
