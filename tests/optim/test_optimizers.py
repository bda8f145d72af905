"""Every optimizer with its options against torch, step by step; and what all optimizers share."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the steps are compared with torch's")

import rushlight  # noqa: E402

LIBRARIES = pytest.mark.parametrize("library", [rushlight, torch], ids=["rushlight", "torch"])

OPTIONS = [
    ("SGD", dict(lr=0.1)),
    ("SGD", dict(lr=0.1, weight_decay=0.1)),
    ("SGD", dict(lr=0.1, maximize=True)),
    ("SGD", dict(lr=0.1, momentum=0.9)),
    ("SGD", dict(lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.01)),
    ("SGD", dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01, maximize=True)),
    ("Adam", dict(lr=0.05)),
    ("Adam", dict(lr=0.05, betas=(0.5, 0.9), eps=1e-3)),
    ("Adam", dict(lr=0.05, weight_decay=0.1, amsgrad=True)),
    ("Adam", dict(lr=0.05, maximize=True, weight_decay=0.1)),
    ("AdamW", dict(lr=0.05)),
    ("AdamW", dict(lr=0.05, weight_decay=0.2, amsgrad=True, maximize=True)),
    ("RMSprop", dict(lr=0.05)),
    ("RMSprop", dict(lr=0.05, momentum=0.8, centered=True, weight_decay=0.1)),
    ("RMSprop", dict(lr=0.05, momentum=0.8, maximize=True)),
    ("Adagrad", dict(lr=0.1)),
    ("Adagrad", dict(lr=0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.2, maximize=True)),
    ("Adadelta", dict()),
    ("Adadelta", dict(lr=0.5, rho=0.8, weight_decay=0.1, maximize=True)),
    ("Adamax", dict()),
    ("Adamax", dict(lr=0.05, weight_decay=0.1, maximize=True)),
    ("NAdam", dict()),
    ("NAdam", dict(lr=0.05, weight_decay=0.1, momentum_decay=0.01)),
    ("NAdam", dict(lr=0.05, weight_decay=0.1, decoupled_weight_decay=True, maximize=True)),
    ("RAdam", dict(lr=0.05)),
    ("RAdam", dict(lr=0.05, weight_decay=0.1, betas=(0.8, 0.9))),
    ("RAdam", dict(lr=0.05, weight_decay=0.1, decoupled_weight_decay=True, maximize=True)),
    ("Rprop", dict()),
    ("Rprop", dict(lr=0.05, etas=(0.3, 1.5), step_sizes=(1e-3, 0.5), maximize=True)),
    ("ASGD", dict()),
    ("ASGD", dict(lr=0.05, weight_decay=0.1, t0=3.0, maximize=True)),
]
# Small ones that are updated together, one above that size, one above a block, and a column of a matrix's shape.
SHAPES = [(3, 4), (4,), (1, 5), (70, 70), (130, 150), ()]


def make_parameters(library, shapes, dtype=np.float32, seed=0):
    random = np.random.default_rng(seed)
    return [library.nn.Parameter(library.tensor(random.standard_normal(shape).astype(dtype))) for shape in shapes]


def set_gradients(library, parameters, step, skip=()):
    random = np.random.default_rng(100 + step)
    for place, parameter in enumerate(parameters):
        gradient = np.asarray(random.standard_normal(tuple(parameter.shape)), parameter.detach().numpy().dtype)
        parameter.grad = None if place in skip else library.tensor(gradient)


def same(ours, theirs, tolerance=1e-5):
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=tolerance, atol=tolerance)


def same_state(ours, theirs, tolerance=1e-5):
    ours, theirs = ours.state_dict(), theirs.state_dict()
    assert ours["param_groups"] == theirs["param_groups"]
    assert list(ours["state"]) == list(theirs["state"])
    for key, entries in theirs["state"].items():
        assert list(ours["state"][key]) == list(entries)
        for name, value in entries.items():
            mine = ours["state"][key][name]
            assert tuple(mine.shape) == tuple(value.shape)
            assert str(mine.dtype).split(".")[-1] == str(value.dtype).split(".")[-1]
            np.testing.assert_allclose(mine.numpy(), value.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name, options", OPTIONS, ids=[f"{n} {o}" for n, o in OPTIONS])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ten_steps(name, options, dtype):
    tolerance = 2e-5 if dtype is np.float32 else 1e-10
    if name in ("NAdam", "ASGD"):
        tolerance = max(tolerance, 1e-6)  # scalars of the state are float32 whatever the parameter is
    ours, theirs = make_parameters(rushlight, SHAPES, dtype), make_parameters(torch, SHAPES, dtype)
    mine = getattr(rushlight.optim, name)(ours, **options)
    other = getattr(torch.optim, name)(theirs, **options)
    assert repr(mine) == repr(other)
    for step in range(10):
        set_gradients(rushlight, ours, step)
        set_gradients(torch, theirs, step)
        mine.step()
        other.step()
        same(ours, theirs, tolerance)
    same_state(mine, other, tolerance)


@pytest.mark.parametrize("name, options", OPTIONS[3:11:2] + OPTIONS[12:16:2])
def test_gradients_that_come_and_go(name, options):
    """Parameters without a gradient are skipped and fall behind in steps."""
    shapes = SHAPES[:4]
    ours, theirs = make_parameters(rushlight, shapes), make_parameters(torch, shapes)
    mine = getattr(rushlight.optim, name)(ours, **options)
    other = getattr(torch.optim, name)(theirs, **options)
    absent = [(), (), (1,), (), (0, 2), (1,), (0, 1, 2, 3), (), (3,), (), (2,), (0,), (2,), (0,), ()]
    for step, skip in enumerate(absent):
        set_gradients(rushlight, ours, step, skip)
        set_gradients(torch, theirs, step, skip)
        mine.step()
        other.step()
        same(ours, theirs)
    same_state(mine, other)


def test_state_edited_between_steps():
    """Programs replace parameters and their state (pruning, growing); the step must follow."""
    results = []
    for library in (rushlight, torch):
        parameters = make_parameters(library, [(3,), (2, 2), (4,)])
        optimizer = library.optim.Adam(parameters, lr=0.1)
        for step in range(3):
            set_gradients(library, parameters, step)
            optimizer.step()
        old = optimizer.param_groups[0]["params"][1]
        state = optimizer.state.pop(old)
        new = library.nn.Parameter(old.detach().clone()[:1])
        state["exp_avg"] = state["exp_avg"][:1].clone()
        state["exp_avg_sq"] = state["exp_avg_sq"][:1] * 2
        optimizer.state[new] = state
        parameters[1] = optimizer.param_groups[0]["params"][1] = new
        for step in range(3, 6):
            set_gradients(library, parameters, step)
            optimizer.step()
        optimizer.state[parameters[0]]["exp_avg"].zero_()
        parameters[2].data = library.ones(4)
        optimizer.state[parameters[2]]["step"] = library.tensor(50.0)
        for step in range(6, 9):
            set_gradients(library, parameters, step)
            optimizer.step()
        results.append(parameters)
    same(*results)


def test_parameters_that_share_memory():
    """Two parameters over one memory are updated one after the other."""
    results = []
    for library in (rushlight, torch):
        first = library.nn.Parameter(library.arange(4.0))
        second = library.nn.Parameter(first.detach())
        optimizer = library.optim.Adam([first, second], lr=0.1)
        for step in range(3):
            set_gradients(library, [first, second], step)
            optimizer.step()
        results.append([first, second])
    same(*results)


@LIBRARIES
def test_noncontiguous_and_views(library):
    matrix = library.arange(6.0).reshape(2, 3)
    parameter = library.nn.Parameter(matrix.t())
    view = parameter.detach()
    optimizer = library.optim.SGD([parameter], lr=1.0, momentum=0.5)
    for _ in range(2):
        parameter.grad = library.ones(3, 2)
        optimizer.step()
    assert view.tolist() == [[-2.5, 0.5], [-1.5, 1.5], [-0.5, 2.5]]
    assert matrix[0].tolist() == [-2.5, -1.5, -0.5]


@LIBRARIES
def test_step_counts_as_a_write(library):
    """A backward pass through values that a step has changed must fail."""
    weight = library.nn.Parameter(library.ones(2, 2))
    optimizer = library.optim.SGD([weight], lr=0.1)
    x = library.ones(1, 2, requires_grad=True)
    loss = (x @ weight).sum()
    weight.grad = library.ones(2, 2)
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@LIBRARIES
def test_closure_hooks_and_zero_grad(library):
    events = []
    weight = library.nn.Parameter(library.ones(2))
    optimizer = library.optim.SGD([weight], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (weight * weight).sum()
        loss.backward()
        return loss

    with library.no_grad():
        assert float(optimizer.step(closure)) == 2.0
    assert weight.tolist() == [0.0, 0.0]

    def noting(kind):
        return lambda o, args, kwargs: events.append((kind, args[0] is o, len(args), sorted(kwargs)))

    pre = optimizer.register_step_pre_hook(noting("pre"))
    optimizer.register_step_post_hook(noting("post"))
    optimizer.step()
    pre.remove()
    optimizer.step(closure)
    optimizer.step(closure=closure)
    assert events == [
        ("pre", True, 1, []), ("post", True, 1, []), ("post", True, 2, []), ("post", True, 1, ["closure"]),
    ]  # fmt: skip
    swap = optimizer.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: 7), {}))
    assert optimizer.step() == 7
    swap.remove()
    gradient = weight.grad
    optimizer.zero_grad(set_to_none=False)
    assert weight.grad is gradient and gradient.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert weight.grad is None


@pytest.mark.parametrize("name, options", [("SGD", dict(momentum=0.9)), ("Adam", dict(amsgrad=True)), ("RMSprop", {})])
def test_save_and_load(name, options):
    """A loaded optimizer goes on as the saved one would have."""
    first = make_parameters(rushlight, SHAPES[:4])
    one = getattr(rushlight.optim, name)(first, lr=0.1, **options)
    for step in range(3):
        set_gradients(rushlight, first, step)
        one.step()
    second = [rushlight.nn.Parameter(p.detach().clone()) for p in first]
    two = getattr(rushlight.optim, name)(second, lr=0.7, **options)
    saved = pickle.loads(pickle.dumps(one.state_dict()))
    two.load_state_dict(saved)
    assert two.param_groups[0]["lr"] == 0.1
    for step in range(3, 6):
        for optimizer, parameters in ((one, first), (two, second)):
            set_gradients(rushlight, parameters, step)
            optimizer.step()
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
    twin = copy.deepcopy(two)
    assert twin.param_groups[0]["params"][0] is not second[0]
    twin.step()


@LIBRARIES
def test_groups_and_names(library):
    a, b, c = (library.nn.Parameter(library.ones(2)) for _ in range(3))
    optimizer = library.optim.SGD([{"params": [a], "lr": 0.5}, {"params": b, "momentum": 0.5}], lr=0.1)
    optimizer.add_param_group({"params": (p for p in [c])})
    assert [g["lr"] for g in optimizer.param_groups] == [0.5, 0.1, 0.1]
    for p in (a, b, c):
        p.grad = library.ones(2)
    optimizer.step()
    assert a.tolist() == [0.5, 0.5] and np.allclose(b.tolist(), 0.9)
    assert sorted(optimizer.state_dict()["state"]) == [1]
    named = library.optim.SGD(library.nn.Linear(2, 2).named_parameters())
    assert named.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]


@LIBRARIES
@pytest.mark.parametrize(
    "make, kind, words",
    [
        (lambda lib, o, p: o.SGD(p), TypeError, "params argument given to the optimizer should be an iterable of"),
        (lambda lib, o, p: o.SGD([]), ValueError, "optimizer got an empty parameter list"),
        (lambda lib, o, p: o.SGD([p * 2]), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda lib, o, p: o.SGD([5]), TypeError, "optimizer can only optimize Tensors, but one of the params is int"),
        (lambda lib, o, p: o.SGD([{"params": [p]}, {"params": [p]}]), ValueError, "some parameters appear in"),
        (lambda lib, o, p: o.SGD([{"params": {p}}]), TypeError, "optimizer parameters need to be organized in ordered"),
        (lambda lib, o, p: o.SGD([p], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda lib, o, p: o.SGD([p], momentum=-1), ValueError, "Invalid momentum value: -1"),
        (lambda lib, o, p: o.SGD([p], nesterov=True), ValueError, "Nesterov momentum requires a momentum and zero"),
        (lambda lib, o, p: o.Adam([p], betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0: 1.0"),
        (lambda lib, o, p: o.Adam([p], eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda lib, o, p: o.Adam([p], weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda lib, o, p: o.RMSprop([p], alpha=-1), ValueError, "Invalid alpha value: -1"),
        (lambda lib, o, p: o.Adadelta([p], rho=-1), ValueError, "Invalid rho value: -1"),
        (lambda lib, o, p: o.Adagrad([p], lr_decay=-1), ValueError, "Invalid lr_decay value: -1"),
        (lambda lib, o, p: o.NAdam([p], momentum_decay=-1), ValueError, "Invalid momentum_decay value: -1"),
        (lambda lib, o, p: o.Rprop([p], etas=(1.1, 1)), ValueError, "Invalid eta values: 1.1, 1"),
        (lambda lib, o, p: o.LBFGS([{"params": [p]}, {"params": [lib.ones(1)]}]), ValueError, "LBFGS doesn't support"),
        (lambda lib, o, p: o.SGD([p]).add_param_group(5), TypeError, "param_group must be a dict, but got"),
        (
            lambda lib, o, p: o.SGD([p]).load_state_dict(o.SGD([p, lib.ones(1)]).state_dict()),
            ValueError,
            "loaded state dict contains a parameter group that doesn't match the size",
        ),
        (
            lambda lib, o, p: o.SGD([p]).load_state_dict(
                o.SGD([{"params": [p]}, {"params": [lib.ones(1)]}]).state_dict()
            ),
            ValueError,
            "loaded state dict has a different number of parameter groups",
        ),
    ],
)
def test_errors(library, make, kind, words):
    with pytest.raises(kind, match=words):
        make(library, library.optim, library.nn.Parameter(library.ones(2)))


@pytest.mark.parametrize(
    "options", [dict(), dict(line_search_fn="strong_wolfe"), dict(lr=0.3, max_iter=5, history_size=3)]
)
def test_lbfgs(options):
    """Rosenbrock's valley and a quadratic, a few steps."""

    def run(library):
        weight = library.nn.Parameter(library.tensor(np.array([-1.2, 1.0, 0.5])))
        optimizer = library.optim.LBFGS([weight], **{"lr": 0.1, **options})
        path = []

        def closure():
            optimizer.zero_grad()
            loss = 10 * (weight[1] - weight[0] ** 2) ** 2 + (1 - weight[0]) ** 2 + (weight[2] - weight[0]) ** 2
            loss.backward()
            return loss

        for _ in range(5):
            path.append(optimizer.step(closure).item())
        return path, weight.detach().numpy().copy(), optimizer.state_dict()["state"][0]

    mine, other = run(rushlight), run(torch)
    np.testing.assert_allclose(mine[0], other[0], rtol=1e-6)
    np.testing.assert_allclose(mine[1], other[1], rtol=1e-6)
    assert mine[2]["func_evals"] == other[2]["func_evals"] and mine[2]["n_iter"] == other[2]["n_iter"]


@LIBRARIES
def test_learning_rate_as_a_tensor_and_complex_parameters(library):
    weight = library.nn.Parameter(library.ones(2))
    optimizer = library.optim.Adam([weight], lr=library.tensor(0.1))
    weight.grad = library.ones(2)
    optimizer.step()
    assert np.allclose(weight.tolist(), 0.9)
    wave = library.nn.Parameter(library.tensor([1 + 1j, 2 - 1j]))
    optimizer = library.optim.Adam([wave], lr=0.1)
    wave.grad = library.tensor([1 - 1j, 0.5j])
    optimizer.step()
    assert np.allclose(wave.tolist(), [0.9 + 1.1j, 2 - 1.1j], atol=1e-4)
