"""`python -m benchmarks`: runs the cases, prints the table, and keeps the figures as JSON."""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.metadata
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

from . import children, peers
from .cases import CASES, Case
from .timing import Contestant, Figures, block, interleaved, ratios, steps_per_block

RESULTS = Path(__file__).parent / "results.json"
PROCESS_CASES = {
    "memory": "peak memory of a 100-layer MLP step, 512x256",
    "import": "import time against numpy",
}


class Effort:
    """How long to measure: blocks of `seconds`, `repetitions` times, and so many processes for a figure."""

    def __init__(self, quick: bool) -> None:
        self.seconds = 0.002 if quick else 0.05
        self.repetitions = 2 if quick else 15
        self.memory_processes = 1 if quick else 5
        self.import_processes = 2 if quick else 15
        self.facts_processes = 1 if quick else 7


def same(ours: Any, theirs: Any) -> bool:
    """Whether two engines' gradients agree to rounding: a figure for other work would mean nothing."""
    import numpy

    one, other = (numpy.asarray(value.tolist()) for value in (ours, theirs))
    return one.shape == other.shape and float(abs(one - other).max()) <= 1e-3 * float(abs(other).max())


def best_threads(torch: Any, contestant: Contestant, seconds: float) -> int:
    """The number of threads with which torch is faster on this case: one, or all cores."""
    options = sorted({1, os.cpu_count() or 1})
    fastest: dict[int, float] = {}
    for threads in options * 2:
        torch.set_num_threads(threads)
        count = steps_per_block(contestant, seconds)
        fastest[threads] = min(fastest.get(threads, float("inf")), block(contestant, count))
    return min(options, key=fastest.__getitem__)


def timed_row(case: Case, engines: dict[str, Any], libraries: dict[str, peers.Peer], effort: Effort) -> dict[str, Any]:
    """Times one case on every engine that can do it, after checking that they get the same result."""
    torch = engines["torch"]
    steps = {name: case.prepare(engine) for name, engine in engines.items()}
    steps |= {name: peers.WORK[case.name](library) for name, library in libraries.items()}
    # The second step's gradient also shows that the first one's update was the same.
    results = {name: [step(), step()][1] for name, step in steps.items()}
    for name, result in results.items():
        if not same(result, results["torch"]):
            raise RuntimeError(f"{name} computes something else than torch: {result} against {results['torch']}")

    threads = best_threads(torch, Contestant(steps["torch"]), effort.seconds)
    contestants = {name: Contestant(step) for name, step in steps.items()}
    contestants["torch"] = Contestant(steps["torch"], lambda: torch.set_num_threads(threads))
    times = interleaved(contestants, effort.repetitions, effort.seconds)
    return {
        "name": case.name,
        "title": case.title,
        "bar": case.bar,
        "torch_threads": threads,
        "seconds": {name: figures.summary() for name, figures in times.items()},
        **ratios(times["torch"], times["rushlight"]),
        **{f"ratio_{name}": times["torch"].minimum() / times[name].minimum() for name in libraries},
    }


def process_row(name: str, effort: Effort) -> dict[str, Any]:
    """Measures peak memory or import time; here rushlight is above the line, so less is better."""
    if name == "memory":
        figures, against, bar, unit = children.peak_memory(effort.memory_processes), "torch", 1.0, "bytes"
    else:
        figures, against, bar, unit = children.import_time(effort.import_processes), "numpy", 1.3, "seconds"
    return {
        "name": name,
        "title": PROCESS_CASES[name],
        "bar": bar,
        "less_is_better": True,
        unit: {side: taken.summary() for side, taken in figures.items()},
        **ratios(figures["rushlight"], figures[against]),
    }


def figure(row: dict[str, Any], engine: str) -> str:
    """One engine's fastest figure, in the unit people read it in."""
    if "bytes" in row:
        found = row["bytes"].get(engine)
        return f"{found['minimum'] / 2**20:.1f} MiB" if found else "-"
    found = row.get("seconds", {}).get(engine)
    if not found:
        return "-"
    microseconds = found["minimum"] * 1e6
    return f"{microseconds:.1f} us" if microseconds < 10_000 else f"{microseconds / 1000:.1f} ms"


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as text. Ratios are torch / engine (more is better), but rushlight / other for memory and import."""
    lines = [("case", "torch", "rushlight", "ratio", "(median)", "bar", "met", "autograd", "jax")]
    for row in rows:
        if "error" in row:
            lines.append((row["title"], "-", "-", "-", "-", "-", "no", "-", "-"))
            continue
        less = row.get("less_is_better", False)
        met = row["ratio"] <= row["bar"] if less else row["ratio"] >= row["bar"]
        reference = "numpy" if row["name"] == "import" else "torch"
        threads = f" ({row['torch_threads']}t)" if "torch_threads" in row else ""
        others = [f"{row[key]:.2f}" if (key := f"ratio_{name}") in row else "-" for name in ("autograd", "jax")]
        lines.append(
            (
                row["title"],
                figure(row, reference) + threads,
                figure(row, "rushlight"),
                f"{row['ratio']:.2f}",
                f"{row['ratio_median']:.2f}",
                ("<= " if less else ">= ") + f"{row['bar']:g}",
                "yes" if met else "no",
                *others,
            )
        )
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) if not column else cell.rjust(width) for column, (cell, width) in enumerate(pairs))
        for pairs in (list(zip(line, widths)) for line in lines)
    )


def facts_table(found: dict[str, dict[str, Figures]]) -> str:
    lines = [f"{'cost of the lifetime facts':28}  {'with':>10}  {'without':>10}  {'cost':>6}"]
    for name, sides in found.items():
        cost = ratios(sides["with"], sides["without"])["ratio"] - 1
        on, off = (f"{sides[how].minimum() * 1e6:.1f} us" for how in ("with", "without"))
        lines.append(f"{name:28}  {on:>10}  {off:>10}  {cost:>+6.1%}")
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    """What the figures depend on, so that a kept file can be read later."""
    versions = {}
    for package in ("numpy", "torch", "rushlight", "jax", "autograd"):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "versions": versions,
    }


def main() -> int:
    names = [case.name for case in CASES] + list(PROCESS_CASES)
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fast smoke run; its figures are rough")
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help="one case: " + ", ".join(names))
    parser.add_argument("--facts", action="store_true", help="the cost of the lifetime facts instead of the table")
    parser.add_argument("--output", type=Path, help=f"where to keep the JSON (a full run keeps it in {RESULTS.name})")
    options = parser.parse_args()
    effort = Effort(options.quick)
    wanted = options.only or names
    # A partial or rough run must not replace the kept figures of a full one.
    output = options.output or (None if options.quick or options.only else RESULTS)
    kept: dict[str, Any] = json.loads(output.read_text()) if output and output.exists() else {}
    kept["machine"] = machine()

    if options.facts:
        bound = [case.name for case in CASES if case.overhead_bound and case.name in wanted]
        found = children.facts(bound, effort.facts_processes, effort.seconds)
        kept["facts"] = {name: {how: sides[how].summary() for how in sides} for name, sides in found.items()}
        print(facts_table(found))
        failed = False
    else:
        kept["rows"] = rows = measure(wanted, effort)
        print(table(rows))
        failed = any("error" in row for row in rows)
    if output:
        output.write_text(json.dumps(kept, indent=1) + "\n")
    return 1 if failed else 0


def measure(wanted: list[str], effort: Effort) -> list[dict[str, Any]]:
    """Measures the wanted rows; a row that cannot be measured says why and does not stop the others."""
    try:
        engines = {name: importlib.import_module(name) for name in ("torch", "rushlight")}
    except ImportError as error:
        missing = f"{error.name} is not installed (pip install -e '.[torch]')"
        raise SystemExit(f"error: a ratio needs both engines, and {missing}") from None
    libraries = peers.installed()
    # What the imports made stays out of the collector's rounds: no engine should pay for walking another one's modules.
    gc.collect()
    gc.freeze()
    by_name = {case.name: case for case in CASES}
    rows = []
    for name in wanted:
        print(f"measuring {name}", file=sys.stderr)
        try:
            if name in by_name:
                rows.append(timed_row(by_name[name], engines, libraries, effort))
            else:
                rows.append(process_row(name, effort))
        except Exception as error:
            print(f"{name} failed: {type(error).__name__}: {error}", file=sys.stderr)
            title = by_name[name].title if name in by_name else PROCESS_CASES[name]
            rows.append({"name": name, "title": title, "error": f"{type(error).__name__}: {error}"})
    return rows


if __name__ == "__main__":
    sys.exit(main())
