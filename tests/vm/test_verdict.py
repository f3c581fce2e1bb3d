#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the verdict, on logs that were recorded from machines which did what the
name of the log says, and were shortened."""

import subprocess
import sys
import time
import unittest
from pathlib import Path

import harness
import verdict
from verdict import Check

HERE = Path(__file__).resolve().parent
SOURCE = subprocess.run([HERE / "kernel", "source"], stdout=subprocess.PIPE, text=True,
                        check=True).stdout.strip()


def log(name):
    return (HERE / "logs" / f"{name}.log").read_text()


class Console(unittest.TestCase):
    def assert_bad(self, text, reason, ended=True):
        problem = verdict.console_problem(text, ended)
        self.assertIsNotNone(problem)
        self.assertIn(reason, problem)

    def test_pass(self):
        self.assertIsNone(verdict.console_problem(log("pass")))

    def test_recorded_splats(self):
        for name, reason in {
                "warning": "WARNING: splat.c:17",
                "refcount": "refcount_t: addition on 0",
                "panic": "BUG: kernel NULL pointer dereference",
                "kasan": "BUG: KASAN: slab-use-after-free",
                "lockdep": "WARNING: possible circular locking",
                "atomic": "BUG: scheduling while atomic",
                "rcu": "WARNING: suspicious RCU usage",
                "hang": "INFO: task modprobe:",
                "leak": "unreferenced object",
        }.items():
            with self.subTest(name):
                self.assert_bad(log(name), reason)
                self.assert_bad(log(name), reason, ended=False)

    def test_first_splat_is_shown_with_its_surroundings(self):
        problem = verdict.console_problem(log("warning"))
        self.assertIn("> [", problem)
        self.assertIn("loading out-of-tree module", problem)
        self.assertIn("Call Trace:", problem)

    def test_other_splats(self):
        for line in (
                "UBSAN: array-index-out-of-bounds in rtrs.c:7:3",
                "list_add corruption. next->prev should be prev",
                "list_del corruption, ff110000->next is LIST_POISON1",
                "BUG kmalloc-128 (Tainted: G           O): Right Redzone overwritten",
                "ODEBUG: free active (active state 0) object type: work_struct",
                "DMA-API: rxe0: device driver frees DMA memory with wrong function",
                "INFO: rcu_preempt detected stalls on CPUs/tasks:",
                "rcu: INFO: rcu_preempt self-detected stall on CPU",
                "watchdog: BUG: soft lockup - CPU#0 stuck for 22s!",
                "BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0",
                "BUG: sleeping function called from invalid context at mm/slab.h:1",
                "BUG: MAX_LOCKDEP_CHAINS too low!",
                "WARNING: inconsistent lock state",
                "Oops: general protection fault, 0000 [#1] SMP KASAN",
                "kmemleak: 3 new suspected memory leaks",
                "kmemleak: Kernel memory leak detector disabled",
                "kmemleak: Cannot allocate a kmemleak_object structure",
                "kmemleak: Memory pool empty, consider increasing",
                "** 17 printk messages dropped **",
                "kobject: kobject 'a' (00000000): tried to add an uninitialized object",
                "unregister_netdevice: waiting for dummy0 to become free. Usage count = 2",
                "turning off the locking correctness validator.",
                "Disabling lock debugging due to kernel taint",
                "rtrs_client L783: <a>: HCA does not drain the queue of connection 0: -110",
                "rtrs_client L783: <a>: HCA does not drain the queue of connection 1: -ETIMEDOUT",
                "rtrs_client L184: <a>: close still waits for 3 permits",
                "sysfs: cannot create duplicate filename '/class/rtrs-client/a'",
        ):
            with self.subTest(line):
                text = log("pass").replace("[    1.758077]", f"[    1.7] {line}\n[    1.758077]")
                self.assert_bad(text, line)

    def test_harmless_lines(self):
        for line in (
                "DMA-API: preallocated 65536 debug entries",
                "DMA-API: debugging enabled by kernel config",
                "DMA-API: dma_debug_entry pool grown to 66560 (100%)",
                "FAULT_INJECTION: forcing a failure.",
                "rtrs_client: a path is lost, no warning given",
                "kmemleak: Kernel memory leak detector initialized (mem pool available: 35795)",
                "kmemleak: Automatic memory scanning thread started",
                "kobject: 'a' (00000000): kobject_release, parent 00000000 (delayed 500)",
                "rtrs_client L783: <a>: HCA does not drain the queue of connection 0: -12",
        ):
            with self.subTest(line):
                text = log("pass").replace("[    1.758077]", f"[    1.7] {line}\n[    1.758077]")
                self.assertIsNone(verdict.console_problem(text))

    def test_truncated(self):
        text = "\n".join(log("pass").splitlines()[:-3])
        self.assert_bad(text, "end marker seen 0 times")

    def test_power_cut_on_purpose(self):
        text = "\n".join(log("pass").splitlines()[:-3])
        self.assertIsNone(verdict.console_problem(text, ended=False))

    def test_double_boot(self):
        self.assert_bad(log("pass") + log("pass"), "boot banner seen 2 times")

    def test_no_boot(self):
        self.assert_bad("", "boot banner seen 0 times")
        self.assert_bad("", "boot banner seen 0 times", ended=False)

    def test_end_marker_is_not_last(self):
        self.assert_bad(log("pass") + "[    1.99] rtrs_client: late\n", "line after the end marker")


class Ktap(unittest.TestCase):
    def results(self, text):
        return [(check.name, check.result) for check in verdict.ktap_checks(text, SOURCE)]

    def test_pass(self):
        self.assertEqual(self.results("KTAP version 1\n1..2\nok 1 a\nok 2 b\n"),
                         [("a", "PASS"), ("b", "PASS")])

    def test_fail(self):
        text = "KTAP version 1\n1..2\nok 1 a\n# because\nnot ok 2 b\n"
        self.assertEqual(self.results(text), [("a", "PASS"), ("b", "FAIL")])
        self.assertIn("because", verdict.ktap_checks(text, SOURCE)[1].detail)

    def test_skip(self):
        self.assertEqual(self.results("KTAP version 1\n1..1\nok 1 a # SKIP no device\n"),
                         [("a", "SKIP")])

    def test_bad_output(self):
        for name, text in {
                "nothing": "",
                "no test": "KTAP version 1\n1..0\n",
                "no plan": "KTAP version 1\nok 1 a\n",
                "plan not kept": "KTAP version 1\n1..2\nok 1 a\n",
                "suite without result":
                    "KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: s\n"
                    "    1..1\n    ok 1 a\n",
                "suite failed, its tests did not":
                    "KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: s\n"
                    "    1..1\n    ok 1 a\nnot ok 1 s\n",
        }.items():
            with self.subTest(name):
                self.assertIn("FAIL", [result for _, result in self.results(text)])

    def test_failed_case_of_a_parameterised_test(self):
        text = ("KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: s\n    1..1\n"
                "        KTAP version 1\n        # Subtest: p\n        ok 1 one\n"
                "        not ok 2 two\n    not ok 1 p\nnot ok 1 s\n")
        self.assertEqual(self.results(text), [("s: p (2 cases)", "FAIL")])

    def test_scenario(self):
        checks = [Check("a", "PASS"), Check("b", "PASS")]
        self.assertEqual(self.results(harness.ktap(checks, True)), [("a", "PASS"), ("b", "PASS")])
        # one that was ended early, all checks until then good
        self.assertIn("FAIL", [r for _, r in self.results(harness.ktap(checks, False))])
        self.assertIn("FAIL", [r for _, r in self.results(harness.ktap([], True))])


class Kunit(unittest.TestCase):
    def results(self, text):
        return [(check.name, check.result) for check in verdict.kunit_checks(text, SOURCE)]

    def test_fail(self):
        self.assertEqual(self.results(log("kunit-fail")),
                         [("example: good", "PASS"), ("example: bad", "FAIL")])

    def test_pass(self):
        self.assertEqual(self.results(log("kunit-fail").replace("not ok", "ok")),
                         [("example: good", "PASS"), ("example: bad", "PASS")])

    def test_died_while_loading(self):
        text = log("kunit-fail").partition("    not ok 2")[0]
        self.assertIn(("kt loads", "FAIL"), self.results(text))

    def test_hostile_cases(self):
        text = ("[    1.0]     # Subtest: rtrs_peer_io\n[    1.1]         # Subtest: io_test\n"
                "[    2.0] # Totals: pass:119 fail:1 skip:0 total:{}\n"
                "[    3.0]     # Subtest: rtrs_addr\n[    4.0] # Totals: pass:94 total:94\n")
        results = [verdict.hostile_check(text.format(n)).result for n in (120, 119)]
        self.assertEqual(results, ["PASS", "FAIL"])

    def test_no_suite_in_a_module(self):
        text = "[    1.2] vm: load kt\n[    1.3] vm: loaded kt\n"
        self.assertIn("FAIL", [result for _, result in self.results(text)])

    def test_no_module(self):
        self.assertEqual(self.results(log("pass")), [("KUnit modules", "FAIL")])


class Report(unittest.TextTestResult):
    """A line for each test, in the form of the other checks."""

    def startTest(self, test):
        super().startTest(test)
        self.start = time.monotonic()
        self.bad = len(self.failures) + len(self.errors)

    def stopTest(self, test):
        bad = len(self.failures) + len(self.errors) > self.bad
        name = test.id().removeprefix("__main__.").replace(".test_", ": ").replace("_", " ")
        print(f"{'FAIL' if bad else 'PASS'}  verdict: {name} "
              f"({time.monotonic() - self.start:.1f} s)", flush=True)
        super().stopTest(test)


if __name__ == "__main__":
    RUNNER = unittest.TextTestRunner(stream=sys.stdout, verbosity=0, resultclass=Report)
    unittest.main(testRunner=RUNNER)
