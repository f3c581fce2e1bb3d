# SPDX-License-Identifier: GPL-2.0-or-later
"""A user of RTRS of our own: what it writes it reads back, one link cut meanwhile"""

import links
import ulp

topology = "two"
limit = 90

LOADS = [
    {"size": 4096, "depth": 16, "cpus": 2, "count": 400},
    {"size": 65536, "segment": 4096, "depth": 4, "cpus": 2, "count": 80},
    {"size": 126976, "segment": 126976, "depth": 2, "count": 24},
    {"size": 512, "count": 80},
]


def show(found):
    print(f"      {found['reads']} reads, {found['writes']} writes, {found['per_second']}/s, "
          f"p50 {found['p50_ns'] / 1e6:.2f} ms, p99.9 {found['p99.9_ns'] / 1e6:.2f} ms")


def check_report(found):
    """What the report says must fit together."""
    times = [found[f"{name}_ns"] for name in ("p50", "p90", "p99", "p99.9", "max")]
    assert 0 < times[0] and times == sorted(times), times
    rate = (found["reads"] + found["writes"]) * 1e9 / found["ns"]
    assert abs(rate - found["per_second"]) <= 1, (rate, found)


def run(t):
    for mode in "YN":
        ulp.up(t, mode)
        with t.check(f"always_invalidate={mode}: open over two links"):
            ulp.open_session(t, "ulp")
            assert set(t.states("ulp").values()) == {"connected"}, t.states("ulp")
        for load in LOADS:
            with t.check(f"always_invalidate={mode}: {load}: what was written is read"):
                found = ulp.run(t, rw="mixed", verify=1, poison=1, ms=30000, **load)
                assert found["reads"] + found["writes"] == load["count"], found
                assert min(found["reads"], found["writes"]) >= load["count"] // 4, found
                check_report(found)
            show(found)
        with t.check(f"always_invalidate={mode}: one link cut meanwhile, no error"):
            t.client.run(f"echo {int(100 * t.scale)} >/sys/class/rtrs-client/ulp/hb_interval_ms")
            job = ulp.start(t, rw="mixed", verify=1, depth=8, cpus=2,
                            ms=int(2500 * t.scale))
            t.client.run(f"sleep {0.3 * t.scale}")
            links.cut(t, 0)
            t.wait_until("the path is given up",
                         lambda: t.states("ulp")[t.path(0)] != "connected", 5)
            found = ulp.result(job)
            links.heal(t, 0)
        show(found)
        with t.check(f"always_invalidate={mode}: a block that the server does not keep is found"):
            t.server.run("echo 10 >/sys/module/rtrs_bench_server/parameters/forget")
            found = ulp.report(ulp.start(t, rw="mixed", verify=1, depth=4, count=100, ms=30000))
            assert found["corrupt"] and not found["errors"], found
        with t.check(f"always_invalidate={mode}: close, unload"):
            ulp.down(t)
