# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel that wants signatures refuses ours with the words that compat/README.md has

By name only, with KERNEL=debian: ours cannot be made to want any."""

import image

topology = "one"
limit = 60
flavours = ()

# What makes a running kernel as strict as Secure Boot does, and what is said then
STRICT = {
    "mount -t securityfs none /sys/kernel/security; "
    "echo integrity >/sys/kernel/security/lockdown": "Operation not permitted",
    "echo 1 >/sys/module/module/parameters/sig_enforce": "Key was rejected by service",
}


def run(t):
    readme = (image.HERE.parents[1] / "compat/README.md").read_text()
    for command, words in STRICT.items():
        with t.check(f"refused in the words of compat/README.md: {words}"):
            t.client.run(command)
            status, output = t.client.status("modprobe rtrs-core")
            assert status and words in output, output
            assert f'"{words}"' in " ".join(readme.split()), "the document has other words"
    with t.check("the kernel's own modules are taken"):
        t.client.run("modprobe sch_prio; [ -d /sys/module/sch_prio ]; [ ! -e /sys/module/rtrs_core ]")
