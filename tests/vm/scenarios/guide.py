# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands of README and of the operator's guide do what is said of them"""

import importlib.machinery
import importlib.util
from pathlib import Path

topology = "two"
limit = 60
# what is typed loads the modules without the slow kernel's time limits
flavours = ("fast",)

TOP = Path(__file__).resolve().parents[3]
BLUE = "/sys/class/rtrs-client/blue"


def load_tool():
    """tests/docs/commands, which finds them"""
    loader = importlib.machinery.SourceFileLoader("commands", str(TOP / "tests/docs/commands"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("commands", loader))
    loader.exec_module(module)
    return module


class Reader:
    """Somebody who types what a document says, in its order."""

    def __init__(self, document):
        tool = load_tool()
        literal, _ = tool.blocks(document.read_text(), document.suffix == ".md")
        self.name = document.name
        self.left = [line for line in tool.joined(literal) if tool.is_command(line)]

    def type(self, machine, count, first, before="", check=True):
        """The next commands; the first of them begins as said."""
        lines, self.left = self.left[:count], self.left[count:]
        assert lines[0].startswith(first), f"{self.name} goes on with {lines[0]}"
        lines = [line.removeprefix("sudo ") for line in lines]
        return machine.run("\n".join([before, *lines]), check=check)

    def skip_to(self, first):
        """What is before it is run elsewhere."""
        while not self.left[0].startswith(first):
            self.left.pop(0)


def run(t):
    readme, compat, guide = (Reader(TOP / name) for name in
                             ("README.md", "compat/README.md", "Documentation/operators-guide.rst"))
    t.server.run("disk_up sdb 64; ip addr add 10.0.2.1/24 dev eth1")
    t.client.run("ip addr add 10.0.2.2/24 dev eth1")

    readme.skip_to("modprobe rdma_cm")
    compat.skip_to("sudo modprobe -r")
    with t.check("README: load the modules by hand"):
        readme.type(t.client, 4, "modprobe rdma_cm", "cd /lib/modules/$(uname -r)")
    with t.check("guide: map a disk over two links"):
        guide.type(t.server, 2, "modprobe rtrs-server")
        guide.type(t.client, 4, "modprobe rnbd-client")
        link = guide.type(t.client, 1, "readlink").strip()
        disk = link.rsplit("/", 1)[-1]
        assert disk == "rnbd0", link
        t.fio(disk, mib=1).wait()
    unmap = guide.left.pop(0)
    with t.check("guide: read the states"):
        lines = guide.type(t.client, 2, "cd ").splitlines()
        assert sum(line.endswith("/state:connected") for line in lines) == 2, lines
    guide.skip_to("cd ")
    with t.check("guide: replace a path"):
        assert guide.type(t.client, 4, "cd ").strip() == "connected"
        assert sorted(t.states("blue")) == [t.path(0), "ip:10.0.2.2@ip:10.0.2.1"], t.states("blue")
        t.fio(disk, mib=1).wait()
    with t.check("guide: take a link out of service for a while"):
        t.client.run(f"echo {t.path(1)} >{BLUE}/add_path")
        guide.type(t.client, 1, "echo 1 > paths", f"cd {BLUE}")
        assert t.states("blue")[t.path(1)] == "disconnected", t.states("blue")
        guide.type(t.client, 1, "echo 1 > paths", f"cd {BLUE}")
        assert t.states("blue")[t.path(1)] == "connected", t.states("blue")
        assert not guide.left, guide.left
    with t.check("unmap, and unload as both READMEs say"):
        t.client.run(unmap)
        t.client.run("rnbd_idle; rmmod rnbd_client rtrs_client rtrs_core")
        # busybox's modprobe does it, but complains of those that are not loaded
        compat.type(t.server, 1, "sudo modprobe -r", check=False)
        t.server.run("! lsmod | grep rtrs")
