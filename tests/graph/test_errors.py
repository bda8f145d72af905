"""What the errors of a graph's life say: the words PyTorch's users know, and what happened as text and attributes."""

from __future__ import annotations

import gc
import linecache
import pickle
import sys
import weakref

import pytest

import rushlight
from rushlight import FreedGraphError, ModifiedInplaceError

HERE = __file__


def line_before() -> int:
    return sys._getframe(1).f_lineno - 1


def freed(run) -> FreedGraphError:
    with pytest.raises(FreedGraphError) as caught:
        run()
    return caught.value


def test_freed_error_tells_the_whole_story() -> None:
    x = rushlight.ones(2, requires_grad=True)
    y = x.exp()
    made = line_before()
    total = y.sum()
    total.backward()
    used = line_before()
    with pytest.raises(FreedGraphError) as caught:
        total.backward()
    needed = line_before()
    error = caught.value
    assert isinstance(error, RuntimeError)
    assert error.node_name == "ExpBackward0"
    assert [(site.filename, site.line) for site in (error.made_at, error.freed_by.site, error.needed_at)] == [
        (HERE, made),
        (HERE, used),
        (HERE, needed),
    ]
    assert error.freed_by.kind == "backward" and error.freed_by is y.grad_fn.freed_by
    text = str(error)
    assert text.startswith("Trying to backward through the graph a second time")
    for line in (made, used, needed):
        assert f"{HERE}:{line}" in text and linecache.getline(HERE, line).strip() in text
    assert "ExpBackward0" in text and f"backward call number {error.freed_by.number}" in text
    assert error.remedy in text and "retain_graph=True" in error.remedy


def test_the_kind_and_number_of_the_call_that_used_it_up() -> None:
    x = rushlight.ones(2, requires_grad=True)
    y = (x * x).sum()
    rushlight.autograd.grad(y, x)
    error = freed(lambda: rushlight.autograd.grad(y, x))
    assert error.freed_by.kind == "grad"
    assert f"grad call number {error.freed_by.number}" in str(error)
    assert error.needed_at.function == "<lambda>"


def test_in_a_loop_the_remedy_is_another() -> None:
    """One line that runs backward in every round, over a graph that was made once."""
    x = rushlight.ones(2, requires_grad=True)
    state = x * 2
    made = line_before()
    with pytest.raises(FreedGraphError) as caught:
        for _ in range(2):
            (state * state).sum().backward()
    error = caught.value
    assert error.freed_by.site == error.needed_at
    assert error.made_at.line == made and f"line {made} " in error.remedy and "detach" in error.remedy


@pytest.mark.parametrize(
    "read",
    [
        lambda node: node._saved_result,
        lambda node: node._raw_saved_result.unpack(),
        lambda node: node(rushlight.ones(2)),
    ],
    ids=["_saved_", "unpack", "call"],
)
def test_reading_a_freed_value_raises_the_same_error(read) -> None:
    x = rushlight.ones(2, requires_grad=True)
    y = x.exp()
    y.sum().backward()
    error = freed(lambda: read(y.grad_fn))
    assert error.node_name == "ExpBackward0" and error.freed_by is y.grad_fn.freed_by


def test_freed_error_of_a_custom_function() -> None:
    class Square(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * g * x

    x = rushlight.ones(2, requires_grad=True)
    y = Square.apply(x).sum()
    made = line_before()
    y.backward()
    used = line_before()
    error = freed(y.backward)
    assert error.node_name == "SquareBackward"
    assert (error.made_at.line, error.freed_by.site.line) == (made, used)


def test_freed_error_within_create_graph() -> None:
    x = rushlight.ones(2, requires_grad=True)
    y = x.exp().sum()
    y.backward()
    used = line_before()
    error = freed(lambda: rushlight.autograd.grad(y, x, create_graph=True))
    assert error.freed_by.site.line == used


def test_the_error_keeps_no_tensor_alive() -> None:
    def run():
        x = rushlight.ones(1000, requires_grad=True)
        seen.append(weakref.ref(x._array))
        y = (x * x).sum()
        y.backward()
        try:
            y.backward()
        except FreedGraphError as error:
            return error.with_traceback(None)

    seen: list = []
    gc.disable()
    try:
        error = run()
        error.__context__ = error.__cause__ = None
        assert seen[0]() is None
        assert error.made_at.function == "run"
    finally:
        gc.enable()


def test_modified_error_tells_what_was_written_over() -> None:
    x = rushlight.ones(2, 3, requires_grad=True)
    y = x.exp()
    z = y * y
    made = line_before()
    y.add_(1)
    y.add_(1)
    with pytest.raises(ModifiedInplaceError) as caught:
        z.sum().backward()
    error = caught.value
    assert isinstance(error, RuntimeError)
    assert error.node_name == "MulBackward0"
    assert (error.made_at.filename, error.made_at.line) == (HERE, made)
    assert (error.version, error.expected_version) == (2, 0)
    text = str(error)
    assert text.startswith(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        "[torch.FloatTensor [2, 3]], which is output 0 of Add, is at version 2; expected version 0 instead."
    )
    assert f"{HERE}:{made}" in text and "clone()" in text


def test_modified_error_for_a_saved_output() -> None:
    x = rushlight.ones(2, requires_grad=True)
    y = x.exp()
    made = line_before()
    y.mul_(2)
    with pytest.raises(ModifiedInplaceError) as caught:
        y.sum().backward()
    assert caught.value.node_name == "ExpBackward0" and caught.value.made_at.line == made
    assert (caught.value.version, caught.value.expected_version) == (1, 0)


def test_modified_error_counts_versions_from_when_the_value_was_saved() -> None:
    x = rushlight.ones(2, requires_grad=True)
    weight = rushlight.ones(2)
    weight.add_(1)
    y = x * weight
    weight.add_(1)
    with pytest.raises(ModifiedInplaceError) as caught:
        y.sum().backward()
    assert (caught.value.version, caught.value.expected_version) == (2, 1)


def test_the_graph_is_whole_after_a_modified_error() -> None:
    """Nothing of the failing node was freed: with the value put back, backward runs."""
    x = rushlight.ones(2, requires_grad=True)
    weight = rushlight.ones(2)
    y = (x * weight).sum()
    weight.add_(1)
    with pytest.raises(ModifiedInplaceError):
        y.backward()
    assert x.grad is None
    node = y.grad_fn.next_functions[0][0]
    assert node.freed_by is None


def test_errors_can_be_caught_by_pytorchs_words() -> None:
    """Programs match on the text."""
    x = rushlight.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()
    weight = rushlight.ones(2)
    y = (x * weight).sum()
    weight.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_errors_travel_between_processes() -> None:
    """Pools of workers pickle what a worker raised."""
    x = rushlight.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    error = freed(y.backward)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is FreedGraphError and str(again) == str(error)
    assert (again.node_name, again.made_at, again.needed_at, again.remedy) == (
        error.node_name,
        error.made_at,
        error.needed_at,
        error.remedy,
    )
    assert (again.freed_by.kind, again.freed_by.number, again.freed_by.site) == (
        error.freed_by.kind,
        error.freed_by.number,
        error.freed_by.site,
    )
    weight = rushlight.ones(2)
    y = (x * weight).sum()
    weight.zero_()
    with pytest.raises(ModifiedInplaceError) as caught:
        y.backward()
    copied = pickle.loads(pickle.dumps(caught.value))
    assert (copied.version, copied.expected_version, str(copied)) == (1, 0, str(caught.value))
