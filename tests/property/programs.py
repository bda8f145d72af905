"""Random small autograd programs as data, and an interpreter that runs one on any engine and gives its trace.

A program is a list of steps, a step a tuple of a name and small numbers. Numbers pick tensors from the latest backwards
and are taken modulo what there is, so every list of steps is a program and shrinks well.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from random import Random
from types import ModuleType
from typing import Any

import numpy as np
from hypothesis import strategies as st

SHAPES: list[tuple[int, ...]] = [(), (3,), (2, 3), (1,), (2, 1), (3, 2), (0,)]
DTYPES = ["float32", "float64"]

UNARY = {
    "neg": lambda t: -t,
    "exp": lambda t: t.exp(),
    "tanh": lambda t: t.tanh(),
    "sigmoid": lambda t: t.sigmoid(),
    "relu": lambda t: t.relu(),
    "abs": lambda t: t.abs(),
    "square": lambda t: t**2,
    "clone": lambda t: t.clone(),
    "double": lambda t: t.double(),
    "scale": lambda t: t * 1.5,
    "shift": lambda t: 1 - t,
    "half": lambda t: t / 2,
}
BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / (b * b + 1),
    "matmul": lambda a, b: a @ b,
}
REDUCTIONS = {
    "sum": lambda t, d: t.sum(),
    "mean": lambda t, d: t.mean(),
    "sum_dim": lambda t, d: t.sum(d),
    "mean_keep": lambda t, d: t.mean(d, keepdim=True),
    "cumsum": lambda t, d: t.cumsum(d),
}
VIEWS = {
    "select": lambda t, k: t.select(k % max(t.dim(), 1), 0),
    "last": lambda t, k: t[-1],
    "slice": lambda t, k: t[k % 2 :],
    "transpose": lambda t, k: t.transpose(0, -1),
    "view": lambda t, k: t.view(-1),
    "reshape": lambda t, k: t.reshape(-1, 1),
    "unsqueeze": lambda t, k: t.unsqueeze(k % (t.dim() + 1)),
    "expand": lambda t, k: t.expand(2, *t.shape),
    "unbind": lambda t, k: t.unbind(0)[k % t.shape[0] if t.dim() else 0],
    "split": lambda t, k: t.split(1)[0],
    "detach": lambda t, k: t.detach(),
}
INPLACE_UNARY = {
    "relu_": lambda t: t.relu_(),
    "zero_": lambda t: t.zero_(),
    "exp_": lambda t: t.exp_(),
    "add_one_": lambda t: t.add_(1),
    "double_": lambda t: t.mul_(2.0),
    "set_first": lambda t: t.__setitem__(0, 0.5),
    "set_all": lambda t: t.__setitem__(..., 0.25),
    "detach_": lambda t: t.detach_(),
}
INPLACE_BINARY = {
    "add_": lambda a, b: a.add_(b),
    "mul_": lambda a, b: a.mul_(b),
    "sub_": lambda a, b: a.sub_(b),
    "copy_": lambda a, b: a.copy_(b),
    "set_row": lambda a, b: a.__setitem__(0, b),
    "set_slice": lambda a, b: a.__setitem__(slice(1, None), b),
}

# Errors that refuse a step before it has done anything: the program goes on, which shows that nothing was done.
# After any other error it stops.
HARMLESS = {"shape", "leaf-inplace", "scalar", "no-grad", "overlap", "dtype", "flags"}

# A program ends when a number grows past this: rounding differences would grow with it and say nothing.
LARGE = 1e4


# How often each kind of step is drawn.
WEIGHTS = {
    "leaf": 3,
    "unary": 8,
    "binary": 8,
    "reduction": 4,
    "view": 9,
    "inplace": 5,
    "inplace_binary": 5,
    "backward": 9,
    "implicit_backward": 2,
    "grad": 4,
    "hook": 3,
    "retain_grad": 1,
    "requires_grad_": 1,
    "zero_grads": 1,
    "clear_grads": 1,
}


class Sampler:
    """Draws programs from a random stream. The latest tensors are used most, so that graphs grow deep."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def recent(self) -> int:
        return min(int(self.random.expovariate(0.6)), 9)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def one_of(self, table: dict[str, Any]) -> str:
        return self.random.choice(sorted(table))

    def step(self, name: str) -> tuple[Any, ...]:
        quiet = self.chance(0.1)
        match name:
            case "leaf":
                shape = self.random.choices(range(len(SHAPES)), [3, 5, 5, 1, 2, 1, 0.3])[0]
                return name, shape, self.random.choice(DTYPES), self.chance(0.8), self.random.randrange(10)
            case "unary":
                return name, self.one_of(UNARY), self.recent(), quiet
            case "binary":
                return name, self.one_of(BINARY), self.recent(), self.recent(), quiet
            case "reduction":
                return name, self.one_of(REDUCTIONS), self.recent(), quiet
            case "view":
                return name, self.one_of(VIEWS), self.recent(), self.random.randrange(4), quiet
            case "inplace":
                return name, self.one_of(INPLACE_UNARY), self.recent(), quiet
            case "inplace_binary":
                return name, self.one_of(INPLACE_BINARY), self.recent(), self.recent(), quiet
            case "backward":
                return name, self.recent(), self.chance(0.4), self.chance(0.15), quiet
            case "implicit_backward":
                return name, self.recent(), self.chance(0.4)
            case "grad":
                keep, create, unused = self.chance(0.4), self.chance(0.4), self.chance(0.7)
                return name, self.recent(), self.random.randrange(10), keep, create, unused
            case "hook":
                return name, self.recent(), self.chance(0.5)
        return name, self.recent()

    def program(self) -> list[tuple[Any, ...]]:
        first = ("leaf", self.random.choice([0, 1, 2]), self.random.choice(DTYPES), True, self.random.randrange(10))
        second = ("leaf", self.random.choice([1, 2]), "float32", True, self.random.randrange(10))
        start = [first, second, ("binary", self.random.choice(["add", "mul", "sub"]), 0, 1, False)]
        names = self.random.choices(list(WEIGHTS), list(WEIGHTS.values()), k=self.random.randrange(4, 20))
        return start + [self.step(name) for name in names]


def sample_program(seed: int) -> list[tuple[Any, ...]]:
    return Sampler(Random(seed)).program()


def programs(seeds: int = 2**32) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """Programs of as many seeds: few, for a run that must not depend on Hypothesis's version; or all, to hunt."""
    return st.integers(0, seeds - 1).map(sample_program)


def smallest(program: list[tuple[Any, ...]], fails: Callable[[list[tuple[Any, ...]]], bool]) -> list[tuple[Any, ...]]:
    """Drop steps as long as the program still fails: what a person wants to read."""
    shorter = True
    while shorter:
        shorter = False
        for index in range(len(program) - 1, 0, -1):
            candidate = program[:index] + program[index + 1 :]
            if fails(candidate):
                program, shorter = candidate, True
                break
    return program


def error_kind(error: BaseException) -> str:
    """A coarse kind, so that both engines may word their errors in their own way."""
    text = str(error)
    for kind, words in (
        ("freed", ("through the graph a second time",)),
        ("version", ("needed for gradient computation has been modified by an inplace operation",)),
        ("detached", ("has been detached in-place", "Can't detach views in-place")),
        ("leaf-inplace", ("leaf Variable that requires grad",)),
        ("view-inplace", ("is a view and ", "is a view of a view which was created", "A view was created in")),
        ("overlap", ("more than one element of the written-to tensor", "input tensor and the written-to tensor")),
        ("dtype", ("same dtype",)),
        ("unused", ("appears to not have been used in the graph",)),
        ("no-grad", ("does not require grad", "doesn't require gradient", "requires_grad=False")),
        ("scalar", ("can be implicitly created only for scalar outputs",)),
        ("flags", ("can only change requires_grad flags",)),
    ):
        if any(part in text for part in words):
            return kind
    if isinstance(error, IndexError) or any(
        word in text.lower() for word in ("size", "shape", "dim", "broadcast", "length", "stride", "at least 1d")
    ):
        return "shape"
    return "other"


def to_array(tensor: Any) -> np.ndarray:
    return np.array(tensor.detach().tolist(), dtype=np.float64).reshape(tuple(tensor.shape))


def dtype_name(tensor: Any) -> str:
    return str(tensor.dtype).split(".")[-1]


def grad_of(tensor: Any) -> Any:
    """The gradient, or None; a view that its base outgrew refuses to answer and has none."""
    try:
        return tensor.grad
    except RuntimeError:
        return None


class Interpreter:
    """Runs a program on one engine, step by step, and keeps what a user could see."""

    def __init__(self, engine: ModuleType) -> None:
        self.engine = engine
        self.tensors: list[Any] = []
        # Results of create_graph: their nodes are named after the formula, which is each engine's own affair.
        self.made_by_formula: set[int] = set()
        self.hook_log: list[tuple[int, np.ndarray]] = []
        self.born: dict[int, int] = {}

    def run(self, program: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
        """The trace: one record per step, and one of everything at the end, also after an error."""
        trace: list[dict[str, Any]] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for step in program:
                before = len(self.tensors)
                try:
                    touched = self.execute(step)
                except Exception as error:
                    kind = error_kind(error)
                    trace.append({"error": (type(error), kind), "text": str(error)})
                    if kind in HARMLESS:
                        continue
                    break
                seen = self.tensors[before:] + ([] if touched is None else [touched])
                records = [self.describe(tensor) for tensor in seen]
                trace.append({"seen": records, "grads": self.grads()})
                if any(self.is_large(tensor) for tensor in [*seen, *self.live_grads()]):
                    break
            hooks = list(self.hook_log)
            trace.append({"seen": [self.describe(t) for t in self.tensors], "grads": self.grads(), "hooks": hooks})
            # create_graph makes a cycle of a leaf and its gradient.
            self.step_clear_grads(0)
        return trace

    def execute(self, step: tuple[Any, ...]) -> Any:
        """Run one step; return the tensor it wrote to or looked at, if it made no new one."""
        name, *rest = step
        method = getattr(self, "step_" + name)
        if name in ("unary", "binary", "reduction", "view", "inplace", "inplace_binary", "backward"):
            *rest, quiet = rest
            if quiet:
                with self.engine.no_grad():
                    return method(*rest)
        return method(*rest)

    def at(self, number: int) -> Any:
        return self.tensors[-1 - number % len(self.tensors)]

    # steps that make tensors
    def step_leaf(self, shape: int, dtype: str, requires_grad: bool, seed: int) -> None:
        size = SHAPES[shape]
        count = int(np.prod(size))
        # Multiples of a quarter: sums and products of them are exact, and the same on every engine.
        values = ((np.arange(count) * 5 + seed * 3) % 13 - 6) / 4.0
        made = self.engine.tensor(values.reshape(size).tolist(), dtype=getattr(self.engine, dtype))
        self.tensors.append(made.requires_grad_(requires_grad))

    def step_unary(self, name: str, i: int) -> None:
        self.tensors.append(UNARY[name](self.at(i)))

    def step_binary(self, name: str, i: int, j: int) -> None:
        self.tensors.append(BINARY[name](self.at(i), self.at(j)))
        if name == "matmul":  # composed of other operations, whose names are each engine's own affair
            self.made_by_formula.add(len(self.tensors) - 1)

    def step_reduction(self, name: str, i: int) -> None:
        self.tensors.append(REDUCTIONS[name](self.at(i), 0))

    def step_view(self, name: str, i: int, k: int) -> None:
        self.tensors.append(VIEWS[name](self.at(i), k))

    # steps that write
    def step_inplace(self, name: str, i: int) -> Any:
        INPLACE_UNARY[name](self.at(i))
        return self.at(i)

    def step_inplace_binary(self, name: str, i: int, j: int) -> Any:
        INPLACE_BINARY[name](self.at(i), self.at(j))
        return self.at(i)

    # steps that differentiate
    def step_backward(self, i: int, retain: bool, create: bool) -> Any:
        root = self.at(i)
        root.backward(self.engine.ones_like(root.detach()), retain_graph=retain or create, create_graph=create)
        return root

    def step_implicit_backward(self, i: int, retain: bool) -> Any:
        self.at(i).backward(retain_graph=retain)
        return self.at(i)

    def step_grad(self, i: int, j: int, retain: bool, create: bool, unused: bool) -> None:
        (result,) = self.engine.autograd.grad(
            self.at(i),
            self.at(j),
            grad_outputs=self.engine.ones_like(self.at(i).detach()),
            retain_graph=retain or create,
            create_graph=create,
            allow_unused=unused,
        )
        if result is not None:
            # A private copy: whether two gradients are one object is not this test's question.
            copy = result.clone() if result.requires_grad else result.detach().clone()
            self.made_by_formula.add(len(self.tensors))
            self.tensors.append(copy)

    # steps that change attributes
    def step_hook(self, i: int, scale: bool) -> None:
        number = len(self.hook_log)
        label = 10 * len(self.tensors) + number

        def hook(grad: Any) -> Any:
            self.hook_log.append((label, to_array(grad)))
            return grad * 2 if scale else None

        # Asking for the node first: torch 2.13.0 crashes on a hook for a view whose base another view has written.
        self.at(i).grad_fn  # noqa: B018
        self.at(i).register_hook(hook)

    def step_retain_grad(self, i: int) -> None:
        self.at(i).retain_grad()

    def step_requires_grad_(self, i: int) -> Any:
        self.at(i).requires_grad_()
        return self.at(i)

    def step_zero_grads(self, i: int) -> None:
        for grad in self.live_grads():
            grad.detach().zero_()

    def step_clear_grads(self, i: int) -> None:
        for tensor in self.tensors:
            if grad_of(tensor) is not None:
                tensor.grad = None

    # looking
    def live_grads(self) -> list[Any]:
        return [grad for grad in map(grad_of, self.tensors) if grad is not None]

    def grads(self) -> list[tuple[str, np.ndarray, bool] | None]:
        found = map(grad_of, self.tensors)
        return [None if g is None else (dtype_name(g), to_array(g), bool(g.requires_grad)) for g in found]

    def describe(self, tensor: Any) -> dict[str, Any]:
        record = {
            "value": to_array(tensor),
            "dtype": dtype_name(tensor),
            # Since it was first seen: some operations of torch give a new tensor that counts its making as a write.
            "version": tensor._version - self.born.setdefault(id(tensor), tensor._version),
            "is_view": bool(tensor._is_view()),
            "is_leaf": None,
            "requires_grad": None,
            "grad_fn": None,
        }
        try:
            record["requires_grad"] = bool(tensor.requires_grad)
            record["is_leaf"] = bool(tensor.is_leaf)
            node = tensor.grad_fn
            record["grad_fn"] = None if node is None else node.name().split("::")[-1]
        except RuntimeError as error:
            # A view that its base outgrew refuses to tell its node.
            record["grad_fn"] = error_kind(error)
        if any(tensor is self.tensors[index] for index in self.made_by_formula) and record["grad_fn"] is not None:
            record["grad_fn"] = "formula"
        return record

    @staticmethod
    def is_large(tensor: Any) -> bool:
        values = np.abs(to_array(tensor))
        return not bool((values < LARGE).all())


def run_program(engine: ModuleType, program: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """The trace of a program on an engine."""
    return Interpreter(engine).run(program)


def same_values(left: np.ndarray, right: np.ndarray) -> bool:
    return left.shape == right.shape and np.allclose(left, right, rtol=2e-4, atol=1e-5, equal_nan=True)


def differing_grads(expected: list[Any], found: list[Any]) -> str | None:
    for index, (left, right) in enumerate(zip(expected, found, strict=True)):
        if (left is None) != (right is None):
            return f"grad of tensor {index}: {left} against {right}"
        if left is not None and (left[0] != right[0] or left[2] != right[2] or not same_values(left[1], right[1])):
            return f"grad of tensor {index}: {left} against {right}"
    return None


def differing_record(expected: dict[str, Any], found: dict[str, Any]) -> str | None:
    for key in ("dtype", "version", "is_leaf", "requires_grad", "grad_fn"):
        # torch regenerates a view's node as AsStrided where another engine may replay the view itself.
        replayed = key == "grad_fn" and expected[key] == "AsStridedBackward0" and found[key] is not None
        if expected[key] != found[key] and not replayed:
            return f"{key}: {expected[key]} against {found[key]}"
    if not same_values(expected["value"], found["value"]):
        return f"value: {expected['value']} against {found['value']}"
    return None


# A step with two faults at once: either may be reported. None of these leaves anything changed.
EITHER_FAULT = frozenset(("overlap", "shape", "leaf-inplace", "view-inplace"))


def is_known(left: dict[str, Any], right: dict[str, Any]) -> bool:
    """Whether two steps differ in a way that docs/differences.md tells of. The programs are compared no further then."""
    kinds = {record["error"][1] for record in (left, right) if "error" in record}
    if kinds:
        text = left.get("text", "") + right.get("text", "")
        # Memory that is read and written at once; a view that its base outgrew; an output in another order of memory.
        return (len(kinds) == 2 and kinds <= EITHER_FAULT or kinds == {"overlap"}
                or "its base or another view of its base" in text or "view size is not compatible" in text)
    # A view that its base outgrew does not tell what it is.
    return any(one["is_leaf"] is None or two["is_leaf"] is None or one["requires_grad"] != two["requires_grad"]
                             for one, two in zip(left["seen"], right["seen"], strict=False) if one["is_view"] or two["is_view"])


def differing(expected: list[dict[str, Any]], found: list[dict[str, Any]]) -> str | None:
    """The first difference of two traces in words, or None."""
    for number, (left, right) in enumerate(zip(expected, found, strict=False)):
        if "error" in left or "error" in right:
            if "error" not in left or "error" not in right:
                if is_known(left, right):
                    return None
                return f"step {number}: only one fails: {left.get('text', 'fine')} against {right.get('text', 'fine')}"
            (left_type, left_kind), (right_type, right_kind) = left["error"], right["error"]
            if left_kind != right_kind or not issubclass(right_type, left_type):
                if is_known(left, right):
                    return None
                return f"step {number}: errors differ: {left['text']} against {right['text']}"
            continue
        gradients = differing_grads(left["grads"], right["grads"])
        if gradients:  # no known difference excuses a gradient
            return f"step {number}: {gradients}"
        problem = "another number of tensors" if len(left["seen"]) != len(right["seen"]) else None
        for index, (one, two) in enumerate(zip(left["seen"], right["seen"], strict=False)):
            problem = problem or (lambda p, index=index: p and f"tensor {index}: {p}")(differing_record(one, two))
            if one["value"].shape != two["value"].shape or not same_values(one["value"], two["value"]):
                return f"step {number}: {problem}"  # nor a value
        left_hooks, right_hooks = left.get("hooks", []), right.get("hooks", [])
        if [h[0] for h in left_hooks] != [h[0] for h in right_hooks]:
            problem = problem or f"order of hooks: {[h[0] for h in left_hooks]} against {[h[0] for h in right_hooks]}"
        elif not all(same_values(a[1], b[1]) for a, b in zip(left_hooks, right_hooks, strict=True)):
            problem = problem or f"gradients seen by hooks: {left_hooks} against {right_hooks}"
        if problem:
            return None if is_known(left, right) else f"step {number}: {problem}"
    if len(expected) != len(found):
        return f"one trace has {len(expected)} records, the other {len(found)}"
    return None
