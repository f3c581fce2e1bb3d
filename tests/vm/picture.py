# SPDX-License-Identifier: GPL-2.0-or-later
"""What `make report` draws: requests per 100 ms while links are cut and healed"""

import re
import shutil
import subprocess
import time
from pathlib import Path

import links

topology = "two"
limit = 120
flavours = ("fast",)

HERE = Path(__file__).resolve().parent
OUT = HERE.parent.parent / "build/report"
SECONDS = 24
# What is done when, to which link
PLAN = [
    (3, "link 0 silent", lambda t: links.cut(t, 0)),
    (8, "link 0 healed", lambda t: links.heal(t, 0)),
    (12, "link 1 down", lambda t: t.client.run("ip link set eth1 down")),
    (17, "link 1 up", lambda t: links.heal(t, 1)),
]
# One line each 100 ms: seconds since boot, requests done
SAMPLE = """
touch /tmp/sampling
while [ -e /tmp/sampling ]; do
	read -r now _ </proc/uptime
	read -r reads _ _ _ writes _ <"/sys/block/%s/stat"
	echo "$now $((reads + writes))"
	sleep 0.1
done
"""
TRACE = "/sys/kernel/tracing"
TRACE_ON = f"""
[ -e {TRACE}/trace ] || mount -t tracefs tracefs {TRACE}
echo mono >{TRACE}/trace_clock
echo 1 >{TRACE}/events/rtrs_clt/rtrs_clt_state_change/enable
"""
STATE = re.compile(r" ([\d.]+): rtrs_clt_state_change: .*path='(.*?)' from=(\w+) to=(\w+)")
MARK = re.compile(r" ([\d.]+): tracing_mark_write: (.*)")


def note(t, text):
    t.client.run(f"echo '{text}' >{TRACE}/trace_marker")


def carry_out(t):
    """Do what is planned, at its time."""
    start = time.monotonic()
    for second, text, action in PLAN:
        time.sleep(max(0, start + second - time.monotonic()))
        note(t, text)
        action(t)


def rates(samples):
    """[(time, requests a second since the line before)]"""
    points = [tuple(map(float, line.split())) for line in samples.splitlines()]
    return [(now, (done - before) / (now - then))
            for (then, before), (now, done) in zip(points, points[1:]) if now > then]


def events(trace, names):
    """[(time, row, text)]: what was done stands in row 0, paths go up (1) and down (2)."""
    found = [(float(when), 0, text) for when, text in MARK.findall(trace)]
    for when, path, old, new in STATE.findall(trace):
        if new == "CONNECTED":
            found.append((float(when), 1, f"{names[path]} is back"))
        elif old == "CONNECTED":
            found.append((float(when), 2, f"{names[path]} is given up"))
    return sorted(found)


def draw(rate, marks):
    """Data and pictures in build/report/, times from the first sample on."""
    start = rate[0][0]
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "iops.dat").write_text("".join(f"{t - start:.2f} {r:.0f}\n" for t, r in rate))
    (OUT / "events.dat").write_text("".join(f'{t - start:.3f} {row} "{text}"\n'
                                            for t, row, text in marks))
    for kind, terminal in (("svg", "svg size 1100,480"), ("png", "pngcairo size 1100,480")):
        subprocess.run(["gnuplot", "-e", f"set terminal {terminal}; "
                        f"set output '{OUT}/failover.{kind}'; folder = '{OUT}'",
                        HERE / "picture.gp"], check=True)


def run(t):
    if not shutil.which("gnuplot"):
        raise AssertionError("no program gnuplot; install the package gnuplot-nox")
    t.server.run("disk_up disk0 64; server_up")
    with t.check("map a disk over two links"):
        disk = t.client.run(f"map picture disk0 {t.paths()}").strip()
        links.set_attr(t, "picture", "reconnect_delay_sec", 1)
    with t.check("no IO error while links are cut and healed"):
        t.client.run(TRACE_ON)
        job = t.fio(disk, rw="randrw", time_based=1, runtime=SECONDS, size="32m")
        sampling = t.client.spawn(SAMPLE % disk)
        carry_out(t)
        result = job.wait()
        t.client.run("rm /tmp/sampling")
        rate = rates(sampling.wait())
    with t.check(f"no request took longer than 2 s (longest {result['stall']:.2f} s)"):
        assert result["stall"] < 2
    names = {t.path(n): f"path {n}" for n in (0, 1)}
    marks = events(t.client.run(f"cat {TRACE}/trace"), names)
    for when, _, text in marks:
        print(f"      {when - rate[0][0]:6.2f} s  {text}")
    with t.check("each path was given up and has come back"):
        for name in names.values():
            assert {f"{name} is given up", f"{name} is back"} <= {m[2] for m in marks}, marks
    draw(rate, marks)
    links.check_unload(t, disk)
    return f"{OUT}/failover.svg and .png"
