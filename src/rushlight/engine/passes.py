"""One backward pass over raw arrays, in the shortest way; engine.full takes over where something special comes up.

Nodes run in the reverse order of their making. That is always a valid order, since a node is made after those it leads
to, so a heap of the orders of the nodes that have a gradient waiting is all the bookkeeping there is: no counting of
dependencies beforehand. Leaves get their gradients at the end, which nothing can observe here: with a hook in sight, a
large gradient to add to, or an error, engine.full finishes the pass, and there each leaf's turn comes as soon as it can.
"""
from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import numpy as np

from ..arrays import quiet
from ..graph.errors import freed_error
from ..graph.node import ORDER, SAVED, BackwardCall, Output
from .accumulate import accumulate_raw

# A leaf whose .grad is this large gets its gradient as soon as possible, so that no second one stays around.
LARGE = 1 << 20
_EMPTY = ()
_add = np.add


class Handover(Exception):
    """The short pass met something that engine.full must handle."""


def short_pass(heap: list[int], pending: dict[int, list], leaves: dict[Any, list], call: BackwardCall, retain: bool) -> None:
    """Run the nodes in `pending` and all they lead to.

    pending  order -> [node, gradient, whether that array is ours to add to]
    leaves   leaf -> [gradient, ours]
    """
    token = quiet.hush(quiet.SILENT)
    try:
        _loop(heap, pending, leaves, call, retain)
    finally:
        quiet.unhush(token)
    for leaf, holder in leaves.items():
        accumulate_raw(leaf, holder)


def _loop(heap: list[int], pending: dict[int, list], leaves: dict[Any, list], call: BackwardCall, retain: bool) -> None:
    node, g, _ = pending.pop(heappop(heap)) if heap else (None, None, None)
    while node is not None:
        spec, order, saved, _, edges, _, _, extra = node
        if extra is not None:
            _hand_over(heap, pending, node, g)
        if saved.__class__ is BackwardCall:
            _hand_over(heap, pending, node, g, freed_error(node))
        if not retain and saved is not _EMPTY:
            # Taken before it is used: of several threads on one graph only one gets it. Given back on failure.
            node[SAVED] = call
        try:
            r = spec.run(g, saved, node)
        except BaseException as error:
            node[SAVED] = saved
            _hand_over(heap, pending, node, g, error)
        saved = None  # frees the values now, not a node later
        if edges.__class__ is not tuple:
            # One gradient. With nothing else waiting it goes straight on, which makes chains cheap.
            if edges.__class__ is list:
                if r is not None:
                    if not heap:
                        node, g = edges, r
                        continue
                    key = edges[1]
                    waiting = pending.get(key)
                    if waiting is None:
                        pending[key] = [edges, r, False]
                        heappush(heap, key)
                    elif waiting[2]:
                        _add(waiting[1], r, waiting[1])
                    else:
                        waiting[1] = waiting[1] + r
                        waiting[2] = waiting[1].__class__ is np.ndarray
            elif r is not None and _deliver(edges, r, heap, pending, leaves):
                raise Handover
        else:
            special = False
            for edge, gradient in zip(edges, r):
                if edge is None or gradient is None:
                    continue
                if edge.__class__ is list:
                    key = edge[1]
                    waiting = pending.get(key)
                    if waiting is None:
                        pending[key] = [edge, gradient, False]
                        heappush(heap, key)
                    elif waiting[2]:
                        _add(waiting[1], gradient, waiting[1])
                    else:
                        waiting[1] = waiting[1] + gradient
                        waiting[2] = waiting[1].__class__ is np.ndarray
                elif _deliver(edge, gradient, heap, pending, leaves):
                    special = True
            gradient = None
            if special:
                raise Handover
        r = g = None
        if not heap:
            return
        node, g, _ = pending.pop(heappop(heap))


def _deliver(edge: Any, gradient: Any, heap: list[int], pending: dict[int, list], leaves: dict[Any, list]) -> bool:
    """Hand a gradient to a leaf, or to one output of a node that has several. True: engine.full must go on."""
    if edge.__class__ is Output:
        add_to_output(edge, gradient, heap, pending)
        return False
    holder = leaves.get(edge)
    if holder is None:
        leaves[edge] = [gradient, False]
        return edge._hooked or (edge._grad is not None and edge._array.nbytes > LARGE)
    elif holder[1]:
        _add(holder[0], gradient, holder[0])
    else:
        holder[0] = holder[0] + gradient
        holder[1] = holder[0].__class__ is np.ndarray
    return False


def add_to_output(edge: Output, gradient: Any, heap: list[int], pending: dict[int, list]) -> None:
    node, number = edge.node, edge.number
    key = node[ORDER]
    waiting = pending.get(key)
    if waiting is None:
        waiting = pending[key] = [node, [None] * node[0].output_count(node), True]
        heappush(heap, key)
    buffers = waiting[1]
    buffers[number] = gradient if buffers[number] is None else buffers[number] + gradient


def _hand_over(heap: list[int], pending: dict[int, list], node: list, g: Any, error: BaseException | None = None) -> None:
    """Put the node back and let engine.full go on; with an error, let it settle the leaves that were ready."""
    pending[node[ORDER]] = [node, g, False]
    heappush(heap, node[ORDER])
    if error is not None:
        raise error
    raise Handover


