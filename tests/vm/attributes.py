# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of sysfs in a machine: written as a tool would write them, in one go, and
read to the byte."""

import base64
import errno
import os
import re
from dataclasses import dataclass

# The client's and rnbd's lines in the kernel's log, without the time
LOG = re.compile(r"^\[ *[\d.]+\] ((?:rtrs|rnbd)_\w+ L\d+: .*)$", re.M)

WRITE = r"""
write()
{
	dmesg -c >/dev/null
	echo "$2" | base64 -d >/tmp/attribute
	local from to rc=0
	read -r from _ </proc/uptime
	dd if=/tmp/attribute of="$1" bs=64k 2>/tmp/attribute.err || rc=$?
	read -r to _ </proc/uptime
	echo "write $rc $from $to $(grep '^dd: ' /tmp/attribute.err | base64 -w 0)"
	dmesg
}
"""


@dataclass
class Written:
    """What came of writing to a file."""
    error: int          # errno, 0 when it was taken
    seconds: float
    log: list           # lines that the kernel's modules logged meanwhile

    def __str__(self):
        name = errno.errorcode.get(self.error, "success") if self.error else "success"
        return f"{name} after {self.seconds:.2f} s, log: {self.log}"


def _errno(text):
    """The number of an error that busybox has put in words."""
    for number in errno.errorcode:
        if text.endswith(os.strerror(number)):
            return number
    raise AssertionError(f"what error is this? {text}")


def write_all(vm, writes, timeout=60):
    """Write (file, data) one after the other; a Written for each."""
    script = WRITE + "\n".join(f"write '{file}' {base64.b64encode(data.encode()).decode()}"
                               for file, data in writes)
    parts = re.split(r"^write (\d+) (\S+) (\S+) (\S*)\n", vm.run(script, timeout), flags=re.M)
    done = []
    for rc, begin, end, message, log in zip(*(parts[n::5] for n in range(1, 6))):
        text = base64.b64decode(message).decode().strip()
        done.append(Written(_errno(text) if rc != "0" else 0, float(end) - float(begin),
                            LOG.findall(log)))
    assert len(done) == len(writes), f"{len(done)} of {len(writes)} writes done"
    return done


def write(vm, file, data, timeout=60):
    return write_all(vm, [(file, data)], timeout)[0]


def read_all(vm, folder):
    """{path below the folder: (mode, content)} of all files in it and below; links are
    not followed. What cannot be read has None as content."""
    lines = vm.run(rf"""
        find {folder} -type f | while read -r file; do
            echo "${{file#{folder}/}} $(stat -c %a "$file") $(base64 -w 0 "$file" 2>/dev/null)"
        done""").splitlines()
    files = {}
    for line in lines:
        name, mode, content = (line + " ").split(" ")[:3]
        files[name] = mode, base64.b64decode(content).decode()
    return files


def read(vm, file):
    return base64.b64decode(vm.run(f"base64 -w 0 '{file}'")).decode()
