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
from ..graph.node import ORDER, BackwardCall, Output
from .accumulate import accumulate_all

# A leaf whose .grad is this large gets its gradient as soon as possible, so that no second one stays around.
LARGE = 1 << 20
_EMPTY = ()


class Handover(Exception):
    """The short pass met something that engine.full must handle."""


def short_pass(node: list, g: Any, heap: list[int], pending: dict[int, list], leaves: dict[Any, list], call: BackwardCall,
               retain: bool) -> None:
    """Run `node` with the gradient `g`, the nodes in `pending`, and all they lead to; then give the leaves their gradients.

    pending  order -> [node, gradient, whether that array is ours to add to]
    leaves   leaf -> [gradient, ours]
    """
    run_nodes(node, g, heap, pending, leaves, call, retain)
    accumulate_all(leaves)


def run_nodes(node: list, g: Any, heap: list[int], pending: dict[int, list], leaves: dict[Any, list], call: BackwardCall,
              retain: bool) -> None:
    """The same, leaving the gradients of the leaves in `leaves`."""
    token = quiet.hush(quiet.SILENT)
    try:
        _loop(node, g, heap, pending, leaves, call, retain)
    finally:
        quiet.unhush(token)


def _loop(node: list, g: Any, heap: list[int], pending: dict[int, list], leaves: dict[Any, list], call: BackwardCall,
          retain: bool) -> None:
    while True:
        spec, _, saved, _, edges, _, _, extra = node
        if extra is not None:
            _hand_over(heap, pending, node, g)
        if saved is not _EMPTY:
            if saved.__class__ is BackwardCall:
                if not getattr(spec, "runs_freed", False):
                    _hand_over(heap, pending, node, g, freed_error(node))
            elif not retain:
                # Taken before it is used: of several threads on one graph only one gets it. Given back on failure.
                node[2] = call
        try:
            r = spec.run(g, saved, node)
        except BaseException as error:
            node[2] = saved
            _hand_over(heap, pending, node, g, error)
        saved = None  # frees the values now, not a node later
        if edges.__class__ is list:
            # One gradient. With nothing else waiting it goes straight on, which makes chains cheap.
            if not heap:
                node, g = edges, r
                if r is None:
                    return
                continue
            if r is not None:
                key = edges[1]
                waiting = pending.get(key)
                if waiting is None:
                    pending[key] = [edges, r, False]
                    heappush(heap, key)
                elif waiting[2]:
                    waiting[1] += r
                else:
                    waiting[1] = waiting[1] + r
                    waiting[2] = waiting[1].__class__ is np.ndarray
        elif edges.__class__ is tuple:
            special = False
            following = None  # with nothing waiting, the first node met goes straight on, if it stays the only one
            for edge, gradient in zip(edges, r):
                if edge is None or gradient is None:
                    continue
                if edge.__class__ is list:
                    if following is None and not heap:
                        following, g = edge, gradient
                        continue
                    key = edge[1]
                    waiting = pending.get(key)
                    if waiting is None:
                        if edge is following:  # y * y
                            g = g + gradient
                            continue
                        pending[key] = [edge, gradient, False]
                        heappush(heap, key)
                    elif waiting[2]:
                        waiting[1] += gradient
                    else:
                        waiting[1] = waiting[1] + gradient
                        waiting[2] = waiting[1].__class__ is np.ndarray
                elif edge.__class__ is Output:
                    add_to_output(edge, gradient, heap, pending)
                else:
                    holder = leaves.get(edge)
                    if holder is None:
                        leaves[edge] = [gradient, False]
                        special = special or edge._hooked or (edge._grad is not None and edge._array.nbytes > LARGE)
                    elif holder[1]:
                        holder[0] += gradient
                    else:
                        holder[0] = holder[0] + gradient
                        holder[1] = holder[0].__class__ is np.ndarray
            if following is not None:
                if not heap and not special:
                    node = following
                    r = gradient = None
                    continue
                pending[following[1]] = [following, g, False]
                heappush(heap, following[1])
            gradient = None
            if special:
                raise Handover
        elif r is not None and _deliver(edges, r, heap, pending, leaves):
            raise Handover
        r = None
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
        holder[0] += gradient
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
        try:
            raise error
        finally:
            del error  # it leads to this frame; if the frame led back to it, only the collector could free the graph
    raise Handover


