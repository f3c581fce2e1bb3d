# SPDX-License-Identifier: GPL-2.0-or-later
"""Virtual machines under QEMU, and commands run inside them."""

import base64
import contextlib
import itertools
import os
import socket
import subprocess
import threading
import time
from pathlib import Path

READY_LIMIT = 60        # seconds for a machine to boot, before scaling
RUN_LIMIT = 30          # seconds for a command, before scaling


class VMError(Exception):
    """A machine or a command in it did not do what was asked."""


class CommandFailed(VMError):
    def __init__(self, vm, command, status, output):
        super().__init__(f"{vm.name}: `{command}` ended with status {status}: "
                         f"{output.strip() or '(no output)'}")
        self.status = status
        self.output = output


class Job:
    """A command that runs in a machine."""

    def __init__(self, vm, command):
        self.vm = vm
        self.command = command
        self.ended = threading.Event()
        self.status = None      # None when ended: the machine died
        self.output = ""

    def done(self):
        return self.ended.is_set()

    def wait(self, timeout=RUN_LIMIT, check=True):
        """Its output. Raises CommandFailed for a status other than 0 if check."""
        if not self.ended.wait(timeout * self.vm.scale):
            raise VMError(f"{self.vm.name}: `{self.command}` took longer than "
                          f"{timeout * self.vm.scale:g} s")
        if self.status is None:
            raise VMError(f"{self.vm.name} died during `{self.command}`")
        if check and self.status:
            raise CommandFailed(self.vm, self.command, self.status, self.output)
        return self.output


class VM:
    """One machine. It can be booted, killed and booted again; each boot has a
    console log of its own."""

    def __init__(self, name, kernel, initrd, folder, *, smp=2, memory=1024, links=(),
                 scale=1.0, append="", icount=False):
        self.name = name
        self.kernel = Path(kernel)
        self.initrd = initrd
        self.folder = Path(folder)
        self.smp = smp
        self.memory = memory
        self.links = links      # QEMU's netdev arguments, one a link
        self.scale = scale
        self.append = append
        self.icount = icount    # one CPU, an instruction is a nanosecond of its time
        self.boots = []         # one [console log, expected to end in order] a boot
        self.process = None
        self._lock = threading.Lock()
        self._jobs = {}
        self._ids = itertools.count(1)

    def _arguments(self, control, console):
        if self.icount:
            accel = ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off",
                     "-cpu", "max"]
        elif os.environ.get("VM_ACCEL", "tcg") == "kvm":
            accel = ["-accel", "kvm", "-cpu", "host"]
        else:
            accel = ["-accel", "tcg,thread=multi", "-cpu", "max"]
        net = []
        for n, link in enumerate(self.links):
            net += ["-netdev", f"stream,id=link{n},{link}",
                    "-device", f"virtio-net-pci,netdev=link{n},host_mtu=4200,romfile=,"
                               f"mac=52:54:00:00:{n:02x}:{self.name.encode()[0]:02x}"]
        # On a busy host the TSC is often calibrated wrong; the HPET's rate is known.
        # Under icount there is no such noise, and the TSC is cheaper to read.
        clock = "tsc=reliable" if self.icount else "clocksource=hpet tsc=unstable"
        # virtio keeps the last packets that it has sent when its link goes down, and an
        # rxe queue pair with a packet of its own in there cannot be destroyed, for 50 s
        append = (f"console=ttyS0 panic=-1 oops=panic {clock} virtio_net.napi_tx=0 "
                  f"rcupdate.rcu_cpu_stall_timeout=60 vm_name={self.name} "
                  f"vm_hung={int(30 * self.scale)} "
                  f"rtrs_client.connect_timeout_ms={int(2000 * self.scale)} {self.append}")
        return ["qemu-system-x86_64", "-machine", "q35", *accel,
                "-smp", str(self.smp), "-m", str(self.memory),
                "-nodefaults", "-display", "none", "-no-reboot",
                "-kernel", str(self.kernel / "arch/x86/boot/bzImage"),
                "-initrd", str(self.initrd), "-append", append,
                "-chardev", f"file,id=console,path={console}",
                "-serial", "chardev:console",
                "-chardev", f"socket,id=control,fd={control}",
                "-device", "virtio-serial-pci", "-device", "virtserialport,chardev=control",
                "-device", "virtio-rng-pci", *net]

    def start(self):
        """Power on, without waiting for anything."""
        console = self.folder / f"{self.name}.{len(self.boots) + 1}.log"
        ours, theirs = socket.socketpair()
        with open(self.folder / f"{self.name}.qemu.log", "a", encoding="utf-8") as log:
            # pylint: disable=consider-using-with
            self.process = subprocess.Popen(
                self._arguments(theirs.fileno(), console), pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        theirs.close()
        self.boots.append([console, True])
        self._finish = None
        self._control = ours
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, args=(ours,), daemon=True)
        self._reader.start()

    def wait_ready(self):
        if not self._ready.wait(READY_LIMIT * self.scale) or self.process.poll() is not None:
            raise VMError(f"{self.name} did not boot, see {self.console}")

    def boot(self):
        self.start()
        self.wait_ready()

    @property
    def console(self):
        """The console log of the current boot."""
        return self.boots[-1][0]

    def _read(self, control):
        """Answers of the guest's agent, until the machine is gone, which may reset the
        connection."""
        with (contextlib.suppress(ConnectionResetError),
              control.makefile("r", encoding="ascii", errors="replace") as lines):
            for line in lines:
                words = line.split()
                if words == ["ready"]:
                    self._ready.set()
                    continue
                with self._lock:
                    job = self._jobs.pop(words[0])
                job.status = int(words[1])
                job.output = base64.b64decode("".join(words[2:])).decode(errors="replace")
                job.ended.set()
        self._ready.set()
        with self._lock:
            jobs, self._jobs = self._jobs, {}
        for job in jobs.values():
            job.ended.set()

    def spawn(self, command):
        """Run shell commands inside, return the Job at once."""
        job = Job(self, command)
        ident = str(next(self._ids))
        with self._lock:
            self._jobs[ident] = job
        line = f"{ident} {base64.b64encode(command.encode()).decode()}\n"
        try:
            self._control.sendall(line.encode())
        except OSError as error:
            raise VMError(f"{self.name} is not running: `{command}`") from error
        return job

    def run(self, command, timeout=RUN_LIMIT, check=True):
        """Run shell commands inside, return their output."""
        return self.spawn(command).wait(timeout, check)

    def status(self, command, timeout=RUN_LIMIT):
        """Run shell commands inside, return (status, output)."""
        job = self.spawn(command)
        job.wait(timeout, check=False)
        return job.status, job.output

    def running(self):
        return self.process is not None and self.process.poll() is None

    def finish(self):
        """Begin to look for leaks, write the end marker and power off."""
        self._finish = self.spawn("finish")

    def stop(self):
        """Wait until that is done."""
        if not self._finish:
            self.finish()
        self._finish.wait(60)
        try:
            self.process.wait(20 * self.scale)
        except subprocess.TimeoutExpired as error:
            raise VMError(f"{self.name} did not power off, see {self.console}") from error

    def kill(self):
        """Cut the power. What is off already should have ended in order."""
        if self.process:
            if self.running():
                self.boots[-1][1] = False
            self.process.kill()
            self.process.wait()
            self._reader.join()
            self._control.close()


def link_pair(folder, name):
    """Netdev arguments for the two ends of a link. The first end listens: it may
    live on while the machine at the second end is killed and booted again."""
    path = Path(folder) / f"{name}.sock"
    address = f"addr.type=unix,addr.path={path}"
    return f"server=on,{address}", f"server=off,{address}"


def wait_for_link(link, limit=10):
    """Until the listening end is there."""
    path = Path(link.split("addr.path=")[1])
    deadline = time.monotonic() + limit
    while not path.exists():
        if time.monotonic() > deadline:
            raise VMError(f"no socket {path}")
        time.sleep(0.05)
