"""Products and matrices of derivatives: vjp, jvp, jacobian, hessian, vhp, hvp."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ..engine.call import grad
from ..ops.table import TENSORS
from ..tensor import Tensor, wrap
from .grad_mode import enable_grad


def _as_tuple(given: Any, argument: str, function: str) -> tuple[bool, tuple]:
    """Whether it was a tuple, and it as one."""
    was_tuple = isinstance(given, tuple)
    items = given if was_tuple else (given,)
    for i, item in enumerate(items):
        if not isinstance(item, Tensor):
            if was_tuple:
                raise TypeError(f"The {argument} given to {function} must be either a Tensor or a tuple of Tensors but "
                                f"the value at index {i} has type {type(item)}.")
            raise TypeError(f"The {argument} given to {function} must be either a Tensor or a tuple of Tensors but the "
                            f"given {argument} has type {type(item)}.")
    return was_tuple, items


def _prepared(inputs: tuple, create_graph: bool, need_graph: bool) -> tuple:
    """Inputs to differentiate with respect to: with a history back to the user's if the result is to have one."""
    if create_graph:
        return tuple(TENSORS.alias(one) if one.requires_grad else one.detach().requires_grad_(need_graph)
                     for one in inputs)
    return tuple(one.detach().requires_grad_(need_graph) for one in inputs)


def _finished(results: Any, create_graph: bool) -> Any:
    if isinstance(results, Tensor):
        return results if create_graph else results.detach()
    return tuple(_finished(one, create_graph) for one in results)


def _unwrapped(results: Any, was_tuple: bool) -> Any:
    return results if was_tuple else results[0]


def _check_vectors(vectors: tuple, others: tuple) -> None:
    if len(vectors) != len(others):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(others)} but got {len(vectors)}.")
    for i, (vector, other) in enumerate(zip(vectors, others, strict=True)):
        if vector._shape != other._shape:
            where = f"Entry {i} in " if len(others) > 1 else ""
            raise RuntimeError(f"{where}v has invalid size: should be {other.shape} but got {vector.shape}.")


def _vectors(v: Any, function: str, references: tuple, create_graph: bool, what: str) -> tuple:
    """The user's v, checked against what it multiplies; ones where it may be left out."""
    if v is not None:
        _, vectors = _as_tuple(v, "v", function)
        vectors = _prepared(vectors, create_graph, False)
        _check_vectors(vectors, references)
        return vectors
    if len(references) != 1 or references[0]._array.size != 1:
        if what == "outputs":
            raise RuntimeError("The vector v can only be None if the user-provided function returns a single Tensor "
                               "with a single element.")
        raise RuntimeError("The vector v can only be None if the input to the user-provided function is a single "
                           "Tensor with a single element.")
    return (wrap(np.ones_like(references[0]._array)),)


def _check_outputs(outputs: tuple, strict: bool) -> None:
    for i, output in enumerate(outputs):
        if strict and output._node is None:
            raise RuntimeError(f"Output {i} of the user-provided function does not require gradients. The outputs must "
                               "be computed in a differentiable manner from the input when running in strict mode.")


def _check_twice(first: tuple, strict: bool) -> None:
    """strict: a second derivative needs a first one that depends on the inputs."""
    for i, one in enumerate(first):
        if strict and one._node is None:
            raise RuntimeError("While computing the hessian, found that the jacobian of the user-provided function "
                               f"with respect to input {i} is independent of the input. This is not allowed in strict "
                               "mode: the function must be twice differentiable, which a linear one, for example, is "
                               "not.")


def _gradients(outputs: tuple, inputs: tuple, vectors: tuple | None, create_graph: bool) -> tuple:
    """grad() that takes outputs without a history, and gives None for what does not matter."""
    given = (None,) * len(outputs) if vectors is None else vectors
    pairs = [(o, v) for o, v in zip(outputs, given, strict=True) if o is not None and o._node is not None]
    if not pairs:
        return (None,) * len(inputs)
    return grad([o for o, _ in pairs], inputs, [v for _, v in pairs], allow_unused=True, create_graph=create_graph,
                retain_graph=True)


def _filled(results: tuple, references: tuple, strict: bool, create_graph: bool, stage: str) -> tuple:
    """Zeros for what is None; in strict mode that is an error."""
    made = []
    for i, (result, reference) in enumerate(zip(results, references, strict=True)):
        if result is None:
            if strict:
                raise RuntimeError({
                    "back": f"The output of the user-provided function is independent of input {i}. This is not "
                            "allowed in strict mode.",
                    "back_trick": f"The gradient with respect to the input is independent of entry {i} in the "
                                  "grad_outputs when using the double backward trick to compute forward mode "
                                  "gradients. This is not allowed in strict mode.",
                    "double_back": "The jacobian of the user-provided function is independent of "
                                   f"input {i}. This is not allowed in strict mode.",
                    "double_back_trick": f"The hessian of the user-provided function is independent of entry {i} in "
                                         "the grad_jacobian. This is not allowed in strict mode as it prevents from "
                                         "using the double backward trick to replace forward mode AD."}[stage])
            result = wrap(np.zeros_like(reference._array))
        elif strict and create_graph and result._node is None:
            if "double" in stage:
                raise RuntimeError(f"The hessian of the user-provided function is independent of input {i}. This is "
                                   "not allowed in strict mode when create_graph=True.")
            raise RuntimeError(f"The jacobian of the user-provided function is independent of input {i}. This is not "
                               "allowed in strict mode when create_graph=True.")
        made.append(result)
    return tuple(made)


def vjp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """The function's outputs, and v times its Jacobian."""
    with enable_grad():
        several_inputs, given = _as_tuple(inputs, "inputs", "vjp")
        given = _prepared(given, create_graph, True)
        several_outputs, outputs = _as_tuple(func(*given), "outputs of the user-provided function", "vjp")
        _check_outputs(outputs, strict)
        vectors = _vectors(v, "vjp", outputs, create_graph, "outputs")
        product = _filled(_gradients(outputs, given, vectors, create_graph), given, strict, create_graph, "back")
    return (_unwrapped(_finished(outputs, create_graph), several_outputs),
            _unwrapped(_finished(product, create_graph), several_inputs))


def _double_back(func: Callable, given: tuple, vectors: tuple, create_graph: bool,
                 strict: bool) -> tuple[bool, tuple, tuple]:
    """Outputs and Jacobian times v, by differentiating the vjp with respect to what it is multiplied with."""
    several, outputs = _as_tuple(func(*given), "outputs of the user-provided function", "jvp")
    _check_outputs(outputs, strict)
    probes = tuple(wrap(np.zeros_like(output._array)).requires_grad_() for output in outputs)
    back = _gradients(outputs, given, probes, True)
    back = _filled(back, given, strict, False, "back")
    product = _gradients(back, probes, vectors, create_graph)
    return several, outputs, _filled(product, outputs, strict, create_graph, "back_trick")


def jvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """The function's outputs, and its Jacobian times v."""
    with enable_grad():
        _, given = _as_tuple(inputs, "inputs", "jvp")
        given = _prepared(given, create_graph, True)
        vectors = _vectors(v, "jvp", given, create_graph, "inputs")
        several, outputs, product = _double_back(func, given, vectors, create_graph, strict)
    return _unwrapped(_finished(outputs, create_graph), several), _unwrapped(_finished(product, create_graph), several)


def jacobian(func: Callable, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
             strategy: str = "reverse-mode") -> Any:
    """The function's Jacobian: for each output and input a tensor of shape output.shape + input.shape."""
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode". "forward-mode" is the '
                             'faster where there are more outputs than inputs.')
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError("torch.autograd.functional.jacobian: `create_graph=True` and "
                                      "`strategy=\"forward-mode\"` are not supported together (yet). Use "
                                      "`strategy=\"reverse-mode\"`.")
        if strict:
            raise RuntimeError("torch.autograd.functional.jacobian: `strict=True` and `strategy=\"forward-mode\"` are "
                               "not supported together (yet). Please either set `strict=False` or "
                               "`strategy=\"reverse-mode\"`.")
        if not vectorize:
            raise NotImplementedError("Computing Jacobian using forward-AD or forward-over-"
                                      "reverse Hessian is only implemented for `vectorize=True`.")
        return _forward_jacobian(func, inputs)
    with enable_grad():
        several_inputs, given = _as_tuple(inputs, "inputs", "jacobian")
        given = _prepared(given, create_graph, True)
        several_outputs, outputs = _as_tuple(func(*given), "outputs of the user-provided function", "jacobian")
        _check_outputs(outputs, strict)
        if vectorize and strict:
            raise RuntimeError("torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not "
                               "supported together. Please either set `strict=False` or `vectorize=False`.")
        rows = tuple(_jacobian_of(output, i, given, create_graph, strict) for i, output in enumerate(outputs))
    rows = _finished(rows, create_graph)
    if not several_inputs:
        rows = tuple(row[0] for row in rows)
    return _unwrapped(rows, several_outputs)


def _jacobian_of(output: Tensor, number: int, inputs: tuple, create_graph: bool, strict: bool) -> tuple:
    """One output's Jacobian with respect to each input, a row per element."""
    columns: list[list] = [[] for _ in inputs]
    for position in range(output._array.size):
        vector = np.zeros_like(output._array, order="C")
        vector.reshape(-1)[position] = 1
        found = _gradients((output,), inputs, (wrap(vector),), create_graph)
        for i, (column, one, reference) in enumerate(zip(columns, found, inputs, strict=True)):
            if one is None:
                if strict:
                    raise RuntimeError(f"Output {number} of the user-provided function is independent of input {i}. "
                                       "This is not allowed in strict mode.")
                one = wrap(np.zeros_like(reference._array))
            elif strict and create_graph and one._node is None:
                raise RuntimeError("The jacobian of the user-provided function is independent of input "
                                   f"{i}. This is not allowed in strict mode when create_graph=True.")
            column.append(one)
    return tuple(TENSORS.reshape(TENSORS.stack(column, 0), output._shape + reference._shape) if column
                 else wrap(np.zeros(output._shape + reference._shape, output._array.dtype))
                 for column, reference in zip(columns, inputs, strict=True))


def _forward_jacobian(func: Callable, inputs: Any) -> Any:
    """The same by forward mode: a column per element of the inputs."""
    from . import forward_ad
    several_inputs, given = _as_tuple(inputs, "inputs", "jacobian")
    found: list[list] = []  # input -> output -> columns
    several_outputs, outputs = True, cast(tuple, ())
    for number, one in enumerate(given):
        columns: list[list] = []
        for position in range(one._array.size):
            vector = np.zeros_like(one._array, order="C")
            vector.reshape(-1)[position] = 1
            with forward_ad.dual_level():
                duals = tuple(forward_ad.make_dual(other.detach(), wrap(vector)) if i == number else other.detach()
                              for i, other in enumerate(given))
                several_outputs, outputs = _as_tuple(func(*duals), "outputs of the user-provided function", "jacobian")
                unpacked = [forward_ad.unpack_dual(output) for output in outputs]
            columns = columns or [[] for _ in unpacked]
            for column, (primal, tangent) in zip(columns, unpacked, strict=True):
                column.append(wrap(np.zeros_like(primal._array)) if tangent is None else tangent)
        found.append(columns)
    rows = []
    for number, output in enumerate(outputs):
        row = tuple(TENSORS.reshape(TENSORS.stack(columns[number], -1), output._shape + one._shape).detach()
                    for columns, one in zip(found, given, strict=True))
        rows.append(row if several_inputs else row[0])
    return _unwrapped(tuple(rows), several_outputs)


def _scalar(func: Callable, function: str) -> Callable:
    """The user's function, whose output must be one element."""

    def checked(*inputs: Any) -> Any:
        made = func(*inputs)
        was_tuple, outputs = _as_tuple(made, "outputs of the user-provided function", function)
        if was_tuple:
            raise RuntimeError(f"The function given to {function} should return a single Tensor")
        if outputs[0]._array.size != 1:
            raise RuntimeError(f"The Tensor returned by the function given to {function} should contain a single "
                               "element")
        return outputs[0] if not outputs[0]._shape else TENSORS.reshape(outputs[0], ())
    return checked


def hessian(func: Callable, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
            outer_jacobian_strategy: str = "reverse-mode") -> Any:
    """The second derivatives of a function that gives one number."""
    several, given = _as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    checked = _scalar(func, "hessian")

    def first_derivative(*args: Tensor) -> Any:
        if outer_jacobian_strategy == "forward-mode":
            args = tuple(one if one.requires_grad else one.requires_grad_() for one in args)
        with enable_grad():
            output = checked(*args)
            _check_outputs((output,), strict)
            found = _filled(_gradients((output,), args, None, True), args, False, False, "back")
        _check_twice(found, strict)
        return found

    result = jacobian(first_derivative, given, create_graph=create_graph, strict=strict, vectorize=vectorize,
                      strategy=outer_jacobian_strategy)
    return result if several else result[0][0]


def vhp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """The function's value, and v times its Hessian."""
    with enable_grad():
        several, given = _as_tuple(inputs, "inputs", "vhp")
        given = _prepared(given, create_graph, True)
        vectors = _vectors(v, "vhp", given, create_graph, "inputs")
        output = _scalar(func, "vhp")(*given)
        _check_outputs((output,), strict)
        first = _filled(_gradients((output,), given, None, True), given, strict, False, "back")
        _check_twice(first, strict)
        product = _filled(_gradients(first, given, vectors, create_graph), given, strict, create_graph, "double_back")
    return _finished(output, create_graph), _unwrapped(_finished(product, create_graph), several)


def hvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """The function's value, and its Hessian times v."""
    with enable_grad():
        several, given = _as_tuple(inputs, "inputs", "hvp")
        given = _prepared(given, create_graph, True)
        vectors = _vectors(v, "hvp", given, create_graph, "inputs")
        output = _scalar(func, "hvp")(*given)
        _check_outputs((output,), strict)
        first = _filled(_gradients((output,), given, None, True), given, strict, False, "back")
        _check_twice(first, strict)
        seconds = tuple(wrap(np.zeros_like(one._array)).requires_grad_() for one in given)
        back = _filled(_gradients(first, given, seconds, True), given, strict, False, "double_back")
        product = _gradients(back, seconds, vectors, create_graph)
        product = _filled(product, given, strict, create_graph, "double_back_trick")
    return _finished(output, create_graph), _unwrapped(_finished(product, create_graph), several)


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
