"""Function: an operation whose forward and backward are written by the user."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ..arrays.dtypes import FLOATING, category
from ..graph import facts
from ..graph.errors import freed_error, modified_error
from ..graph.modes import set_grad, state
from ..graph.node import KEPT, LEAF, SAVED, BackwardCall, Output, next_order
from ..graph.versions import Family, family_of
from ..ops.apply import edge_of, pack_value, record_anomaly
from ..ops.fit import fit, fit_tensor
from ..ops.inplace import Spec, rebase
from ..ops.table import TENSORS
from ..ops.unpack import Packed, check_saved, describe
from ..tensor import Tensor, wrap
from ..tensor.visible import GraphNode, SavedTensor, show_as

_new = object.__new__


class FunctionCtx:
    """What forward, setup_context and backward share: saved tensors, marks, and any attribute that is set on it."""

    # The marks' defaults; setting them on the object only where used keeps `apply` short.
    to_save: tuple = ()
    dirty_tensors: tuple = ()
    non_differentiable: tuple = ()
    saved_for_forward: tuple = ()
    materialize_grads = True
    needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for backward. They are checked for in-place changes, and freed with the graph."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for jvp."""
        for i, tensor in enumerate(tensors):
            if tensor is not None and not isinstance(tensor, Tensor):
                raise AssertionError("save_for_forward expects all arguments to be tensors; you should save "
                                     f"non-tensors as attributes on ctx. Argument {i} is of type "
                                     f"{type(tensor).__name__}.")
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Say which inputs forward writes to. Each must be an output as well."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Say which outputs have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros, rather than None, for outputs that no gradient reached."""
        self.materialize_grads = value

    def mark_shared_storage(self, *pairs: Any) -> None:
        warnings.warn("mark_shared_storage is deprecated. It does nothing: tensors over one "
                      "memory know of each other", FutureWarning, stacklevel=2)


class BackwardCFunction(FunctionCtx, GraphNode):
    """A custom Function's ctx, which is also its node's grad_fn."""

    __slots__ = ("_values",)  # while the node runs: what it had saved, since the node itself may be freed already

    _forward_cls: type[Function]

    @property
    def saved_tensors(self) -> tuple:
        """The tensors that save_for_backward kept."""
        node = getattr(self, "_list", None)
        try:
            values = self._values
        except AttributeError:
            values = None if node is None else node[SAVED]
        if values is None:
            return ()
        if values.__class__ is BackwardCall:
            assert node is not None
            raise freed_error(node)
        return tuple(values) if node is None else tuple(_unpack(node, value) for value in values)

    @property
    def _raw_saved_tensors(self) -> tuple:
        values = self._list[SAVED]
        if values.__class__ is BackwardCall:
            raise freed_error(self._list)
        return tuple(SavedTensor(self._list, i) for i in range(len(values or ())))

    @property
    def saved_variables(self) -> tuple:
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self)})

    def name(self) -> str:
        return type(self).__name__

    def __call__(self, *gradients: Any) -> Any:
        node = self._list
        spec = node[0]
        made = spec.run_tensors(list(gradients) if spec.output_count(node) > 1 else gradients[0], node[SAVED], node)
        return made[0] if len(made) == 1 else made


class FunctionMeta(type):
    """Gives each Function its kind of node."""

    def __init__(cls, name: str, bases: tuple, attributes: dict) -> None:
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls, "__slots__": ()})
        cls._spec = FunctionSpec(cls)
        super().__init__(name, bases, attributes)


class _SavedOutput:
    """A saved tensor that is an output of the function. Kept without its history, which leads back to the node."""

    __slots__ = ("array", "family", "number", "version")

    def __init__(self, array: np.ndarray, family: Family, version: int, number: int) -> None:
        self.array = array
        self.family = family
        self.version = version
        self.number = number


def _unpack(node: list, value: Any) -> Any:
    if isinstance(value, Tensor):
        return check_saved(node, value)
    if value.__class__ is _SavedOutput:
        family = value.family
        tensor = _with_history(value.array, node, value.number)
        if family.version != value.version:
            raise modified_error(node, describe(tensor, tensor._node), family.version, value.version)
        tensor._family = family
        return tensor
    if value.__class__ is Packed:
        unpacked = value.restore()
        return unpacked if value.output is None else _with_history(unpacked._array, node, value.output)
    return value


def _with_history(array: np.ndarray, node: list, number: int) -> Tensor:
    tensor = wrap(array)
    tensor._node = node if len(node[KEPT][2]) == 1 else Output(node, number)
    return tensor


class FunctionSpec:
    """The kind of node that a custom Function makes.

    kept: the ctx's attributes; for each argument of forward its (shape, dtype), or None if it is no tensor; the same
    for each output.
    """

    saved_names: tuple[str, ...] = ()
    kept_names: tuple[str, ...] = ()
    saves_output = False
    runs_freed = True  # what backward does not read may be gone: only reading it is an error
    mask = -1

    def __init__(self, function: Any) -> None:
        self.function = function

    def node_name(self, node: list) -> str:
        return self.function.__name__ + "Backward"

    def output_count(self, node: list) -> int:
        return len(node[KEPT][2])

    def attach_visible(self, node: list) -> BackwardCFunction:
        """A ctx for this node, with the attributes that the one of its forward had."""
        ctx = _new(self.function._backward_cls)
        ctx.__dict__ = node[KEPT][0]
        ctx._list = node
        return ctx

    def run(self, g: Any, saved: Any, node: list) -> tuple:
        enabled = state.grad
        set_grad(False)
        try:
            gradients = [None if one is None else wrap(np.asarray(one)) for one in (g if g.__class__ is list else (g,))]
            made = self._call(gradients, saved, node)
        finally:
            set_grad(enabled)
        return tuple(None if one is None else fit(one._array, meta) for one, meta in made)

    def run_tensors(self, g: Any, saved: Any, node: list) -> tuple:
        made = self._call(g if g.__class__ is list else (g,), saved, node)
        return tuple(None if one is None else fit_tensor(one, meta) for one, meta in made)

    def _call(self, gradients: Any, saved: Any, node: list) -> list[tuple]:
        """Run the user's backward: for each tensor argument the gradient, if it is wanted, and what it must fit."""
        ctx: Any = self.attach_visible(node)
        ctx._values = saved
        _, arguments, outputs = node[KEPT]
        if ctx.materialize_grads:
            gradients = [wrap(np.zeros(*meta)) if one is None and meta is not None else one
                         for one, meta in zip(gradients, outputs, strict=True)]
        made = _backward_of(self.function)(ctx, *gradients)
        results = made if isinstance(made, tuple) else (made,)
        name = self.node_name(node)
        count = len(arguments)
        if len(results) > count and all(one is None for one in results[count:]):
            results = results[:count]
        if len(results) != count:
            raise RuntimeError(f"function {name} returned an incorrect number of gradients (expected {count}, got "
                               f"{len(results)})")
        checked: list[tuple] = []
        for position, (one, meta) in enumerate(zip(results, arguments, strict=True)):
            if meta is None:
                if one is not None:
                    raise RuntimeError(f"function {name} returned a gradient different than None at position "
                                       f"{position + 1}, but the corresponding forward input was not a Variable")
                continue
            if one is not None and not isinstance(one, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(one).__name__})")
            if not ctx.needs_input_grad[position]:
                one = None
            if one is not None and one._shape != meta[0] and not _sums_to(one._shape, meta[0]):
                raise RuntimeError(f"Function {name} returned an invalid gradient at index {len(checked)} - got "
                                   f"{list(one._shape)} but expected shape compatible with {list(meta[0])}")
            checked.append((one, meta))
        return checked


def _sums_to(shape: tuple, target: tuple) -> bool:
    """Whether `target` broadcasts to `shape`, so that a gradient of this shape can be summed down to it."""
    if len(target) > len(shape):
        return False
    return all(size in (1, whole) for size, whole in zip(reversed(target), reversed(shape)))


def _backward_of(function: Any) -> Callable:
    own, other = function.backward is not Function.backward, function.vjp is not Function.vjp
    if own and other:
        raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should "
                           "only implement one of them.")
    return function.vjp if other else function.backward


class Function(metaclass=FunctionMeta):
    """Base class of custom operations: write forward and backward as static methods, call it with apply()."""

    _backward_cls: type[BackwardCFunction]
    _spec: FunctionSpec
    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(f"{type(self)} should not be instantiated. Its methods are static: call "
                      "them on the class, and run the Function with .apply().", DeprecationWarning, stacklevel=2)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Legacy autograd function with non-static forward method is deprecated. Make "
                           "forward and backward static methods, and call the class's apply().")

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> Any:
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise NotImplementedError("You must implement either the backward or vjp method for your custom "
                                  "autograd.Function to use it with backward mode AD.")

    # The same function, so that either name can be overridden.
    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with "
                                  "forward mode AD.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward on the arguments; the outputs' gradients will come from backward."""
        separate = cls.setup_context is not Function.setup_context
        if separate:
            args = _with_defaults(cls.forward, args, kwargs)
        elif kwargs:
            raise TypeError("apply() takes no keyword arguments")
        ctx: Any = _new(cls._backward_cls)
        needs = ctx.needs_input_grad = tuple([isinstance(a, Tensor) and a._node is not None for a in args])
        enabled, level = state.grad, state.forward_level
        records = enabled and not state.inference and True in needs
        set_grad(False)
        state.forward_level = -1
        try:
            if separate:
                made = cls.forward(*args)
                cls.setup_context(ctx, args, made)
            else:
                made = cls.forward(ctx, *args)
        finally:
            state.forward_level = level
            set_grad(enabled)
        outputs = made if isinstance(made, tuple) else (made,)
        results = _finish(cls, ctx, args, outputs, records)
        if level >= 0 and state.forward_enabled:
            from .forward_ad import push_through_function
            push_through_function(cls, ctx, args, results)
        return results if outputs is made else results[0]


def _finish(cls: Any, ctx: Any, args: tuple, outputs: tuple, records: bool) -> tuple:
    """Give the outputs their history."""
    attributes = ctx.__dict__
    to_save = attributes.pop("to_save", ())
    dirty = attributes.pop("dirty_tensors", ())
    fixed = attributes.pop("non_differentiable", ())
    if dirty:
        _check_dirty(dirty, outputs)
    node: list | None = None
    if records:
        edges = tuple([edge_of(a) for a in args if isinstance(a, Tensor)])
        arguments = tuple([(a._shape, a._array.dtype) if isinstance(a, Tensor) else None for a in args])
        described = tuple([(o._shape, o._array.dtype) if isinstance(o, Tensor) else None for o in outputs])
        saved = _save(to_save, args, outputs)
        code, instruction = facts.here()
        node = [cls._spec, next_order(), saved, (attributes, arguments, described), edges, code, instruction, None]
        if state.anomaly:
            record_anomaly(node)
        show_as(node, ctx)
    for one in fixed:
        if not isinstance(one, Tensor):
            raise RuntimeError(f"mark_non_differentiable only accepts variable arguments, but got {type(one).__name__}")
    return tuple([_give_history(o, i, node, args, outputs, dirty, fixed) if isinstance(o, Tensor) else o
                  for i, o in enumerate(outputs)])


def _give_history(output: Tensor, number: int, node: list | None, args: tuple, outputs: tuple, dirty: tuple,
                  fixed: tuple) -> Tensor:
    is_input = _among(output, args)
    if (fixed and _among(output, fixed)) or category(output._array.dtype) < FLOATING:
        if is_input and not _among(output, dirty):
            return _same_view(output)
        output._node = None
        return output
    place = node if node is None or len(outputs) == 1 else Output(node, number)
    if dirty and _among(output, dirty):
        if place is not None:
            _rebase_dirty(output, place, args, outputs)
        return output
    if is_input:
        output = _same_view(output)
    if place is not None:
        if output._view is not None:
            output._view.refusal = "function"
        output._node = place
    return output


def _same_view(tensor: Tensor) -> Tensor:
    """A tensor of its own over the same memory, for an input that is returned as it is."""
    enabled = state.grad
    set_grad(False)
    try:
        return TENSORS._view(tensor, tensor._shape)
    finally:
        set_grad(enabled)


def _among(tensor: Tensor, others: tuple) -> bool:
    return any(one is tensor for one in others)


def _check_dirty(dirty: tuple, outputs: tuple) -> None:
    for one in dirty:
        if not isinstance(one, Tensor):
            raise RuntimeError(f"mark_dirty can only accept variables, but argument {dirty.index(one)} is of type "
                               f"{type(one).__name__}")
        if not _among(one, outputs):
            raise RuntimeError("Some elements marked as dirty during the forward method were not returned as output. "
                               "Return every input that forward writes to.")
        family_of(one).wrote()


def _rebase_dirty(output: Tensor, place: Any, args: tuple, outputs: tuple) -> None:
    view = output._view
    if output._node is LEAF:
        raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
    if view is not None:
        if view.base._node is LEAF:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
        if sum(isinstance(o, Tensor) for o in outputs) > 1:
            raise RuntimeError("If your Function modifies inplace an input that is a view of another Tensor, your "
                               "Function cannot return more than one Tensor. Clone the input first, or split the "
                               "Function in two.")
        if next(a for a in args if isinstance(a, Tensor)) is not output:
            raise NotImplementedError("a custom Function that writes into a view must have that view as its first "
                                      "tensor argument")
        if place.__class__ is Output:
            raise NotImplementedError("a custom Function that writes into a view must return nothing but that view")
    rebase(output, place, output._node is not None)
    family_of(output).producer = None  # a saved output's version is checked by itself, and this would be a cycle


def _save(tensors: tuple, args: tuple, outputs: tuple) -> tuple | None:
    pair = state.saved_hooks[-1] if state.saved_hooks else None
    saved: list[Any] = []
    for position, tensor in enumerate(tensors):
        if tensor is None:
            saved.append(None)
            continue
        if not isinstance(tensor, Tensor):
            raise TypeError(f"save_for_backward can only save variables, but argument {position} is of type "
                            f"{type(tensor).__name__}")
        if tensor._inference:
            raise RuntimeError("Inference tensors cannot be saved for backward. To work around you can make a clone to "
                               "get a normal tensor and use it in autograd.")
        number = next((i for i, output in enumerate(outputs) if output is tensor), None)
        if number is not None and _among(tensor, args) and tensor._node is not None:
            number = None  # an input that is handed on as it is: the input is what is saved
        if pair is not None:
            saved.append(pack_value(pair, tensor, number))
        elif number is not None:
            family = family_of(tensor)
            saved.append(_SavedOutput(tensor._array, family, family.version, number))
        else:
            saved.append(tensor)
    return tuple(saved) or None


def _with_defaults(forward: Callable, args: tuple, kwargs: dict) -> tuple:
    """The arguments by position, with the defaults that forward declares filled in."""
    code = getattr(forward, "__code__", None)
    if code is not None and not kwargs and (len(args) >= code.co_argcount):
        return args
    import inspect
    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


def _raise_once(g: Any, saved: Any, node: list) -> Any:
    raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


_ERROR = Spec("Error", _raise_once, _raise_once)


def once_differentiable(function: Callable) -> Callable:
    """Declare that a backward cannot itself be differentiated: an attempt is an error, not a wrong answer."""

    @wraps(function)
    def once(ctx: Any, *gradients: Any) -> Any:
        enabled = state.grad
        set_grad(False)
        try:
            made = function(ctx, *gradients)
        finally:
            set_grad(enabled)
        if not enabled or not any(isinstance(g, Tensor) and g._node is not None for g in gradients):
            return made
        results = []
        for one in made if isinstance(made, tuple) else (made,):
            if isinstance(one, Tensor):
                one = one.detach()
                one._node = [_ERROR, next_order(), (), (), (), *facts.here(), None]
            results.append(one)
        return tuple(results) if isinstance(made, tuple) else results[0]

    return once


class InplaceFunction(Function):
    """A Function with an in-place form, as older programs derive from."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "FunctionMeta", "InplaceFunction", "once_differentiable"]
