"""Turns an entry of the op table into Python functions: the operation, and the gradient formulas of its nodes.

Each operation's function is generated text, compiled at its first call. Its short path does what most calls need, inline:
the inputs are real tensors of one dtype (and, where they broadcast, of one shape) and no mode is on. Everything else goes
to ops.apply, which handles all cases. Written out, the short path costs a third of what a general one does.
"""
from __future__ import annotations

import re
from sys import _getframe
from typing import Any, Callable

import numpy as np

from ..arrays import quiet
from ..arrays.dtypes import REAL
from ..graph import facts
from ..graph.node import KEPT, LEAF, Output, next_order
from ..tensor import Tensor
from .fit import fit, fit_list, fit_tensor, fit_tensor_list
from .table import RAW, TENSORS, Op
from .unpack import check_saved, unpack_value

_CONJ = re.compile(r"\bconj\((\w+)\)")


class Variant:
    """An operation's node for one choice of arguments that need a gradient."""

    __slots__ = ("fitted", "kept_names", "mask", "needed", "numbers", "op", "packed", "real", "run", "run_tensors",
                 "saved_names", "saves_output")

    def __init__(self, op: Op, mask: int, fitted: bool, numbers: tuple[str, ...], packed: bool, real: bool) -> None:
        self.op = op
        self.mask = mask
        self.needed = tuple(name for i, name in enumerate(op.differentiable) if mask >> i & 1)
        self.fitted = fitted  # gradients must be fitted to the arguments' shapes and dtypes
        self.numbers = numbers  # tensor arguments that are Python numbers
        self.packed = packed  # saved values went through saved_tensors_hooks
        self.real = real
        self.run: Callable = self._first_run
        self.run_tensors: Callable = self._first_run_tensors
        used = self._used_names()
        results = _result_names(op)
        self.saved_names = tuple(n for n in (*op.tensors, *op.lists, *results, *op.extra) if n in used)
        self.kept_names = tuple(sorted(n for n in used if n not in self.saved_names))
        self.saves_output = any(name in results for name in self.saved_names)

    def _texts(self) -> list[Any]:
        return [self.op.together] if self.op.together else [self.op.formulas[name] for name in self.needed]

    def _used_names(self) -> set[str]:
        known = set(self.op.parameters) | set(_result_names(self.op)) | set(self.op.extra)
        used: set[str] = set()
        for formula in self._texts():
            names = (compile(formula, "<formula>", "eval").co_names if isinstance(formula, str)
                     else formula.__code__.co_varnames[:formula.__code__.co_argcount])
            for name in names:
                if name in known or (name.endswith("_shape") and name[:-6] in known):
                    used.add(name)
        return used

    def output_count(self, node: list) -> int:
        """How many outputs a node of several has."""
        return len(node[KEPT][-1])

    def node_name(self, node: list) -> str:
        return self.op.node_name(dict(zip(self.kept_names, node[KEPT], strict=False)))

    # `run` and `run_tensors` are (g, saved, node) -> the gradients of the needed arguments, on raw arrays and, for
    # create_graph, on tensors. They are compiled at the first call.
    def _first_run(self, g: Any, saved: Any, node: list) -> Any:
        self.run = self._build(False)
        return self.run(g, saved, node)

    def _first_run_tensors(self, g: Any, saved: Any, node: list) -> Any:
        self.run_tensors = self._build(True)
        return self.run_tensors(g, saved, node)

    def _build(self, tensors: bool) -> Callable:
        op = self.op
        lines = []
        names = self.saved_names
        if names:
            if not tensors and not self.packed:
                lines.append(f"{', '.join(names)} = saved")
            for i, name in enumerate(names):
                if name in self.numbers:
                    if not tensors:
                        if self.packed:
                            lines.append(f"{name} = saved[{i}] if saved.__class__ is tuple else saved")
                        lines.append(f"{name} = asarray({name}, g.dtype)")
                    else:
                        lines.append(f"{name} = saved[{i}] if saved.__class__ is tuple else saved")
                elif tensors or self.packed:
                    lines.append(f"{name} = unpack_value(node, saved, {i})")
                    if not tensors:
                        lines.append(f"{name} = arrays_of({name})")
                elif name in op.lists:
                    lines.append(f"{name} = [check_saved(node, t)._array for t in {name}]")
                elif name in op.tensors:
                    optional = op.defaults.get(name, 0) is None
                    indent = ""
                    if optional:
                        lines.append(f"if {name} is not None:")
                        indent = "    "
                    # Inlined: the check that nothing wrote to it since. Most tensors have no family.
                    lines.append(f"{indent}if {name}._family is not None and {name}._family.written < node[1]: "
                                 f"check_saved(node, {name})")
                    lines.append(f"{indent}{name} = {name}._array")
        if self.kept_names:
            lines.append(f"{', '.join(self.kept_names)}, = node[{KEPT}][:{len(self.kept_names)}]")
        if op.outputs != 1:
            lines.append("gs = fill(g, node[3][-1])" if op.zeros else "gs = g")
            used = {name for f in self._texts() if isinstance(f, str)
                    for name in compile(f, "<formula>", "eval").co_names}
            for f in self._texts():
                if not isinstance(f, str):
                    used.update(f.__code__.co_varnames[:f.__code__.co_argcount])
            for name in sorted(used):
                if re.fullmatch(r"g\d+", name):
                    lines.append(f"{name} = gs[{name[1:]}]")
        scope = TENSORS if tensors else RAW
        own: dict[str, Any] = {}  # the formulas that are functions, under names no operation has
        results = []
        if op.together:
            own[f"_{op.name}_together"] = op.together
            needs = tuple(name in self.needed for name in op.differentiable)
            lines.append(f"all_grads = {_call_text(f'_{op.name}_together', op.together, needs)}")
            results = [f"all_grads[{op.differentiable.index(name)}]" for name in self.needed]
        else:
            for name in self.needed:
                formula = op.formulas[name]
                if isinstance(formula, str):
                    text = _CONJ.sub(r"\1", formula) if self.real else formula
                    for used_name in compile(text, "<formula>", "eval").co_names:
                        if used_name not in scope.__dict__ and used_name not in self._locals():
                            getattr(scope, used_name, None)  # a family that is loaded on demand may have it
                    results.append(f"({text})")
                else:
                    own[f"_{op.name}_formula_{name}"] = formula
                    results.append(_call_text(f"_{op.name}_formula_{name}", formula, ()))
        if self.fitted:
            metas = f"node[{KEPT}][{len(self.kept_names)}]"
            results = [f"{'fit_list' if name in op.lists else 'fit'}({text}, {metas}[{i}])"
                       for i, (name, text) in enumerate(zip(self.needed, results, strict=True))]
        if op.lists:  # one formula gives the gradients of a whole list
            lines.append(f"return flatten(({', '.join(results)},))")
        else:
            lines.append("return " + (results[0] if len(results) == 1 else f"({', '.join(results)})"))
        namespace = scope.__dict__
        if "check_saved" not in namespace:
            namespace.update(F=scope, check_saved=check_saved, unpack_value=unpack_value, asarray=np.asarray,
                             arrays_of=_arrays_of, flatten=_flatten,
                             fit=fit_tensor if tensors else fit, fit_list=fit_tensor_list if tensors else fit_list,
                             fill=fill_tensors if tensors else fill)
        namespace.update(own)
        text = f"def _run_{op.name}(g, saved, node):\n    " + "\n    ".join(lines)
        return _execute(f"{op.name} gradient", text, namespace, f"_run_{op.name}")

    def _locals(self) -> set[str]:
        return {"g", "gs", *self.saved_names, *self.kept_names, *(f"g{i}" for i in range(8))}

    def make(self, values: dict[str, Any], edges: tuple, metas: tuple | None, output_metas: tuple | None = None) -> list:
        """A node. `values` has every name the formulas may use."""
        saved = tuple(values[name] for name in self.saved_names)
        kept = tuple(_kept_value(values, name) for name in self.kept_names)
        if self.fitted:
            kept += (metas,)
        if output_metas is not None:
            kept += (output_metas,)
        code, instruction = facts.here()
        single = len(edges) == 1 and not self.op.lists
        return [self, next_order(), saved[0] if len(saved) == 1 else saved, kept, edges[0] if single else edges, code,
                instruction, None]


def _kept_value(values: dict[str, Any], name: str) -> Any:
    if name in values:
        return values[name]
    value = values[name[:-6]]  # NAME_shape
    if isinstance(value, (list, tuple)):
        return [one._shape for one in value]
    return value.shape if isinstance(value, np.ndarray) else () if not hasattr(value, "_shape") else value._shape


def _result_names(op: Op) -> tuple[str, ...]:
    if op.outputs == 1:
        return ("result",)
    return ("results",) if op.outputs is None else tuple(f"result{i}" for i in range(op.outputs))


def _call_text(name: str, function: Callable, needs: tuple) -> str:
    arguments = function.__code__.co_varnames[:function.__code__.co_argcount]
    return f"{name}({', '.join(repr(needs) if a == 'needs' else a for a in arguments)})"


def _arrays_of(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [one._array for one in value]
    return None if value is None else value._array


def _flatten(groups: tuple) -> tuple:
    flat: list[Any] = []
    for group in groups:
        flat.extend(group) if isinstance(group, (list, tuple)) else flat.append(group)
    return tuple(flat)


def fill(gradients: list, metas: tuple) -> list:
    """Zeros for the outputs that no gradient reached."""
    return [np.zeros(*metas[i]) if g is None else g for i, g in enumerate(gradients)]


def fill_tensors(gradients: list, metas: tuple) -> list:
    from ..tensor import wrap
    return [wrap(np.zeros(*metas[i])) if g is None else g for i, g in enumerate(gradients)]


def variant_of(op: Op, mask: int, fitted: bool, numbers: tuple[str, ...] = (), packed: bool = False, real: bool = True,
               ) -> Variant:
    key = (mask, fitted, numbers, packed, real)
    found = op.variants.get(key)
    if found is None:
        found = op.variants[key] = Variant(op, *key)
    return found


def _execute(title: str, text: str, namespace: dict, name: str) -> Callable:
    filename = f"{facts.GENERATED}{title}>"
    exec(compile(text, filename, "exec"), namespace)
    import linecache  # so that a traceback and a debugger can show the generated lines
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    return namespace[name]


# -- the operation's own function ------------------------------------------------------------------------------------
def build_function(op: Op) -> Callable:
    """The function that users call, as a function and as a method."""
    from . import apply
    namespace = TENSORS.__dict__
    prefix = f"_{op.name}"
    namespace.update({
        "call": apply.call, "call_out": apply.call_out, "explain": apply.explain, "link_view": apply.link_view, "new": object.__new__,
        "Tensor": Tensor, "ndarray": np.ndarray, "asarray": np.asarray, "LEAF": LEAF, "next_order": next_order, "Output": Output,
        "getframe": _getframe, "find_user_frame": find_user_frame, "REAL": REAL, "np": np, f"{prefix}_op": op,
        f"{prefix}_kernel": op.kernel})
    namespace.setdefault("user_code", None)
    namespace.update(hush=quiet.hush, unhush=quiet.unhush, SILENT=quiet.SILENT)
    text = _function_text(op, prefix, namespace)
    function = _execute(op.name, text, namespace, f"{prefix}_function")
    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = op.kernel.__doc__
    return function


def find_user_frame(frame: Any) -> Any:
    """Leave the library's frames; remember the code the user runs, so that the next operation there need not look."""
    outer = facts.leave_library(frame)
    if outer is frame:
        TENSORS.__dict__["user_code"] = frame.f_code
    return outer


def _signature(op: Op, prefix: str, namespace: dict) -> str:
    parts = []
    first_keyword = len(op.parameters) - op.keyword_only
    for i, name in enumerate(op.parameters):
        if i == first_keyword:
            parts.append("*")
        if name in op.defaults:
            namespace[f"{prefix}_default_{name}"] = op.defaults[name]
            parts.append(f"{name}={prefix}_default_{name}")
        else:
            parts.append(name)
    if not op.keyword_only:
        parts.append("*")
    if not op.view and "out" not in op.parameters:
        parts.append("out=None")
    elif parts[-1] == "*":
        parts.pop()
    return ", ".join(parts)


def _function_text(op: Op, prefix: str, namespace: dict) -> str:
    values = ", ".join(op.parameters) + ","
    takes_out = not op.view and "out" not in op.parameters
    head = f"def {prefix}_function({_signature(op, prefix, namespace)}):\n"
    if takes_out:
        head += f"    if out is not None: return call_out({prefix}_op, ({values}), out)\n"
    general = f"return call({prefix}_op, ({values}))"
    optional = [n for n in op.tensors if op.defaults.get(n, 0) is None]
    short = (op.outputs == 1 and not op.lists and op.tensors and len(op.differentiable) <= 3 and op.promote != "none"
             and op.output_real and op.tensors[0] in op.differentiable and op.view in (False, True)
             and (op.differentiable == op.tensors or not op.elementwise))
    if not short:
        return head + "    " + general
    first = op.tensors[0]
    lines = []
    if op.elementwise and op.tensors == (first, "other") and op.numbers:
        lines += ["kind = other.__class__", "if kind is float or kind is int:"]
        lines += ["    " + line for line in _short_path(op, prefix, general, namespace, number="other")]
    lines += _short_path(op, prefix, general, namespace, optional=optional)
    return head + "    " + "\n    ".join(lines)


def _short_path(op: Op, prefix: str, general: str, namespace: dict, number: str | None = None,
                optional: list[str] = ()) -> list[str]:  # type: ignore[assignment]
    """The lines of the short path; `number` is an argument known to be a Python number."""
    tensors = [n for n in op.tensors if n != number]
    first = tensors[0]
    guards = ["modes", "real is None"]
    for name in tensors[1:]:
        absent = f"{name} is not None and " if name in optional else ""
        if name in op.differentiable:
            guards.append(f"{absent}{name}._real is not real" if not absent else f"({absent}{name}._real is not real)")
            if op.elementwise:
                guards.append(f"{name}._shape != {first}._shape")
        else:
            guards.append(f"({absent}{name}._family is False)")  # raises for what is no tensor
    lines = ["try:", f"    real = {first}._real", f"    if {' or '.join(guards)}: {general}", "except AttributeError:", f"    {general}"]
    arrays = {n: f"{n}._array" if n not in optional else f"{n} if {n} is None else {n}._array" for n in tensors}
    if number:
        arrays[number] = f"asarray({number}, real)"
    if op.inline:
        text = re.sub(r"\b(" + "|".join(op.parameters) + r")\b", lambda m: arrays.get(m[0], m[0]), op.inline)
    else:
        fixed = len(op.parameters) - op.keyword_only
        text = f"{prefix}_kernel(" + ", ".join(
            (f"{n}=" if i >= fixed else "") + arrays.get(n, n) for i, n in enumerate(op.parameters)) + ")"
    target = ", ".join(("r", *op.extra))
    guarded = ["try:", f"    {target} = {text}", "except ValueError as error:",
               f"    raise explain({prefix}_op, error, ({', '.join(tensors)},)) from None"]
    if not op.inline:  # NumPy warns of overflow and division by zero where PyTorch does not; this costs 0.1 us
        guarded = ["token = hush(SILENT)", *guarded, "finally:", "    unhush(token)"]
    lines += guarded
    if not op.view:
        lines.append("if r.__class__ is not ndarray: r = asarray(r)")
    lines += ["result = new(Tensor)", "result._array = r",
              f"result._shape = {first + '._shape' if op.elementwise else 'r.shape'}",
              "result._real = real", "result._family = None"]
    if op.view:
        rest = ", ".join(op.parameters[1:])
        lines.append(f"link_view(result, {first}, {prefix}_op, ({rest}{',' if rest else ''}))")
    lines += _node_lines(op, prefix, namespace, [n for n in op.differentiable if n != number], number, optional)
    return lines


def _node_lines(op: Op, prefix: str, namespace: dict, candidates: list[str], number: str | None,
                optional: list[str]) -> list[str]:
    """Find the edges, and make the node of the variant that fits."""
    lines = []
    for i, name in enumerate(candidates):
        lines.append(f"e{i} = {name}._node" if name not in optional else f"e{i} = {name} and None if {name} is None else {name}._node")
    nothing = " and ".join(f"e{i} is None" for i in range(len(candidates)))
    lines += [f"if {nothing}:", "    result._node = None", "    return result"]
    for i, name in enumerate(candidates):
        lines.append(f"if e{i} is LEAF: e{i} = {name}")
    if facts.ENABLED:
        lines += ["frame = getframe(1)", "code = frame.f_code", "if code is not user_code:",
                  "    frame = find_user_frame(frame); code = frame.f_code"]
    where = "code, frame.f_lasti" if facts.ENABLED else "None, -1"
    full = (1 << len(candidates)) - 1
    masks = range(1, full + 1) if len(candidates) < 3 else (full, full - 1, full >> 1, 1)
    bits = [1 << op.differentiable.index(name) for name in candidates]
    branches = []
    for mask in sorted(masks, reverse=True):
        chosen = [i for i in range(len(candidates)) if mask >> i & 1]
        if len(masks) == 1:
            condition = "if True:"
        else:
            condition = "if " + " and ".join(f"e{i} is {'not ' if i in chosen else ''}None" for i in range(len(candidates))) + ":"
        variant = variant_of(op, sum(bits[i] for i in chosen), False, (number,) if number else ())
        known = f"{prefix}_variant_{variant.mask}{'_number' if number else ''}"
        namespace[known] = variant
        saved = [("r" if n == "result" else n) for n in variant.saved_names]
        kept = [_kept_text(n, op) for n in variant.kept_names]
        edges = [f"e{i}" for i in chosen]
        pieces = [known, "next_order()", saved[0] if len(saved) == 1 else _tuple_text(saved), _tuple_text(kept),
                  edges[0] if len(edges) == 1 else _tuple_text(edges), where, "None"]
        branches += [condition, f"    result._node = [{', '.join(pieces)}]", "    return result"]
    lines += branches
    if len(candidates) >= 3:  # a rare choice of arguments: let the general way make the node
        lines.append(f"return call({prefix}_op, ({', '.join(op.parameters)},))")
    return lines


def _kept_text(name: str, op: Op) -> str:
    if name in op.parameters:
        return name
    owner = name[:-6]
    return "r.shape" if owner == "result" else f"{owner}.shape" if owner in op.extra else f"{owner}._shape"


def _tuple_text(items: list[str]) -> str:
    return "(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"


def build_inplace(op: Op) -> Callable:
    """The function behind the method with a trailing underscore."""
    from .inplace import call_inplace
    namespace = TENSORS.__dict__
    prefix = f"_{op.name}_inplace"
    signature = _signature(op, prefix, namespace).replace("*, out=None", "").replace(", out=None", "").rstrip(", ")
    namespace.update({"call_inplace": call_inplace, f"{prefix}_op": op})
    text = (f"def {prefix}_function({signature}):\n"
            f"    return call_inplace({prefix}_op, ({', '.join(op.parameters)},))")
    function = _execute(op.name + "_", text, namespace, f"{prefix}_function")
    function.__name__ = function.__qualname__ = op.name + "_"
    return function
