# SPDX-License-Identifier: GPL-2.0-or-later
"""The initramfs of a test machine, made without root.

Two cpio archives, one behind the other, as the kernel allows: the programs, made
once for the host's packages, and our scripts with the modules, made for each run.
"""

import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = {                    # in the image: on the host
    "/bin/busybox": "busybox",
    "/sbin/ip": "ip",
    "/sbin/tc": "tc",
    "/sbin/rdma": "rdma",
    "/usr/bin/fio": "fio",
}
# Where Debian puts what a user's PATH may lack
SEARCH = os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin"


class Cpio:
    """Writer of the "newc" format that the kernel unpacks."""

    def __init__(self, file):
        self.file = file
        self.ino = 0
        self.dirs = set()

    def _entry(self, name, mode, data=b""):
        self.ino += 1
        name = name.lstrip("/").encode() + b"\0"
        fields = [self.ino, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0]
        head = b"070701" + b"".join(b"%08X" % f for f in fields) + name
        self.file.write(head + b"\0" * (-len(head) % 4))
        self.file.write(data + b"\0" * (-len(data) % 4))

    def mkdir(self, name):
        name = name.rstrip("/")
        if name and name not in self.dirs:
            self.mkdir(os.path.dirname(name))
            self.dirs.add(name)
            self._entry(name, stat.S_IFDIR | 0o755)

    def add(self, name, path):
        self.mkdir(os.path.dirname(name))
        mode = 0o755 if os.access(path, os.X_OK) else 0o644
        self._entry(name, stat.S_IFREG | mode, Path(path).read_bytes())

    def symlink(self, name, target):
        self.mkdir(os.path.dirname(name))
        self._entry(name, stat.S_IFLNK | 0o777, target.encode())

    def close(self):
        self._entry("TRAILER!!!", 0)
        self.file.write(b"\0" * (-self.file.tell() % 512))


def _libraries(program):
    """The shared libraries of a program, by the names it loads them under."""
    out = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return re.findall(r"(/\S+) \(0x", out)


def programs(cache):
    """The archive of programs and their libraries; made when one of them changed."""
    files = {}
    for name, command in PROGRAMS.items():
        path = shutil.which(command, path=SEARCH)
        if not path:
            raise SystemExit(f"vm: no program {command}; install the packages of "
                             f"{HERE / 'packages'} (tests/vm/install)")
        files[name] = path
        files.update({lib: lib for lib in _libraries(path)})
    stamp = [(n, p, os.stat(p).st_size, os.stat(p).st_mtime_ns) for n, p in sorted(files.items())]
    key = hashlib.sha256(repr(stamp).encode()).hexdigest()[:12]
    image = Path(cache) / f"programs-{key}.cpio"
    if not image.exists():
        with tempfile.NamedTemporaryFile(dir=cache, delete=False) as tmp:
            cpio = Cpio(tmp)
            for name, path in files.items():
                cpio.add(name, path)
            cpio.symlink("/bin/sh", "busybox")
            for name in ("/dev", "/proc", "/sys", "/tmp", "/root"):
                cpio.mkdir(name)
            cpio.close()
        os.rename(tmp.name, image)
    return image


def modules(kernel, ours, drop, root):
    """Lay out /lib/modules below root: the pristine modules but for those named
    in drop or replaced by ours, and what depmod makes of them."""
    release = (Path(kernel) / "include/config/kernel.release").read_text().strip()
    base = Path(root) / "lib/modules" / release
    base.mkdir(parents=True)
    replaced = {m.name for m in ours} | {f"{name}.ko" for name in drop}
    order = (Path(kernel) / "modules.order").read_text().split()
    for module in (Path(kernel) / o.replace(".o", ".ko") for o in order):
        if module.name not in replaced:
            shutil.copy(module, base)
    for module in ours:
        shutil.copy(module, base)
    for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        if (Path(kernel) / name).exists():
            shutil.copy(Path(kernel) / name, base)
    depmod = shutil.which("depmod", path=SEARCH)
    if not depmod:
        raise SystemExit("vm: no program depmod; install the package kmod")
    subprocess.run([depmod, "-b", root, release], check=True)


def build(image, cache, kernel, ours=(), drop=()):
    """Make the initramfs `image` for the kernel with our modules in it."""
    with tempfile.TemporaryDirectory() as root, open(image, "wb") as file:
        modules(kernel, ours, drop, root)
        with open(programs(cache), "rb") as base:
            shutil.copyfileobj(base, file)
        cpio = Cpio(file)
        for path in sorted((HERE / "guest").iterdir()):
            cpio.add("/init" if path.name == "init" else f"/guest/{path.name}", path)
        for path in sorted(Path(root).rglob("*")):
            if path.is_file():
                cpio.add("/" + str(path.relative_to(root)), path)
        cpio.close()
