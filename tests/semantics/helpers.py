"""Small helpers of the semantics tests: well-known words, submodules by name, running a call and keeping its error."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

FREED = "Trying to backward through the graph a second time"
MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace operation"
LEAF_INPLACE = "a leaf Variable that requires grad is being used in an in-place operation"
LEAF_VIEW_INPLACE = "a view of a leaf Variable that requires grad is being used in an in-place operation"
NO_GRAD_FN = "element 0 of tensors does not require grad and does not have a grad_fn"
NOT_SCALAR = "grad can be implicitly created only for scalar outputs"
DETACHED = "Trying to use a saved tensor that has been detached in-place"


def submodule(engine: ModuleType, name: str) -> ModuleType:
    """Import a submodule of whichever engine runs, as a user's import statement would."""
    return importlib.import_module(f"{engine.__name__}.{name}")


def leaf(engine: ModuleType, *values: float, dtype: Any = None) -> Any:
    """A one-dimensional leaf that requires grad."""
    return engine.tensor(list(values), dtype=dtype, requires_grad=True)


def node_name(tensor: Any) -> str | None:
    """The name of a tensor's node without torch's C++ namespace, or None."""
    return None if tensor.grad_fn is None else tensor.grad_fn.name().split("::")[-1]


def outcome(function: Callable[[], Any]) -> str:
    """'ok', 'freed', or the text of another RuntimeError."""
    try:
        function()
    except RuntimeError as error:
        return "freed" if str(error).startswith(FREED) else str(error)
    return "ok"


def quiet_grad(tensor: Any) -> Any:
    """Read .grad without the warning that a non-leaf gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tensor.grad
