# SPDX-License-Identifier: GPL-2.0-or-later
"""Every file in sysfs: mode, format, good and bad input, and what it does"""

import errno
import re

from attributes import read, read_all, write, write_all

topology = "one"
limit = 120

CLASS = "/sys/class/rtrs-client"
SESSION = f"{CLASS}/abi"
TRACING = "/sys/kernel/tracing"

USAGE = "Usage: echo 1 > {}\n"
SESSION_FILES = {
    "add_path": ("644", re.escape("Usage: echo [<source addr>@]<destination addr> > add_path\n\n"
                                  "*addr ::= [ ip:<ipv4|ipv6> | gid:<gid> ]\n")),
    "max_reconnect_attempts": ("644", r"-1\n"),
    "mpath_policy": ("644", re.escape("min-inflight (MI: 1)\n")),
    "reconnect_delay_sec": ("644", r"30\n"),
    "hb_interval_ms": ("644", r"5000\n"),
    "hb_missed_max": ("644", r"5\n"),
    "request_timeout_sec": ("644", r"0\n"),
}
PATH_FILES = {
    "hca_name": ("444", r"rxe{n}\n"),
    "hca_port": ("444", r"1\n"),
    "src_addr": ("444", r"ip:10\.0\.{n}\.1\n"),
    "dst_addr": ("444", r"ip:10\.0\.{n}\.1\n"),
    "state": ("444", r"connected\n"),
    "state_detail": ("444", r"connected\n"),
    "state_ms": ("444", r"\d+\n"),
    "last_error": ("444", r"0\n"),
    "last_error_reason": ("444", r"\n"),
    "cur_latency": ("444", r"\d+ ns\n"),
    "reconnect": ("644", re.escape(USAGE.format("reconnect"))),
    "disconnect": ("644", re.escape(USAGE.format("disconnect"))),
    "remove_path": ("644", re.escape(USAGE.format("remove_path"))),
    "stats/cpu_migration_from": ("644", r"(-?\d+ ){{{cpus}}}\n"),
    "stats/cpu_migration_to": ("644", r"(-?\d+ ){{{cpus}}}\n"),
    "stats/reconnects": ("644", r"0 0\n"),
    "stats/rdma": ("644", r"\d+ \d+ \d+ \d+ 0 0\n"),
    "stats/reset_all": ("644", r"echo 1 to reset all statistics\n"),
}

# file: what is taken and how it reads then; what is refused, with which errno
NUMBERS = {
    "max_reconnect_attempts": (-1, 9999),
    "reconnect_delay_sec": (0, 255),
    "hb_interval_ms": (100, 60000),
    "hb_missed_max": (1, 100),
    "request_timeout_sec": (0, 3600),
}
NO_NUMBER = {"\n": errno.EINVAL, "abc": errno.EINVAL, "5 5": errno.EINVAL, "5x": errno.EINVAL,
             "0x10": errno.EINVAL, "5\n6": errno.EINVAL, "1.5": errno.EINVAL,
             "x" * 4000: errno.EINVAL, "99999999999": errno.ERANGE,
             "-99999999999": errno.ERANGE}
POLICIES = {
    "round-robin (RR: 0)\n": ("0", "0\n", "rr", "RR\n", "Rr", "round-robin", "ROUND-ROBIN\n",
                              "round-robinX", "round-robin and more"),
    "min-inflight (MI: 1)\n": ("1", "mi", "MI\n", "min-inflight", "Min-InflightX\n"),
    "min-latency (ML: 2)\n": ("2", "ml", "ML\n", "min-latency", "min-latency\n"),
}
NO_POLICY = ("\n", "3", "-1", "99999999999", "r", "rrx", "rr ", " rr", "round", "min-",
             "xround-robin", "round robin", "1 2", "x\nrr", "x" * 4000)
NO_ADDRESS = ("\n", "garbage", "ip:", "gid:", "ip:10.0.0", "ip:10.0.0.300", "10.0.0.1",
              "foo:10.0.0.1", "ip:10.0.0.1@", "@ip:10.0.0.1", ",", "ip:10.0.0.1,",
              "ip:10.0.0.1@ip:10.0.0.1@ip:10.0.0.1", "bad@ip:10.0.0.1", "gid:zz",
              "ip:fe80::1%nosuchdev", "ip:" + "1" * 4000, "x" * 4000,
              "\nip:10.0.0.1@ip:10.0.0.1")
TWIN = r"path \S+ cannot be added"
NO_ACTION = ("\n", "0", "2", "11", "1 1", "yes", "1\n1", "-1", "1" * 4000)
NO_RESET = ("\n", "0", "2", "x", "1 1")

FIELDS = ["int state", "int reconnect_attempts", "int max_reconnect_attempts", "int fail_cnt",
          "int success_cnt", "char sessname[255]"]
EVENTS = ("rtrs_clt_reconnect_work", "rtrs_clt_close_conns", "rtrs_rdma_error_recovery")


def path_folder(t, n):
    return f"{SESSION}/paths/{t.path(n)}"


def check_files(found, expected, **values):
    """Names, modes and contents are those of a table."""
    assert sorted(found) == sorted(expected), f"files: {sorted(set(found) ^ set(expected))}"
    for name, (mode, pattern) in expected.items():
        assert found[name][0] == mode, f"{name} has mode {found[name][0]}"
        wanted = pattern.format(**values) if values else pattern
        assert re.fullmatch(wanted, found[name][1]), f"{name} reads {found[name][1]!r}"


def check_refused(t, file, inputs, lines=1, says=None):
    """Each input gives its errno and one line that names the session and the file, or
    what is said to be wrong, and the file reads as before."""
    before = read(t.client, file)
    name = file.rsplit("/", 1)[1]
    pattern = r"rtrs_client L\d+: <abi>: " + (says or rf"\S+/{name}: .{{8}}")
    for text, done in zip(inputs, write_all(t.client, [(file, text) for text in inputs])):
        assert done.error == inputs[text], f"{name} <- {text[:40]!r}: {done}"
        assert len(done.log) == lines, f"{name} <- {text[:40]!r}: {done}"
        for line in done.log:
            assert re.match(pattern, line), line
            assert len(line) < 500, f"{len(line)} characters: {line}"
    after = read(t.client, file)
    if name.startswith("cpu_migration"):        # counts heartbeats meanwhile, too
        assert all(int(b) <= int(a) for b, a in zip(before.split(), after.split())), \
            f"{name} was reset: {before!r}, {after!r}"
    else:
        assert after == before, f"{name} has changed: {before!r}"


def check_taken(t, file, inputs):
    """Each input is taken without a word, and reads as said."""
    for text, reads in inputs.items():
        done = write(t.client, file, text)
        assert not done.error and not done.log, f"{file} <- {text!r}: {done}"
        got = read(t.client, file)
        assert got == reads, f"{file} reads {got!r} after {text!r}"


def refused(texts, error=errno.EINVAL):
    return dict.fromkeys(texts, error)


def do(t, file, text="1"):
    """Write, which must succeed."""
    done = write(t.client, file, text)
    assert not done.error, f"{file}: {done}"
    return done


def detail(t, n):
    return read(t.client, path_folder(t, n) + "/state_detail").strip()


def files(t):
    with t.check("session: files, modes, formats"):
        found = {name: file for name, file in read_all(t.client, SESSION + "/.").items()
                 if not name.startswith(("paths/", "power/")) and name != "uevent"}
        check_files(found, SESSION_FILES)
        t.client.run(f"""[ "$(readlink -f {SESSION})" = /sys/devices/virtual/rtrs-client/abi ]
                         [ -d {SESSION}/paths ]; [ ! -e {SESSION}/dev ]""")
    cpus = int(read(t.client, "/sys/devices/system/cpu/possible").strip()[2:]) + 1
    for n in 0, 1:
        with t.check(f"path {n}: files, modes, formats"):
            check_files(read_all(t.client, path_folder(t, n)), PATH_FILES, n=n, cpus=cpus)
    with t.check("files that cannot be written"):
        for name, (mode, _) in PATH_FILES.items():
            if mode == "444":
                done = write(t.client, f"{path_folder(t, 0)}/{name}", "1")
                assert done.error == errno.EACCES, f"{name}: {done}"


def inputs(t):
    for name, (low, high) in NUMBERS.items():
        file = f"{SESSION}/{name}"
        with t.check(f"{name}: good and bad input", fatal=False):
            before = read(t.client, file)
            check_taken(t, file, {str(low): f"{low}\n", f"{high}\n": f"{high}\n",
                                  f"+{high}": f"{high}\n", f"00{high}": f"{high}\n",
                                  before: before})
            check_refused(t, file, {**NO_NUMBER, str(low - 1): errno.EINVAL,
                                    str(high + 1): errno.EINVAL})
    with t.check("mpath_policy: good and bad input", fatal=False):
        file = f"{SESSION}/mpath_policy"
        check_taken(t, file, {text: reads for reads, texts in POLICIES.items()
                              for text in texts})
        check_refused(t, file, refused(NO_POLICY))
        do(t, file, "min-inflight")
    with t.check("add_path: bad input", fatal=False):
        check_refused(t, f"{SESSION}/add_path", refused(NO_ADDRESS))
        check_refused(t, f"{SESSION}/add_path",
                      refused((t.path(0), t.path(0).replace("@", ","), t.path(1) + "\n",
                               t.path(0) + "\ngarbage"), errno.EEXIST), says=TWIN)
    for name in "disconnect", "reconnect", "remove_path":
        with t.check(f"{name}: bad input", fatal=False):
            check_refused(t, f"{path_folder(t, 0)}/{name}", refused(NO_ACTION))
            assert list(t.states("abi").values()) == ["connected"] * 2, t.states("abi")
    with t.check("statistics: bad input", fatal=False):
        for name in PATH_FILES:
            if name.startswith("stats/"):
                check_refused(t, f"{path_folder(t, 0)}/{name}", refused(NO_RESET), lines=0)
    with t.check("connect_timeout_ms: good and bad input", fatal=False):
        file = "/sys/module/rtrs_client/parameters/connect_timeout_ms"
        check_taken(t, file, {"100": "100\n", "60000\n": "60000\n", "2000": "2000\n"})
        for text in "99", "60001", "x", "\n", "-1":
            assert write(t.client, file, text).error in (errno.EINVAL, errno.ERANGE), text
        assert read(t.client, file) == "2000\n"


def statistics(t, disk):
    stats = path_folder(t, 0) + "/stats/"

    def rdma():
        return [int(word) for word in read(t.client, stats + "rdma").split()]

    with t.check("statistics count, and can be reset"):
        do(t, stats + "rdma")
        assert rdma() == [0] * 6, rdma()
        do(t, f"{SESSION}/mpath_policy", "rr")
        t.client.run(f"dd if=/dev/{disk} of=/dev/null bs=4k count=32 iflag=direct")
        t.client.run(f"dd if=/dev/zero of=/dev/{disk} bs=4k count=16 oflag=direct")
        reads, read_bytes, writes, write_bytes, inflight, failovers = rdma()
        # every second one goes this way; a message of rnbd has 32 bytes
        assert 14 <= reads <= 18 and read_bytes == reads * (4096 + 32), rdma()
        assert 7 <= writes <= 9 and write_bytes == writes * (4096 + 32), rdma()
        assert inflight == failovers == 0, rdma()
        do(t, stats + "reset_all", "1\n")
        assert rdma() == [0] * 6, rdma()
        do(t, f"{SESSION}/mpath_policy", "mi")
    with t.check("migrations are reset together"):
        for name in "cpu_migration_from", "cpu_migration_to":
            t.client.run(f"dd if=/dev/{disk} of=/dev/null bs=4k count=64 iflag=direct")
            do(t, stats + name)
            for other in "cpu_migration_from", "cpu_migration_to":
                counts = [int(word) for word in read(t.client, stats + other).split()]
                # idle but for heartbeats
                assert sum(counts) <= 2, f"{other} after reset of {name}: {counts}"


def actions(t, disk):
    one = path_folder(t, 1)
    with t.check("disconnect: closes and stays closed; twice is fine"):
        do(t, f"{SESSION}/reconnect_delay_sec", "0")
        for _ in range(2):
            do(t, one + "/disconnect")
            assert read(t.client, one + "/state") == "disconnected\n"
            assert detail(t, 1) == "closed", detail(t, 1)
        t.fio(disk, size="1m").wait()
        t.client.run("sleep 2")
        assert detail(t, 1) == "closed", detail(t, 1)
        assert read(t.client, one + "/last_error_reason").strip(), "no reason"
        assert int(read(t.client, one + "/state_ms")) >= 2000
    with t.check("add_path of a disconnected path: EEXIST, nothing changed"):
        check_refused(t, f"{SESSION}/add_path", refused((t.path(1),), errno.EEXIST),
                      says=TWIN)
        assert detail(t, 1) == "closed", detail(t, 1)
        do(t, f"{SESSION}/reconnect_delay_sec", "30")
    with t.check("reconnect: a closed path, a connected path"):
        do(t, one + "/stats/reset_all")
        for count in 1, 2:
            do(t, one + "/reconnect")
            assert t.states("abi")[t.path(1)] == "connected", t.states("abi")
            assert read(t.client, one + "/stats/reconnects") == f"{count} 0\n"
    with t.check("reconnect with max_reconnect_attempts 0"):
        do(t, f"{SESSION}/max_reconnect_attempts", "0")
        do(t, one + "/reconnect")
        assert detail(t, 1) == "connected", detail(t, 1)
        do(t, one + "/disconnect")
        do(t, one + "/reconnect")
        assert detail(t, 1) == "connected", detail(t, 1)
        do(t, f"{SESSION}/max_reconnect_attempts", "-1")
    with t.check("remove_path and add_path"):
        do(t, one + "/remove_path")
        assert list(t.states("abi")) == [t.path(0)], t.states("abi")
        t.fio(disk, size="1m").wait()
        do(t, f"{SESSION}/add_path", t.path(1) + "\nrest of the input")
        assert t.states("abi")[t.path(1)] == "connected", t.states("abi")
        assert read(t.client, one + "/stats/reconnects") == "0 0\n"
    with t.check("without a path, and with one again"):
        for n in 0, 1:
            do(t, path_folder(t, n) + "/remove_path")
        assert t.client.run(f"ls {SESSION}/paths") == ""
        status, _ = t.client.status(f"dd if=/dev/{disk} of=/dev/null bs=4k count=1 iflag=direct")
        assert status, "a read without a path has succeeded"
        # the name of a path says where it comes from, also if nobody did
        do(t, f"{SESSION}/add_path", t.path(1).split("@")[1])
        assert t.states("abi") == {t.path(1): "connected"}, t.states("abi")
        t.wait_until("the disk is back", lambda: read(
            t.client, f"/sys/block/{disk}/rnbd/state") == "open\n")
        t.fio(disk, size="1m").wait()
        do(t, f"{SESSION}/add_path", t.path(0).replace("@", ","))
        assert sorted(t.states("abi").values()) == ["connected"] * 2, t.states("abi")


def tracepoints(t):
    with t.check("tracepoints: fields and text"):
        t.client.run(f"[ -d {TRACING}/events ] || mount -t tracefs tracing {TRACING}")
        for event in EVENTS:
            text = read(t.client, f"{TRACING}/events/rtrs_clt/{event}/format")
            fields = re.findall(r"field:(?!\S+ (?:short|char|int) common_)(.*?);", text)
            fields = [field for field in fields if "common_" not in field]
            assert fields == FIELDS, f"{event}: {fields}"
            assert ("RTRS-CLT: sess='%s' state=%s attempts='%d' max-attempts='%d' fail='%d' "
                    "success='%d'") in text, text
        for event in ("state_change", "cm_event", "path_failure", "failover", "req_done",
                      "link_event"):
            t.client.run(f"[ -e {TRACING}/events/rtrs_clt/rtrs_clt_{event}/format ]")
    with t.check("tracepoints: events of a disconnect and a reconnect"):
        t.client.run(f"echo >{TRACING}/trace; echo 1 >{TRACING}/events/rtrs_clt/enable")
        do(t, path_folder(t, 0) + "/disconnect")
        do(t, path_folder(t, 0) + "/reconnect")
        trace = t.client.run(f"echo 0 >{TRACING}/events/rtrs_clt/enable; cat {TRACING}/trace")
        name = re.escape(t.path(0))
        for text in (rf"rtrs_clt_close_conns: RTRS-CLT: sess='{name}' state=CONNECTED ",
                     rf"rtrs_clt_reconnect_work: RTRS-CLT: sess='{name}' state=\w+ attempts='\d+' "
                     r"max-attempts='-1' fail='\d+' success='\d+'",
                     rf"state_change: sess='abi' path='{name}' from=CONNECTED to=CLOSING",
                     rf"state_change: sess='abi' path='{name}' from=CLOSING to=CLOSED",
                     rf"state_change: sess='abi' path='{name}' from=CLOSED to=RECONNECTING",
                     rf"state_change: sess='abi' path='{name}' from=RECONNECTING to=CONNECTING\b",
                     rf"state_change: sess='abi' path='{name}' from=CONNECTING to=CONNECTED"):
            assert re.search(text, trace), f"no {text} in:\n{trace}"


def uevents(t):
    with t.check("uevents of the session"):
        seen = [event for event in t.client.run("cat /tmp/uevents").split("\n\n")
                if "/rtrs-client/" in event]
        own = [re.search(r"ACTION=(\w+)", event)[1] for event in seen]
        assert own.count("add") == 1 and own[0] == "add", own
        assert own.count("remove") == 1 and own[-1] == "remove", own
        for event in seen:
            assert "DEVPATH=/devices/virtual/rtrs-client/abi\n" in event + "\n", event
            assert "SUBSYSTEM=rtrs-client\n" in event + "\n", event
        changes = [re.findall(r"^(?:PATH_NAME|STATE)=(.*)$", event, re.M) for event in seen
                   if "ACTION=change" in event]
        assert [t.path(1), "disconnected"] in changes, changes
        assert [t.path(1), "connected"] in changes, changes
    with t.check("unmap: the folder goes"):
        assert t.client.run(f"ls {CLASS}") == "", "something is left"


def run(t):
    t.server.run("disk_up disk0 64; server_up")
    # each event as the lines of its environment, then an empty line
    t.client.run("printf '#!/bin/sh\\nenv >>/tmp/uevents\\necho >>/tmp/uevents\\n' >/tmp/event\n"
                 "chmod +x /tmp/event; modprobe rnbd-client")
    t.client.spawn("uevent /tmp/event")
    t.client.run("sleep 0.5")
    disk = t.client.run(f"map abi disk0 {t.paths()}").strip()
    files(t)
    inputs(t)
    statistics(t, disk)
    actions(t, disk)
    tracepoints(t)
    t.client.run(f"unmap {disk}; sleep 0.5")
    uevents(t)
