"""Adds a gradient to a leaf's .grad."""
from __future__ import annotations

import threading
from sys import getrefcount
from typing import Any

import numpy as np

from ..graph.node import LEAF
from ..graph.versions import bump
from ..ops.fit import fit
from ..tensor import Tensor, wrap

# Several threads may accumulate into one leaf; NumPy lets go of the interpreter's lock while it adds.
lock = threading.Lock()
_ndarray = np.ndarray
_add = np.add


def _needs_none(leaf: Tensor) -> bool:
    """For a leaf that has changed since the graph was made: True if it needs no gradient any more, else an error."""
    if leaf._node is None:
        return True
    raise RuntimeError("leaf variable has been moved into the graph interior: it was written to after the graph had been made. "
                       "Make the new value a new tensor.")


def accumulate_all(leaves: dict[Any, list]) -> None:
    """Add each leaf's gradient array, the first thing in its holder, to its .grad.

    The holders are emptied, so that an array nobody else refers to can be taken over as it is.
    """
    with lock:
        for leaf, holder in leaves.items():
            gradient = holder[0]
            holder[0] = None
            if leaf._node is not LEAF:
                if _needs_none(leaf):
                    continue
            array = leaf._array
            if gradient.__class__ is not _ndarray or gradient.dtype is not array.dtype or gradient.shape != leaf._shape:
                gradient = np.asarray(fit(gradient, (array.shape, array.dtype)))
            existing = leaf._grad
            if existing is not None:
                existing_array = existing._array
                _add(existing_array, gradient, existing_array)
                bump(existing)
                continue
            # Taken over if nothing else refers to it (this name and getrefcount's argument make 2) and it lies as the leaf does.
            base = gradient.base
            if getrefcount(gradient) > 2 or (base is not None and (getrefcount(base) > 3 or not gradient.flags.writeable)) or (
                    gradient.strides != array.strides):
                copied = np.empty_like(array)
                copied[...] = gradient
                gradient = copied
            leaf._grad = wrap(gradient)


def accumulate_tensor(leaf: Tensor, gradient: Tensor) -> None:
    """The same under create_graph: the gradient keeps its history, so nothing is written in place."""
    from ..ops.table import TENSORS
    if leaf._node is not LEAF and _needs_none(leaf):
        return
    if gradient._array.dtype != leaf._array.dtype or gradient._shape != leaf._shape:
        from ..ops.fit import fit_tensor
        fitted: Any = fit_tensor(gradient, (leaf._shape, leaf._array.dtype))
        gradient = fitted
    with lock:
        existing = leaf._grad
        leaf._grad = TENSORS.clone(gradient) if existing is None else TENSORS.add(existing, gradient)
