# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets are lost, delayed and overtaken: no IO error"""

import links

topology = "two"
limit = 240

# On rxe 7.3 a queue pair with registered memory breaks on its first lost packet. So
# where both links lose packets only what goes unregistered can be without error, at
# either end: a server with always_invalidate=Y registers for each answer.
BOTH = [
    ("4 KiB writes, both links lose 0.1 %", "loss 0.1%", "4k"),
    ("4 KiB writes, both links lose 0.5 %", "loss 0.5%", "4k"),
    ("4 KiB writes, both links lose 1 %", "loss 1%", "4k"),
    ("16 KiB writes, both links lose 0.5 %", "loss 0.5%", "16k"),
]
ONE = [
    ("one link loses 0.1 %", "loss 0.1%"),
    ("one link loses 0.5 %", "loss 0.5%"),
    ("one link loses 1 %", "loss 1%"),
    ("one link delays by 10 ms", "delay 10ms"),
    ("one link lets packets overtake", "delay 5ms reorder 25% 50%"),
]


def run(t):
    t.server.run("disk_up disk0 64; server_up always_invalidate=N")
    disk = t.client.run(f"map loss disk0 {t.paths()}").strip()
    links.set_attr(t, "loss", "reconnect_delay_sec", 1)
    links.set_attr(t, "loss", "mpath_policy", "rr")

    for name, how, size in BOTH:
        for link in 0, 1:
            links.spoil(t, link, how)
        with t.check(f"{name}: no IO error, no path lost"):
            before = links.lost_paths(t)
            result = t.fio(disk, rw="randwrite", bs=size, time_based=1, runtime=4,
                           verify=None).wait()
            lost = links.lost_paths(t)
            assert lost == before, "\n".join(lost[len(before):])
        print(f"      {result['ios']} requests, longest {result['stall']:.2f} s")
        for link in 0, 1:
            links.heal(t, link)
        with t.check(f"{name}: what was written is there"):
            t.fio(disk, rw="randwrite", bs=size, size="2m").wait()

    for name, how in ONE:
        links.wait_all_up(t, "loss")
        links.spoil(t, 0, how)
        with t.check(f"verified reads and writes, {name}: no IO error"):
            result = t.fio(disk, rw="randrw", time_based=1, runtime=5).wait()
        print(f"      {result['ios']} requests, longest {result['stall']:.2f} s")
        links.heal(t, 0)

    # Each time what is under way goes over to the other path, and what was sent on this
    # one arrives late, in the same chunks
    links.wait_all_up(t, "loss")
    links.spoil(t, 0, "delay 15ms")
    with t.check("verified reads and writes, the slow link's path comes and goes: no IO error"):
        job = t.fio(disk, rw="randrw", iodepth=64, time_based=1, runtime=15)
        for _ in range(int(60 / t.scale)):
            links.reconnect(t, "loss", t.path(0))
        result = job.wait()
    print(f"      {result['ios']} requests, longest {result['stall']:.2f} s")
    links.heal(t, 0)
    links.check_idle(t, "loss")
    links.check_unload(t, disk)
