# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets are lost or late, and buffers overwritten as soon as a write is confirmed"""

import links
import ulp

topology = "two"
limit = 120

# Who writes to few blocks has each of them written again and again. Writes go
# unregistered and the server registers nothing (N): on rxe 7.3 a queue pair with
# registered memory breaks on its first lost packet.
BLOCKS = {"size": 4096, "blocks": 64, "verify": 1, "poison": 1}

# Which machines' packets are spoilt, how, how the client writes, and the counters of the
# server's rxe that tell of repeated packets: behind a gap, or for nothing. The last is
# for a write whose acknowledgment is late while its answer is not. With nothing behind
# it that would be acknowledged as well it is repeated, after 537 ms, from memory. There a
# path may be lost: a heartbeat is given up when four answers in a row come late
LOSSES = [
    ("both directions lose 0.5 %", ("client", "server"), "loss 0.5%",
     {"depth": 8, "cpus": 2, "ms": 3000}, ("out_of_seq_request", "duplicate_request")),
    ("both directions lose 1 %", ("client", "server"), "loss 1%",
     {"depth": 8, "cpus": 2, "ms": 3000}, ("out_of_seq_request", "duplicate_request")),
    ("lonely ones, a third of all answers and acknowledgments late", ("server",),
     "delay 700ms reorder 65%", {"cpus": 2, "pause_us": 600000, "ms": 8000},
     ("duplicate_request",)),
]


def count(vm, names):
    """Sum of these counters of all rxe devices"""
    files = " ".join(f"/sys/class/infiniband/rxe*/ports/1/hw_counters/{name}" for name in names)
    return sum(map(int, vm.run(f"cat {files}").split()))


def run(t):
    ulp.up(t, "N")
    t.client.run("modprobe rtrs-bench-watch")
    ulp.open_session(t, "poison")
    with t.check("all blocks written"):
        ulp.run(t, rw="write", depth=8, ms=int(1000 * t.scale), **BLOCKS)
        assert ulp.run(t, rw="read", depth=8, ms=int(500 * t.scale), **BLOCKS)["writes"] == 0
    for name, machines, how, options, counters in LOSSES:
        if "pause_us" not in options:
            options = {**options, "ms": int(options["ms"] * t.scale)}
        # the debug kernel may take so long that a link seems to be silent
        steady = "pause_us" not in options and t.flavour == "fast"
        for link in range(2):
            links.spoil(t, link, how, [getattr(t, machine) for machine in machines])
        before, lost = count(t.server, counters), links.lost_paths(t)
        with t.check(f"writes, {name}: no error{', no path lost' * steady}"):
            found = ulp.run(t, rw="write", **options, **BLOCKS)
            repeated = count(t.server, counters) - before
            now = links.lost_paths(t)
            assert not steady or now == lost, "\n".join(now[len(lost):])
        with t.check(f"writes, {name}: some of them were repeated"):
            assert repeated > 0, repeated
        for link in range(2):
            links.heal(t, link)
        with t.check(f"writes, {name}: read back, each block holds the last of them"):
            back = ulp.run(t, rw="read", depth=8, count=4 * BLOCKS["blocks"], ms=30000,
                           **BLOCKS)
            assert back["reads"] == 4 * BLOCKS["blocks"] and not back["writes"], back
        with t.check(f"writes, {name}: no poison has left the machine"):
            large, poisoned = (int(t.client.run(f"cat {ulp.WATCH}/{name}"))
                               for name in ("large", "poisoned"))
            assert large >= found["writes"] and poisoned == 0, (large, poisoned)
        print(f"      {found['writes']} writes, longest {found['max_ns'] / 1e9:.2f} s, "
              f"{repeated} packets repeated, {large} looked at")
    with t.check("close, unload"):
        t.client.run("unload rtrs_bench_watch")
        ulp.down(t)
