# SPDX-License-Identifier: GPL-2.0-or-later
"""What a benchmark found: as a table, as JSON, as a chart, against a baseline."""

import json
import shutil
import subprocess
from pathlib import Path

# A change beyond this is shown. The cost of large requests depends on how many
# pieces fio's memory is in, which the page allocator decides; so does free memory.
SHOWN = {"4k": 0.01, "64k": 0.03, "1m": 0.03, "open_ns": 0.02, "memory_kib": 0.05}

# The table: heading, column, and the column that it is divided by
COMPARE = [
    ("ours/upstream Y", "ours Y", "upstream Y"),
    ("ours/upstream N", "ours N", "upstream N"),
    ("ours Y/nvme reg", "ours Y", "nvme reg"),
    ("ours N/nvme reg", "ours N", "nvme reg"),
    ("both unreg N", "ours N unreg", "nvme unreg"),
    ("unreg/upstream N", "ours N unreg", "upstream N"),
    ("unreg/upstream Y", "ours Y unreg", "upstream Y"),
]
# The chart: heading, and the columns of it, all relative to the first
PANELS = [
    ("always\\_invalidate=Y", ["upstream Y", "ours Y", "nvme reg"]),
    ("always\\_invalidate=N", ["upstream N", "ours N", "nvme reg"]),
]


def need_gnuplot():
    if not shutil.which("gnuplot"):
        raise SystemExit("bench: no program gnuplot; install the package gnuplot-nox")


def rows(head, body):
    """Lines of a table in Markdown, numbers to the right."""
    table = [head] + body
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]

    def line(cells):
        return "| " + " | ".join(c.ljust(w) if not i else c.rjust(w)
                                 for i, (c, w) in enumerate(zip(cells, widths))) + " |"

    rule = "|" + "|".join("-" * (w + 1) + ("-" if not i else ":")
                          for i, w in enumerate(widths)) + "|"
    return [line(head), rule] + [line(row) for row in body]


def number(value):
    return "" if value is None else f"{value:,.0f}"


def ratio(values, above, below):
    if above not in values or below not in values:
        return ""
    return f"{values[above] / values[below]:.3f}"


def tables(results):
    iops = results["iops"]
    columns = list(dict.fromkeys(c for values in iops.values() for c in values))
    lines = []
    if columns:
        lines = ["Requests a second of the machine's time:", ""]
        lines += rows(["", *columns], [[load, *(number(values.get(c)) for c in columns)]
                                       for load, values in iops.items()])
    compare = [c for c in COMPARE if c[1] in columns and c[2] in columns]
    if compare:
        lines += ["", "Ratios:", ""]
        lines += rows(["", *(c[0] for c in compare)],
                      [[load, *(ratio(values, above, below) for _, above, below in compare)]
                       for load, values in iops.items()])
    for key, what, unit in (("open_ns", "To open a session, 8 CPUs, 1 path", 1e6),
                            ("memory_kib", "Memory of a session, 2 CPUs, 2 paths", 1024)):
        values = results[key]
        if not values:
            continue
        lines += ["", f"{what} ({'ms' if key == 'open_ns' else 'MiB'}):", ""]
        lines += rows(["", "ours", "upstream", "ours/upstream"],
                      [[mode, f"{values[f'ours {mode}'] / unit:.2f}",
                        f"{values[f'upstream {mode}'] / unit:.2f}",
                        ratio(values, f"ours {mode}", f"upstream {mode}")] for mode in "YN"])
    return lines


def flat(results):
    """{(kind, what, who): value}, and whether more is better."""
    found = {("iops", load, column): value for load, values in results["iops"].items()
             for column, value in values.items()}
    for key in "open_ns", "memory_kib":
        found.update({(key, "", who): value for who, value in results[key].items()})
    return found


def changes(old, new):
    """Lines for what changed by more than SHOWN, and whether one of ours got worse."""
    lines, worse = [], False
    if old["kernel"] != new["kernel"]:
        lines.append(f"the baseline is of another kernel: {old['kernel']}")
    before, after = flat(old), flat(new)
    for key in sorted(before.keys() & after.keys()):
        kind, what, who = key
        change = after[key] / before[key] - 1
        if abs(change) <= SHOWN[what.split()[1] if what else kind]:
            continue
        loss = (change < 0) == (kind == "iops")
        worse |= loss and who.startswith("ours")
        lines.append(f"{'worse ' if loss else 'better'} {change:+7.1%}  {kind} {what} {who}: "
                     f"{before[key]:,.0f} -> {after[key]:,.0f}")
    for key in sorted(before.keys() ^ after.keys()):
        lines.append(f"only {'before' if key in before else 'now'}: {' '.join(key)}")
    return lines, worse


def chart(results, out):
    """Bars, relative to upstream."""
    with open(out / "chart.data", "w", encoding="utf-8") as file:
        for _, columns in PANELS:
            print("load", *(f'"{c}"' for c in columns), file=file)
            for load, values in results["iops"].items():
                print(f'"{load}"', *(f"{values[c] / values[columns[0]]:.4f}" for c in columns),
                      file=file)
            print("\n", file=file)
    for terminal, suffix in (("svg size 1100,700 dynamic background 'white'", "svg"),
                             ("pngcairo size 1100,700", "png")):
        subprocess.run(["gnuplot", "-e", f"set terminal {terminal}; set output "
                        f"'{out}/chart.{suffix}'; data = '{out}/chart.data'",
                        "-e", "".join(f"title{n} = '{title}'; " for n, (title, _)
                                      in enumerate(PANELS)),
                        Path(__file__).with_name("chart.gp")], check=True)


def report(results, out, baseline, everything, save):
    """Print and write it all; the exit status."""
    text = "\n".join(tables(results)) + "\n"
    print(text)
    data = json.dumps(results, indent=1) + "\n"
    name = "bench" if everything else "part"
    (out / f"{name}.json").write_text(data, encoding="utf-8")
    (out / f"{name}.md").write_text(text, encoding="utf-8")
    if not everything:
        return 0
    chart(results, out)
    print(f"{out}/bench.json, bench.md, chart.svg, chart.png")
    if save:
        baseline.write_text(data, encoding="utf-8")
        return 0
    if not baseline.exists():
        print(f"no baseline: {baseline}")
        return 1
    lines, worse = changes(json.loads(baseline.read_text(encoding="utf-8")), results)
    print("\nAgainst the baseline:", *(lines or ["no change"]), sep="\n")
    return int(worse)
