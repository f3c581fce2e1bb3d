# SPDX-License-Identifier: GPL-2.0-or-later
"""The benchmark's own users of RTRS (tests/bench/ulp), for scenarios."""

FILES = "/sys/kernel/debug/rtrs-bench"
WATCH = "/sys/kernel/debug/rtrs-bench-watch"


def up(t, mode):
    """The server, in this mode of always_invalidate"""
    t.server.run(f"modprobe rtrs-server always_invalidate={mode}; modprobe rtrs-bench-server")


def open_session(t, name, paths=None):
    t.client.run(f"modprobe rtrs-bench-client; echo {name} {paths or t.paths()} >{FILES}/open")


def down(t):
    """All of it at both ends; modules that do not go are an error."""
    t.client.run(f"echo 1 >{FILES}/close; unload rtrs_bench_client rtrs_client")
    t.server.run("unload rtrs_bench_server rtrs_server")


def start(t, **options):
    """Start a run, return its Job."""
    words = " ".join(f"{name}={value}" for name, value in options.items())
    return t.client.spawn(f"echo {words} >{FILES}/run; cat {FILES}/report")


def report(job, timeout=60):
    """{name: number} of a run"""
    lines = job.wait(timeout).split("\n")
    return {name: int(value) for name, value in (line.split() for line in lines if line)}


def result(job, timeout=60):
    """The same. One that had an error or wrong data is a failed check."""
    found = report(job, timeout)
    bad = {name: found[name] for name in ("errors", "last_error", "corrupt", "touched")}
    assert not any(bad.values()), bad
    return found


def run(t, **options):
    return result(start(t, **options))
