"""Calls an operation in full generality: numbers, promotion, modes, saved-tensor hooks, forward mode, views, out=."""
from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ..arrays import dtypes, quiet
from ..graph.modes import state
from ..graph.node import LEAF, SPEC, UNRECORDED, Output, extra_of
from ..graph.versions import bump, family_of
from ..tensor import Tensor, wrap
from ..tensor.core import View
from .compile import Variant, variant_of
from .dimensions import has_overlap
from .table import TENSORS, Op
from .unpack import Packed, type_name

_namespace = TENSORS.__dict__
_NUMBERS = (bool, int, float, complex, np.generic)
_OPERANDS = (Tensor, *_NUMBERS, np.ndarray)


def call_operator(op: Op, values: tuple) -> Any:
    """Run an operation for Python's operator, which leaves an operand that is no number to its own type: `[0] * tensor`."""
    for value in values[:2]:
        if not isinstance(value, _OPERANDS):
            return NotImplemented
    return call(op, values)


def call(op: Op, values: tuple) -> Any:
    """Run an operation; `values` are its arguments in the order of its parameters."""
    if op.elementwise:
        plain = _call_plain(op, values)
        if plain is not None:
            return plain
    bound = Binding(op, values)
    outputs, extras = bound.compute()
    single = op.outputs == 1
    results = [wrap(array) for array in outputs]
    if state.inference and not (op.view and not values[0]._inference):  # a view is what its base is
        for result in results:
            result._inference, result._real = True, None
    needed = bound.needed()
    if op.view:
        base = values[0]
        for i, result in enumerate(results):
            link_view(result, base, op, values[1:], i)
    if needed and any(dtypes.category(array.dtype) >= dtypes.FLOATING for array in outputs):
        node = bound.make_node(needed, outputs, extras, results)
        for i, result in enumerate(results):
            if single:
                result._node = node
            elif dtypes.category(result._array.dtype) >= dtypes.FLOATING:
                result._node = Output(node, i)
    if state.forward_level >= 0:
        from .forward import push_tangents
        push_tangents(bound, results, extras)
    return results[0] if single else tuple(results)


def _call_plain(op: Op, values: tuple) -> Tensor | None:
    """The call where there is nothing to it: tensors of one dtype, fitting numbers, no history. Else None."""
    if op.outputs != 1 or op.extra or op.promote == "none":
        return None
    if _namespace["modes"] and (state.inference or state.forward_level >= 0):  # no other mode matters without a history
        return None
    dtype: np.dtype | None = None
    arguments: list[Any] = []
    for name, value in zip(op.parameters, values, strict=True):
        if name not in op.tensors:
            arguments.append(value)
        elif isinstance(value, Tensor):
            if (value._node is not None and state.grad) or value._inference:
                return None
            array = value._array
            if dtype is None:
                dtype = array.dtype
            elif array.dtype is not dtype:
                return None
            arguments.append(array)
        elif dtype is not None and (value.__class__ is int or value.__class__ is float) and op.numbers:
            kind = dtype.kind
            if kind not in "fc" and (value.__class__ is float or kind == "b"):
                return None
            arguments.append(_number_array(value, dtype))
        else:
            return None
    if dtype is None or (op.promote == "float" and dtype.kind not in "fc"):
        return None
    token = quiet.hush(quiet.SILENT)
    try:
        if op.keyword_only:
            fixed = len(arguments) - op.keyword_only
            made = op.kernel(*arguments[:fixed], **dict(zip(op.parameters[fixed:], arguments[fixed:], strict=True)))
        else:
            made = op.kernel(*arguments)
    except ValueError as error:
        raise explain(op, error, tuple(v for v in values if isinstance(v, Tensor))) from None
    finally:
        quiet.unhush(token)
    return wrap(made if made.__class__ is np.ndarray else np.asarray(made))


class Binding:
    """An operation's arguments, brought to arrays."""

    __slots__ = ("arrays", "named", "numbers", "op", "promoted")

    def __init__(self, op: Op, values: tuple) -> None:
        self.op = op
        self.named = dict(zip(op.parameters, values, strict=True))
        self.arrays = dict(self.named)
        self.numbers: tuple[str, ...] = ()
        self.promoted = False
        for name in op.lists:
            self._bind_list(name)
        if op.elementwise:
            self._promote()
        else:
            for name in op.tensors:
                value = self.named[name]
                if isinstance(value, Tensor):
                    self.arrays[name] = value._array
                elif value is not None or name not in op.defaults:
                    self.named[name] = value = self._as_tensor(name, value)
                    self.arrays[name] = value._array

    def _bind_list(self, name: str) -> None:
        given = self.named[name]
        if isinstance(given, Tensor):
            raise TypeError(f"{self.op.name}(): argument '{name}' (position 1) must be tuple of Tensors, not Tensor")
        members = list(given)
        for i, member in enumerate(members):
            if not isinstance(member, Tensor):
                raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(member).__name__}")
        self.named[name] = members
        self.arrays[name] = [member._array for member in members]

    def _as_tensor(self, name: str, value: Any) -> Tensor:
        if isinstance(value, np.ndarray):
            return wrap(value)
        position = self.op.parameters.index(name) + 1
        raise TypeError(f"{self.op.name}(): argument '{name}' (position {position}) must be Tensor, not {type(value).__name__}")

    def _promote(self) -> None:
        op = self.op
        dimensioned: list[np.dtype] = []
        zero_dim: list[np.dtype] = []
        numbers: list[Any] = []
        for name in op.tensors:
            value = self.named[name]
            if isinstance(value, Tensor):
                (dimensioned if value._shape else zero_dim).append(value._array.dtype)
                self.arrays[name] = value._array
            elif isinstance(value, _NUMBERS) and (op.numbers is True or name == op.numbers):
                if isinstance(value, np.generic):
                    value = self.named[name] = value.item()
                numbers.append(value)
                self.numbers += (name,)
            elif value is not None or name not in op.defaults:
                value = self.named[name] = self._as_tensor(name, value)
                (dimensioned if value._shape else zero_dim).append(value._array.dtype)
                self.arrays[name] = value._array
        if not dimensioned and not zero_dim:
            raise TypeError(f"{op.name}(): argument '{op.tensors[0]}' (position 1) must be Tensor, not "
                            f"{type(self.named[op.tensors[0]]).__name__}")
        if op.promote == "none":
            return
        kinds = dimensioned + zero_dim
        common = kinds[0]
        if op.promote.__class__ is not str:
            common = op.promote(dimensioned, zero_dim, numbers)
        elif (len(kinds) > 1 and any(kind != common for kind in kinds[1:])) or not all(
                dtypes.number_category(n) <= dtypes.category(common) for n in numbers):
            common = dtypes.result_type(dimensioned, zero_dim, numbers)
        if op.promote == "float" and dtypes.category(common) < dtypes.FLOATING:
            common = dtypes.default_numpy()
        for name in op.tensors:
            value = self.arrays[name]
            if value is None:
                continue
            if name in self.numbers:
                self.arrays[name] = _number_array(value, common)
            elif value.dtype != common:
                self.promoted = True
                self.arrays[name] = value.astype(common)

    def compute(self) -> tuple[list[np.ndarray], tuple]:
        """Run the kernel: the outputs as arrays, and what it returns besides."""
        op = self.op
        values = [self.arrays[name] for name in op.parameters]
        fixed = len(values) - op.keyword_only
        token = quiet.hush(quiet.SILENT)
        try:
            made = op.kernel(*values[:fixed], **dict(zip(op.parameters[fixed:], values[fixed:], strict=True)))
        except ValueError as error:
            raise explain(op, error, tuple(v for v in self.named.values() if isinstance(v, Tensor))) from None
        finally:
            quiet.unhush(token)
        if op.outputs == 1:
            outputs, extras = (made[:1], made[1:]) if op.extra else ([made], ())
        elif op.outputs is None:
            outputs, extras = (made[0], made[1:]) if op.extra else (made, ())
        else:
            outputs, extras = made[:op.outputs], made[op.outputs:]
        return [o if o.__class__ is np.ndarray else np.asarray(o) for o in outputs], tuple(extras)

    def needed(self) -> list[str]:
        """The differentiable arguments that need a gradient now."""
        if not state.grad or state.inference:
            return []
        found = []
        for name in self.op.differentiable:
            value = self.named[name]
            members = (value,) if isinstance(value, Tensor) else value if name in self.op.lists else ()
            nodes = [member._node for member in members if member._node is not None]
            for node in nodes:
                if node.__class__ is list and getattr(node[SPEC], "refuses", None) is not None:
                    raise node[SPEC].refuses(node)
            if nodes:
                found.append(name)
        return found

    def edges(self, needed: list[str]) -> tuple:
        """Where the gradients of the needed arguments go."""
        found: list[Any] = []
        for name in self.op.differentiable:
            if name in needed:
                value = self.named[name]
                found.extend([edge_of(member) for member in value] if name in self.op.lists else [edge_of(value)])
        return tuple(found)

    def make_node(self, needed: list[str], outputs: list[np.ndarray], extras: tuple,
                  results: list[Tensor] | None = None) -> list:
        """The node; `results` are the outputs as tensors, where there may be several."""
        op = self.op
        mask = sum(1 << i for i, name in enumerate(op.differentiable) if name in needed)
        pair = state.saved_hooks[-1] if state.saved_hooks else None
        real = not any(a.dtype.kind == "c" for a in outputs) and not any(
            a.dtype.kind == "c" for name in op.tensors if isinstance(a := self.arrays[name], np.ndarray))
        variant = variant_of(op, mask, True, self.numbers, pair is not None, real)
        values = dict(self.named)
        if op.outputs == 1:
            values["result"] = outputs[0]
        elif op.outputs is None:
            values["results"] = list(outputs)
        else:
            # An output without history, such as indices, is saved as the tensor it is: so a write to it is noticed.
            values.update((f"result{i}", output if results is None or dtypes.category(output.dtype) >= dtypes.FLOATING
                           else results[i]) for i, output in enumerate(outputs))
        values.update(zip(op.extra, extras, strict=True))
        for name in variant.saved_names:
            value = values[name]
            if isinstance(value, Tensor) and value._inference:
                raise RuntimeError("Inference tensors cannot be saved for backward. This one was made under inference_mode: "
                                   "clone() it outside, or make it under no_grad.")
        if pair is not None:
            shapes = {f"{n}_shape": _shape_of(values[n]) for n in (*op.tensors, *op.lists)}
            values = {**shapes, **values, **{n: _pack(pair, n, values[n]) for n in variant.saved_names if n not in self.numbers}}
            for i, output in enumerate(outputs):
                values[f"result{i if op.outputs != 1 else ''}_shape"] = output.shape
        metas: list[Any] = []
        for name in variant.needed:
            value = self.named[name]
            if name in op.lists:
                metas.append(tuple((member._shape, member._array.dtype) for member in value))
            else:
                metas.append((value._shape, value._array.dtype))
        output_metas = None if op.outputs == 1 else tuple((o.shape, o.dtype) for o in outputs)
        node = variant.make(values, self.edges(needed), tuple(metas), output_metas)
        if state.anomaly:
            record_anomaly(node)
        return node


def record_anomaly(node: list) -> None:
    """Anomaly mode: keep the whole stack that made the node."""
    import traceback
    extra_of(node).anomaly = traceback.extract_stack()


def _shape_of(value: Any) -> Any:
    if isinstance(value, list):
        return [member._shape for member in value]
    return value._shape if isinstance(value, Tensor) else ()


def _pack(pair: tuple, name: str, value: Any) -> Any:
    """Hand a value to the pack hook that is in force."""
    if value is None:
        return None
    if isinstance(value, list):
        return [_pack(pair, f"result{i}" if name == "results" else name, member) for i, member in enumerate(value)]
    output = int(name[6:] or 0) if name.startswith("result") and isinstance(value, np.ndarray) else None
    return pack_value(pair, wrap(value) if isinstance(value, np.ndarray) else value, output)


def pack_value(pair: tuple, tensor: Tensor, output: int | None) -> Packed:
    """Hand one tensor to the pack hook; `output` is its number if the node to come is what computed it."""
    pack, unpack = pair
    before = tensor._version if not tensor._inference else 0
    from ..graph.modes import set_grad
    enabled = state.grad
    set_grad(False)
    try:
        packed = pack(tensor)
    finally:
        set_grad(enabled)
    if not tensor._inference and tensor._version != before:
        raise RuntimeError("A saved tensor pack hook is modifying its input in place. That input is the tensor the program "
                           "goes on with: return a changed copy instead.")
    return Packed(packed, unpack, output, edge_of(tensor))


def _number_array(value: Any, common: np.dtype) -> np.ndarray:
    try:
        return np.asarray(value, common)
    except OverflowError:
        if dtypes.category(common) == dtypes.INTEGER:
            return np.asarray(value).astype(common)
        raise RuntimeError(f"value cannot be converted to type {dtypes.from_numpy(common).name} without overflow") from None


def edge_of(tensor: Tensor) -> Any:
    node = tensor._node
    return tensor if node is LEAF else node


def explain(op: Op, error: ValueError, tensors: tuple) -> Exception:
    """A kernel's complaint about shapes, in words that name the operation and the shapes."""
    if str(error).startswith("torch."):  # PyTorch's own words: the kernel has said it all
        return error
    shapes = [t._shape for t in tensors if isinstance(t, Tensor)]
    if op.elementwise:
        for i, first in enumerate(shapes):
            for second in shapes[i + 1:]:
                for k in range(1, min(len(first), len(second)) + 1):
                    if first[-k] != second[-k] and 1 not in (first[-k], second[-k]):
                        dimension = max(len(first), len(second)) - k
                        return RuntimeError(
                            f"The size of tensor a ({first[-k]}) must match the size of tensor b ({second[-k]}) at "
                            f"non-singleton dimension {dimension}: {op.name} got shapes {list(first)} and {list(second)}, which "
                            "do not broadcast.")
    if op.inline and len(tensors) == len(op.parameters):
        try:
            op.kernel(*(t._array for t in tensors))  # the short text has none of the kernel's checks, which say it better
        except Exception as better:
            return better
    shown = " and ".join(str(list(shape)) for shape in shapes)
    return RuntimeError(f"{op.name}: {error} (tensor shapes: {shown})")


def link_view(result: Tensor, source: Tensor, op: Op, arguments: tuple, number: int = 0) -> None:
    """Record that `result` is a view of `source`'s memory, which a view operation's kernel promises."""
    if source._inference:
        result._inference, result._real = True, None
        return
    parent = source._view
    family = source._family or family_of(source)
    refusal = None if parent is None else parent.refusal
    if op.view == "multi":
        refusal = "multi" if source._node is not None else "no_grad"  # PyTorch's words for views of what had no history
    if not state.grad:
        if refusal is None:
            refusal = "inference" if state.inference else "no_grad"
        if (source if parent is None else parent.base)._node is not None and not state.inference:
            result._node = UNRECORDED  # PyTorch's: it says that it requires grad, but gradients that reach it vanish
    step = (op, arguments, number if op.outputs != 1 else None)
    if parent is None:
        result._view = View(source, (step,), refusal)
    else:
        result._view = View(parent.base, (*parent.steps, step), refusal)
    result._family = family
    views = family.views
    if views is None:
        family.views = [weakref.ref(result)]
    else:
        if len(views) > family.sweep:  # forget the dead, at intervals that grow with the number of the living
            views[:] = [one for one in views if one() is not None]
            family.sweep = max(64, 2 * len(views))
        views.append(weakref.ref(result))


def call_out(op: Op, values: tuple, out: Any) -> Any:
    """Run an operation and write what it gives into `out`."""
    targets = out if isinstance(out, (tuple, list)) else (out,)
    bound = Binding(op, values)
    if state.grad and (bound.needed() or any(t._node is not None for t in targets)):
        raise RuntimeError(f"{op.name}(): functions with out=... arguments don't support automatic differentiation, but one of "
                           "the arguments requires grad.")
    outputs, _ = bound.compute()
    for target, array in zip(targets, outputs, strict=True):
        write_out(op.name, target, array)
    return out


def write_out(name: str, target: Any, array: np.ndarray) -> None:
    """Write a result into an `out=` tensor, giving it the result's shape."""
    if not isinstance(target, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(target).__name__}")
    given, wanted = dtypes.from_numpy(array.dtype), target.dtype
    if not dtypes.can_cast(given, wanted):
        raise RuntimeError(f"result type {type_name(given.name)} can't be cast to the desired output type "
                           f"{type_name(wanted.name)}")
    if has_overlap(target._array):
        raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a single memory "
                           "location. Please clone() the tensor before performing the operation.")
    if target._shape != array.shape:
        if target._array.size:
            import warnings
            warnings.warn(f"An output with one or more elements was resized since it had shape {list(target._shape)}, which "
                          f"does not match the required output shape {list(array.shape)}.", UserWarning, stacklevel=4)
        target._set_array(array.astype(target._array.dtype))
    else:
        np.copyto(target._array, array, casting="unsafe")
    bump(target)


__all__ = ["Binding", "Variant", "call", "call_operator", "call_out", "edge_of", "explain", "link_view"]
