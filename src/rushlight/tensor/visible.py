"""What users see of a graph: the objects behind grad_fn, next_functions and the _saved_ attributes.

They are made when asked for and kept only while someone holds them. They refer to the node; the node never to them.
"""
from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..graph.facts import Site
from ..graph.node import (
    CODE,
    INSTRUCTION,
    KEPT,
    LEAF,
    ORDER,
    SAVED,
    SPEC,
    BackwardCall,
    Extra,
    Output,
    edges_of,
    extra_of,
)
from .core import Tensor, wrap
from .hooks import RemovableHandle, add_hook

# A node's order is its own for good, so it serves as its name; a list cannot be referred to weakly.
_alive: weakref.WeakValueDictionary[int, GraphNode] = weakref.WeakValueDictionary()
_classes: dict[str, type] = {}


class Node:
    """What users see of a graph: its nodes, and the accumulators at its leaves."""

    __slots__ = ()

    def _extra(self) -> Extra:
        raise NotImplementedError

    def name(self) -> str:
        return type(self).__name__

    @property
    def metadata(self) -> dict:
        extra = self._extra()
        if extra.metadata is None:
            extra.metadata = {}
        return extra.metadata

    def register_hook(self, hook: Callable) -> RemovableHandle:
        """Have `hook(grad_inputs, grad_outputs)` run after the node; what it returns replaces grad_inputs."""
        extra = self._extra()
        if extra.post_hooks is None:
            extra.post_hooks = OrderedDict()
        return add_hook(extra.post_hooks, hook)

    def register_prehook(self, hook: Callable) -> RemovableHandle:
        """Have `hook(grad_outputs)` run before the node; what it returns replaces grad_outputs."""
        extra = self._extra()
        if extra.pre_hooks is None:
            extra.pre_hooks = OrderedDict()
        return add_hook(extra.pre_hooks, hook)


class GraphNode(Node):
    """What an operation left in the graph. Each kind of node has its own subclass, made when first seen."""

    __slots__ = ("__dict__", "__weakref__", "_list")

    _list: list

    def _extra(self) -> Extra:
        return extra_of(self._list)

    @property
    def next_functions(self) -> tuple:
        """Where gradients go: a (node, output number) for each argument; (None, 0) for one that needs none."""
        return tuple(_seen(edge) for edge in _argument_edges(self._list))

    @property
    def made_at(self) -> Site | None:
        """The line of the program that made this node."""
        return Site.of(self._list[CODE], self._list[INSTRUCTION])

    @property
    def freed_by(self) -> BackwardCall | None:
        """The backward pass that used this node up and freed the values it had saved; None while they are there."""
        saved = self._list[SAVED]
        return saved if saved.__class__ is BackwardCall else None

    @property
    def requires_grad(self) -> bool:
        return True

    def _sequence_nr(self) -> int:
        return -1 - self._list[ORDER]

    def __call__(self, *gradients: Any) -> Any:
        """Run this one node on the gradients of its outputs."""
        from ..ops.unpack import check_output
        node = self._list
        if self.freed_by is not None:
            from ..graph.errors import freed_error
            raise freed_error(node)
        check_output(node)
        spec = node[SPEC]
        made = spec.run_tensors(list(gradients) if has_several_outputs(node) else gradients[0], node[SAVED], node)
        full = spread(node, made if made.__class__ is tuple else (made,))
        return full if len(full) != 1 else full[0]

    def _saved_places(self) -> dict[str, int]:
        """The name users see for each saved value -> its place."""
        spec = self._list[SPEC]
        return {_shown(name, spec): i for i, name in enumerate(spec.saved_names)}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_saved_"):
            return self._saved(name[7:])
        if name.startswith("_raw_saved_"):
            place = self._saved_places().get(name[11:])
            if place is not None or self._is_argument(name[11:]):
                return SavedTensor(self._list, place)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _saved(self, name: str) -> Any:
        from ..ops.unpack import unpack_tensor
        node = self._list
        spec = node[SPEC]
        place = self._saved_places().get(name)
        if place is None and name in spec.saved_names:
            place = spec.saved_names.index(name)
        if place is not None:
            value = unpack_tensor(node, place)
            if isinstance(value, (bool, int, float, complex)):  # PyTorch saves a Python number as a tensor
                return wrap(np.asarray(value))
            return tuple(value) if value.__class__ is list else value
        for i, kept in enumerate(spec.kept_names):
            if name in (kept, _shown(kept)):
                value = node[KEPT][i]
                return tuple(value) if isinstance(value, (tuple, list)) else value
        if self._is_argument(name):
            return None
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '_saved_{name}'")

    def _is_argument(self, name: str) -> bool:
        """Whether it is an argument that was not saved, since no gradient that is wanted needs it."""
        op = getattr(self._list[SPEC], "op", None)
        return op is not None and name in {_shown(one) for one in op.tensors}

    def __dir__(self) -> list[str]:
        spec = self._list[SPEC]
        saved = [_shown(name, spec) for name in spec.saved_names]
        return sorted([*super().__dir__(), *(f"_saved_{name}" for name in (*saved, *map(_shown, spec.kept_names))),
                       *(f"_raw_saved_{name}" for name in saved)])

    def __repr__(self) -> str:
        kind = type(self)
        module = "" if kind.__module__ == "builtins" else kind.__module__ + "."
        return f"<{module}{kind.__name__} object at {id(self):#x}>"


class AccumulateGrad(Node):
    """The end of a graph: adds what arrives to a leaf's .grad."""

    __slots__ = ("__dict__", "__weakref__", "variable")

    next_functions = ()
    requires_grad = True
    made_at = freed_by = None

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable

    def _extra(self) -> Extra:
        leaf = self.variable
        if leaf._accumulator_extra is None:
            leaf._accumulator_extra = Extra()
        leaf._hooked = True
        return leaf._accumulator_extra

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def _sequence_nr(self) -> int:
        return (1 << 64) - 1

    def __call__(self, gradient: Tensor) -> None:
        from ..engine.accumulate import accumulate_all
        accumulate_all({self.variable: [gradient._array]})

    __repr__ = GraphNode.__repr__


AccumulateGrad.__module__ = "builtins"


class SavedTensor:
    """A saved value as `_raw_saved_...` shows it: its presence, and a way to have hooks on it."""

    __slots__ = ("_list", "_place")

    def __init__(self, node: Any = None, place: Any = None) -> None:
        if node.__class__ is not list:
            raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")
        self._list = node
        self._place = place

    def unpack(self) -> Any:
        from ..ops.unpack import unpack_tensor
        return unpack_tensor(self._list, self._place)

    @property
    def data(self) -> Any:
        """What is stored: the tensor, or what the pack hook made of it."""
        from ..ops.unpack import Packed
        saved = self._list[SAVED]
        if saved.__class__ is BackwardCall or self._place is None:
            return None
        value = saved[self._place] if saved.__class__ is tuple else saved
        return value.value if value.__class__ is Packed else wrap(value) if value.__class__ is np.ndarray else value

    def register_hooks(self, pack_hook: Callable, unpack_hook: Callable) -> None:
        """Keep what `pack_hook(tensor)` returns in the value's place, and get it back with `unpack_hook`."""
        from ..graph.modes import set_grad, state
        from ..ops.unpack import Packed
        node, place = self._list, self._place
        saved = node[SAVED]
        if saved.__class__ is BackwardCall:
            raise RuntimeError("Calling register_hooks on a saved tensor after it has been freed. Register them "
                               "before the backward pass, or keep the graph with retain_graph=True.")
        value = None if place is None else saved[place] if saved.__class__ is tuple else saved
        if value.__class__ is Packed:
            raise RuntimeError("Calling register_hooks on a saved tensor whose hooks have already been set. A "
                               "saved value takes one pair.")
        if value is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        if isinstance(value, (bool, int, float, complex)):
            raise NotImplementedError("register_hooks on a Python number that an operation saved: give the operation a "
                                      "tensor")
        name = node[SPEC].saved_names[place]
        output = int(name[6:] or 0) if name.startswith("result") and value.__class__ is np.ndarray else None
        tensor = value if isinstance(value, Tensor) else wrap(np.asarray(value))
        enabled = state.grad
        set_grad(False)
        try:
            packed = Packed(pack_hook(tensor), unpack_hook, output, tensor if tensor._node is LEAF else tensor._node)
        finally:
            set_grad(enabled)
        node[SAVED] = (*saved[:place], packed, *saved[place + 1:]) if saved.__class__ is tuple else packed
        node[SPEC] = _unpacking(node[SPEC])


def _unpacking(spec: Any) -> Any:
    """The same kind of node, with formulas that take their values out of hooks."""
    if getattr(spec, "op", None) is None:
        return spec
    from ..ops.compile import variant_of
    return variant_of(spec.op, spec.mask, spec.fitted, spec.numbers, True, spec.real)


class _Edge(NamedTuple):
    node: Node
    output_nr: int
    ownership_token: Any = None


class GradientEdge(_Edge):
    """A place in the graph where a gradient arrives: one output of a node. It stands for a tensor, yet holds none."""

    described: tuple | None = None  # shape and dtype of the tensor it was taken from

    def stand_in(self, gradient: Any = None) -> Tensor:
        """A tensor in the same place of the graph, for a backward pass to begin or end at."""
        if isinstance(self.node, AccumulateGrad):
            return self.node.variable
        assert isinstance(self.node, GraphNode)
        described = self.described
        if described is None and isinstance(gradient, Tensor):
            described = (gradient._shape, gradient._array.dtype)
        shape, dtype = described or ((0,), np.dtype(np.float32))
        made = wrap(np.broadcast_to(np.zeros((), dtype), shape))
        node = self.node._list
        made._node = Output(node, self.output_nr) if has_several_outputs(node) else node
        return made


def has_several_outputs(node: list) -> bool:
    spec = node[SPEC]
    op = getattr(spec, "op", None)
    if op is not None:
        return op.outputs != 1
    return hasattr(spec, "output_count") and spec.output_count(node) > 1


def gradient_edge(tensor: Tensor) -> GradientEdge:
    if tensor._node is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    edge = GradientEdge(visible_leaf(tensor) if tensor.is_leaf else tensor.grad_fn, tensor.output_nr)
    edge.described = (tensor._shape, tensor._array.dtype)
    return edge


def visible_node(node: list) -> GraphNode:
    """The object users see for a node: the same one while somebody holds it."""
    found = _alive.get(node[ORDER])
    if found is None:
        spec = node[SPEC]
        if getattr(spec, "refuses", None) is not None:
            raise spec.refuses(node)
        attach = getattr(spec, "attach_visible", None)  # a custom Function's node is its ctx
        if attach is not None:
            found = attach(node)
        else:
            made: Any = object.__new__(_class_named(spec.node_name(node)))
            made._list = node
            found = made
        found = _alive.setdefault(node[ORDER], found)
    return found


def show_as(node: list, visible: GraphNode) -> None:
    """Make an object that exists already the visible one of a node."""
    visible._list = node
    _alive[node[ORDER]] = visible


def visible_leaf(leaf: Tensor) -> AccumulateGrad:
    """A leaf's accumulator: the same one while somebody holds it."""
    reference = leaf._accumulator
    found = None if reference is None else reference()
    if found is None:
        found = AccumulateGrad(leaf)
        leaf._accumulator = weakref.ref(found)
    return found


def spread(node: list, items: tuple) -> tuple:
    """An item for each differentiable argument: those given, for the ones that need a gradient; None for the rest."""
    spec = node[SPEC]
    op = getattr(spec, "op", None)
    if op is None or len(spec.needed) == len(op.differentiable):
        return items
    if op.lists:  # each member of a list is an argument of its own; how many an unneeded list had is not known
        if any(name in spec.needed for name in op.lists):
            return items
    remaining = iter(items)
    return tuple(next(remaining) if name in spec.needed else None for name in op.differentiable)


def _argument_edges(node: list) -> tuple:
    edges = edges_of(node)
    written = getattr(node[SPEC], "written_by", None)
    if written is None:
        return spread(node, edges)
    # A base one of whose views was written: its own old value first, then the other arguments of what wrote.
    inner, through = written(node)
    if inner is None:  # freed
        return edges
    return edges[0], *spread(inner, edges if through else edges[1:])[1:]


def gather(node: list, items: tuple) -> tuple:
    """The reverse: the items for the arguments that need a gradient."""
    spec = node[SPEC]
    op = getattr(spec, "op", None)
    if op is None or len(items) != len(op.differentiable) or op.lists:
        return items
    return tuple(item for item, name in zip(items, op.differentiable, strict=True) if name in spec.needed)


def _seen(edge: Any) -> tuple:
    if edge is None:
        return None, 0
    if edge.__class__ is Output:
        return visible_node(edge.node), edge.number
    if edge.__class__ is list:
        return visible_node(edge), 0
    return visible_leaf(edge), 0


def _class_named(name: str) -> type:
    found = _classes.get(name)
    if found is None:
        found = _classes[name] = type(name, (GraphNode,), {"__slots__": (), "__module__": "builtins"})
    return found


def _shown(name: str, spec: Any = None) -> str:
    """PyTorch's name for a saved value: the first argument is `self`, a shape is `..._sym_sizes`, an output has its own."""
    if name.endswith("_shape"):
        return f"{_shown(name[:-6])}_sym_sizes"
    if name.startswith("result") and spec is not None and spec.op.output_names:
        return spec.op.output_names[int(name[6:])]
    return "self" if name == "input" else name
