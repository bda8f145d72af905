"""Helpers for tests that run the same network in Rushlight and in torch."""

from __future__ import annotations

import numpy as np
import torch

import rushlight


def pair(array, requires_grad=False):
    """The same numbers as a tensor of each library."""
    array = np.ascontiguousarray(array)
    ours = rushlight.tensor(array.copy())
    theirs = torch.tensor(array.copy())
    if requires_grad:
        ours.requires_grad_()
        theirs.requires_grad_()
    return ours, theirs


def numbers(tensor):
    return np.asarray(tensor.detach().numpy())


def close(ours, theirs, tolerance=2e-5):
    """Same structure, same shapes, same dtypes, same numbers to rounding."""
    if theirs is None:
        assert ours is None
    elif isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            close(one, other, tolerance)
    else:
        assert tuple(ours.shape) == tuple(theirs.shape)
        assert str(ours.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1]
        np.testing.assert_allclose(numbers(ours), numbers(theirs), rtol=tolerance, atol=tolerance)


def copy_parameters(ours, theirs):
    """Give our module the other's state."""
    state = {name: rushlight.tensor(value.detach().numpy().copy()) for name, value in theirs.state_dict().items()}
    ours.load_state_dict(state)


def total(result):
    """A scalar that weighs every output differently, so that a wrong gradient shows."""
    if not isinstance(result, (tuple, list)):
        result = [result]
    value = None
    for one in result:
        if isinstance(one, (tuple, list)):
            part = total(one)
        elif one is None:
            continue
        else:
            flat = one.reshape(-1)
            weights = np.cos(np.arange(flat.shape[0])).astype(numbers(flat).dtype)
            part = (flat * type_of(flat)(weights)).sum()
        value = part if value is None else value + part
    return value


def type_of(tensor):
    return torch.tensor if isinstance(tensor, torch.Tensor) and type(tensor).__module__.startswith("torch") \
        else rushlight.tensor
