# SPDX-License-Identifier: GPL-2.0-or-later
"""Open over two links, one of them slow, on eight CPUs: ours and upstream's

Both clients in turn, over the same server modules and kernel. What the slow link adds
is waiting, and must be a third of upstream's at the most. The rest is work of both
ends, which this emulated machine is slow at, a busy one even slower. The server's
share of it is the same for both, so the bound of the whole is wider.
"""

import statistics

import harness
import links
import ulp

topology = "two"
limit = 240
flavours = ("fast",)
# Connections are made for possible CPUs. More than the host has need not run: then
# who holds a lock would mostly be waiting for a CPU.
smp = {"client": 8}
append = {"client": "maxcpus=2"}

DELAY = "20ms"          # of what each end sends over link 1
TIMES = 7
OPEN = f"""
read -r from _ </proc/uptime
echo open %s >{ulp.FILES}/open
read -r to _ </proc/uptime
echo 1 >{ulp.FILES}/close
sleep 1         # the server is still busy with the end of the session
echo $from $to
"""


def measure(t):
    """Seconds to open a session over both links, without the delay and with it: the
    middle one of some tries."""
    ulp.up(t, "Y")
    t.client.run("[ $(cat /sys/devices/system/cpu/possible) = 0-7 ]; modprobe rtrs-bench-client")
    found = []
    for how in "delay 0ms", f"delay {DELAY}":
        links.spoil(t, 1, how)
        took = []
        for _ in range(1 + TIMES):
            begin, end = map(float, t.client.run(OPEN % t.paths()).split())
            took.append(end - begin)
        print(f"      {t.setup.client}, {how}: {' '.join(f'{s:.2f}' for s in took)} s")
        # the first one may have to find the neighbours
        found.append(statistics.median(took[1:]))
    return found


def upstream(t):
    """The same with upstream's client, in machines of its own."""
    setup = harness.Setup(t.flavour, "upstream")
    machines = harness.Machines(setup, t.machines.folder / "upstream", smp, append)
    other = harness.Test(machines, lambda *_: None)
    try:
        other.up_pair()
        return measure(other)
    finally:
        machines.close()


def run(t):
    with t.check("open over two links, ours"):
        ours = measure(t)
    with t.check("open over two links, upstream's"):
        theirs = upstream(t)
    added, theirs_added = ours[1] - ours[0], theirs[1] - theirs[0]
    with t.check(f"the slow link adds a third at the most ({added:.2f} s, "
                 f"upstream's {theirs_added:.2f} s)"):
        assert added < theirs_added / 3, f"{added / theirs_added:.2f}"
    with t.check(f"all in all half at the most ({ours[1]:.2f} s, upstream's {theirs[1]:.2f} s)"):
        assert ours[1] < theirs[1] / 2, f"{ours[1] / theirs[1]:.2f}"
