# SPDX-License-Identifier: GPL-2.0-or-later
"""Map and unmap 100 times, as fast as it goes: every one succeeds, nothing is left"""

topology = "two"
limit = 240

WARM_UP = 60        # after so many, the kernel's caches are as full as they get
ROUNDS = 100

LOOP = """
    for round in $(seq {rounds}); do
        disk=$(map loop disk0 {paths})
        [ -b "/dev/$disk" ]
        unmap "$disk"
        echo "round $round"
    done"""


def memory(t):
    """What user space cannot get, and what of it is in slabs, in KiB. Slabs without an
    object in use go first, those that CPUs keep for themselves too."""
    out = t.client.run("""sync; echo 3 >/proc/sys/vm/drop_caches; sleep 1
        for cache in /sys/kernel/slab/*/shrink; do echo 1 >"$cache"; done
        awk '/^(MemAvailable|Slab):/ { print $2 }' /proc/meminfo""").split()
    available, slab = (int(word) for word in out)
    return -available, slab


def loop(t, rounds, paths):
    status, out = t.client.status(LOOP.format(rounds=rounds, paths=paths), timeout=180)
    last = out.strip().splitlines()[-3:]
    assert not status, f"ended with status {status}: {last}"
    assert last[-1] == f"round {rounds}", last


def memory_check(t, before):
    with t.check("memory has not grown"):
        used, slab = (after - was for after, was in zip(memory(t), before))
        # goes up and down by 200 KiB; three lost in each round were 300
        assert slab < 280, f"slabs have grown by {slab} KiB"
        # what the kernel keeps per CPU comes and goes
        assert used < 2048, f"{used} KiB less are available"


def run(t):
    t.server.run("disk_up disk0 16; server_up")
    t.client.run("modprobe rnbd-client")
    with t.check(f"{WARM_UP} times over two paths"):
        loop(t, WARM_UP, t.paths())
    before = memory(t)
    with t.check(f"{ROUNDS} times more"):
        loop(t, ROUNDS, t.paths())
    with t.check("nothing is left"):
        # rnbd may let go of a session a moment after it has unmapped the disk
        t.wait_until("no session is left",
                     lambda: not t.client.run("ls /sys/class/rtrs-client"), 2)
    if t.flavour == "fast":     # the debug kernel keeps what was freed, and has kmemleak
        memory_check(t, before)
    with t.check("unload"):
        t.client.run("unload rnbd_client rtrs_client rtrs_core")
        t.server.run("unload rnbd_server rtrs_server rtrs_core")
