"""Turns an entry of the op table into Python functions: the operation, and the gradient formulas of its nodes.

Each operation's function is generated text, compiled at its first call. Its short path does what most calls need, inline:
the inputs are real tensors of one dtype (and, where they broadcast, of one shape) and no mode is on. Everything else goes
to ops.apply, which handles all cases. Written out, the short path costs a third of what a general one does.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from sys import _getframe
from typing import Any

import numpy as np

from ..arrays import quiet
from ..arrays.dtypes import REAL
from ..graph import facts
from ..graph.modes import state
from ..graph.node import KEPT, LEAF, Output, next_order
from ..graph.versions import family_of
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
        return self.op.node_name({**dict(zip(self.kept_names, node[KEPT], strict=False)), "numbers": self.numbers})

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
                elif op.outputs not in (1, None) and name not in op.extra:  # saved as a tensor if without history
                    lines.append(f"if {name}.__class__ is not ndarray: {name} = check_saved(node, {name})._array")
        if self.kept_names:
            lines.append(f"{', '.join(self.kept_names)}, = node[{KEPT}][:{len(self.kept_names)}]")
        if op.outputs != 1:
            lines.append("gs = fill_missing(g, node[3][-1])" if op.zeros else "gs = g")
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
            lines.append(f"return flatten_groups(({', '.join(results)},))")
        else:
            lines.append("return " + (results[0] if len(results) == 1 else f"({', '.join(results)})"))
        namespace = scope.__dict__
        if "check_saved" not in namespace:
            namespace.update(F=scope, ndarray=np.ndarray, check_saved=check_saved, unpack_value=unpack_value, asarray=np.asarray,
                             arrays_of=_arrays_of, flatten_groups=_flatten,
                             fit=fit_tensor if tensors else fit, fit_list=fit_tensor_list if tensors else fit_list,
                             fill_missing=fill_tensors if tensors else fill)
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
    if "call" not in namespace:
        namespace.update(call=apply.call, call_operator=apply.call_operator, call_out=apply.call_out, explain=apply.explain,
                         link_view=apply.link_view, new=object.__new__, Tensor=Tensor, ndarray=np.ndarray, asarray=np.asarray,
                         LEAF=LEAF, next_order=next_order, Output=Output, getframe=_getframe, find_user_frame=find_user_frame,
                         REAL=REAL, REQUIRED=REQUIRED, np=np, user_code=None, state=state, hush=quiet.hush, unhush=quiet.unhush,
                         SILENT=quiet.SILENT)
    namespace.update({f"{prefix}_op": op, f"{prefix}_kernel": op.kernel})
    text = _function_text(op, prefix, namespace)
    function = _execute(op.name, text, namespace, f"{prefix}_function")
    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = op.kernel.__doc__
    return function


def build_operator(op: Op) -> Callable:
    """The function behind Python's operator: without keyword arguments, whose defaults cost 0.04 us a call."""
    prefix = f"_{op.name}"
    text = _function_text(op, prefix, TENSORS.__dict__, operator=True)
    function = _execute(f"{op.name} operator", text, TENSORS.__dict__, f"{prefix}_operator")
    function.__name__ = function.__qualname__ = op.name
    return function


def find_user_frame(frame: Any) -> Any:
    """Leave the library's frames; remember the code the user runs, so that the next operation there need not look."""
    code = frame.f_code
    if not facts.is_library(code):
        TENSORS.__dict__["user_code"] = code
        return frame
    back = frame.f_back
    if back is not None and back.f_code is facts.pass_code and facts.passing.sites:
        return facts.passing.sites[-1]  # a gradient formula of a pass that records: the line is known
    return facts.leave_library(frame)


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
    for name, alias in _numpy_names(op):
        parts.append(f"{alias}=None")
        if name not in op.defaults:
            parts[parts.index(name)] += "=REQUIRED"
    if not op.view and "out" not in op.parameters:
        parts.append("out=None")
    elif parts[-1] == "*":
        parts.pop()
    return ", ".join(parts)


# PyTorch takes NumPy's names for these arguments too.
_NUMPY_NAMES = (("dim", "axis"), ("keepdim", "keepdims"))


class REQUIRED:
    """Stands in a signature for an argument without a default that may come under another name."""


def _numpy_names(op: Op) -> list[tuple[str, str]]:
    """The arguments that also have NumPy's name; not those that an argument without a default follows."""
    required = [name for name in op.parameters if name not in op.defaults]
    return [(name, alias) for name, alias in _NUMPY_NAMES
            if name in op.defaults or (name in required[1:] and name == required[-1])]


def _renaming_lines(op: Op) -> list[str]:
    lines = []
    for name, alias in _numpy_names(op):
        lines.append(f"if {alias} is not None: {name} = {alias}")
        if name not in op.defaults:
            message = f'{op.name}() missing 1 required positional arguments: "{name}"'
            lines.append(f"if {name} is REQUIRED: raise TypeError({message!r})")
    return lines


# Names that the short path uses itself: an operation with an argument of such a name goes the long way.
_OWN_NAMES = frozenset(("new", "r", "real", "result", "node", "frame", "code", "token", "state", "call", "modes", "grad_off",
                        "asarray", "ndarray", "explain", "hush", "unhush", "next_order", "getframe"))


def _function_text(op: Op, prefix: str, namespace: dict, operator: bool = False) -> str:
    values = ", ".join(op.parameters) + ","
    takes_out = not op.view and "out" not in op.parameters
    if operator:
        fixed = len(op.parameters) - op.keyword_only
        head = f"def {prefix}_operator({', '.join(op.parameters[:fixed])}):\n" + "".join(
            f"    {name} = {op.defaults[name]!r}\n" for name in op.parameters[fixed:])
    else:
        head = f"def {prefix}_function({_signature(op, prefix, namespace)}):\n"
        head += "".join(f"    {line}\n" for line in _renaming_lines(op))
    if takes_out and not operator:
        head += f"    if out is not None: return call_out({prefix}_op, ({values}), out)\n"
    general = f"return {'call_operator' if operator else 'call'}({prefix}_op, ({values}))"
    optional = [n for n in op.tensors if op.defaults.get(n, 0) is None]
    short = (not op.lists and op.tensors and len(op.differentiable) <= 3 and op.promote != "none" and op.output_real
             and op.tensors[0] in op.differentiable and (op.differentiable == op.tensors or not op.elementwise)
             and not _OWN_NAMES & {*op.parameters, *op.extra})
    if short and op.outputs not in (1, None) and not op.view and len(op.differentiable) < 3:
        return head + "    " + "\n    ".join(_several_path(op, prefix, general, namespace, optional))
    if not short or op.outputs != 1:
        return head + "    " + general
    first = op.tensors[0]
    lines = []
    if op.elementwise and op.tensors == (first, "other") and op.numbers:
        lines += ["kind = other.__class__", "if kind is float or kind is int:"]
        lines += ["    " + line for line in _short_path(op, prefix, general, namespace, number="other")]
    lines += _short_path(op, prefix, general, namespace, optional=optional)
    return head + "    " + "\n    ".join(lines)


def _kernel_lines(op: Op, prefix: str, general: str, target: str, number: str | None, optional: list[str]) -> list[str]:
    """The lines that make sure of the short path and run the kernel; `number` is an argument known to be a Python number."""
    tensors = [n for n in op.tensors if n != number]
    first = tensors[0]
    guards = ["modes", "real is None"]
    if "dtype" in op.parameters:
        guards.append("dtype is not None")  # the result may have another dtype than the input
    for name in tensors[1:]:
        absent = f"{name} is not None and " if name in optional else ""
        if name in op.differentiable:
            guards.append(f"{absent}{name}._real is not real" if not absent else f"({absent}{name}._real is not real)")
        else:
            guards.append(f"({absent}{name}._family is False)")  # raises for what is no tensor
    lines = ["try:", f"    real = {first}._real", f"    if {' or '.join(guards)}: {general}",
             "except AttributeError:", f"    {general}"]
    arrays = {n: f"{n}._array" if n not in optional else f"{n} if {n} is None else {n}._array" for n in tensors}
    if number:
        arrays[number] = f"asarray({number}, real)"
    if op.inline:
        text = re.sub(r"\b(" + "|".join(op.parameters) + r")\b", lambda m: arrays.get(m[0], m[0]), op.inline)
    else:
        fixed = len(op.parameters) - op.keyword_only
        text = f"{prefix}_kernel(" + ", ".join(
            (f"{n}=" if i >= fixed else "") + arrays.get(n, n) for i, n in enumerate(op.parameters)) + ")"
    guarded = ["try:", f"    {target} = {text}", "except ValueError as error:",
               f"    raise explain({prefix}_op, error, ({', '.join(tensors)},)) from None"]
    if not op.inline:  # NumPy warns of overflow and division by zero where PyTorch does not; this costs 0.1 us
        guarded = ["token = hush(SILENT)", *guarded, "finally:", "    unhush(token)"]
    return lines + guarded


def _several_path(op: Op, prefix: str, general: str, namespace: dict, optional: list[str]) -> list[str]:
    """The lines of the short path of an operation with several outputs. One of another dtype, such as indices, has no history."""
    numbers = range(op.outputs or 0)
    lines = _kernel_lines(op, prefix, general, ", ".join((*(f"r{i}" for i in numbers), *op.extra)), None, optional)
    for i in numbers:
        lines += [f"if r{i}.__class__ is not ndarray: r{i} = asarray(r{i})",
                  f"if r{i}.dtype is not real and r{i}.dtype.kind in 'fcV': {general}",
                  f"result{i} = new(Tensor)", f"result{i}._array = r{i}",
                  f"result{i}._shape = r{i}.shape", f"result{i}._real = real if r{i}.dtype is real else None",
                  f"result{i}._node = result{i}._family = None"]
    results = _tuple_text([f"result{i}" for i in numbers])
    lines += _edge_lines(op.differentiable, optional, [f"    return {results}"])
    metas = _tuple_text([f"(r{i}.shape, r{i}.dtype)" for i in numbers])
    spelled = {f"result{i}": f"(r{i} if r{i}.dtype is real else result{i})" for i in numbers}
    for condition, variant, chosen in _choices(op, list(op.differentiable), None, False):
        known = f"{prefix}_variant_{variant.mask}"
        namespace[known] = variant
        lines += [condition, f"    node = {_node_text(op, known, variant, chosen, spelled, [metas])}"]
    lines += [f"if r{i}.dtype is real: result{i}._node = Output(node, {i})" for i in numbers]
    return [*lines, f"return {results}"]


def _short_path(op: Op, prefix: str, general: str, namespace: dict, number: str | None = None,
                optional: list[str] = ()) -> list[str]:  # type: ignore[assignment]
    """The lines of the short path; `number` is an argument known to be a Python number."""
    tensors = [n for n in op.tensors if n != number]
    first = tensors[0]
    lines = _kernel_lines(op, prefix, general, ", ".join(("r", *op.extra)), number, optional)
    if not op.view:
        lines.append("if r.__class__ is not ndarray: r = asarray(r)")
    broadcasts = op.elementwise and len(tensors) > 1
    if not op.elementwise:
        lines.append(f"if r.dtype is not real: {general}")  # an output of another dtype is none of the short path's business
    lines += ["result = new(Tensor)", "result._array = r", "result._real = real", "result._family = None"]
    candidates = [n for n in op.differentiable if n != number]
    if broadcasts:
        # Of several shapes: the gradients must be summed down to them, which a variant of its own does.
        differs = [f"({n} is not None and {n}._shape != shape)" if n in optional else f"{n}._shape != shape" for n in tensors[1:]]
        lines += [f"shape = {first}._shape",
                  f"if {' or '.join(differs)}:", "    result._shape = r.shape"]
        lines += ["    " + line for line in _node_lines(op, prefix, namespace, candidates, number, optional, fitted=True)]
        lines.append("result._shape = shape")
    else:
        lines.append(f"result._shape = {first + '._shape' if op.elementwise else 'r.shape'}")
    if op.view:
        rest = ", ".join(op.parameters[1:])
        lines.append("result._node = None")
        lines.append(f"link_view(result, {first}, {prefix}_op, ({rest}{',' if rest else ''}))")
    lines += _node_lines(op, prefix, namespace, candidates, number, optional)
    return lines


def _edge_lines(candidates: Any, optional: list[str], nothing: list[str]) -> list[str]:
    """Find the edges; `nothing` is what to do where there are none."""
    lines = [f"e{i} = {name}._node" if name not in optional else f"e{i} = None if {name} is None else {name}._node"
             for i, name in enumerate(candidates)]
    absent = " and ".join(f"e{i} is None" for i in range(len(candidates)))
    lines += [f"if {absent} or grad_off and not state.grad:", *nothing]
    lines += [f"if e{i} is LEAF: e{i} = {name}" for i, name in enumerate(candidates)]
    return lines + _WHERE


# The lines that find out where the user is, as _node_text writes it down.
_WHERE = ["frame = getframe(1)", "code = frame.f_code", "if code is not user_code:",
          "    frame = find_user_frame(frame); code = frame.f_code"] if facts.ENABLED else []


def _choices(op: Op, candidates: list[str], number: str | None, fitted: bool) -> list[tuple[str, Variant, list[int]]]:
    """For each choice of arguments that need a gradient: the condition, the variant, the numbers of the chosen."""
    full = (1 << len(candidates)) - 1
    masks = range(1, full + 1) if len(candidates) < 3 else (full, full - 1, full >> 1, 2, 1)
    bits = [1 << op.differentiable.index(name) for name in candidates]
    made = []
    for mask in sorted(masks, reverse=True):
        chosen = [i for i in range(len(candidates)) if mask >> i & 1]
        condition = "if True:" if len(masks) == 1 else "if " + " and ".join(
            f"e{i} is {'not ' if i in chosen else ''}None" for i in range(len(candidates))) + ":"
        made.append((condition, variant_of(op, sum(bits[i] for i in chosen), fitted, (number,) if number else ()), chosen))
    return made


def _node_text(op: Op, known: str, variant: Variant, chosen: list[int], spelled: dict[str, str], more: list[str]) -> str:
    """The list that is the node; `spelled` says how results are written, `more` is kept after the arguments."""
    saved = [spelled.get(n, n) for n in variant.saved_names]
    kept = [_kept_text(n, op) for n in variant.kept_names] + more
    edges = [f"e{i}" for i in chosen]
    where = "code, frame.f_lasti" if facts.ENABLED else "None, -1"
    return "[" + ", ".join([known, "next_order()", saved[0] if len(saved) == 1 else _tuple_text(saved), _tuple_text(kept),
                            edges[0] if len(edges) == 1 else _tuple_text(edges), where, "None"]) + "]"


def _node_lines(op: Op, prefix: str, namespace: dict, candidates: list[str], number: str | None,
                optional: list[str], fitted: bool = False) -> list[str]:
    """Find the edges, and make the node of the variant that fits."""
    nothing = ["    return result"] if op.view else ["    result._node = None", "    return result"]
    made: dict[tuple, list[str]] = {}
    choices = _choices(op, candidates, number, fitted)
    for _, variant, chosen in choices:
        known = f"{prefix}_variant_{variant.mask}{'_number' if number else ''}{'_fitted' if fitted else ''}"
        namespace[known] = variant
        more = [_tuple_text([f"({candidates[i]}._shape, real)" for i in chosen])] if fitted else []
        node = _node_text(op, known, variant, chosen, {"result": "r"}, more)
        made[tuple(chosen)] = [f"result._node = {node}", "return result"]
    if len(candidates) == 2 and not optional:
        return _two_edges(candidates, nothing, made)
    lines = _edge_lines(candidates, optional, nothing)
    for condition, _, chosen in choices:
        lines += [condition, *("    " + line for line in made[tuple(chosen)])]
    if len(candidates) >= 3:  # a rare choice of arguments: let the general way make the node
        lines.append(f"return call({prefix}_op, ({', '.join(op.parameters)},))")
    return lines


def _two_edges(candidates: list[str], nothing: list[str], made: dict[tuple, list[str]]) -> list[str]:
    """The same for two arguments, by the fewest questions: most operations have two, and most of the time one is a constant."""
    first, second = candidates
    off = "grad_off and not state.grad"
    return [f"e0 = {first}._node", f"e1 = {second}._node",
            "if e1 is None:", f"    if e0 is None or {off}:", *("    " + line for line in nothing),
            f"    if e0 is LEAF: e0 = {first}", *("    " + line for line in _WHERE), *("    " + line for line in made[0,]),
            f"if {off}:", *nothing, f"if e1 is LEAF: e1 = {second}", *_WHERE,
            "if e0 is None:", *("    " + line for line in made[1,]), f"if e0 is LEAF: e0 = {first}", *made[0, 1]]


def _kept_text(name: str, op: Op) -> str:
    if name in op.parameters:
        return name
    owner = name[:-6]
    if re.fullmatch(r"result\d+", owner):
        return f"r{owner[6:]}.shape"
    return "r.shape" if owner == "result" else f"{owner}.shape" if owner in op.extra else f"{owner}._shape"


def _tuple_text(items: list[str]) -> str:
    return "(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"


def _short_write(op: Op) -> list[str]:
    """The lines that write without ceremony: no history to keep, no view, one dtype, one shape."""
    text = re.sub(r"\b(input|other)\b", lambda m: {"input": "array", "other": "value"}[m[0]], op.inline or "")
    return ["try:",
            "    real = input._real",
            "    if real is not None and not modes and input._view is None and (",
            "            input._node is None or grad_off and not state.grad):",
            "        kind = other.__class__",
            "        if kind is float or kind is int: value = asarray(other, real)",
            "        elif other._real is real and other._shape == input._shape and (",
            "                other._node is None or grad_off and not state.grad) and (",
            "                other._family is None or other._family is not input._family): value = other._array",
            "        else: value = None",
            "        if value is not None:",
            "            array = input._array",
            f"            array[...] = {text}",
            "            (input._family or family_of(input)).wrote()",
            "            return input",
            "except (AttributeError, ValueError): pass"]


def build_inplace(op: Op) -> Callable:
    """The function behind the method with a trailing underscore."""
    from .inplace import call_inplace
    namespace = TENSORS.__dict__
    prefix = f"_{op.name}_inplace"
    signature = _signature(op, prefix, namespace).replace("*, out=None", "").replace(", out=None", "").rstrip(", ")
    namespace.update({"call_inplace": call_inplace, f"{prefix}_op": op, f"_{op.name}_kernel": op.kernel})
    namespace["REQUIRED"] = REQUIRED
    lines = _renaming_lines(op)
    if op.elementwise and op.inline and op.parameters[:2] == op.tensors == ("input", "other"):
        lines += _short_write(op)
        namespace.update(family_of=family_of, state=state, asarray=np.asarray)
    lines.append(f"return call_inplace({prefix}_op, ({', '.join(op.parameters)},))")
    text = f"def {prefix}_function({signature}):\n    " + "\n    ".join(lines)
    function = _execute(op.name + "_", text, namespace, f"{prefix}_function")
    function.__name__ = function.__qualname__ = op.name + "_"
    return function
