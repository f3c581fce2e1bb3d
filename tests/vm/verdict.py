# SPDX-License-Identifier: GPL-2.0-or-later
"""Was a run good? Judged from what it left behind: KTAP and console logs.

A run starts out failed and must earn the other verdict: every KTAP plan kept and
every check in it passed, and for every boot of every machine the kernel's banner
exactly once, no splat, no leak, and the end marker, which the machine writes after
everything else.
"""

import contextlib
import functools
import inspect
import io
import re
import sys
from dataclasses import dataclass
from pathlib import Path

BANNER = re.compile(r"\bLinux version \d")
END = "vm: end"
# What may follow the end marker: the machine powers off
AFTER_END = re.compile(r"^(\[ *[\d.]+\] )?(ACPI: |reboot: |$)")

# Texts by which the kernel says that something is wrong
SPLATS = re.compile("|".join((
    r"\bBUG: ",
    r"\bWARNING: ",
    r"\bOops\b",
    r"\bKernel panic\b",
    r"\bgeneral protection fault\b",
    r"\bUnable to handle\b",
    r"\bUBSAN: ",
    r"\bKASAN: ",
    r"\bINFO: (task|rcu|possible|trying|suspicious|HARDIRQ|SOFTIRQ|lockdep)",
    r"\bpossible (circular|recursive|irq lock)",
    r"\binconsistent lock state\b",
    r"\bsuspicious RCU usage\b",
    r"\brcu: INFO:",
    r"\bself-detected stall\b|\bdetected stalls\b",
    r"\bblocked for more than\b",
    r"\bsoft lockup\b|\bhard LOCKUP\b",
    r"\brefcount_t: ",
    r"\bODEBUG: ",
    r"\bDMA-API: (?!preallocated|debugging enabled|dma_debug_entry pool grown)",
    r"\bscheduling while atomic\b",
    r"\bsleeping function called\b",
    r"\blist_(add|del) corruption\b",
    r"\bBUG \S+ \(",
    r"\bworkqueue lockup\b",
    r"\bunreferenced object\b",
    # leaks, and all by which it says that it sees less from now on, or nothing
    r"\bkmemleak: (?!Kernel memory leak detector initialized|Automatic memory scanning)",
    r"\bcut here\b",
    r"\bkobject: .*(tried to (init an initialized|add an uninitialized)|does not have a release)",
    r"\bsysfs: cannot create duplicate\b",
    r"\bunregister_netdevice: waiting for\b",
    # a splat may be among what is lost; and lockdep falls silent
    r"\bprintk messages dropped\b",
    r"\bturning off the locking correctness validator\b|\bDisabling lock debugging\b",
    # ours. A marker that cannot be posted (ENOMEM) is what the suite rtrs_peer_inject
    # does on purpose
    r"\bHCA does not drain the queue of connection \d+: (?!-12$|-ENOMEM$)",
    r"\bclose still waits for\b",
)))


@dataclass
class Check:
    """One thing that was looked at, and what came of it: PASS, FAIL or SKIP."""
    name: str
    result: str
    detail: str = ""


def excerpt(lines, index, before=3, after=30):
    """The lines around one of them, that one marked."""
    first = max(0, index - before)
    return "\n".join(f"{'>' if n == index else ' '} {line}" for n, line in
                     enumerate(lines[first:index + after], first))


def console_problem(text, ended=True):
    """What is wrong with the console log of one boot, or None. `ended`: it is
    expected to have ended in order; otherwise the power was cut on purpose."""
    lines = text.splitlines()
    for n, line in enumerate(lines):
        if SPLATS.search(line):
            return f"splat at line {n + 1}:\n{excerpt(lines, n)}"
    banners = [n for n, line in enumerate(lines) if BANNER.search(line)]
    if len(banners) != 1:
        where = f":\n{excerpt(lines, banners[1], 10, 3)}" if banners else ""
        return f"boot banner seen {len(banners)} times instead of once{where}"
    if not ended:
        return None
    ends = [n for n, line in enumerate(lines) if line.endswith(END)]
    if len(ends) != 1:
        return (f"end marker seen {len(ends)} times instead of once; last lines:\n"
                f"{excerpt(lines, len(lines) - 1, 15)}")
    for n, line in enumerate(lines[ends[0] + 1:], ends[0] + 1):
        if not AFTER_END.match(line):
            return f"line after the end marker:\n{excerpt(lines, n)}"
    return None


def console_check(log, ended=True):
    """The same as a Check of a log file."""
    problem = console_problem(Path(log).read_text(errors="replace"), ended)
    return Check(f"{Path(log).stem} console", "FAIL" if problem else "PASS",
                 f"{log}: {problem}" if problem else "")


def _parser(folder):
    """Status values and the function of the kernel's KTAP parser, which prints nothing.
    An older kernel's takes no printer, but what stdout is when it is loaded; it judges
    nested results less strictly, so that scenarios only should be judged by it."""
    if folder not in sys.path:
        sys.path.insert(0, folder)
    # pylint: disable=import-error,import-outside-toplevel
    with contextlib.redirect_stdout(io.StringIO()):
        import kunit_parser
        import kunit_printer
    parse = kunit_parser.parse_run_tests
    if "printer" in inspect.signature(parse).parameters:
        parse = functools.partial(parse, printer=kunit_printer.Printer(False, io.StringIO()))
    return kunit_parser.TestStatus, parse


def ktap_checks(text, kernel_source):
    """The checks in KTAP output, read by the kernel's own parser: the tests of the
    output itself, or of the suites in it; a test's parameters count as one. What is
    wrong with the output (no test, no plan, a plan that was not kept, a test without
    a result) comes as a failed check, too."""
    status, parse = _parser(str(Path(kernel_source) / "tools/testing/kunit"))
    results = {status.SUCCESS: "PASS", status.SKIPPED: "SKIP"}
    checks = []
    unplanned = []

    def problems(test):
        for sub in test.subtests:
            yield from problems(sub)
        if not test.subtests and test.status not in results:
            yield "\n".join([f"{test.name}: {test.status.name.lower()}", *test.log])

    def walk(test, parents):
        names = [*parents, test.name or "(no name)"]
        if test.subtests and len(names) < 3:
            if test.expected_count is None:
                unplanned.append(test.name)
            for sub in test.subtests:
                walk(sub, names)
        elif parents:
            count = f" ({len(test.subtests)} cases)" if test.subtests else ""
            checks.append(Check(": ".join(names[1:]) + count, results.get(test.status, "FAIL"),
                                "\n".join(problems(test))))

    main = parse(text.splitlines())
    walk(main, [])
    failed = any(check.result == "FAIL" for check in checks)
    if unplanned or not failed and (main.counts.errors or main.status not in results):
        checks.append(Check("KTAP output", "FAIL",
                            "no test, no plan, a plan that was not kept, or a suite that "
                            "failed though its tests passed"))
    return checks


LOAD = re.compile(r"vm: (load|loaded) (\S+)$")


def kunit_checks(text, kernel_source):
    """The checks of all KUnit modules that a console log says were loaded."""
    checks = []
    module, part = None, []
    for line in [*text.splitlines(), "vm: load end-of-log"]:
        mark = LOAD.search(line)
        if not mark:
            part.append(line)
            continue
        if module:
            checks += ktap_checks("\n".join(part), kernel_source)
            if mark[1] != "loaded":
                checks.append(Check(f"{module} loads", "FAIL", excerpt(part, len(part) - 1, 15)))
        module, part = (mark[2] if mark[1] == "load" else None), []
    if not checks:
        checks.append(Check("KUnit modules", "FAIL", "none was loaded"))
    return checks


def hostile_check(text, wanted=120):
    """Whether the log of all KUnit modules shows as many cases in front of the fake
    server as there are to be; their number is told."""
    suite, cases = "", 0
    for line in text.splitlines():
        if match := re.search(r"\]     # Subtest: (\w+)$", line):
            suite = match[1]
        elif match := re.search(r"\] # Totals: .* total:(\d+)$", line):
            cases += int(match[1]) if suite.startswith("rtrs_peer_") else 0
    return Check(f"{cases} cases in front of the fake server",
                 "PASS" if cases >= wanted else "FAIL", f"{wanted} are wanted")
