"""Figures that need a process of their own: peak memory, import time, the cost of the lifetime facts."""

from __future__ import annotations

import compileall
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from .cases import CASES, SGD_RATE, deep_step, training_step
from .timing import Contestant, Figures, block, steps_per_block

ROOT = Path(__file__).resolve().parents[1]


def child(code: str, **environment: str) -> Any:
    """Runs one line of Python in a new process and returns what it printed last, read as JSON."""
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**inherited, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **environment},
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise RuntimeError(f"the measuring process failed: {reason}")
    return json.loads(done.stdout.splitlines()[-1])


def peak_memory(repetitions: int) -> dict[str, Figures]:
    """Bytes that a 100-layer step adds to the process at its peak, for torch and rushlight in turn."""
    found: dict[str, list[float]] = {"torch": [], "rushlight": []}
    for _ in range(repetitions):
        for engine, figures in found.items():
            figures.append(child(f"from benchmarks import children; print(children.measure_memory({engine!r}))"))
    return {engine: Figures(figures) for engine, figures in found.items()}


def import_time(repetitions: int) -> dict[str, Figures]:
    """Seconds that an import takes in a new interpreter, bytecode compiled beforehand."""
    compileall.compile_dir(ROOT / "src" / "rushlight", quiet=2)
    found: dict[str, list[float]] = {"numpy": [], "rushlight": []}
    for repetition in range(repetitions + 1):
        for module, figures in found.items():
            seconds = child(
                f"import time; began = time.perf_counter(); import {module}; print(time.perf_counter() - began)"
            )
            if repetition:  # the first round only warms the file cache
                figures.append(seconds)
    return {module: Figures(figures) for module, figures in found.items()}


def facts(names: list[str], repetitions: int, seconds: float) -> dict[str, dict[str, Figures]]:
    """Seconds a step on rushlight with its lifetime facts and without, in processes that take turns."""
    found: dict[str, dict[str, list[float]]] = {name: {"with": [], "without": []} for name in names}
    for _ in range(repetitions):
        for name in names:
            for how, setting in (("with", "1"), ("without", "0")):
                code = f"from benchmarks import children; print(children.measure_step({name!r}, {seconds}))"
                found[name][how].append(child(code, RUSHLIGHT_FACTS=setting))
    return {name: {how: Figures(figures) for how, figures in sides.items()} for name, sides in found.items()}


def memory_now(field: str) -> int:
    """Bytes from this process's status, as Linux keeps it: VmRSS (now) or VmHWM (the peak since the last reset)."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(field + ":"))


def measure_memory(engine: str) -> int:
    torch = importlib.import_module(engine)
    # A small step first: it loads whatever an engine loads lazily, which is no part of what a step costs.
    training_step(torch, layers=2, rows=8, width=16, optimizer_name="SGD", rate=SGD_RATE)()
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    baseline = memory_now("VmRSS")
    step = deep_step(torch)
    for _ in range(3):
        step()
    return memory_now("VmHWM") - baseline


def measure_step(name: str, seconds: float) -> float:
    case = next(case for case in CASES if case.name == name)
    contestant = Contestant(case.prepare(importlib.import_module("rushlight")))
    count = steps_per_block(contestant, seconds)
    return min(block(contestant, count) for _ in range(5))
