"""What the examples share: a record of what happened step by step, and the printing of it."""

from __future__ import annotations

import argparse
import importlib
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

OPENING_WORDS = 9  # "Trying to backward through the graph a second time" is nine words


class Step(NamedTuple):
    """One thing that happened: what it was, what came of it, and the whole message if it failed."""

    label: str
    value: Any
    message: str = ""


class Story:
    """The steps of one run, in plain numbers and words, so that two engines' runs can be compared."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def note(self, label: str, value: Any) -> None:
        """Records a value; a tensor is recorded as its numbers."""
        self.steps.append(Step(label, value.tolist() if hasattr(value, "tolist") else value))

    @contextmanager
    def attempt(self, label: str) -> Iterator[None]:
        """Lets the block under it fail, and records whether it did: the error's built-in type and opening words."""
        try:
            yield
        except Exception as error:  # the point of an example is to show whichever error comes
            # An engine may raise a subclass of the built-in type; the program that catches it sees no difference.
            kind = next(base.__name__ for base in type(error).__mro__ if base.__module__ == "builtins")
            opening = " ".join(str(error).split()[:OPENING_WORDS]).rstrip(".,:;")
            self.steps.append(Step(label, f"{kind}: {opening}", f"{type(error).__name__}: {error}"))
        else:
            self.steps.append(Step(label, "works"))


def graph_size(tensor: Any) -> int:
    """Counts the graph nodes that a tensor keeps alive, by walking grad_fn and next_functions."""
    seen = set()
    waiting = [tensor.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting.extend(following for following, _ in node.next_functions)
    return len(seen)


def readable(value: Any) -> str:
    """Renders a recorded value with few digits."""
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, list):
        return "[" + ", ".join(readable(item) for item in value) + "]"
    return str(value)


def tell(title: str, run: Callable[[Any], Story]) -> Any:
    """Runs an example on the engine named on the command line (rushlight unless told), prints its story, and
    returns the engine."""
    parser = argparse.ArgumentParser(description=title, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("rushlight", "torch"), default="rushlight", help="what to run it on")
    engine = importlib.import_module(parser.parse_args().engine)
    print(title.strip(), end="\n\n")
    for step in run(engine).steps:
        if step.message:
            print(f"- {step.label}: fails")
            print(textwrap.indent(step.message, "    | "))
        else:
            print(f"- {step.label}: {readable(step.value)}")
    return engine
