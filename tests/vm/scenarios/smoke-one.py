# SPDX-License-Identifier: GPL-2.0-or-later
"""Both ends in one machine: map, verify, unmap, unload, in both modes of the server"""

topology = "one"
limit = 60


def run(t):
    t.server.run("disk_up disk0 64")
    for mode in "YN":
        with t.check(f"always_invalidate={mode}: map over both links"):
            t.server.run(f"server_up always_invalidate={mode}")
            disk = t.client.run(f"map smoke disk0 {t.paths()}").strip()
            assert set(t.states("smoke").values()) == {"connected"}, t.states("smoke")

        for size in "4k", "128k":
            with t.check(f"always_invalidate={mode}: reads and writes of {size} verified"):
                t.fio(disk, bs=size, mib=16).wait()

        with t.check(f"always_invalidate={mode}: unmap, unload"):
            t.client.run(f"unmap {disk}")
            t.client.run("unload rnbd_client rtrs_client rnbd_server rtrs_server rtrs_core")
