"""Runs one expression on real torch and on rushlight and compares everything autograd makes of it."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

Expression = Callable[[ModuleType, Any], Any]


def leaf(module: ModuleType, values: np.ndarray) -> Any:
    """A tensor of these values, a leaf that requires grad where its dtype allows."""
    return module.tensor(values.copy(), requires_grad=values.dtype.kind in "fc")


def outputs_of(made: Any) -> list[Any]:
    """The tensors an operation returned, whatever it packed them in."""
    if isinstance(made, (tuple, list)):
        return [tensor for part in made for tensor in outputs_of(part)]
    return [made]


def plain(tensor: Any) -> np.ndarray:
    return tensor.detach().clone().numpy()  # torch cannot convert what it keeps as a mere zero


def weights_for(module: ModuleType, tensor: Any, salt: int) -> Any:
    """Fixed weights of a tensor's shape, so that no gradient is lost in symmetry."""
    values = np.random.default_rng(salt).uniform(0.5, 1.5, tuple(tensor.shape))
    return module.tensor(values.astype(plain(tensor).dtype))


def weighted_sum(module: ModuleType, tensors: list[Any], salt: int = 0) -> Any:
    total = None
    for i, tensor in enumerate(tensors):
        part = (tensor * weights_for(module, tensor, salt + i)).sum()
        total = part if total is None else total + part
    return total.real if plain(total).dtype.kind == "c" else total  # type: ignore[union-attr]


def derivatives(
    module: ModuleType, expression: Expression, arrays: tuple[np.ndarray, ...], second: bool
) -> dict[str, Any]:
    """Values, node names, gradients and second-order gradients of one expression."""
    inputs = [leaf(module, values) for values in arrays]
    outputs = outputs_of(expression(module, *inputs))
    facts: dict[str, Any] = {
        "values": [plain(tensor) for tensor in outputs],
        "requires_grad": [tensor.requires_grad for tensor in outputs],
    }
    differentiable = [tensor for tensor in outputs if tensor.requires_grad]
    leaves = [tensor for tensor in inputs if tensor.requires_grad]
    if not differentiable:
        return facts
    first = module.autograd.grad(weighted_sum(module, differentiable), leaves, create_graph=second, allow_unused=True)
    facts["gradients"] = [None if g is None else plain(g) for g in first]
    curved = [g for g in first if g is not None and g.requires_grad]
    if second and curved:
        again = module.autograd.grad(weighted_sum(module, curved, 10), leaves, allow_unused=True)
        facts["second"] = [np.zeros(a.shape) if g is None else plain(g) for g, a in zip(again, arrays, strict=False)]
    return facts


def check(
    torch: ModuleType,
    rushlight: ModuleType,
    expression: Expression,
    *arrays: np.ndarray,
    second: bool = True,
    rtol: float = 1e-7,
    atol: float = 1e-9,
) -> None:
    """Assert that both engines agree on all of it."""
    expected = derivatives(torch, expression, arrays, second)
    found = derivatives(rushlight, expression, arrays, second)
    assert found["requires_grad"] == expected["requires_grad"]
    for kind in ("values", "gradients"):
        assert (kind in found) == (kind in expected)
        for got, wanted in zip(found.get(kind, []), expected.get(kind, []), strict=True):
            assert (got is None) == (wanted is None)
            if wanted is not None:
                assert got.dtype == wanted.dtype
                np.testing.assert_allclose(got, wanted, rtol, atol, err_msg=kind)
    if second and "gradients" in expected:
        zeros = [np.zeros(a.shape) for a in arrays]
        for got, wanted in zip(found.get("second", zeros), expected.get("second", zeros), strict=True):
            np.testing.assert_allclose(got, wanted, rtol, atol, err_msg="second order")


def second_backward(module: ModuleType, expression: Expression, values: np.ndarray) -> str:
    """'ok' or 'freed': whether the gradient can be taken twice without retain_graph. The sum on top saves nothing."""
    loss = sum(
        (tensor.sum() for tensor in outputs_of(expression(module, leaf(module, values))) if tensor.requires_grad),
        start=0,
    )
    loss.backward()
    try:
        loss.backward()
    except RuntimeError as error:
        assert "backward through the graph a second time" in str(error)
        return "freed"
    return "ok"


def node_name(tensor: Any) -> str:
    return tensor.grad_fn.name().split("::")[-1]
