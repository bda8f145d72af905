"""What a graph is made of: nodes, the edges between them, and the record of the call that used a node up.

A node is a plain list, because it is made once per operation and a list is made in 40 ns where an object with as many
slots takes 100. Its places are named below; code that handles nodes unpacks them by these names:

    spec, order, saved, kept, edges, code, instruction, extra = node

    spec         the operation and how its gradient is computed (ops.compile.Variant and its likes)
    order        counts down from -1 with every node and every in-place write, so the latest is the smallest
    saved        the saved value, or a tuple of them: tensors for inputs, arrays for outputs. Once freed: a BackwardCall
    kept         what survives freeing: sizes, dimensions and other plain arguments
    edges        where the gradients go: one edge, or a tuple. An edge is a node, an Output, or a leaf tensor itself
    code, instruction   the code object and bytecode offset of the user's line that made the node
    extra        None, or an Extra for what few nodes have: hooks, metadata, a damaged saved value

What users see as `grad_fn` is made when asked for (tensor.visible).
"""
from __future__ import annotations

from itertools import count
from typing import Any

SPEC, ORDER, SAVED, KEPT, EDGES, CODE, INSTRUCTION, EXTRA = range(8)

next_order = count(-1, -1).__next__


class Output:
    """An edge to one of several outputs of a node."""

    __slots__ = ("node", "number")

    def __init__(self, node: list, number: int) -> None:
        self.node = node
        self.number = number


class _Leaf:
    """Stands in a leaf's `_node` for "requires grad": the edge to a leaf is the leaf itself."""

    def __repr__(self) -> str:
        return "LEAF"

    def __reduce__(self) -> str:
        return "LEAF"


LEAF = _Leaf()


class _Unrecorded:
    """The spec of UNRECORDED: a gradient that comes here goes nowhere."""

    saved_names = kept_names = ()
    saves_output = False
    mask = 0

    def run(self, g: Any, saved: Any, node: list) -> tuple:
        return ()

    run_tensors = run

    def node_name(self, node: list) -> str:
        return "Unrecorded"


# The node of a view that was made under no_grad from a tensor that requires grad. PyTorch lets it say that it requires
# grad and is a leaf, and drops the gradients that reach it.
UNRECORDED: list = [_Unrecorded(), 0, (), (), (), None, -1, None]


class Extra:
    """What only few nodes carry."""

    __slots__ = ("anomaly", "metadata", "outdated", "post_hooks", "pre_hooks", "retained", "tangents", "tensor_hooks")

    def __init__(self) -> None:
        self.tensor_hooks: dict[int, dict] | None = None  # output number -> {handle id: hook}
        self.retained: dict[int, Any] | None = None  # output number -> weak reference to the tensor
        self.pre_hooks: dict | None = None
        self.post_hooks: dict | None = None
        self.metadata: dict | None = None
        self.anomaly: Any = None
        # A saved output that was written over: (family, version when saved, array).
        self.outdated: tuple | None = None
        # Forward mode: output number -> (level, tangent), for an output that the node saved without its tensor.
        self.tangents: dict[int, tuple] | None = None


def extra_of(node: list) -> Extra:
    found = node[EXTRA]
    if found is None:
        found = node[EXTRA] = Extra()
    return found


def edges_of(node: list) -> tuple:
    """A node's edges as a tuple, whatever their number."""
    edges = node[EDGES]
    return edges if edges.__class__ is tuple else (edges,)


def saved_of(node: list) -> tuple:
    """A node's saved values as a tuple, whatever their number. Not for a freed node."""
    saved = node[SAVED]
    return saved if saved.__class__ is tuple else (saved,)


class BackwardCall:
    """One call of backward() or grad(): what a freed node keeps in place of its values."""

    __slots__ = ("code", "instruction", "kind", "number")

    def __init__(self, kind: str, number: int, code: Any, instruction: int) -> None:
        self.kind = kind
        self.number = number
        self.code = code
        self.instruction = instruction

    @property
    def site(self) -> Any:
        from .facts import Site
        return self.code if self.code.__class__ is Site else Site.of(self.code, self.instruction)

    def __reduce__(self) -> tuple:
        return BackwardCall, (self.kind, self.number, self.site, -1)  # a code object cannot be pickled, a site can

    def __repr__(self) -> str:
        return f"<{self.kind} call {self.number} at {self.site}>"
