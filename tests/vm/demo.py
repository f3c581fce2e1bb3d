# SPDX-License-Identifier: GPL-2.0-or-later
"""What `make demo` shows: a link is cut and healed while fio works and verifies"""

import time

import links

topology = "two"
limit = 100
flavours = ("fast",)

SECONDS = 16            # fio's time; then it reads everything once more
CUT, HEAL = 4, 9        # when the first link goes and comes back
SAMPLE = """
awk '{print $1 + $5}' /sys/block/%s/stat
path_states demo
cat /sys/class/rtrs-client/demo/paths/*/stats/rdma | awk '{n += $6} END {print n}'
"""


def show(second, sample, before, note):
    """Print a line of the table, return the number of requests done so far."""
    ios, *states, failovers = sample.splitlines()
    states = [state.rsplit(" ", 1)[1] for state in states]
    print(f"{second:6} {int(ios) - before:7} {states[0]:>14} {states[1]:>14} {failovers:>10}   "
          f"{note}", flush=True)
    return int(ios)


def watch(t, disk, jobs):
    """A line each second, while fio works and the first link is cut and healed."""
    print(f"{'second':>6} {'IO/s':>7} {'link 0':>14} {'link 1':>14} {'failovers':>10}")
    notes = {CUT: "link 0 is cut", HEAL: "link 0 is healed"}
    second, ios, start = 0, 0, time.monotonic()
    while not all(job.job.done() for job in jobs):
        if second == CUT:
            links.cut(t, 0)
        elif second == HEAL:
            links.heal(t, 0)
        second += 1
        time.sleep(max(0, start + second - time.monotonic()))
        ios = show(second, t.client.run(SAMPLE % disk), ios, notes.get(second - 1, ""))


def run(t):
    print("server: rtrs-server, rnbd-server and a RAM disk of the kernel as it is\n"
          "client: our rtrs-core and rtrs-client under the kernel's rnbd-client\n")
    with t.check("map a disk over two links"):
        t.server.run("disk_up disk0 64; server_up")
        disk = t.client.run(f"map demo disk0 {t.paths()}").strip()
        # rnbd asks for 30 s between attempts
        links.set_attr(t, "demo", "reconnect_delay_sec", 2)
    print()
    with t.check("reads and writes of 4 KiB and 128 KiB go on, every byte verified"):
        jobs = [t.fio(disk, mib=16, bs=bs, offset=offset, time_based=1, runtime=SECONDS,
                      iodepth=8)
                for bs, offset in (("4k", 0), ("128k", "32m"))]
        watch(t, disk, jobs)
        results = [job.wait() for job in jobs]
        print()
    with t.check("both links are up again"):
        states = t.wait_until("both connected", lambda: set(t.states("demo").values()) ==
                              {"connected"})
        assert states
    written, read = (sum(result[key] for result in results) / 2**20
                     for key in ("written", "read"))
    stall = max(result["stall"] for result in results)
    with t.check(f"no request took longer than 2 s (longest {stall:.2f} s)"):
        assert stall < 2
    return (f"every byte was right: {written:.0f} MiB written, {read:.0f} MiB read back "
            "and compared")
