"""Runs one piece of code on real torch and on rushlight, and compares what it gives: values, or the error."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch", reason="real torch is the truth these tests compare with (pip install torch)")

Code = Callable[[ModuleType], Any]


def described(value: Any) -> Any:
    """A value in words that do not depend on the engine it came from."""
    if isinstance(value, (torch.Tensor, rushlight.Tensor)):
        kind = "Parameter" if type(value).__name__ == "Parameter" else "Tensor"
        return (
            kind,
            described(value.dtype),
            tuple(value.shape),
            value.requires_grad,
            value.is_leaf,
            described(value.detach().tolist()),
        )
    if isinstance(value, (torch.dtype, rushlight.dtype)):
        return str(value)
    if isinstance(value, (torch.Size, rushlight.Size)):
        return ("Size", *value)
    if isinstance(value, np.ndarray):
        return "array", value.dtype.name, value.shape, described(value.tolist())
    if isinstance(value, (list, tuple)):
        return type(value).__name__, *map(described, value)
    if isinstance(value, dict):
        return {key: described(one) for key, one in value.items()}
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, complex):
        return f"{value:.6g}"
    return value if isinstance(value, (bool, int, str, bytes, type(None))) else str(value)


def outcome(code: Code, module: ModuleType) -> tuple[Any, Exception | None]:
    module.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return described(code(module)), None
        except Exception as error:
            return None, error


def assert_same(code: Code, words: int = 4) -> None:
    """The same value, or an error of the same type with the same opening words."""
    (expected, refused), (found, error) = outcome(code, torch), outcome(code, rushlight)
    if refused is None:
        if error is not None:
            raise AssertionError(f"torch gives {expected!r:.300}, rushlight raises {error!r:.300}") from error
        assert found == expected, f"torch gives {expected!r:.300}, rushlight {found!r:.300}"
        return
    assert error is not None, f"torch raises {refused!r:.300}, rushlight gives {found!r:.300}"
    assert isinstance(error, type(refused)), f"torch raises {refused!r:.300}, rushlight {error!r:.300}"
    opening, expected_opening = (" ".join(str(one).split()[:words]) for one in (error, refused))
    assert opening == expected_opening, f"torch says {refused!s:.200}, rushlight {error!s:.200}"


def cases(*codes: tuple[str, Code] | tuple[str, Code, int]) -> Any:
    """A parametrisation over (name, code) or (name, code, how many opening words of the error to compare)."""
    return pytest.mark.parametrize(
        ("code", "words"), [pytest.param(code[1], code[2] if len(code) > 2 else 4, id=code[0]) for code in codes]
    )


def texts(lines: str, names: dict[str, Any] | None = None) -> Any:
    """A parametrisation over lines of code in terms of `m`, the engine; `# n` at the end of a line sets the words."""
    params = []
    for line in lines.strip().splitlines():
        text, _, count = line.strip().partition("  # ")
        if text:
            code = eval(f"lambda m: {text}", {"np": np, **(names or {})})
            params.append(pytest.param(code, int(count or 4), id=text))
    return pytest.mark.parametrize(("code", "words"), params)
