"""The examples tell the same story on Rushlight as on PyTorch, step by step, and run as scripts without PyTorch."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples"
NAMES = (
    "backward_twice",
    "recompute_forward",
    "retain_graph",
    "detach",
    "hidden_state",
    "two_losses",
    "running_loss",
    "zero_grad",
    "gradient_accumulation",
    "second_order",
    "meta_learning",
    "actor_critic",
)


def differences(ours, theirs, place):
    """Lists where two recorded values differ: numbers beyond rounding, everything else at all."""
    if isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            return [f"{place}: {len(ours)} values against {len(theirs)}"]
        pairs = enumerate(zip(ours, theirs))
        return [line for index, (one, other) in pairs for line in differences(one, other, f"{place}[{index}]")]
    if type(ours) is float and type(theirs) is float:
        same = ours == pytest.approx(theirs, rel=2e-4, abs=2e-6, nan_ok=True)
    else:
        same = type(ours) is type(theirs) and ours == theirs
    return [] if same else [f"{place}: {ours!r} against {theirs!r}"]


def test_every_example_is_listed_here():
    assert {path.stem for path in FOLDER.glob("*.py")} == {*NAMES, "story"}


@pytest.mark.parametrize("name", NAMES)
def test_same_trace_as_torch(name):
    torch = pytest.importorskip("torch", reason="the trace is compared with real PyTorch")
    import rushlight

    example = importlib.import_module(name)
    theirs = example.run(torch).steps
    ours = example.run(rushlight).steps
    assert [step.label for step in ours] == [step.label for step in theirs]
    found = [
        line
        for number, (one, other) in enumerate(zip(ours, theirs))
        for line in differences(one.value, other.value, f"step {number}, {one.label}")
    ]
    assert not found, "rushlight against torch:\n" + "\n".join(found)


@pytest.mark.parametrize("name", NAMES)
def test_runs_as_a_script_without_torch(name, tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('an example must not import torch by itself')\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT / "src")])}
    done = subprocess.run(
        [sys.executable, str(FOLDER / f"{name}.py")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    title = importlib.import_module(name).__doc__.strip()
    assert done.stdout.startswith(title)
    assert done.stdout.count("\n- ") >= 5


def test_memory_growth_is_visible(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, str(FOLDER / "running_loss.py")], capture_output=True, text=True, env=environment, timeout=120
    )
    growing, steady = (int(number) for number in re.findall(r": (\d+) KiB$", done.stdout, re.MULTILINE))
    # Forty graphs, each with two saved vectors of 2000 float32: some 600 KiB, against nearly nothing.
    assert growing > 300
    assert steady < growing / 5


@pytest.mark.parametrize("name", NAMES)
def test_docstring_is_two_sentences(name):
    prose = re.sub(r"`[^`]*`", "code", importlib.import_module(name).__doc__.strip())
    assert len(re.findall(r"[.!?](?=\s|$)", prose)) == 2


def test_comparison_notices_differences():
    assert differences([1.0, [2.0]], [1.0, [2.0]], "x") == []
    assert differences([1.0, [2.0]], [1.0, [2.01]], "x") == ["x[1][0]: 2.0 against 2.01"]
    assert differences(None, 0.0, "x") == ["x: None against 0.0"]
    assert differences(True, 1, "x") == ["x: True against 1"]
    assert differences("RuntimeError: a", "ValueError: a", "x")
