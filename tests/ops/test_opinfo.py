"""Every operation that rushlight has, against real torch, on the samples of PyTorch's own op database."""

from __future__ import annotations

import importlib.util
import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="real torch is the truth these samples are compared with (pip install torch)")
pytest.importorskip(
    "expecttest", reason="PyTorch's op database cannot be imported without expecttest (pip install expecttest)"
)

import torch
from torch.testing._internal.common_methods_invocations import op_db

from tests.ops import opinfo
from tests.ops.exemptions import KNOWN, NOT_COMPARABLE, reason
from tests.ops.opinfo import OURS, TORCH, Sample, assert_all_same, assert_same_gradients, cotangents, flat

pytestmark = [pytest.mark.filterwarnings("ignore")]

PUBLIC = [index for index, op in enumerate(op_db) if opinfo.is_public(op)]
PRESENT = [index for index in PUBLIC if opinfo.is_present(op_db[index])]
# Entries of the database under a public name that rushlight has. Raise it when operations are added.
FLOOR = 668
ASPECTS: dict[str, Callable[[Any, int], None]] = {}


def aspect(check: Callable[[Any, int], None]) -> Callable[[Any, int], None]:
    ASPECTS[check.__name__] = check
    return check


def samples_of(op: Any, index: int, count: int = opinfo.SAMPLES) -> list[Any]:
    dtypes = opinfo.dtypes_of(op)
    found = opinfo.samples(index, dtypes[0])[:count] if dtypes else []
    if not found:
        pytest.skip("no sample of it means anything outside torch")
    return found


@aspect
def values(op: Any, index: int) -> None:
    """Shape, dtype, values and requires_grad of the outputs."""
    for sample in samples_of(op, index):
        theirs, mine = Sample(TORCH, sample), Sample(OURS, sample)
        expected, found = theirs.call(TORCH.function_of(op)), mine.call(OURS.function_of(op))
        assert_all_same(flat(expected), flat(found), "output", values=False)
        assert_all_same(flat(theirs.processed(expected)), flat(mine.processed(found)), "output")
        for number, (one, other) in enumerate(zip(flat(expected), flat(found), strict=True)):
            if opinfo.is_tensor(one):
                assert other.requires_grad == one.requires_grad, f"requires_grad of output {number}"


@aspect
def dtypes(op: Any, index: int) -> None:
    """The same in the other dtypes, one sample each."""
    for dtype in opinfo.dtypes_of(op)[1:]:
        for sample in opinfo.samples(index, dtype, 1):
            theirs, mine = Sample(TORCH, sample), Sample(OURS, sample)
            expected, found = theirs.call(TORCH.function_of(op)), mine.call(OURS.function_of(op))
            assert_all_same(flat(expected), flat(found), f"{dtype} output", values=False)
            assert_all_same(flat(theirs.processed(expected)), flat(mine.processed(found)), f"{dtype} output")


def outputs(engine: opinfo.Engine, op: Any, sample: Any) -> tuple[list, list]:
    """Leaves and differentiable outputs."""
    made = Sample(engine, sample)
    return made.leaves, made.differentiable_outputs(op)


@aspect
def gradients(op: Any, index: int) -> None:
    """Gradients for a random cotangent: by backward() for the first sample, by grad() for the others."""
    for number, sample in enumerate(samples_of(op, index)):
        results = []
        for engine in (TORCH, OURS):
            leaves, found = outputs(engine, op, sample)
            if not found or not leaves:
                assert engine is TORCH, "no output requires grad"
                break
            given = cotangents(engine, found, op.name)
            if number:
                results.append(engine.module.autograd.grad(found, leaves, given, allow_unused=True))
            else:
                engine.module.autograd.backward(found, given)
                results.append([leaf.grad for leaf in leaves])
        else:
            assert_same_gradients(*results, "gradient of input")


@aspect
def second_order(op: Any, index: int) -> None:
    """Gradients of the gradients, with respect to the inputs and the cotangents."""
    for sample in samples_of(op, index, opinfo.SAMPLES - 1):
        results = []
        for engine in (TORCH, OURS):
            leaves, found = outputs(engine, op, sample)
            if not found or not leaves:
                break
            given = cotangents(engine, found, op.name, requires_grad=True)
            try:
                first = engine.module.autograd.grad(found, leaves, given, allow_unused=True, create_graph=True)
                if engine is TORCH:
                    chosen = [i for i, one in enumerate(first) if one is not None and one.requires_grad]
                if not chosen:
                    break
                for i in chosen:
                    assert first[i] is not None and first[i].requires_grad, (
                        f"gradient {i} has no history under create_graph"
                    )
                starts = [first[i] for i in chosen]
                results.append(
                    engine.module.autograd.grad(
                        starts, leaves + given, cotangents(engine, starts, op.name + "2"), allow_unused=True
                    )
                )
            except RuntimeError:
                if engine is OURS:
                    raise
                break
        else:
            assert_same_gradients(*results, "second gradient")


@aspect
def freed(op: Any, index: int) -> None:
    """Whether a second backward() through the same graph raises."""
    for sample in samples_of(op, index, opinfo.SAMPLES - 1):
        raised: list[Any] = []
        for engine in (TORCH, OURS):
            leaves, found = outputs(engine, op, sample)
            if not found or not leaves:
                break
            given = cotangents(engine, found, op.name)
            engine.module.autograd.backward(found, given)
            try:
                engine.module.autograd.backward(found, given)
                raised.append(None)
            except RuntimeError as error:
                raised.append(str(error)[:44])
        else:
            assert raised[0] == raised[1], "a second backward: torch {!r}, rushlight {!r}".format(*raised)


@aspect
def saved(op: Any, index: int) -> None:
    """The values the output's node saves, by name, where it is the same node as torch's (a composition has another)."""
    wrong: set[str] = set()
    for sample in samples_of(op, index, opinfo.SAMPLES - 1):
        theirs, mine = (Sample(engine, sample).call(engine.function_of(op)) for engine in (TORCH, OURS))
        for one, other in zip(flat(theirs), flat(mine), strict=True):
            if not opinfo.is_tensor(one) or one.grad_fn is None or other.grad_fn is None:
                continue
            if other.grad_fn.name() == one.grad_fn.name():
                wrong |= saved_otherwise(one.grad_fn, other.grad_fn)
    assert not wrong, "\n".join(sorted(wrong))


def saved_otherwise(theirs: Any, mine: Any) -> set[str]:
    """How the two nodes differ in the tensors they have saved."""
    wrong = set()
    for name in dir(theirs):
        if not name.startswith("_saved_"):
            continue
        expected, found = getattr(theirs, name), getattr(mine, name, "absent")
        if isinstance(expected, torch.Tensor):
            # The dtype is left out: PyTorch keeps a Python number as a 0-dim double.
            if not opinfo.is_tensor(found) or tuple(found.shape) != tuple(expected.shape):
                wrong.add(f"{name}: torch saves a tensor of shape {tuple(expected.shape)}, rushlight has {found!r:.80}")
        elif expected is None and opinfo.is_tensor(found):
            wrong.add(f"{name}: rushlight saves a tensor that torch does not need")
    return wrong


@aspect
def method(op: Any, index: int) -> None:
    """The method of the same name gives the same."""
    name = op.name.rpartition(".")[2]
    if op.method_variant is None or not hasattr(torch.Tensor, name):
        pytest.skip("torch has no such method")
    for sample in samples_of(op, index, opinfo.SAMPLES - 1):
        theirs, mine = Sample(TORCH, sample), Sample(OURS, sample)
        if not opinfo.is_tensor(theirs.input):
            continue
        expected = theirs.call(lambda first, *args, **kwargs: getattr(first, name)(*args, **kwargs))
        found = mine.call(lambda first, *args, **kwargs: getattr(first, name)(*args, **kwargs))
        assert_all_same(flat(theirs.processed(expected)), flat(mine.processed(found)), "output of the method")


@aspect
def inplace(op: Any, index: int) -> None:
    """The in-place variant: its values, that it returns the tensor itself, and its gradients."""
    if op.inplace_variant is None or not hasattr(torch.Tensor, op.name.rpartition(".")[2] + "_"):
        pytest.skip("torch has no in-place variant")
    for sample in samples_of(op, index):
        if sample.broadcasts_input or not isinstance(sample.input, torch.Tensor):
            continue
        theirs, mine = Sample(TORCH, sample), Sample(OURS, sample)
        try:
            expected, _ = theirs.inplace(op)
        except RuntimeError:
            continue  # torch refuses this one in place
        found, clone = mine.inplace(op)
        assert found is clone, "it returns another tensor"
        assert_all_same([expected], [found], "output in place")
        if not expected.requires_grad:
            continue
        assert found.requires_grad, "the result does not require grad"
        pairs = ((TORCH, expected, theirs.leaves), (OURS, found, mine.leaves))
        results = []
        for engine, output, leaves in pairs:
            given = cotangents(engine, [output], op.name)
            try:
                results.append(engine.module.autograd.grad([output], leaves, given, allow_unused=True))
            except NotImplementedError:  # torch has no derivative for a few in-place variants
                results.append(None)
        if results[0] is not None:
            assert results[1] is not None, "no derivative for the in-place variant"
            assert_same_gradients(*results, "gradient of input")


@aspect
def errors(op: Any, index: int) -> None:
    """What torch refuses is refused, with an error of the same type."""
    if op.error_inputs_func is None:
        pytest.skip("the database has no error inputs for it")
    wrong = []
    for number, given in enumerate(itertools.islice(op.error_inputs("cpu"), 12)):
        try:
            theirs, mine = Sample(TORCH, given.sample_input), Sample(OURS, given.sample_input)
        except opinfo.NotPortable:
            continue
        expected = raised_by(theirs, TORCH.function_of(op))
        found = raised_by(mine, OURS.function_of(op))
        if expected is not None and not isinstance(found, type(expected)):
            wrong.append(f"error input {number}: torch raises {expected!r:.200}, rushlight {found!r:.200}")
    assert not wrong, "\n".join(wrong)


def raised_by(sample: Sample, function: Callable) -> Exception | None:
    try:
        sample.call(function)
    except Exception as error:
        return error
    return None


def applies(name: str, op: Any) -> bool:
    """Whether the database says anything about this aspect of the operation."""
    if name in ("gradients", "second_order", "freed", "saved"):
        return op.supports_autograd and (name != "second_order" or op.supports_gradgrad)
    if name == "inplace":
        return op.inplace_variant is not None
    if name == "method":
        return op.method_variant is not None
    return name != "errors" or op.error_inputs_func is not None


def cases() -> list[Any]:
    made = []
    for index in PRESENT:
        op = op_db[index]
        for name in ASPECTS:
            if not applies(name, op):
                continue
            marks: list[Any] = []
            operation = opinfo.full_name(op)
            if operation == "bfloat16" and not importlib.util.find_spec("ml_dtypes"):
                marks.append(pytest.mark.skip(reason="bfloat16 needs ml_dtypes, which is not installed"))
            elif why := reason(NOT_COMPARABLE, operation, name):
                marks.append(pytest.mark.skip(reason=why))
            elif why := reason(KNOWN, operation, name):
                marks.append(pytest.mark.xfail(reason=why, strict=True))
            made.append(pytest.param(index, name, id=f"{operation}-{name}", marks=marks))
    return made


@pytest.mark.parametrize(("index", "name"), cases())
def test_operation(index: int, name: str) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        ASPECTS[name](op_db[index], index)


def test_coverage() -> None:
    """No operation that was there goes missing. Run with -s to see which entries of the database are absent."""
    missing = sorted(
        {opinfo.full_name(op_db[index]) for index in PUBLIC} - {opinfo.full_name(op_db[index]) for index in PRESENT}
    )
    print(f"{len(PRESENT)} of {len(PUBLIC)} public entries of the op database; absent: {' '.join(missing)}")
    assert len(PRESENT) >= FLOOR, f"only {len(PRESENT)} entries are left; absent: {' '.join(missing)}"
