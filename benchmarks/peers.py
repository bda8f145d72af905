"""The same work on HIPS autograd and on JAX (jit), where they are installed: written in their own functional style."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .cases import ADAM_RATE, SGD_RATE, Step, values

Parameters = list[Any]


class Peer(NamedTuple):
    """What the shared functional code needs from a library."""

    numpy: Any
    grad: Callable[..., Any]
    value_and_grad: Callable[..., Any]
    vjp: Callable[[Callable[[Any], Any], Any], tuple[Any, Callable[[Any], Any]]]
    jit: Callable[..., Any]
    wait: Callable[[Any], Any]


def hips_autograd() -> Peer:
    import autograd
    import autograd.numpy

    def vjp(function: Callable[[Any], Any], argument: Any) -> tuple[Any, Callable[[Any], Any]]:
        pull, result = autograd.make_vjp(function)(argument)
        return result, pull

    def as_is(anything: Any) -> Any:
        return anything

    def value_and_grad(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return autograd.value_and_grad(function)

    return Peer(autograd.numpy, autograd.grad, value_and_grad, vjp, as_is, as_is)


def jax() -> Peer:
    import jax

    def vjp(function: Callable[[Any], Any], argument: Any) -> tuple[Any, Callable[[Any], Any]]:
        result, pull = jax.vjp(function, argument)
        return result, lambda cotangent: pull(cotangent)[0]

    return Peer(jax.numpy, jax.grad, jax.value_and_grad, vjp, jax.jit, jax.block_until_ready)


def chain(peer: Peer, factor: Any, of_factor: bool) -> Step:
    """The three chains; the gradient is taken with respect to the start, and to the factor if that is a leaf."""
    start = peer.numpy.array(values(10, seed=0))

    def total(arguments: Any) -> Any:
        result, by = arguments if of_factor else (arguments, factor)
        for _ in range(100):
            result = result * by
        return peer.numpy.sum(result)

    gradient = peer.jit(peer.grad(total))
    arguments = (start, factor) if of_factor else start
    pick = (lambda found: found[1]) if of_factor else (lambda found: found)
    return lambda: pick(peer.wait(gradient(arguments)))


def chain_by_number(peer: Peer) -> Step:
    return chain(peer, 1.01, of_factor=False)


def chain_by_constant(peer: Peer) -> Step:
    return chain(peer, peer.numpy.array(values(10, seed=0) * 0 + 1.01), of_factor=False)


def chain_by_leaf(peer: Peer) -> Step:
    return chain(peer, peer.numpy.array(values(10, seed=0) * 0 + 1.01), of_factor=True)


def shared_parameters(peer: Peer, *shapes: tuple[int, ...]) -> Parameters:
    return [peer.numpy.array(values(*shape, seed=index)) for index, shape in enumerate(shapes)]


def shared_batch(peer: Peer, rows: int, width: int) -> tuple[Any, Any]:
    return peer.numpy.array(values(rows, width, seed=1000)), peer.numpy.array(values(rows, width, seed=1001))


def square_layers(layers: int, width: int) -> list[tuple[int, ...]]:
    return [shape for _ in range(layers) for shape in ((width, width), (width,))]


def mean_square(peer: Peer, found: Any, wanted: Any) -> Any:
    return peer.numpy.mean((found - wanted) ** 2)


def perceptron(peer: Peer, parameters: Parameters, inputs: Any, activation: Callable[[Any], Any]) -> Any:
    """The forward pass; weights are kept as PyTorch keeps them, output by input."""
    for index in range(0, len(parameters), 2):
        inputs = inputs @ parameters[index].T + parameters[index + 1]
        if index + 2 < len(parameters):
            inputs = activation(inputs)
    return inputs


def sgd_update(parameters: Parameters, gradients: Parameters) -> Parameters:
    return [parameter - SGD_RATE * gradient for parameter, gradient in zip(parameters, gradients)]


def adam_update(peer: Peer, state: Any, gradients: Parameters) -> Any:
    """Adam with PyTorch's defaults; the state is (step count, parameters, first moments, second moments)."""
    count, parameters, firsts, seconds = state
    count = count + 1
    firsts = [0.9 * first + 0.1 * gradient for first, gradient in zip(firsts, gradients)]
    seconds = [0.999 * second + 0.001 * gradient * gradient for second, gradient in zip(seconds, gradients)]
    rate, correction = ADAM_RATE / (1 - 0.9**count), (1 - 0.999**count) ** 0.5
    parameters = [
        parameter - rate * first / (peer.numpy.sqrt(second) / correction + 1e-8)
        for parameter, first, second in zip(parameters, firsts, seconds)
    ]
    return count, parameters, firsts, seconds


def stepping(peer: Peer, update: Callable[[Any], tuple[Any, Any]], state: Any) -> Step:
    """Turns a pure update, from a state to the next one and a gradient, into a step that keeps its state."""
    compiled = peer.jit(update)

    def step() -> Any:
        nonlocal state
        state, gradient = peer.wait(compiled(state))
        return gradient

    return step


def training_step(peer: Peer, layers: int, rows: int, width: int, adam: bool) -> Step:
    inputs, targets = shared_batch(peer, rows, width)

    def loss_of(parameters: Parameters) -> Any:
        found = perceptron(peer, parameters, inputs, lambda hidden: peer.numpy.maximum(hidden, 0))
        return mean_square(peer, found, targets)

    value_and_grad = peer.value_and_grad(loss_of)

    def update(state: Any) -> tuple[Any, Any]:
        _, gradients = value_and_grad(state[1] if adam else state)
        return (adam_update(peer, state, gradients) if adam else sgd_update(state, gradients)), gradients[0]

    parameters = shared_parameters(peer, *square_layers(layers, width))
    zeros = [parameter * 0 for parameter in parameters]
    return stepping(peer, update, (0, parameters, zeros, zeros) if adam else parameters)


def small_step(peer: Peer) -> Step:
    return training_step(peer, layers=2, rows=8, width=16, adam=False)


def medium_step(peer: Peer) -> Step:
    return training_step(peer, layers=3, rows=32, width=64, adam=True)


def large_step(peer: Peer) -> Step:
    return training_step(peer, layers=3, rows=256, width=1024, adam=False)


def hessian_vector_product(peer: Peer) -> Step:
    inputs, targets = shared_batch(peer, 8, 16)
    parameters = shared_parameters(peer, *square_layers(2, 16))
    vectors = [peer.numpy.array(values(*parameter.shape, seed=7)) for parameter in parameters]

    def loss_of(given: Parameters) -> Any:
        return mean_square(peer, perceptron(peer, given, inputs, peer.numpy.tanh), targets)

    def slope_along(given: Parameters) -> Any:
        return sum(peer.numpy.sum(gradient * vector) for gradient, vector in zip(peer.grad(loss_of)(given), vectors))

    product = peer.jit(peer.grad(slope_along))
    return lambda: peer.wait(product(parameters))[0]


def two_losses(peer: Peer) -> Step:
    inputs, targets = shared_batch(peer, 8, 16)

    def losses(parameters: Parameters) -> Any:
        features = peer.numpy.tanh(inputs @ parameters[0].T + parameters[1])
        first = mean_square(peer, features @ parameters[2].T + parameters[3], targets)
        second = mean_square(peer, features @ parameters[4].T + parameters[5], inputs)
        return peer.numpy.array([first, second])

    one, other = peer.numpy.array(values(2, seed=0) * 0 + [1, 0]), peer.numpy.array(values(2, seed=0) * 0 + [0, 1])

    def update(parameters: Parameters) -> tuple[Any, Any]:
        _, pull = peer.vjp(losses, parameters)
        gradients = [first + second for first, second in zip(pull(one), pull(other))]
        return sgd_update(parameters, gradients), gradients[0]

    return stepping(peer, update, shared_parameters(peer, *square_layers(3, 16)))


WORK: dict[str, Callable[[Peer], Step]] = {
    "chain-number": chain_by_number,
    "chain-constant": chain_by_constant,
    "chain-leaf": chain_by_leaf,
    "mlp-8x16": small_step,
    "mlp-32x64": medium_step,
    "hvp": hessian_vector_product,
    "two-losses": two_losses,
    "mlp-256x1024": large_step,
}


def installed() -> dict[str, Peer]:
    """The peers that can be imported here."""
    found = {}
    for name, load in (("autograd", hips_autograd), ("jax", jax)):
        try:
            found[name] = load()
        except ImportError:
            continue
    return found
