"""Which ops let backward run twice and which fail, one by one (statement 3)."""

from __future__ import annotations

import pytest

from tests.semantics.helpers import FREED, outcome, submodule


class Case:
    """What a call may use: the leaf, a positive constant, a mask, indices, and the engine's functional module."""

    def __init__(self, engine):
        self.engine = engine
        self.x = (engine.rand(4, 4) + 0.5).requires_grad_()
        self.a = engine.rand(4, 4) + 0.5
        self.mask = self.a > 1.0
        self.column = engine.tensor([[0], [1], [2], [3]])
        self.classes = engine.tensor([0, 1, 2, 3])
        self.functional = submodule(engine, "nn.functional")


TWICE = {
    "sum": lambda c, x: x.sum(),
    "sum_dim": lambda c, x: x.sum(1),
    "mean": lambda c, x: x.mean(),
    "mean_dim": lambda c, x: x.mean(1, keepdim=True),
    "add": lambda c, x: x + c.a,
    "add_scalar": lambda c, x: x + 2.0,
    "add_alpha": lambda c, x: c.engine.add(x, c.a, alpha=2),
    "sub": lambda c, x: x - c.a,
    "neg": lambda c, x: -x,
    "rsub": lambda c, x: 1 - x,
    "view": lambda c, x: x.view(16),
    "reshape": lambda c, x: x.reshape(2, 8),
    "flatten": lambda c, x: x.flatten(),
    "t": lambda c, x: x.t(),
    "transpose": lambda c, x: x.transpose(0, 1),
    "permute": lambda c, x: x.permute(1, 0),
    "movedim": lambda c, x: x.movedim(0, 1),
    "select": lambda c, x: x[0],
    "select_twice": lambda c, x: x[0, 1],
    "slice": lambda c, x: x[1:3],
    "ellipsis": lambda c, x: x[...],
    "new_axis": lambda c, x: x[None],
    "unsqueeze": lambda c, x: x.unsqueeze(0),
    "squeeze": lambda c, x: x[:1].squeeze(0),
    "diagonal": lambda c, x: x.diagonal(),
    "diag": lambda c, x: x.diag(),
    "unfold": lambda c, x: x.unfold(0, 2, 1),
    "split": lambda c, x: x.split(2)[0],
    "chunk": lambda c, x: x.chunk(2)[1],
    "unbind": lambda c, x: x.unbind()[0],
    "clone": lambda c, x: x.clone(),
    "contiguous": lambda c, x: x.t().contiguous(),
    "cat": lambda c, x: c.engine.cat([x, x]),
    "stack": lambda c, x: c.engine.stack([x, x]),
    "cumsum": lambda c, x: x.cumsum(0),
    "expand": lambda c, x: x.expand(2, 4, 4),
    "cast": lambda c, x: x.double(),
    "tril": lambda c, x: x.tril(),
    "triu": lambda c, x: x.triu(),
    "flip": lambda c, x: x.flip(0),
    "roll": lambda c, x: x.roll(1),
    "repeat": lambda c, x: x.repeat(2, 1),
    "trace": lambda c, x: x.trace(),
    "floor": lambda c, x: x.floor(),
    "ceil": lambda c, x: x.ceil(),
    "round": lambda c, x: x.round(),
    "sign": lambda c, x: x.sign(),
    "remainder_scalar": lambda c, x: x % 2.0,
    "fmod_scalar": lambda c, x: c.engine.fmod(x, 2.0),
    # The divisor is saved only for its own gradient, so a constant tensor divisor is fine as well.
    "remainder_constant_tensor": lambda c, x: x % c.a,
    "pad": lambda c, x: c.functional.pad(x, (1, 1)),
    "scatter_add_self": lambda c, x: x.scatter_add(1, c.column, c.a),
    "index_add_self": lambda c, x: x.index_add(0, c.engine.tensor([0]), c.a[:1]),
    "addmm_self": lambda c, x: c.engine.addmm(x, c.a, c.a),
    "addcmul_self": lambda c, x: c.engine.addcmul(x, c.a, c.a),
    "lerp_self": lambda c, x: c.engine.lerp(x, c.a, 0.5),
    # With a plain number as weight nothing is saved as a tensor, so `end` is fine too.
    "lerp_end": lambda c, x: c.engine.lerp(c.a, x, 0.5),
    "add_detached_self": lambda c, x: x + x.detach(),
    "dropout_eval": lambda c, x: c.functional.dropout(x, 0.5, training=False) + 0,
}

ONCE = {
    "mul": lambda c, x: x * c.a,
    "mul_self": lambda c, x: x * x,
    "mul_float": lambda c, x: x * 2.0,
    "mul_int": lambda c, x: x * 2,
    "rmul": lambda c, x: 2.0 * x,
    "div": lambda c, x: x / c.a,
    "div_float": lambda c, x: x / 2.0,
    "rdiv": lambda c, x: 1.0 / x,
    "matmul": lambda c, x: x @ c.a,
    "mm": lambda c, x: x.mm(c.a),
    "mv": lambda c, x: x.mv(c.a[0]),
    "bmm": lambda c, x: c.engine.bmm(x[None], c.a[None]),
    "dot": lambda c, x: x[0].dot(c.a[0]),
    "outer": lambda c, x: c.engine.outer(x[0], c.a[0]),
    "einsum": lambda c, x: c.engine.einsum("ij,jk->ik", x, c.a),
    "linear": lambda c, x: c.functional.linear(x, c.a),
    "pow": lambda c, x: x**2,
    "pow_zero": lambda c, x: x**0,
    "pow_one": lambda c, x: x**1,
    "pow_tensor": lambda c, x: x**c.a,
    "exp": lambda c, x: x.exp(),
    "log": lambda c, x: x.log(),
    "sqrt": lambda c, x: x.sqrt(),
    "rsqrt": lambda c, x: x.rsqrt(),
    "sin": lambda c, x: x.sin(),
    "abs": lambda c, x: x.abs(),
    "sigmoid": lambda c, x: x.sigmoid(),
    "tanh": lambda c, x: x.tanh(),
    "relu": lambda c, x: x.relu(),
    "leaky_relu": lambda c, x: c.functional.leaky_relu(x),
    "gelu": lambda c, x: c.functional.gelu(x),
    "softplus": lambda c, x: c.functional.softplus(x),
    "max": lambda c, x: x.max(),
    "max_dim": lambda c, x: x.max(1)[0],
    "amax": lambda c, x: x.amax(1),
    "maximum": lambda c, x: c.engine.maximum(x, c.a),
    "where": lambda c, x: c.engine.where(c.mask, x, c.a),
    "softmax": lambda c, x: x.softmax(1),
    "log_softmax": lambda c, x: x.log_softmax(1),
    "logsumexp": lambda c, x: x.logsumexp(1),
    "std": lambda c, x: x.std(),
    "var": lambda c, x: x.var(),
    "norm": lambda c, x: x.norm(),
    "prod": lambda c, x: x.prod(),
    "cumprod": lambda c, x: x.cumprod(0),
    "clamp": lambda c, x: x.clamp(0, 1),
    "clamp_min": lambda c, x: x.clamp(min=0.7),
    "masked_fill": lambda c, x: x.masked_fill(c.mask, 0.0),
    "masked_select": lambda c, x: x.masked_select(c.mask),
    "gather": lambda c, x: x.gather(1, c.column),
    "sort": lambda c, x: x.sort(1)[0],
    "topk": lambda c, x: x.topk(2, 1)[0],
    "index_tensor": lambda c, x: x[c.engine.tensor([0, 1])],
    "index_mask": lambda c, x: x[c.mask],
    "index_select": lambda c, x: x.index_select(0, c.engine.tensor([0])),
    "index_add_source": lambda c, x: c.a.index_add(0, c.engine.tensor([0]), x[:1]),
    "scatter_add_source": lambda c, x: c.a.scatter_add(1, c.column, x[:, :1]),
    "embedding": lambda c, x: c.functional.embedding(c.engine.tensor([0, 1]), x),
    "mse_loss": lambda c, x: c.functional.mse_loss(x, c.a),
    "l1_loss": lambda c, x: c.functional.l1_loss(x, c.a),
    "smooth_l1_loss": lambda c, x: c.functional.smooth_l1_loss(x, c.a),
    "nll_loss": lambda c, x: c.functional.nll_loss(x, c.classes),
    "cross_entropy": lambda c, x: c.functional.cross_entropy(x, c.classes),
    "bce_with_logits": lambda c, x: c.functional.binary_cross_entropy_with_logits(x, c.mask.float()),
    "dropout": lambda c, x: c.functional.dropout(x, 0.5, training=True),
    "layer_norm": lambda c, x: c.functional.layer_norm(x, (4,)),
    "addmm_mat1": lambda c, x: c.engine.addmm(c.a, x, c.a),
    "addmm_mat2": lambda c, x: c.engine.addmm(c.a, c.a, x),
    "addcmul_tensor1": lambda c, x: c.engine.addcmul(c.a, x, c.a),
    "addcdiv_tensor1": lambda c, x: c.engine.addcdiv(c.a, x, c.a),
    "lerp_tensor_weight": lambda c, x: c.engine.lerp(x, c.a, c.a),
}


@pytest.mark.parametrize("name", TWICE)
def test_backward_twice_is_fine(engine, name):
    case = Case(engine)
    y = TWICE[name](case, case.x).sum()
    y.backward()
    once = case.x.grad.clone()
    y.backward()
    assert engine.equal(case.x.grad, once + once)


@pytest.mark.parametrize("name", ONCE)
def test_backward_twice_fails(engine, name):
    case = Case(engine)
    y = ONCE[name](case, case.x).sum()
    y.backward()
    once = case.x.grad.clone()
    assert outcome(y.backward) == "freed"
    assert engine.equal(case.x.grad, once)


@pytest.mark.parametrize("name", ONCE)
def test_retain_graph_allows_the_second_pass(engine, name):
    case = Case(engine)
    y = ONCE[name](case, case.x).sum()
    y.backward(retain_graph=True)
    once = case.x.grad.clone()
    y.backward()
    assert engine.equal(case.x.grad, once + once)


def test_message_of_the_error(engine, raises):
    x = engine.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    with raises(RuntimeError, FREED) as error:
        y.backward()
    assert "retain_graph=True" in error.text


@pytest.mark.parametrize("scalar", [2, 2.0])
def test_pack_hooks_never_see_the_scalar_of_a_product(engine, scalar):
    seen = []

    def pack(tensor):
        seen.append(tuple(tensor.shape))
        return tensor

    x = engine.ones(3, requires_grad=True)
    with engine.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed):
        y = (x * scalar).sum()
        assert seen == []
        (x * x).sum()
        assert seen == [(3,), (3,)]
    y.backward()
    assert outcome(y.backward) == "freed"


def test_there_is_no_freed_flag_on_the_graph(engine):
    # The freed multiplication is only an error on the way that asks for it.
    x, w = engine.ones(2, requires_grad=True), engine.ones(2, requires_grad=True)
    y = (x * 2.0 + w).sum()
    y.backward()
    (grad,) = engine.autograd.grad(y, w)
    assert grad.tolist() == [1.0, 1.0]
    assert outcome(lambda: engine.autograd.grad(y, x)) == "freed"
