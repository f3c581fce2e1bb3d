# SPDX-License-Identifier: GPL-2.0-or-later
"""Links are cut at random under verified IO; one path lives at any time

RTRS_SEED draws other cuts, RTRS_FLAP_SECONDS makes it longer.
"""

import os
import random
import time

import links

topology = "two"
SECONDS = float(os.environ.get("RTRS_FLAP_SECONDS") or 30)
limit = SECONDS + 120

# Not "down at the server": the stock server says goodbye while it has no route, which
# the rxe of 7.3 answers with the death of its queue pair for CM messages (rxe_req.c,
# rxe_requester() of QP 1). Nobody can connect to that device any more, whatever the
# client does; a scenario of its own shows it.
CUTS = {
    "silent": links.cut,
    "silent towards the server": lambda t, n: links.cut(t, n, [t.client]),
    "silent towards the client": lambda t, n: links.cut(t, n, [t.server]),
    "down at the client": lambda t, n: t.client.run(f"ip link set eth{n} down"),
}


def run(t):
    seed = int(os.environ.get("RTRS_SEED") or 1)
    dice = random.Random(seed)
    t.server.run("disk_up disk0 64; server_up")
    disk = t.client.run(f"map flap disk0 {t.paths()}").strip()
    # rxe's queue pair for CM messages dies of one that finds no neighbour
    for vm, end in (t.client, 1), (t.server, 2):
        vm.run("; ".join(f"ip neigh change 10.0.{n}.{end} dev eth{n} nud permanent"
                         for n in (0, 1)))
    links.set_attr(t, "flap", "reconnect_delay_sec", 1)

    cuts = 0
    with t.check(f"verified IO for {SECONDS:g} s while links are cut, seed {seed}"):
        job = t.fio(disk, rw="randrw", time_based=1, runtime=int(SECONDS), size="32m")
        while not job.job.done():
            link = dice.randrange(2)
            kind = dice.choice(sorted(CUTS))
            t.client.run(f"echo 'vm: cut link {link}: {kind}' >/dev/kmsg")
            CUTS[kind](t, link)
            time.sleep(dice.uniform(0.05, 2.5) * t.scale)
            links.heal(t, link)
            cuts += 1
            # the other link is next only once this one carries requests again
            links.wait_settled(t, "flap")
        result = job.wait()
    print(f"      {cuts} cuts, {result['ios']} requests, longest {result['stall']:.2f} s")
    with t.check("no request took longer than 2 s"):
        assert result["stall"] < 2 * t.scale, f"{result['stall']:.2f} s"
    with t.check("requests have failed over"):
        counts = links.rdma_stats(t, "flap")
        assert sum(c[5] for c in counts.values()) > 0, counts
    links.check_idle(t, "flap")
    links.check_unload(t, disk)
