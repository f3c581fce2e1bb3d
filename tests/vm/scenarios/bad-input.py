# SPDX-License-Identifier: GPL-2.0-or-later
"""Open with bad arguments, or where nobody answers: the right error, soon, a reason"""

import errno
import re

from attributes import write

topology = "two"
limit = 150

MAP = "/sys/class/rnbd-client/ctl/map_device"
# a word of the one line that says why
NAME = "session name"
PARSE = "Can't parse path"


def try_map(t, name, paths, disk="disk0"):
    """Map, which fails; nothing is left then but lines in the log."""
    args = " ".join([f"sessname={name}"] + [f"path={path}" for path in paths.split()] +
                    [f"device_path=dev/{disk}"])
    done = write(t.client, MAP, args)
    left = t.client.run("ls /sys/class/rtrs-client")
    assert not left, f"left: {left}"
    return done


def check_refused(t, done, number, reason, limit=0.5):
    """The errno, in time, and one line with the reason."""
    assert done.error == number, f"not {errno.errorcode[number]}: {done}"
    assert done.seconds <= limit * t.scale, f"took {done.seconds} s: {done}"
    lines = [line for line in done.log if re.search(reason, line)]
    assert len(lines) == 1, f"{len(lines)} lines with '{reason}': {done}"


def arguments(t):
    with t.check("addresses that are none"):
        for path, number in (("garbage", errno.EPROTONOSUPPORT),
                             ("10.0.0.1", errno.EPROTONOSUPPORT),
                             ("foo:10.0.0.1", errno.EPROTONOSUPPORT), ("ip:", errno.EINVAL),
                             ("ip:10.0.0", errno.EINVAL), ("ip:10.0.0.256", errno.EINVAL),
                             ("ip:fd00::1::2", errno.EINVAL), ("gid:zz", errno.EINVAL),
                             ("bad@ip:10.0.0.1", errno.EINVAL), ("@ip:10.0.0.1", errno.EINVAL),
                             ("ip:10.0.0.2@", errno.EPROTONOSUPPORT)):
            check_refused(t, try_map(t, "bad", path), number, PARSE)
    with t.check("session names that are none"):
        for name in "a/b", "/", "a.b", ".", "..":
            check_refused(t, try_map(t, name, t.path(0)), errno.EINVAL, NAME)
    with t.check("the same path twice"):
        for paths in (f"{t.path(0)} {t.path(0)}", "ip:10.0.0.1 ip:10.0.0.1",
                      f"{t.paths()} {t.path(0)}"):
            check_refused(t, try_map(t, "twice", paths), errno.EEXIST, "path .* cannot be added")


def nobody(t):
    """An open takes 2 s at the most, whatever does not answer."""
    for what, path, numbers in (
            ("no such host", "ip:10.0.0.77", (errno.ETIMEDOUT, errno.EHOSTUNREACH)),
            ("no such host, IPv6", "ip:fd00::77", (errno.ETIMEDOUT, errno.EHOSTUNREACH)),
            ("a host that drops all", "ip:10.0.0.78", (errno.ETIMEDOUT,)),
            ("a host without server", t.path(0), (errno.ECONNRESET,)),
            ("no route", "ip:192.0.2.1", (errno.ENETUNREACH, errno.EHOSTUNREACH)),
            ("a source that is not ours", "ip:10.0.0.99@ip:10.0.0.1",
             (errno.EADDRNOTAVAIL, errno.ENODEV, errno.EHOSTUNREACH)),
    ):
        with t.check(f"{what}: error within 2.5 s", fatal=False):
            for name in "nobody", "n" * 254:
                done = try_map(t, name, path)
                assert done.error in numbers, str(done)
                check_refused(t, done, done.error, f"<{name}>: path .* cannot be connected", 2.5)
                check_refused(t, done, done.error, f"<{name}>: the session cannot be opened", 2.5)
    with t.check("the second path answers nobody: error within 2.5 s"):
        t.server.run("server_up")
        done = try_map(t, "half", f"{t.path(0)} ip:10.0.1.77")
        check_refused(t, done, done.error, "path .*10.0.1.77 cannot be connected", 2.5)


def wrong_hca(t):
    """A real one that cannot do what RTRS needs: soft iWARP"""
    with t.check("an HCA that cannot write with an immediate"):
        t.client.run("modprobe siw; ip link add dummy9 type dummy; ip link set dummy9 up; "
                     "ip addr add 10.9.0.2/24 dev dummy9; "
                     "ip neigh add 10.9.0.1 lladdr 52:54:00:00:00:98 dev dummy9; "
                     "rdma link add siw9 type siw netdev dummy9")
        check_refused(t, try_map(t, "iwarp", "ip:10.9.0.2@ip:10.9.0.1"), errno.EOPNOTSUPP,
                      "siw9 cannot do RDMA writes with an immediate")
        t.client.run("rdma link delete siw9; ip link delete dummy9; rmmod siw")


def server_says_no(t):
    with t.check("addresses of two families: the server refuses the second"):
        done = try_map(t, "mixed", f"{t.path(0)} {t.path(1, family=6)}")
        check_refused(t, done, errno.EEXIST, r"path .*fd00:1::.* cannot be connected", 2.5)
    with t.check("a session name that another client has"):
        # the server's own client takes it first
        t.server.run("map taken disk0 ip:10.0.0.1@ip:10.0.0.1")
        done = try_map(t, "taken", t.path(0))
        check_refused(t, done, done.error, "<taken>: path .* cannot be connected", 2.5)
        assert done.error in (errno.ECONNRESET, errno.EEXIST), str(done)
        t.server.run("unmap $(basename /sys/block/rnbd*)")
    # rnbd-client of 7.3 loses its rnbd_clt_dev then (it is freed with a kobject that
    # is not made yet), which the debug kernel would lay at our door
    if t.flavour == "fast":
        with t.check("a disk that is not there"):
            done = try_map(t, "nodisk", t.path(0), disk="nodisk")
            assert done.error, str(done)
    with t.check("the right arguments still work"):
        disk = t.client.run(f"map good disk0 {t.paths()}").strip()
        t.fio(disk, size="1m").wait()
        t.client.run(f"unmap {disk}")


def run(t):
    t.server.run("disk_up disk0 16; modprobe rnbd-client")
    t.client.run("modprobe rnbd-client; ip neigh add 10.0.0.78 lladdr 52:54:00:00:00:99 dev eth0")
    arguments(t)
    nobody(t)
    wrong_hca(t)
    server_says_no(t)
    with t.check("unload"):
        t.client.run("unload rnbd_client rtrs_client rtrs_core")
        t.server.run("unload rnbd_client rtrs_client rnbd_server rtrs_server rtrs_core")
