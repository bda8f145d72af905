"""Fixtures shared by all tests: the engine under test (real torch or rushlight) and ways to compare errors."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

ENGINES = ("torch", "rushlight")
NO_TORCH = "real torch is not installed: without it the expectation itself cannot be checked (pip install torch)"


def load_engine(name: str) -> ModuleType:
    """Import one engine by name; skip when real torch is asked for and absent."""
    if name == "torch":
        return pytest.importorskip("torch", reason=NO_TORCH)
    return importlib.import_module(name)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> ModuleType:
    """The module a test is written against. Real torch proves the expectation, rushlight has to meet it."""
    module = load_engine(request.param)
    module.manual_seed(0)
    return module


def opening_words(message: object, count: int = 6) -> str:
    """The first words of a message: what people recognise and search for."""
    return " ".join(str(message).split()[:count])


@contextlib.contextmanager
def expect_error(expected_type: type[BaseException], opening: str = "") -> Iterator[SimpleNamespace]:
    """Expect an error of a type (or a subclass that carries more facts) whose message opens with these words.

    The record it yields has the error as ``value`` and its text as ``text`` once the block has ended.
    """
    record = SimpleNamespace(value=None, text="")
    with pytest.raises(expected_type) as caught:
        yield record
    record.value = caught.value
    record.text = " ".join(str(caught.value).split())
    wanted = " ".join(opening.split())
    assert record.text.startswith(wanted), f"message opens with {record.text[:160]!r}, expected {wanted!r}"


@pytest.fixture
def raises() -> Callable[..., contextlib.AbstractContextManager[SimpleNamespace]]:
    """`with raises(RuntimeError, "opening words")`: type and opening words, the rest of the text is free."""
    return expect_error


def error_of(function: Callable[[ModuleType], Any], module: ModuleType) -> BaseException | None:
    """The error this function raises on this engine, or None."""
    try:
        function(module)
    except Exception as error:
        return error
    return None


@pytest.fixture
def same_error() -> Callable[..., None]:
    """Run one function on real torch and on rushlight: same exception type, same opening words, or no error on both."""

    def compare(function: Callable[[ModuleType], Any], words: int = 6) -> None:
        expected = error_of(function, load_engine("torch"))
        found = error_of(function, load_engine("rushlight"))
        if expected is None:
            assert found is None, f"torch accepts this, rushlight raised {found!r}"
            return
        assert isinstance(found, type(expected)), f"torch raised {expected!r}, rushlight {found!r}"
        assert opening_words(found, words) == opening_words(expected, words)

    return compare
