"""Families of operations that are read on demand are found under every name they give."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import rushlight

PROGRAM = """
import rushlight
from rushlight.ops import families
from rushlight.tensor import Tensor

methods = set(Tensor.__dict__)
assert len(families._unread) == len(families.ON_DEMAND), "importing the package read a family that should wait"
{before}
families.load_all()
for name in families.ON_DEMAND_METHODS:
    assert callable(Tensor.__dict__[name]), name + " is a property, which a stand-in cannot stand in for"
print(sorted(name for name in set(Tensor.__dict__) - methods if not name.startswith("_")))
"""


def run(before: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(Path(rushlight.__file__).parents[1])}
    finished = subprocess.run([sys.executable, "-c", PROGRAM.format(before=before)], capture_output=True, text=True,
                              env=environment)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.strip()


def test_every_method_has_a_stand_in_from_the_start():
    assert run("") == "[]"


def test_names_are_found_one_by_one():
    run("""
x = rushlight.tensor([3.0, 1.0, 2.0], requires_grad=True)
assert x.cumsum(0).tolist() == [3.0, 4.0, 6.0]
assert len(families._unread) > len(families.ON_DEMAND) // 2, "one name read most families"
assert rushlight.sort(x).values.tolist() == [1.0, 2.0, 3.0]
assert rushlight.linalg.norm(x).item() > 3
rushlight.cumprod(x, 0).sum().backward()
assert x.grad is not None
try:
    rushlight.no_such_operation
except AttributeError as error:
    assert "no_such_operation" in str(error)
else:
    raise AssertionError("a name that nothing has was found")
""")
