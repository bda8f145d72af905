"""Lifetime facts: which line made a node, which call used it up, and that knowing this keeps nothing alive."""

from __future__ import annotations

import gc
import sys
import weakref

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.nn import functional as F

HERE = __file__


def nodes_of(tensor):
    """Every node of the tensor's graph, leaf accumulators left out."""
    found, stack = {}, [tensor.grad_fn]
    while stack:
        node = stack.pop()
        if node is not None and node._sequence_nr() not in found and node.name() != "torch::autograd::AccumulateGrad":
            found[node._sequence_nr()] = node
            stack += [following for following, _ in node.next_functions]
    return list(found.values())


def sites(tensor):
    return {(site.filename, site.line, site.function) for site in (node.made_at for node in nodes_of(tensor))}


def line_before() -> int:
    """The line above the one that calls this."""
    return sys._getframe(1).f_lineno - 1


class Double(rushlight.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


MAKERS = {
    "add": lambda x: x + x,
    "multiply by a number": lambda x: x * 2,
    "a number before it": lambda x: 3 - x,
    "divide": lambda x: 1 / x,
    "power": lambda x: x**2,
    "power of a number": lambda x: 2**x,
    "matmul": lambda x: x @ x,
    "negate": lambda x: -x,
    "index": lambda x: x[0, 1:],
    "index by a list": lambda x: x[[0, 1]],
    "abs": lambda x: abs(x),
    "exp": lambda x: x.exp(),
    "sum": lambda x: x.sum(),
    "sum over a dimension": lambda x: x.sum(dim=0, keepdim=True),
    "mean": lambda x: x.mean(),
    "view": lambda x: x.view(-1),
    "reshape": lambda x: x.reshape(4),
    "transpose": lambda x: x.t(),
    "max over a dimension": lambda x: x.max(dim=1).values,
    "clone": lambda x: x.clone(),
    "cast": lambda x: x.double(),
    "functions": lambda x: rushlight.tanh(rushlight.exp(x)),
    "cat": lambda x: rushlight.cat([x, x]),
    "stack": lambda x: rushlight.stack([x, x], dim=1),
    "where": lambda x: rushlight.where(x > 0, x, -x),
    "einsum": lambda x: rushlight.einsum("ij,jk->ik", x, x),
    "unbind": lambda x: x.unbind()[1],
    "iteration": lambda x: next(iter(x)),
    "in place": lambda x: x.clone().mul_(2).add_(1),
    "in place through a view": lambda x: write_through_view(x),
    "softmax": lambda x: F.softmax(x, dim=1),
    "functional with layers inside": lambda x: F.mse_loss(F.relu(x), rushlight.zeros(2, 2)),
    "cross entropy": lambda x: F.cross_entropy(x, rushlight.tensor([0, 1])),
    "a module": lambda x: nn.Linear(2, 3)(x),
    "nested modules": lambda x: nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.Tanh(), nn.LayerNorm(3)))(x),
    "a recurrent module": lambda x: nn.LSTM(2, 3)(x)[0],
    "a loss module": lambda x: nn.MSELoss()(x, rushlight.zeros(2, 2)),
    "a function of one's own": lambda x: Double.apply(x),
}


def write_through_view(x):
    copy = x.clone()
    copy[0] = 5
    return copy


@pytest.mark.parametrize("name", MAKERS)
def test_made_at_names_the_users_line(name) -> None:
    """For every node that the line made, however many of the library's own functions lie between."""
    maker = MAKERS[name]
    made = maker(rushlight.ones(2, 2, requires_grad=True))
    lines = {site.line for site in (node.made_at for node in nodes_of(made))}
    assert {site[0] for site in sites(made)} == {HERE}
    if name == "in place through a view":
        start = write_through_view.__code__.co_firstlineno
        assert lines == {start + 1, start + 2}
    else:
        assert lines == {maker.__code__.co_firstlineno}
        assert {function for _, _, function in sites(made)} <= {"<lambda>"}


class Network(nn.Module):
    """A module of the user's: the lines are those of its own forward()."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        hidden = self.layer(x)
        return F.relu(hidden)


def test_a_users_module_names_the_lines_of_its_forward() -> None:
    made = Network()(rushlight.ones(1, 2))
    start = Network.forward.__code__.co_firstlineno
    assert {(line, function) for _, line, function in sites(made)} == {(start + 1, "forward"), (start + 2, "forward")}
    assert made.grad_fn.made_at.line == start + 2


def test_the_line_of_a_statement_over_several_lines_is_where_the_operation_stands() -> None:
    x = rushlight.ones(2, requires_grad=True)
    made = x.exp().sum()
    first = line_before() - 2
    assert made.grad_fn.made_at.line in (first, first + 2)
    assert made.grad_fn.made_at.text in linecache_lines(first, first + 2)


def linecache_lines(*numbers):
    import linecache

    return {linecache.getline(HERE, number).strip() for number in numbers}


def test_a_site_shows_its_text() -> None:
    x = rushlight.ones(2, requires_grad=True)
    made = x * 3  # this very line
    site = made.grad_fn.made_at
    assert site.text == "made = x * 3  # this very line"
    assert str(site) == f"{HERE}:{line_before() - 2}"
    assert site.function == "test_a_site_shows_its_text"


def test_code_without_a_file_has_a_line_too() -> None:
    space = {"x": rushlight.ones(2, requires_grad=True)}
    exec(compile("a = 1\ny = x * 2\n", "<typed in>", "exec"), space)
    site = space["y"].grad_fn.made_at
    assert (site.filename, site.line, site.text) == ("<typed in>", 2, "")


def test_nodes_made_by_create_graph_name_the_line_that_asked_for_them() -> None:
    x = rushlight.ones(3, requires_grad=True)
    y = (x**3).exp().sum()
    (first,) = rushlight.autograd.grad(y, x, create_graph=True)
    line = line_before()
    forward_line = line - 1
    new = [node for node in nodes_of(first) if node._sequence_nr() > y.grad_fn._sequence_nr()]
    assert len(new) > 2
    assert {(node.made_at.filename, node.made_at.line) for node in new} == {(HERE, line)}
    assert y.grad_fn.made_at.line == forward_line
    total = first.sum()
    total.backward(create_graph=True)
    line = line_before()
    assert {node.made_at.line for node in nodes_of(x.grad) if node._sequence_nr() > total.grad_fn._sequence_nr()} == {
        line
    }


def test_freed_by_names_the_call() -> None:
    x = rushlight.ones(3, requires_grad=True)
    first, second, third = (x * x).sum(), x.exp().sum(), x.tanh().sum()
    nodes = [y.grad_fn.next_functions[0][0] for y in (first, second, third)]
    assert [node.freed_by for node in nodes] == [None] * 3
    first.backward()
    line = line_before()
    rushlight.autograd.backward(second)
    rushlight.autograd.grad(third, x)
    calls = [node.freed_by for node in nodes]
    assert [call.kind for call in calls] == ["backward", "backward", "grad"]
    assert [(call.site.filename, call.site.line) for call in calls] == [
        (HERE, line),
        (HERE, line + 2),
        (HERE, line + 3),
    ]
    assert [call.number - calls[0].number for call in calls] == [0, 1, 2]
    assert str(line) in repr(calls[0]) and "backward" in repr(calls[0])


def test_every_node_of_a_call_shares_one_record() -> None:
    x = rushlight.ones(3, requires_grad=True)
    y = (x.exp() * x.tanh()).sum()
    nodes = nodes_of(y)
    y.backward()
    records = {id(node.freed_by) for node in nodes if node.freed_by is not None}
    assert len(records) == 1


def test_nothing_is_freed_while_the_graph_is_retained_and_the_second_call_is_named() -> None:
    x = rushlight.ones(3, requires_grad=True)
    y = (x * x).sum()
    node = y.grad_fn.next_functions[0][0]
    y.backward(retain_graph=True)
    assert node.freed_by is None and node._saved_self is x
    y.backward()
    assert node.freed_by.site.line == line_before()


def test_a_node_that_saves_nothing_is_never_used_up() -> None:
    x = rushlight.ones(3, requires_grad=True)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    assert y.grad_fn.freed_by is None and x.grad.tolist() == [2, 2, 2]


def test_backward_within_a_library_function_names_the_users_line() -> None:
    """Optimizer closures and autograd.functional run backward from within the library."""
    x = rushlight.ones(2, requires_grad=True)
    seen = []

    def function(value):
        y = (value * value).sum()
        seen.append(y.grad_fn.next_functions[0][0])
        return y

    rushlight.autograd.functional.vjp(function, x)
    call = seen[0].freed_by
    assert call is None or call.site.filename == HERE


def test_facts_keep_neither_frames_nor_locals_nor_tensors() -> None:
    class Thing:
        pass

    def build():
        local = Thing()
        seen.append(weakref.ref(local))
        x = rushlight.ones(1000, requires_grad=True)
        seen.append(weakref.ref(x._array))
        y = (x * x).exp()
        seen.append(weakref.ref(y._array))
        total = y.sum()
        total.backward()
        return total

    seen: list = []
    gc.disable()
    try:
        total = build()
        local, x, y = seen
        assert local() is None, "a node keeps the frame that made it"
        assert y() is None, "a node that was used up keeps what it had saved"
        assert x() is not None  # the graph leads to the leaf
        assert total.grad_fn.made_at.function == "build"
        del total
        assert x() is None
    finally:
        gc.enable()


def test_the_record_of_a_call_keeps_nothing_alive() -> None:
    def run():
        x = rushlight.ones(10, requires_grad=True)
        y = (x * x).sum()
        node = y.grad_fn.next_functions[0][0]
        y.backward()
        seen.append(weakref.ref(x._array))
        return node.freed_by

    seen: list = []
    gc.disable()
    try:
        call = run()
        assert seen[0]() is None
        assert call.site.function == "run" and call.site.filename == HERE
    finally:
        gc.enable()


def test_no_facts_are_needed_for_gradients() -> None:
    """RUSHLIGHT_FACTS=0 switches them off: the sites are unknown, the rest is as before."""
    import os
    import subprocess

    program = (
        "import rushlight\nx = rushlight.ones(2, requires_grad=True)\ny = (x * x).sum()\ny.backward()\n"
        "print(x.grad.tolist(), y.grad_fn.made_at)\n"
        "try: y.backward()\nexcept rushlight.FreedGraphError as error: print(error.made_at, str(error)[:44])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "RUSHLIGHT_FACTS": "0", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.splitlines() == [
        "[2.0, 2.0] None",
        "None Trying to backward through the graph a second time"[:49],
    ]


def test_threads_have_their_own_lines() -> None:
    """Two threads that make nodes at once get the lines each of them runs."""
    import threading

    results: dict = {}

    def first():
        x = rushlight.ones(2, requires_grad=True)
        for _ in range(300):
            x = x * 1.0
        results["first"] = {node.made_at.function for node in nodes_of(x)}

    def second():
        x = rushlight.ones(2, requires_grad=True)
        for _ in range(300):
            x = x + 1.0
        results["second"] = {node.made_at.function for node in nodes_of(x)}

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=one) for one in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert results == {"first": {"first"}, "second": {"second"}}


def test_generated_code_never_shows() -> None:
    """Gradient formulas and operations are compiled from text; no site leads there."""
    x = rushlight.tensor(np.ones(2), requires_grad=True)
    made = [x * x, x.mul(x), rushlight.mul(x, x), x.clone().mul_(x), x.sigmoid(), x.cumsum(0)]
    for one in made:
        for node in nodes_of(one):
            assert node.made_at.filename == HERE
