"""Looking at the graph: nodes, edges, metadata, gradient edges and how tensors print."""

from __future__ import annotations

import pytest

from tests.semantics.helpers import leaf, node_name


def test_nodes_and_edges(engine):
    x, w = leaf(engine, 1.0), leaf(engine, 2.0)
    h = x * w
    y = (h + 1).sum()
    assert y.grad_fn.name() == "SumBackward0"
    add, index = y.grad_fn.next_functions[0]
    assert (add.name(), index) == ("AddBackward0", 0)
    assert add.next_functions[0][0] is h.grad_fn
    assert add.next_functions[1] == (None, 0)
    leaves = [node.variable for node, _ in h.grad_fn.next_functions]
    assert leaves[0] is x
    assert leaves[1] is w


def test_node_identity(engine):
    x = leaf(engine, 1.0)
    y = x * 2
    assert y.grad_fn is y.grad_fn
    first, second = x * 2, x * 3
    assert first.grad_fn.next_functions[0][0] is second.grad_fn.next_functions[0][0]


def test_node_is_a_node(engine):
    node = (leaf(engine, 1.0) * 2).grad_fn
    assert isinstance(node, engine.autograd.graph.Node)
    assert isinstance(node.next_functions[0][0], engine.autograd.graph.Node)
    assert type(node).__name__ == "MulBackward0"
    assert type(node.next_functions[0][0]).__name__ == "AccumulateGrad"
    assert repr(node).startswith("<MulBackward0 object at 0x")


def test_metadata_is_the_users_to_write(engine):
    y = leaf(engine, 1.0) * 2
    assert y.grad_fn.metadata == {}
    y.grad_fn.metadata["mine"] = 1
    assert y.grad_fn.metadata == {"mine": 1}


def test_sequence_numbers_grow(engine):
    x = leaf(engine, 1.0)
    a, b = x * 2, x * 3
    assert b.grad_fn._sequence_nr() > a.grad_fn._sequence_nr()


def test_leaf_facts(engine):
    x = leaf(engine, 1.0)
    assert x.is_leaf
    assert x.grad_fn is None
    assert engine.ones(1).is_leaf
    h = x * 2
    assert not h.is_leaf
    assert h.detach().is_leaf
    assert not h.clone().is_leaf
    assert x.output_nr == 0
    assert leaf(engine, 1.0, 2.0).unbind()[1].output_nr == 1


def test_read_only_facts(engine):
    x = leaf(engine, 1.0)
    with pytest.raises(AttributeError):
        x.grad_fn = None
    with pytest.raises(AttributeError):
        x.is_leaf = False


def test_gradient_edge(engine, raises):
    graph = engine.autograd.graph
    x = leaf(engine, 1.0)
    h = x * 2
    edge = graph.get_gradient_edge(h)
    assert edge.node is h.grad_fn
    assert edge.output_nr == 0
    assert engine.autograd.grad((h * 3).sum(), edge)[0].tolist() == [3.0]
    assert engine.autograd.grad(graph.get_gradient_edge((h * 3).sum()), x)[0].tolist() == [6.0]
    assert type(graph.get_gradient_edge(x).node).__name__ == "AccumulateGrad"
    with raises(RuntimeError, "It is not possible to get the gradient edge for a Tensor that does not require"):
        graph.get_gradient_edge(engine.ones(1))


NODE_NAMES = {
    "AddBackward0": lambda x: x + 1,
    "SubBackward0": lambda x: x - 1,
    "RsubBackward1": lambda x: 1 - x,
    "MulBackward0": lambda x: x * 2,
    "DivBackward0": lambda x: x / 2,
    "NegBackward0": lambda x: -x,
    "PowBackward0": lambda x: x**2,
    "PowBackward1": lambda x: x**x,
    "ExpBackward0": lambda x: x.exp(),
    "LogBackward0": lambda x: x.log(),
    "SqrtBackward0": lambda x: x.sqrt(),
    "TanhBackward0": lambda x: x.tanh(),
    "SigmoidBackward0": lambda x: x.sigmoid(),
    "ReluBackward0": lambda x: x.relu(),
    "AbsBackward0": lambda x: x.abs(),
    "SumBackward0": lambda x: x.sum(),
    "SumBackward1": lambda x: x.sum(0),
    "MeanBackward0": lambda x: x.mean(),
    "MeanBackward1": lambda x: x.mean(0),
    "MaxBackward1": lambda x: x.max(),
    "MaxBackward0": lambda x: x.max(0)[0],
    "MmBackward0": lambda x: x @ x,
    "TBackward0": lambda x: x.t(),
    "TransposeBackward0": lambda x: x.transpose(0, 1),
    "PermuteBackward0": lambda x: x.permute(1, 0),
    "ViewBackward0": lambda x: x.view(4),
    "UnsqueezeBackward0": lambda x: x.unsqueeze(0),
    "ExpandBackward0": lambda x: x.expand(3, 2, 2),
    "SelectBackward0": lambda x: x[0],
    "SliceBackward0": lambda x: x[0:1],
    "CloneBackward0": lambda x: x.clone(),
    "ToCopyBackward0": lambda x: x.double(),
    "CumsumBackward0": lambda x: x.cumsum(0),
    "SplitBackward0": lambda x: x.split(1)[0],
    "UnbindBackward0": lambda x: x.unbind()[0],
    "SoftmaxBackward0": lambda x: x.softmax(0),
    "ClampBackward1": lambda x: x.clamp(0, 1),
}


@pytest.mark.parametrize("name", NODE_NAMES)
def test_names_of_nodes(engine, name):
    x = (engine.rand(2, 2) + 0.5).requires_grad_()
    assert node_name(NODE_NAMES[name](x)) == name


def test_how_tensors_print(engine):
    x = leaf(engine, 1.0, 2.0)
    assert repr(x) == "tensor([1., 2.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2., 4.], grad_fn=<MulBackward0>)"
    assert repr(x.detach()) == "tensor([1., 2.])"


def test_tensor_of_a_tensor_copies_and_detaches(engine):
    x = leaf(engine, 1.0)
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        copied = engine.tensor(x)
    assert not copied.requires_grad
    assert engine.as_tensor(x) is x
