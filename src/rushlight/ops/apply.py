"""Calls an operation in full generality: numbers, promotion, modes, saved-tensor hooks, forward mode, views, out=."""
from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ..arrays import dtypes, quiet
from ..graph.modes import state
from ..graph.node import LEAF, Output, extra_of
from ..graph.versions import bump, family_of
from ..tensor import Tensor, wrap
from ..tensor.core import View
from .compile import Variant, variant_of
from .table import Op
from .unpack import Packed, type_name

_NUMBERS = (bool, int, float, complex, np.generic)


def call(op: Op, values: tuple) -> Any:
    """Run an operation; `values` are its arguments in the order of its parameters."""
    bound = Binding(op, values)
    outputs, extras = bound.compute()
    single = op.outputs == 1
    results = [wrap(array) for array in outputs]
    if state.inference:
        for result in results:
            result._inference, result._real = True, None
    needed = bound.needed()
    if op.view:
        base = values[0]
        for i, result in enumerate(results):
            link_view(result, base, op, values[1:], i)
    if needed and any(dtypes.category(array.dtype) >= dtypes.FLOATING for array in outputs):
        node = bound.make_node(needed, outputs, extras)
        for i, result in enumerate(results):
            if single:
                result._node = node
            elif dtypes.category(result._array.dtype) >= dtypes.FLOATING:
                result._node = Output(node, i)
    if state.forward_level >= 0:
        from .forward import push_tangents
        push_tangents(bound, results)
    return results[0] if single else tuple(results)


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
        dimensioned, zero_dim, numbers = [], [], []
        for name in op.tensors:
            value = self.named[name]
            if isinstance(value, Tensor):
                (dimensioned if value._shape else zero_dim).append(value._array.dtype)
                self.arrays[name] = value._array
            elif isinstance(value, _NUMBERS) and op.numbers:
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
            if isinstance(value, Tensor):
                if value._node is not None:
                    found.append(name)
            elif name in self.op.lists and any(member._node is not None for member in value):
                found.append(name)
        return found

    def make_node(self, needed: list[str], outputs: list[np.ndarray], extras: tuple) -> list:
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
            values.update((f"result{i}", output) for i, output in enumerate(outputs))
        values.update(zip(op.extra, extras, strict=True))
        for name in variant.saved_names:
            value = values[name]
            if isinstance(value, Tensor) and value._inference:
                raise RuntimeError("Inference tensors cannot be saved for backward. Please do not use Tensors created in "
                                   "inference mode in computation tracked by autograd. To work around this, you can make a "
                                   "clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of "
                                   "`torch.inference_mode()`.")
        if pair is not None:
            shapes = {f"{n}_shape": _shape_of(values[n]) for n in (*op.tensors, *op.lists)}
            values = {**shapes, **values, **{n: _pack(pair, n, values[n]) for n in variant.saved_names if n not in self.numbers}}
            for i, output in enumerate(outputs):
                values[f"result{i if op.outputs != 1 else ''}_shape"] = output.shape
        edges: list[Any] = []
        metas: list[Any] = []
        for name in variant.needed:
            value = self.named[name]
            if name in op.lists:
                edges.extend(edge_of(member) for member in value)
                metas.append(tuple((member._shape, member._array.dtype) for member in value))
            else:
                edges.append(edge_of(value))
                metas.append((value._shape, value._array.dtype))
        output_metas = None if op.outputs == 1 else tuple((o.shape, o.dtype) for o in outputs)
        node = variant.make(values, tuple(edges), tuple(metas), output_metas)
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
    pack, unpack = pair
    if value is None:
        return None
    if isinstance(value, list):
        return [_pack(pair, name, member) for member in value]
    output = int(name[6:] or 0) if name.startswith("result") and isinstance(value, np.ndarray) else None
    tensor = wrap(value) if isinstance(value, np.ndarray) else value
    before = tensor._version if not tensor._inference else 0
    from ..graph.modes import set_grad
    enabled = state.grad
    set_grad(False)
    try:
        packed = pack(tensor)
    finally:
        set_grad(enabled)
    if not tensor._inference and tensor._version != before:
        raise RuntimeError("A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack "
                           "hook can not be modified by in-place operations as this can lead to unexpected side-effects. "
                           "Please open an issue if you need to perform in-place operations on the input to a pack hook.")
    return Packed(packed, unpack, output)


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
        refusal = "multi"
    if refusal is None and not state.grad:
        refusal = "inference" if state.inference else "no_grad"
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
        if len(views) > 64:
            views[:] = [one for one in views if one() is not None]
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
        raise RuntimeError(f"result type {type_name(given.name)} can't be cast to the desired output type {type_name(wanted.name)}")
    if target._shape != array.shape:
        if target._array.size:
            import warnings
            warnings.warn(f"An output with one or more elements was resized since it had shape {list(target._shape)}, which "
                          f"does not match the required output shape {list(array.shape)}.", UserWarning, stacklevel=4)
        target._set_array(array.astype(target._array.dtype))
    else:
        np.copyto(target._array, array, casting="unsafe")
    bump(target)


__all__ = ["Binding", "Variant", "call", "call_out", "edge_of", "explain", "link_view"]
