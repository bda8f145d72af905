"""The benchmark's quick run fills every row with numbers; how large they are is nobody's business here."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TIMED = ["chain-number", "chain-constant", "chain-leaf", "mlp-8x16", "mlp-32x64", "hvp", "two-losses", "mlp-256x1024"]


def run_benchmarks(*arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        timeout=300,
    )


def test_quick_table_has_every_row(tmp_path):
    pytest.importorskip("torch", reason="every figure is a ratio against real PyTorch")
    output = tmp_path / "results.json"
    done = run_benchmarks("--quick", "--output", str(output))
    assert done.returncode == 0, done.stderr
    rows = json.loads(output.read_text())["rows"]
    assert [row["name"] for row in rows] == [*TIMED, "memory", "import"]
    for row in rows:
        for figure in (row["ratio"], row["ratio_median"]):
            assert math.isfinite(figure), row
            assert figure > 0, row
        assert row["title"] in done.stdout
    header, *lines = done.stdout.splitlines()
    assert header.split()[0] == "case"
    assert len(lines) == len(rows)


def test_facts_run_compares_with_and_without(tmp_path):
    output = tmp_path / "facts.json"
    done = run_benchmarks("--quick", "--facts", "--only", "chain-number", "--output", str(output))
    assert done.returncode == 0, done.stderr
    sides = json.loads(output.read_text())["facts"]["chain-number"]
    assert all(sides[how]["minimum"] > 0 for how in ("with", "without"))


def test_unknown_case_is_refused():
    done = run_benchmarks("--only", "nonsense")
    assert done.returncode == 2
    assert "nonsense" in done.stderr


def test_a_kept_full_run_is_not_replaced_by_a_partial_one(tmp_path):
    results = ROOT / "benchmarks" / "results.json"
    before = results.read_bytes() if results.exists() else None
    pytest.importorskip("torch", reason="every figure is a ratio against real PyTorch")
    done = run_benchmarks("--quick", "--only", "chain-number")
    assert done.returncode == 0, done.stderr
    assert (results.read_bytes() if results.exists() else None) == before
