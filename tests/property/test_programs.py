"""Random programs behave the same on rushlight and on real torch: values, flags, versions, gradients and errors.

RUSHLIGHT_PROPERTY_EXAMPLES=5000 hunts with that many random programs instead of the fixed few hundred;
RUSHLIGHT_PROPERTY_STATISTICS=1 prints how often each kind of step and error was reached.
"""

from __future__ import annotations

import collections
import os

import pytest
from hypothesis import HealthCheck, given, settings

from tests.property.programs import differing, programs, run_program, smallest

HUNT = int(os.environ.get("RUSHLIGHT_PROPERTY_EXAMPLES", "0"))
COMMON = settings(
    max_examples=HUNT or 300,
    derandomize=not HUNT,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
# Which errors the programs must meet, so that agreement on errors means something.
KINDS = ["freed", "version", "leaf-inplace", "view-inplace", "no-grad", "shape", "unused", "scalar", "overlap"]

torch = pytest.importorskip("torch", reason="real torch is the truth these programs are compared with")


@COMMON
@given(program=programs() if HUNT else programs(1000))
def test_traces_agree_with_torch(program):
    import rushlight

    def problem_of(steps):
        return differing(run_program(torch, steps), run_program(rushlight, steps))

    if problem_of(program) is not None:
        short = smallest(program, lambda steps: problem_of(steps) is not None)
        pytest.fail(f"{problem_of(short)}\nprogram:\n" + "\n".join(f"  {step}" for step in short), pytrace=False)


@settings(COMMON, max_examples=100)
@given(program=programs())
def test_torch_agrees_with_itself(program):
    assert differing(run_program(torch, program), run_program(torch, program)) is None


def test_programs_reach_every_kind_of_error():
    counts: collections.Counter[str] = collections.Counter()
    steps: collections.Counter[str] = collections.Counter()

    @COMMON
    @given(program=programs())
    def count(program):
        trace = run_program(torch, program)
        kinds = [record["error"][1] for record in trace if "error" in record]
        counts.update(kinds or ["none"])
        steps.update(step[0] for step, record in zip(program, trace, strict=False) if "error" not in record)
        counts["programs"] += 1
        counts["with a gradient"] += any(grad is not None for grad in trace[-1]["grads"])
        counts["hook fired"] += bool(trace[-1]["hooks"])

    count()
    if os.environ.get("RUSHLIGHT_PROPERTY_STATISTICS"):
        print("\nends:", dict(counts.most_common()), "\nsteps that ran:", dict(steps.most_common()))
    missing = [kind for kind in KINDS if counts[kind] < counts["programs"] / 200]
    assert not missing, f"too rare: {missing} in {dict(counts)}"
    assert counts["with a gradient"] > counts["programs"] / 5
