"""The timed work, written as an ordinary PyTorch user would write it: one source, run on either engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

Step = Callable[[], Any]  # runs the work once and returns a gradient, by which two engines' results are compared

SGD_RATE, ADAM_RATE = 0.1, 0.001


class Case(NamedTuple):
    """One row of the table: its name, what it does, how to set it up on an engine, and the ratio it should reach."""

    name: str
    title: str
    prepare: Callable[[Any], Step]
    bar: float
    overhead_bound: bool = True


def values(*shape: int, seed: int) -> Any:
    """Gives every engine the same starting numbers; scaled so that deep products neither vanish nor explode."""
    scale = shape[-1] ** -0.5 if len(shape) > 1 else 0.1
    return (numpy.random.default_rng(seed).standard_normal(shape) * scale).astype(numpy.float32)


def fill(torch: Any, module: Any) -> Any:
    """Overwrites a module's parameters with the shared starting numbers."""
    with torch.no_grad():
        for index, parameter in enumerate(module.parameters()):
            parameter.copy_(torch.from_numpy(values(*parameter.shape, seed=index)))
    return module


def batch(torch: Any, *shape: int) -> tuple[Any, Any]:
    """Makes inputs and targets of one shape."""
    return torch.from_numpy(values(*shape, seed=1000)), torch.from_numpy(values(*shape, seed=1001))


def chain(torch: Any, factor: Any) -> Step:
    """A hundred products in a row; the factor is a number, a constant tensor or a leaf."""
    start = torch.from_numpy(values(10, seed=0)).requires_grad_()
    leaves = [start, factor] if getattr(factor, "requires_grad", False) else [start]

    def step() -> Any:
        for leaf in leaves:
            leaf.grad = None
        result = start
        for _ in range(100):
            result = result * factor
        result.sum().backward()
        return leaves[-1].grad

    return step


def chain_by_number(torch: Any) -> Step:
    return chain(torch, 1.01)


def chain_by_constant(torch: Any) -> Step:
    return chain(torch, torch.full((10,), 1.01))


def chain_by_leaf(torch: Any) -> Step:
    return chain(torch, torch.full((10,), 1.01, requires_grad=True))


def perceptron(torch: Any, layers: int, width: int) -> Any:
    """A multi-layer perceptron of equal widths, as a module of its own."""

    modules: list[Any] = []
    for _ in range(layers - 1):
        modules += [torch.nn.Linear(width, width), torch.nn.ReLU()]
    return fill(torch, torch.nn.Sequential(*modules, torch.nn.Linear(width, width)))


def training_step(torch: Any, layers: int, rows: int, width: int, optimizer_name: str, rate: float) -> Step:
    """One step of the usual loop: forward, zero_grad, backward, update."""
    inputs, targets = batch(torch, rows, width)
    model = perceptron(torch, layers, width)
    criterion = torch.nn.MSELoss()
    optimizer = getattr(torch.optim, optimizer_name)(model.parameters(), lr=rate)
    first_parameter = next(iter(model.parameters()))

    def step() -> Any:
        loss = criterion(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return first_parameter.grad

    return step


def small_step(torch: Any) -> Step:
    return training_step(torch, layers=2, rows=8, width=16, optimizer_name="SGD", rate=SGD_RATE)


def medium_step(torch: Any) -> Step:
    return training_step(torch, layers=3, rows=32, width=64, optimizer_name="Adam", rate=ADAM_RATE)


def large_step(torch: Any) -> Step:
    return training_step(torch, layers=3, rows=256, width=1024, optimizer_name="SGD", rate=SGD_RATE)


def deep_step(torch: Any) -> Step:
    return training_step(torch, layers=100, rows=512, width=256, optimizer_name="SGD", rate=SGD_RATE)


def hessian_vector_product(torch: Any) -> Step:
    inputs, targets = batch(torch, 8, 16)
    model = fill(torch, torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh(), torch.nn.Linear(16, 16)))
    parameters = list(model.parameters())
    vectors = [torch.from_numpy(values(*parameter.shape, seed=7)) for parameter in parameters]

    def step() -> Any:
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        gradients = torch.autograd.grad(loss, parameters, create_graph=True)
        product = sum((gradient * vector).sum() for gradient, vector in zip(gradients, vectors))
        return torch.autograd.grad(product, parameters)[0]

    return step


def two_losses(torch: Any) -> Step:
    inputs, targets = batch(torch, 8, 16)

    class TwoHeads(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.trunk = torch.nn.Linear(16, 16)
            self.first = torch.nn.Linear(16, 16)
            self.second = torch.nn.Linear(16, 16)

        def forward(self, inputs: Any) -> tuple[Any, Any]:
            features = torch.tanh(self.trunk(inputs))
            return self.first(features), self.second(features)

    model = fill(torch, TwoHeads())
    optimizer = torch.optim.SGD(model.parameters(), lr=SGD_RATE)

    def step() -> Any:
        first, second = model(inputs)
        first_loss = torch.nn.functional.mse_loss(first, targets)
        second_loss = torch.nn.functional.mse_loss(second, inputs)
        optimizer.zero_grad()
        first_loss.backward(retain_graph=True)
        second_loss.backward()
        optimizer.step()
        return model.trunk.weight.grad

    return step


CASES = (
    Case("chain-number", "chain of 100 products of 10 elements, by a Python number", chain_by_number, 3.0),
    Case("chain-constant", "chain of 100 products of 10 elements, by a constant", chain_by_constant, 3.0),
    Case("chain-leaf", "chain of 100 products of 10 elements, by a leaf", chain_by_leaf, 3.0),
    Case("mlp-8x16", "two-layer MLP step, 8x16, SGD", small_step, 4.0),
    Case("mlp-32x64", "three-layer MLP step, 32x64, Adam", medium_step, 3.0),
    Case("hvp", "Hessian-vector product of a small MLP", hessian_vector_product, 2.0),
    Case("two-losses", "two losses on a shared trunk", two_losses, 3.0),
    Case("mlp-256x1024", "three-layer MLP step, 256x1024, SGD", large_step, 0.95, overhead_bound=False),
)
