"""Adds a gradient to a leaf's .grad."""
from __future__ import annotations

import threading
from sys import getrefcount
from typing import Any

import numpy as np

from ..graph.versions import bump
from ..ops.fit import fit
from ..tensor import Tensor, wrap

# Several threads may accumulate into one leaf; NumPy lets go of the interpreter's lock while it adds.
lock = threading.Lock()


def accumulate_raw(leaf: Tensor, holder: list) -> None:
    """Add the array in `holder[0]` to leaf.grad. The holder is emptied, so that the array can be taken over as it is."""
    gradient = holder[0]
    holder[0] = None
    array = leaf._array
    if gradient.__class__ is not np.ndarray or gradient.dtype is not array.dtype or gradient.shape != array.shape:
        gradient = np.asarray(fit(gradient, (array.shape, array.dtype)))
    with lock:
        existing = leaf._grad
        if existing is None:
            # Taken over if nothing else refers to it (this name and getrefcount's argument make 2) and it lies as the leaf does.
            base = gradient.base
            if getrefcount(gradient) > 2 or gradient.strides != array.strides or not gradient.flags.writeable or (
                    base is not None and getrefcount(base) > 3):
                copied = np.empty_like(array)
                copied[...] = gradient
                gradient = copied
            leaf._grad = wrap(gradient)
        else:
            np.add(existing._array, gradient, existing._array)
            bump(existing)


def accumulate_tensor(leaf: Tensor, gradient: Tensor) -> None:
    """The same under create_graph: the gradient keeps its history, so nothing is written in place."""
    from ..ops.table import TENSORS
    if gradient._array.dtype != leaf._array.dtype or gradient._shape != leaf._shape:
        from ..ops.fit import fit_tensor
        fitted: Any = fit_tensor(gradient, (leaf._shape, leaf._array.dtype))
        gradient = fitted
    with lock:
        existing = leaf._grad
        leaf._grad = TENSORS.clone(gradient) if existing is None else TENSORS.add(existing, gradient)
