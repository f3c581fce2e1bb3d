# SPDX-License-Identifier: GPL-2.0-or-later
"""What a scenario gets to work with, and what runs and judges it."""

import contextlib
import fcntl
import functools
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import typing
from pathlib import Path

import image
import qemu
import verdict
from verdict import Check

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
CACHE = Path(os.environ.get("RTRS_CACHE") or Path.home() / ".cache/rtrs")
LINKS = 2
BACKLOG = 32            # writes that fio reads back together
HOST = {"server": 1, "client": 2, "both": 1}    # last part of a machine's addresses


class Flavour(typing.NamedTuple):
    """What machines with a kernel of config/ need"""
    memory: int = 1024          # MiB
    scale: float = 1            # of time limits
    boot: str = ""              # for the kernel's command line


# The slab allocator's per-CPU arrays keep pointers to what they have handed out, so
# that kmemleak finds no leak; caches with debug flags have none
DEBUG = Flavour(2048, 4, "slab_debug=F")
FLAVOURS = {
    "fast": Flavour(),
    "debug": DEBUG,
    "objects": DEBUG,
    "kcsan": Flavour(2048, 6, "kcsan.early_enable=1"),
    # counting costs little
    "coverage": Flavour(),
}


def _tool(name, *args):
    """Run one of the shell scripts beside this file, return what it printed."""
    done = subprocess.run([HERE / name, *args], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(1)
    return done.stdout.strip()


@contextlib.contextmanager
def global_lock():
    """Only one run at a time on this machine, whoever starts it: many checks
    measure time."""
    path = Path("/tmp/rtrs-vm.lock")
    with contextlib.suppress(FileExistsError):
        path.touch(0o644, exist_ok=False)
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another run on this machine ...", file=sys.stderr)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Setup:
    """The kernel, the modules and the limits that all machines of a run share."""

    def __init__(self, flavour="fast", client="ours", kernel=None):
        self.flavour = flavour
        self.client = client
        self.machine = FLAVOURS[flavour]
        self.scale = float(os.environ.get("VM_SCALE") or self.machine.scale)
        self.pristine = not kernel
        self.kernel = kernel or _tool("kernel", "build", flavour)
        # whose KTAP parser is used
        source = Path(self.kernel) / "source"
        self.source = source if source.is_dir() else _tool("kernel", "source")
        # what a run is called in reports and folders: the build's name without its key
        self.name = re.sub("-[0-9a-f]{12}$", "", Path(kernel).name) if kernel else flavour

    @functools.cache
    def modules(self, variant):
        """Our modules, as a list of files; built once in a run."""
        folder = Path(_tool("modules", self.flavour, variant))
        return sorted(folder / line.replace(".o", ".ko")
                      for line in (folder / "modules.order").read_text().split())

    def image(self, path, role):
        """Make the initramfs of a role: client, server, both or kunit. The server
        VM runs the pristine modules; the client VM takes all but ours from there."""
        ours, drop = [], []
        if self.client == "ours" and role != "server":
            ours = self.modules("kunit" if role == "kunit" else "plain")
            if role == "client":
                ours = [m for m in ours if m.name != "rtrs-server.ko"]
                drop = ["rtrs-server", "rnbd-server"]
        if role != "kunit" and self.pristine:
            # users of RTRS of our own, for either client and server
            ours = [*ours, *self.modules("ulp")]
        image.build(path, CACHE, self.kernel, ours, drop)
        return ours


class Machines:
    """The virtual machines of a run and its folder. Nothing outlives it."""

    def __init__(self, setup, folder, smp=None, append=None):
        self.setup = setup
        self.folder = Path(folder)
        self.smp = smp or {}            # CPUs of a role that has not 2
        self.append = append or {}      # more of a role's kernel command line
        self.vms = {}
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        # socket paths must be short, and images need not be kept
        self.tmp = Path(tempfile.mkdtemp(prefix="rtrs-vm."))

    def add(self, role, links=()):
        initrd = self.tmp / f"{role}.cpio"
        modules = self.setup.image(initrd, role)
        vm = qemu.VM(role, self.setup.kernel, initrd, self.folder, smp=self.smp.get(role, 2),
                     memory=self.setup.machine.memory, links=links, scale=self.setup.scale,
                     append=f"{self.setup.machine.boot} {self.append.get(role, '')}")
        vm.modules = modules
        self.vms[role] = vm
        return vm

    def add_pair(self):
        """Client and server with links between them. The client's ends listen, so
        that the server can be killed and booted again."""
        pairs = [qemu.link_pair(self.tmp, f"link{n}") for n in range(LINKS)]
        client = self.add("client", [pair[0] for pair in pairs])
        server = self.add("server", [pair[1] for pair in pairs])
        client.start()
        for pair in pairs:
            qemu.wait_for_link(pair[0])
        server.start()
        return client, server

    def kill(self):
        for vm in self.vms.values():
            vm.kill()

    def close(self):
        self.kill()
        shutil.rmtree(self.tmp, ignore_errors=True)


class Abort(Exception):
    """A check failed that the rest of the scenario depends on."""


class Test:
    """Handed to a scenario's run(). See README.md for how it is used."""

    def __init__(self, machines, report):
        self.machines = machines
        self.setup = machines.setup
        self.scale = machines.setup.scale
        self.flavour = machines.setup.flavour
        self.client = self.server = None
        self.results = []
        self._report = report
        self._marks = []

    def settle(self):
        """Wait for the last marks on the consoles, which must come before the end
        marker. A machine may have died meanwhile."""
        for job in self._marks:
            with contextlib.suppress(qemu.VMError):
                job.wait()

    @contextlib.contextmanager
    def check(self, name, fatal=True):
        """One check: passed when its body ends without an exception. After a fatal
        one has failed, the scenario ends."""
        self._marks = [vm.spawn(f"echo {shlex.quote(f'vm: check {name}')} >/dev/kmsg")
                       for vm in self.vms() if vm.running()]
        start = time.monotonic()
        result = Check(name, "FAIL")
        try:
            yield
            result.result = "PASS"
        except Abort:
            raise
        except Exception as error:              # pylint: disable=broad-except
            result.detail = describe(error)
            if fatal:
                raise Abort from error
        finally:
            self.results.append(result)
            self._report(result, time.monotonic() - start)

    def vms(self):
        return list(self.machines.vms.values())

    def up(self, vm):
        """Boot a machine (again) with its links up."""
        if not vm.running():
            vm.start()
        vm.wait_ready()
        vm.run("; ".join(f"link_up {n} {HOST[vm.name]}" for n in range(LINKS)))

    def up_pair(self):
        """Two machines with their links up, which have met"""
        self.client, self.server = self.machines.add_pair()
        for vm in self.vms():
            self.up(vm)
        self.client.run("; ".join(f"meet {n} {HOST['server']}" for n in range(LINKS)))

    def path(self, link, family=4):
        """The path over a link, as map_device and add_path take it."""
        ends = (f"10.0.{link}.%d", f"fd00:{link}::%d")[family == 6]
        return "@".join(f"ip:{ends % HOST[vm.name]}" for vm in (self.client, self.server))

    def paths(self):
        return " ".join(self.path(n) for n in range(LINKS))

    def wait_until(self, what, condition, limit=10):
        """Ask condition() again and again; its answer when it is true."""
        deadline = time.monotonic() + limit * self.scale
        while not (answer := condition()):
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {limit * self.scale:g} s: {what}")
            time.sleep(0.1)
        return answer

    def states(self, session):
        """{path: state} of a session of the client."""
        lines = self.client.run(f"path_states {session}").splitlines()
        return dict(line.rsplit(" ", 1) for line in lines)

    def fio(self, device, mib=8, **options):
        """Start fio on the first mib MiB (fewer on a slow kernel) of a block device
        of the client, return a FioJob. What it writes is verified, unless the options
        say otherwise: some writes later, since a job of limited time would never come
        to a phase of its own for that."""
        settings = {"name": "fio", "filename": f"/dev/{device}", "direct": 1,
                    "ioengine": "libaio", "iodepth": 16, "bs": "4k", "rw": "randwrite",
                    "size": f"{max(1, int(mib / self.scale))}m", "verify": "crc32c",
                    "verify_fatal": 1, "verify_backlog": BACKLOG, "output-format": "json",
                    # no block is written while it is read back: large ones go as
                    # several requests, of which one might see the old and one the new
                    "serialize_overlap": 1, **options}
        # each write is read back at least; a mixed job reads as much of its own besides
        per_write = 0
        if settings["verify"]:
            per_write = 1.4 if settings["rw"].endswith("rw") else 0.5
        else:
            settings["verify_backlog"] = None
        args = " ".join(f"--{k}={v}" for k, v in settings.items() if v is not None)
        return FioJob(self.client.spawn(f"fio {args}"), per_write)


class FioJob:
    """fio at work; wait() gives what it measured, or raises."""

    def __init__(self, job, per_write):
        self.job = job
        self.per_write = per_write      # reads for a write, less some

    def wait(self, timeout=60):
        output = self.job.wait(timeout)
        data = json.loads(output[output.index("{"):])["jobs"][0]
        if data["error"]:
            raise AssertionError(f"fio: error {data['error']}: {output[:output.index('{')]}")
        sides = [data[side] for side in ("read", "write")]
        reads, writes = (side["total_ios"] for side in sides)
        # the last writes, up to twice the backlog, need not have been read yet
        if reads < (writes - 2 * BACKLOG) * self.per_write:
            raise AssertionError(f"fio: {writes} writes, and {reads} reads to verify them")
        return {"read_iops": sides[0]["iops"], "write_iops": sides[1]["iops"],
                "ios": sum(side["total_ios"] for side in sides),
                "read": sides[0]["io_bytes"], "written": sides[1]["io_bytes"],
                # the longest that a request took, in seconds
                "stall": max(side["lat_ns"]["max"] for side in sides) / 1e9}


class Report:
    """Prints a line for each check as it is done."""

    def __init__(self, title):
        self.title = title

    def __call__(self, check, seconds=None):
        took = "" if seconds is None else f" ({seconds:.1f} s)"
        print(f"{check.result}  {self.title}: {check.name}{took}", flush=True)
        if check.result == "FAIL":
            for line in check.detail.splitlines():
                print(f"      {line}", flush=True)


def describe(error):
    """An exception as the detail of a failed check."""
    if isinstance(error, (AssertionError, qemu.VMError)) and str(error):
        return str(error)
    return "".join(traceback.format_exception(error))


def ktap(results, completed):
    """Results as KTAP. Only a run that reached its end has a plan that is kept."""
    lines = ["KTAP version 1", f"1..{len(results) + (not completed)}"]
    for n, check in enumerate(results, 1):
        lines += [f"# {line}" for line in check.detail.splitlines()]
        lines.append(f"{'ok' if check.result == 'PASS' else 'not ok'} {n} {check.name}")
    return "\n".join(lines) + "\n"


class Scenario:
    """A file of scenarios/: its docstring describes it, its run(t) is the test."""

    def __init__(self, path):
        spec = importlib.util.spec_from_file_location(path.stem.replace("-", "_"), path)
        self.module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)
        self.name = path.stem
        self.description = (self.module.__doc__ or "").strip().splitlines()[0]
        self.topology = self.module.topology            # "one" or "two"
        self.limit = self.module.limit                  # seconds, before scaling
        self.flavours = getattr(self.module, "flavours", ("fast", "debug"))
        self.smp = getattr(self.module, "smp", None)
        self.append = getattr(self.module, "append", None)
        self.result = None

    def run(self, setup, report):
        """Run it and report each check; True when all is well. What the scenario
        returned is left in .result."""
        folder = TOP / "build/vm" / f"{self.name}-{setup.name}"
        machines = Machines(setup, folder, self.smp, self.append)
        t = Test(machines, report)
        timed_out = threading.Event()

        def limit():
            timed_out.set()
            machines.kill()

        timer = threading.Timer(self.limit * setup.scale, limit)
        timer.start()
        error = None
        try:
            if self.topology == "one":
                t.client = t.server = machines.add("both")
                t.up(t.client)
            else:
                t.up_pair()
            self.result = self.module.run(t)
            t.settle()
            running = [vm for vm in t.vms() if vm.running()]
            for vm in running:
                vm.finish()
            for vm in running:
                vm.stop()
        except Abort:
            error = "a check failed"
        except Exception as exception:          # pylint: disable=broad-except
            error = describe(exception)
        finally:
            timer.cancel()
            machines.close()
        if timed_out.is_set():
            error = f"time limit of {self.limit * setup.scale:g} s reached"
        return self._judge(t, error, report)

    @staticmethod
    def _judge(t, error, report):
        folder = t.machines.folder
        (folder / "result.ktap").write_text(ktap(t.results, completed=not error))
        checks = verdict.ktap_checks((folder / "result.ktap").read_text(), t.setup.source)
        good = all(check.result == "PASS" for check in checks)
        if error and all(check.result != "FAIL" for check in t.results):
            report(Check("runs to its end", "FAIL", error))
        for vm in t.vms():
            for log, ended in vm.boots:
                check = verdict.console_check(log, ended)
                good = good and check.result == "PASS"
                if check.result == "FAIL" or not error:
                    report(check)
        return good and not error


def scenarios():
    return [Scenario(path) for path in sorted((HERE / "scenarios").glob("*.py"))]


def depends(module):
    """The modules that a module file needs, as modinfo names them."""
    modinfo = shutil.which("modinfo", path=image.SEARCH)
    out = subprocess.run([modinfo, "-F", "depends", module], capture_output=True, text=True,
                         check=True).stdout
    return [name.replace("-", "_") for name in out.strip().split(",") if name]


def kunit_modules(modules):
    """Those with suites in them, each before those that depend on it."""
    needs = {m.stem.replace("-", "_"): depends(m) for m in modules}

    def rank(name):
        return 1 + max((rank(n) for n in needs.get(name, ())), default=0)

    return sorted((n for n in needs if "kunit" in needs[n]), key=rank)


def judge_kunit(setup, vm, error, report, more=()):
    """Report each test that the last boot of a machine shows, and what else is to be
    looked for in its log; True when all is well."""
    log, ended = vm.boots[-1]
    text = log.read_text(errors="replace")
    checks = [*verdict.kunit_checks(text, setup.source), *(look(text) for look in more)]
    if error:
        checks.append(Check("runs to its end", "FAIL", error))
    checks.append(verdict.console_check(log, ended))
    for check in checks:
        report(check)
    return all(check.result != "FAIL" for check in checks)
