"""Adam and its relatives: AdamW, Adamax, NAdam, RAdam."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..tensor import Tensor, wrap
from .elementwise import ElementwiseOptimizer
from .optimizer import refuse


def new_step() -> Tensor:
    """The step counter, which torch keeps as a tensor."""
    return wrap(np.zeros((), np.float32))


def zeros_like(param: Tensor) -> Tensor:
    return wrap(np.zeros_like(param._array))


def check_options(lr: Any, weight_decay: float, eps: float | None = None, betas: Any = None) -> None:
    """The checks that adaptive methods share, in torch's order and words."""
    if not 0.0 <= lr:
        raise ValueError(f"Invalid learning rate: {lr}")
    if eps is not None and not 0.0 <= eps:
        raise ValueError(f"Invalid epsilon value: {eps}")
    for place, beta in enumerate(betas or ()):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {place}: {beta}")
    if not 0.0 <= weight_decay:
        raise ValueError(f"Invalid weight_decay value: {weight_decay}")


def adjusted_gradient(group: dict[str, Any], decay: Any, value: Any, grad: Any, scratch: Any) -> Any:
    """The gradient after maximize and weight decay; with decoupled decay the value is shrunk by ``decay`` instead.

    May use both scratch arrays; the result may be the first of them.
    """
    first, second = scratch
    if group["maximize"]:
        grad = np.negative(grad, first)
    if group["weight_decay"]:
        if group.get("decoupled_weight_decay"):
            np.multiply(value, decay, value)
        else:
            grad = np.add(grad, np.multiply(value, decay, second), first)
    return grad


def decay_number(group: dict[str, Any]) -> float:
    """What ``adjusted_gradient`` multiplies by: the decay, or the shrinking factor where it is decoupled."""
    if group.get("decoupled_weight_decay"):
        return 1 - float(group["lr"]) * group["weight_decay"]
    return group["weight_decay"]


def average(mean: Any, grad: Any, share: Any, spare: Any) -> None:
    """Move ``mean`` towards ``grad`` by ``share``."""
    np.subtract(grad, mean, spare)
    np.multiply(spare, share, spare)
    np.add(mean, spare, mean)


def average_square(square: Any, grad: Any, beta: Any, share: Any, spare: Any) -> None:
    """Age ``square`` by ``beta`` and add ``share`` of the squared gradient."""
    np.multiply(square, beta, square)
    np.multiply(grad, share, spare)
    np.multiply(spare, grad, spare)
    np.add(square, spare, square)


def add_quotient(value: Any, numerator: Any, denominator: Any, factor: Any, spare: Any) -> None:
    """``value += factor * numerator / denominator``."""
    np.multiply(numerator, factor, spare)
    np.divide(spare, denominator, spare)
    np.add(value, spare, value)


class Adam(ElementwiseOptimizer):
    """Steps scaled by running averages of the gradient and of its square."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_options(lr, weight_decay, eps, betas)
        refuse("capturable", capturable)
        refuse("differentiable", differentiable)
        defaults = dict(
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize,
            foreach=foreach, capturable=capturable, differentiable=differentiable, fused=fused,
            decoupled_weight_decay=decoupled_weight_decay,
        )  # fmt: skip
        super().__init__(params, defaults)

    def _state_names(self, group: dict[str, Any]) -> tuple[str, ...]:
        if group["amsgrad"]:
            return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
        return ("exp_avg", "exp_avg_sq")

    def _new_state(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return {"step": new_step(), **{name: zeros_like(param) for name in self._state_names(group)}}

    def _numbers(self, group: dict[str, Any], step: float, state: dict[str, Any]) -> tuple[float, ...]:
        beta1, beta2 = group["betas"]
        beta1, beta2 = float(beta1), float(beta2)
        step_size = float(group["lr"]) / (1 - beta1**step)
        root_correction = (1 - beta2**step) ** 0.5
        return 1 - beta1, beta2, 1 - beta2, root_correction, group["eps"], -step_size, decay_number(group)

    def _update(self, group: dict[str, Any], numbers: Any, value: Any, grad: Any, states: Any, scratch: Any) -> None:
        share1, beta2, share2, root_correction, eps, factor, decay = numbers
        first, second = scratch
        if group["maximize"] or group["weight_decay"]:
            grad = adjusted_gradient(group, decay, value, grad, scratch)
        mean, square = states[0], states[1]
        average(mean, grad, share1, second)
        average_square(square, grad, beta2, share2, second)
        if group["amsgrad"]:
            square = np.maximum(states[2], square, out=states[2])
        np.sqrt(square, second)
        np.divide(second, root_correction, second)
        np.add(second, eps, second)
        add_quotient(value, mean, second, factor, first)


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters directly."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused, decoupled_weight_decay=True,
        )  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


class Adamax(ElementwiseOptimizer):
    """Adam with the largest gradient seen, aged, in place of the root of the average square."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_options(lr, weight_decay, eps, betas)
        refuse("capturable", capturable)
        refuse("differentiable", differentiable)
        defaults = dict(
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, foreach=foreach, maximize=maximize,
            differentiable=differentiable, capturable=capturable,
        )  # fmt: skip
        super().__init__(params, defaults)

    def _state_names(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_inf")

    def _new_state(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return {"step": new_step(), "exp_avg": zeros_like(param), "exp_inf": zeros_like(param)}

    def _numbers(self, group: dict[str, Any], step: float, state: dict[str, Any]) -> tuple[float, ...]:
        beta1, beta2 = group["betas"]
        return 1 - beta1, beta2, group["eps"], -float(group["lr"]) / (1 - beta1**step), group["weight_decay"]

    def _update(self, group: dict[str, Any], numbers: Any, value: Any, grad: Any, states: Any, scratch: Any) -> None:
        share, beta2, eps, factor, decay = numbers
        first, second = scratch
        grad = adjusted_gradient(group, decay, value, grad, scratch)
        mean, largest = states
        average(mean, grad, share, second)
        np.multiply(largest, beta2, largest)
        np.abs(grad, first)
        np.add(first, eps, first)
        np.maximum(largest, first, out=largest)
        add_quotient(value, mean, largest, factor, second)


class NAdam(ElementwiseOptimizer):
    """Adam with Nesterov's look-ahead."""

    # The step's numbers depend on the running product of momenta, which is kept per parameter.
    _bundles_allowed = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(lr, weight_decay, eps, betas)
        if not 0.0 <= momentum_decay:
            raise ValueError(f"Invalid momentum_decay value: {momentum_decay}")
        refuse("capturable", capturable)
        refuse("differentiable", differentiable)
        defaults = dict(
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay,
            decoupled_weight_decay=decoupled_weight_decay, maximize=maximize, foreach=foreach, capturable=capturable,
            differentiable=differentiable,
        )  # fmt: skip
        super().__init__(params, defaults)

    def _state_names(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def _new_state(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        product = wrap(np.ones((), np.float32))
        zeros = {name: zeros_like(param) for name in self._state_names(group)}
        return {"step": new_step(), "mu_product": product, **zeros}

    def _numbers(self, group: dict[str, Any], step: float, state: dict[str, Any]) -> tuple[float, ...]:
        beta1, beta2 = group["betas"]
        aging = group["momentum_decay"]
        now = beta1 * (1.0 - 0.5 * 0.96 ** (step * aging))
        after = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * aging))
        product = state["mu_product"]._array
        product *= product.dtype.type(now)
        reached = product.item()
        rate = float(group["lr"])
        return (
            1 - beta1, beta2, 1 - beta2, 1 - beta2**step, group["eps"], -rate * (1.0 - now) / (1.0 - reached),
            -rate * after / (1.0 - reached * after), decay_number(group),
        )  # fmt: skip

    def _update(self, group: dict[str, Any], numbers: Any, value: Any, grad: Any, states: Any, scratch: Any) -> None:
        share1, beta2, share2, correction, eps, gradient_factor, mean_factor, decay = numbers
        first, second = scratch
        grad = adjusted_gradient(group, decay, value, grad, scratch)
        mean, square = states
        average(mean, grad, share1, second)
        average_square(square, grad, beta2, share2, second)
        np.divide(square, correction, second)
        np.sqrt(second, second)
        np.add(second, eps, second)
        add_quotient(value, grad, second, gradient_factor, first)
        add_quotient(value, mean, second, mean_factor, first)


class RAdam(ElementwiseOptimizer):
    """Adam that takes unscaled steps until the average square can be trusted."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(lr, weight_decay, eps, betas)
        refuse("capturable", capturable)
        refuse("differentiable", differentiable)
        defaults = dict(
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize, foreach=foreach,
            capturable=capturable, decoupled_weight_decay=decoupled_weight_decay, differentiable=differentiable,
        )  # fmt: skip
        super().__init__(params, defaults)

    def _state_names(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def _new_state(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return {"step": new_step(), **{name: zeros_like(param) for name in self._state_names(group)}}

    def _numbers(self, group: dict[str, Any], step: float, state: dict[str, Any]) -> tuple[float, ...]:
        beta1, beta2 = group["betas"]
        correction1, correction2 = 1 - beta1**step, 1 - beta2**step
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * (beta2**step) / correction2
        rectifier = 0.0
        if length > 5.0:
            rectifier = (
                (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            ) ** 0.5
        return (
            1 - beta1, beta2, 1 - beta2, correction1, correction2**0.5, group["eps"], float(group["lr"]), rectifier,
            decay_number(group),
        )  # fmt: skip

    def _update(self, group: dict[str, Any], numbers: Any, value: Any, grad: Any, states: Any, scratch: Any) -> None:
        share1, beta2, share2, correction1, root_correction, eps, rate, rectifier, decay = numbers
        first, second = scratch
        grad = adjusted_gradient(group, decay, value, grad, scratch)
        mean, square = states
        average(mean, grad, share1, second)
        average_square(square, grad, beta2, share2, second)
        np.divide(mean, correction1, first)
        np.multiply(first, rate, first)
        if rectifier:
            np.sqrt(square, second)
            np.add(second, eps, second)
            np.divide(root_correction, second, second)
            np.multiply(first, second, first)
            np.multiply(first, rectifier, first)
        np.subtract(value, first, value)
