# SPDX-License-Identifier: GPL-2.0-or-later
"""Two machines on two links: verified through one path and two, in both modes"""

topology = "two"
limit = 90


def run(t):
    t.server.run("disk_up disk0 64")
    for mode in "YN":
        t.server.run(f"server_up always_invalidate={mode}")
        for number, paths in (1, t.path(0)), (2, t.paths()):
            name = f"always_invalidate={mode}, {number} of 2 paths"
            with t.check(f"{name}: map"):
                disk = t.client.run(f"map two disk0 {paths}").strip()
                assert list(t.states("two").values()) == ["connected"] * number, t.states("two")

            for size in "4k", "128k":
                with t.check(f"{name}: reads and writes of {size} verified"):
                    t.fio(disk, bs=size, mib=16).wait()

            with t.check(f"{name}: unmap"):
                t.client.run(f"unmap {disk}")

        with t.check(f"always_invalidate={mode}: unload"):
            t.client.run("unload rnbd_client rtrs_client rtrs_core")
            t.server.run("unload rnbd_server rtrs_server rtrs_core")
