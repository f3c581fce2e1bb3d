# SPDX-License-Identifier: GPL-2.0-or-later
"""Breaking links and watching paths, for scenarios with two machines."""

import time

SESSION = "/sys/class/rtrs-client"


def within(t, took, seconds):
    """It took no longer than it may, which is more on a slow kernel."""
    assert took < seconds * t.scale, f"took {took:.2f} s, may take {seconds * t.scale:g} s"
    print(f"      {took:.2f} s")


def spoil(t, link, how, vms=None):
    """Have netem do this to what machines (default: both) send on a link. It is only
    told so: to put it there now would break queue pairs (see link_up in lib.sh)."""
    for vm in vms or t.vms():
        vm.run(f"tc qdisc change dev eth{link} root netem {how} limit 10000")


def cut(t, link, vms=None):
    """Nothing gets through any more, and nobody is told."""
    spoil(t, link, "loss 100%", vms)


def heal(t, link):
    """Undo spoil() and cut(), and `ip link set down`."""
    for vm in t.vms():
        if vm.running():
            vm.run(f"tc qdisc change dev eth{link} root netem limit 10000; "
                   f"ip link set eth{link} up")


def set_attr(t, session, name, value):
    t.client.run(f"echo {value} >{SESSION}/{session}/{name}")


def path_attr(t, session, path, name):
    return t.client.run(f"cat '{SESSION}/{session}/paths/{path}/{name}'").strip()


def write_path(t, session, path, name, timeout=30):
    """Write 1 to a path's attribute: (status, seconds it took)."""
    start = time.monotonic()
    status, _ = t.client.status(f"echo 1 >'{SESSION}/{session}/paths/{path}/{name}'", timeout)
    return status, time.monotonic() - start


def reconnect(t, session, path, limit=15):
    """A manual reconnect, seconds it took. It is refused while an attempt of the path's
    own is under way, as one may be of a path that has been trying."""
    start = time.monotonic()

    def done():
        status, output = t.client.status(
            f"echo 1 >'{SESSION}/{session}/paths/{path}/reconnect'")
        assert not status or "busy" in output, output
        return not status
    t.wait_until(f"{path} can be reconnected", done, limit)
    return time.monotonic() - start


def wait_state(t, session, path, state, limit=10):
    """Seconds until a path has the state. Looked at every 20 ms inside the machine."""
    start = time.monotonic()
    t.client.run(f"cd '{SESSION}/{session}/paths/{path}'; "
                 f"until [ \"$(cat state)\" = {state} ]; do sleep 0.02; done",
                 timeout=limit)
    return time.monotonic() - start


def lost_paths(t):
    """What the client's kernel has said about lost paths, why and when"""
    return t.client.run("dmesg | grep 'is lost' || true").splitlines()


def wait_all_up(t, session, limit=15):
    t.wait_until("all paths are connected",
                 lambda: set(t.states(session).values()) == {"connected"}, limit)


def wait_settled(t, session, limit=20):
    """Until all paths are up and will stay so: the transport takes half a second to
    repeat what it has lost, and may find only then that it cannot."""
    time.sleep(1.2 * t.scale)
    t.wait_until("all paths are up for a while", lambda: all(
        path_attr(t, session, path, "state") == "connected" and
        int(path_attr(t, session, path, "state_ms")) > 1000
        for path in t.states(session)), limit)


def rdma_stats(t, session):
    """{path: the six numbers of stats/rdma}"""
    return {path: [int(n) for n in path_attr(t, session, path, "stats/rdma").split()]
            for path in t.states(session)}


def check_idle(t, session):
    """When nothing is under way no path may count anything in flight."""
    with t.check("idle: inflight is 0 on every path"):
        counts = rdma_stats(t, session)
        assert all(c[4] == 0 for c in counts.values()), counts


def check_unload(t, disk):
    with t.check("unmap, and the modules unload"):
        t.client.run(f"unmap {disk}")
        t.client.run("unload rnbd_client rtrs_client rtrs_core")
