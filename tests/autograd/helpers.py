"""Runs one scenario on real torch and on rushlight, and compares what comes out: values, dtypes, names, errors."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.conftest import NO_TORCH, opening_words


def part(module: ModuleType, name: str) -> Any:
    """A submodule, which need not have been imported yet."""
    return importlib.import_module(f"{module.__name__}.{name}")


def outcome(scenario: Callable[[ModuleType], Any], module: ModuleType) -> Any:
    """What the scenario returns, or its error."""
    module.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return scenario(module)
        except Exception as error:
            return error


def attempt(function: Callable[[], Any], words: int = 5) -> Any:
    """The kind and opening words of the error that a step of a scenario raises; or what it returns."""
    try:
        return function()
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"]
        return kinds[0], opening_words(error, words)


def agree(scenario: Callable[[ModuleType], Any]) -> None:
    """The scenario must come out the same on both."""
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    expected = outcome(scenario, torch)
    found = outcome(scenario, importlib.import_module("rushlight"))
    if isinstance(expected, Exception) or isinstance(found, Exception):
        if not isinstance(expected, Exception):
            raise found
        assert isinstance(found, type(expected).__mro__[:2]), f"torch raised {expected!r}, rushlight gave {found!r}"
        assert opening_words(found, 5) == opening_words(expected, 5)
    else:
        same(expected, found, "result")


def same(expected: Any, found: Any, where: str) -> None:
    if hasattr(expected, "detach"):
        assert hasattr(found, "detach"), f"{where}: torch has a tensor, rushlight {found!r}"
        assert str(expected.dtype).split(".")[-1] == str(found.dtype).split(".")[-1], where
        assert tuple(expected.shape) == tuple(found.shape), where
        assert expected.requires_grad == found.requires_grad, where
        left, right = expected.detach().resolve_conj().numpy(), found.detach().numpy()
        np.testing.assert_allclose(right, left, rtol=1e-6, atol=1e-9, err_msg=where)
    elif isinstance(expected, (tuple, list)):
        assert isinstance(found, (tuple, list)), f"{where}: torch has {expected!r}, rushlight {found!r}"
        assert len(expected) == len(found), f"{where}: torch has {expected!r}, rushlight {found!r}"
        for i, (one, other) in enumerate(zip(expected, found, strict=True)):
            same(one, other, f"{where}[{i}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-6, nan_ok=True), where
    else:
        assert expected == found, f"{where}: torch has {expected!r}, rushlight {found!r}"


def scenarios(*functions: Callable[[ModuleType], Any]) -> Any:
    """Parametrise a test over scenario functions, under their names."""
    return pytest.mark.parametrize("scenario", functions, ids=[one.__name__ for one in functions])
