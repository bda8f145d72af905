"""The text of a tensor, character for character as PyTorch prints it; imported only when something is printed."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np


class PrintOptions:
    """What set_printoptions can change. The class attributes are the defaults."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in PrintOptions.__annotations__}


PRINT_OPTIONS = PrintOptions()

PROFILES: dict[str, dict[str, float]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change how tensors are printed.

    `profile` ("default", "short" or "full") is applied first and the other options over it. An option left at None
    keeps its value, except `sci_mode`: there None means "choose by the values", and every call sets it.
    """
    if profile is not None and profile not in PROFILES:
        raise ValueError(f"unknown print profile {profile!r}: choose one of {', '.join(map(repr, PROFILES))}")
    changes: dict[str, Any] = dict(PROFILES[profile]) if profile is not None else {}
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    changes.update((name, value) for name, value in given.items() if value is not None)
    for name, value in changes.items():
        setattr(PRINT_OPTIONS, name, value)
    PRINT_OPTIONS.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The options now in force, in the form set_printoptions(**options) takes."""
    return PRINT_OPTIONS.as_dict()


@contextlib.contextmanager
def printoptions(**changes: Any) -> Iterator[None]:
    """Print with other options inside a `with` block."""
    before = get_printoptions()
    set_printoptions(**changes)
    try:
        yield
    finally:
        set_printoptions(**before)


def format_number(value: Any, spec: str) -> str:
    """A 0-dim array or NumPy scalar under a format spec: the text of the Python number it holds."""
    number = value.item() if hasattr(value, "item") else value
    if not isinstance(number, (int, float, complex)):
        number = float(number)  # an extension type such as bfloat16 is its own item() and formats differently
    return format(number, spec)


def format_tensor(
    array: np.ndarray,
    *,
    dtype_name: str,
    default_float_name: str = "float32",
    requires_grad: bool = False,
    grad_fn_name: str | None = None,
    class_prefix: str = "tensor(",
    extra_suffixes: Sequence[str] = (),
) -> str:
    """The repr of a tensor holding `array`.

    `dtype_name` decides how values read, not the array's own dtype, so bfloat16 may come as any array that converts
    to float64. `class_prefix` is the opening up to and with its parenthesis; `extra_suffixes` are whole entries such
    as "tangent=1.0" that close the list.
    """
    suffixes = []
    if array.size == 0:
        contents = "[]"
        if array.ndim != 1:
            suffixes.append(f"size={array.shape}")
        # with no values to tell an integer from a float, only the default dtype goes without saying
        dtype_is_evident = dtype_name == default_float_name
    else:
        contents = _format_values(array, dtype_name, len(class_prefix))
        if not PRINT_OPTIONS.edgeitems:
            suffixes.append(f"size={array.shape}")
        default_complex_name = "complex128" if default_float_name == "float64" else "complex64"
        dtype_is_evident = dtype_name in (default_float_name, default_complex_name, "int64", "bool")
    if not dtype_is_evident:
        suffixes.append(f"dtype=torch.{dtype_name}")
    if grad_fn_name is not None:
        suffixes.append(f"grad_fn=<{grad_fn_name}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    suffixes.extend(extra_suffixes)
    return _append_suffixes(class_prefix + contents, suffixes, len(class_prefix)) + ")"


def _append_suffixes(text: str, suffixes: Sequence[str], indent: int) -> str:
    # PyTorch counts the first last line as two characters longer than it is; line breaks depend on it.
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if column + len(suffix) + 2 > PRINT_OPTIONS.linewidth:
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text


def _format_values(array: np.ndarray, dtype_name: str, indent: int) -> str:
    """The bracketed values: trim to what is shown, turn each value into a cell of text, lay the cells out."""
    trimmed = [False] * array.ndim
    if array.size > PRINT_OPTIONS.threshold and array.ndim:
        edge = PRINT_OPTIONS.edgeitems
        trimmed = [length > 2 * edge for length in array.shape]
        kept = [
            [*range(edge), *range(length - edge, length)] if cut else list(range(length))
            for length, cut in zip(array.shape, trimmed)
        ]
        # one indexing step copies the shown values only, whatever the array's size
        array = array[np.ix_(*(np.array(positions, dtype=np.intp) for positions in kept))]
    flat = array.reshape(-1)
    if dtype_name.startswith("complex"):
        cells, width = _complex_cells(flat)
    elif dtype_name.startswith(("float", "bfloat")):
        cells, width = _float_cells(flat)
    else:
        cells = [str(value) for value in flat.tolist()]
        width = max(map(len, cells), default=1)
        cells = [cell.rjust(width) for cell in cells]
    return _lay_out(iter(cells), array.shape, trimmed, width, indent)


def _float_cells(flat: np.ndarray) -> tuple[list[str], int]:
    """One style for all values, chosen by the finite nonzero ones, which alone set the column's width too."""
    values = flat.astype(np.float64).tolist()
    telling = [value for value in values if value and math.isfinite(value)]
    whole = all(value.is_integer() for value in telling)
    precision = PRINT_OPTIONS.precision
    if telling and _wants_scientific(telling):
        cells = [f"{value:.{precision}e}" for value in values]
    elif whole:
        # the bare point marks a float; "inf" and "nan" need none
        cells = [f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}" for value in values]
    else:
        cells = [f"{value:.{precision}f}" for value in values]
    width = max((len(cell) for cell, value in zip(cells, values) if value and math.isfinite(value)), default=1)
    return [cell.rjust(width) for cell in cells], width


def _wants_scientific(telling: list[float]) -> bool:
    if PRINT_OPTIONS.sci_mode is not None:
        return PRINT_OPTIONS.sci_mode
    smallest, largest = min(map(abs, telling)), max(map(abs, telling))
    return largest / smallest > 1000.0 or largest > 1.0e8 or smallest < 1.0e-4


def _complex_cells(flat: np.ndarray) -> tuple[list[str], int]:
    """Real and imaginary parts choose their styles apart."""
    real_cells, real_width = _float_cells(flat.real)
    imaginary_cells, imaginary_width = _float_cells(flat.imag)
    cells = []
    for real, imaginary in zip(real_cells, imaginary_cells):
        imaginary = imaginary.lstrip()
        sign = "" if imaginary.startswith("-") else "+"
        cells.append(f"{real}{sign}{imaginary}j")
    return cells, real_width + imaginary_width + 1  # one more for the j


def _lay_out(cells: Iterator[str], shape: tuple[int, ...], trimmed: list[bool], width: int, indent: int) -> str:
    """Nest the cells in brackets; `indent` is the column of the opening bracket."""
    if not shape:
        return next(cells)
    if len(shape) == 1:
        parts = [next(cells) for _ in range(shape[0])]
    else:
        parts = [_lay_out(cells, shape[1:], trimmed[1:], width, indent + 1) for _ in range(shape[0])]
    if trimmed[0]:
        # among numbers the dots take a leading blank, unless they stand alone
        dots = " ..." if len(shape) == 1 and parts else "..."
        parts.insert(len(parts) // 2, dots)
    margin = " " * (indent + 1)
    if len(shape) > 1:
        return "[" + ("," + "\n" * (len(shape) - 1) + margin).join(parts) + "]"
    per_line = max(1, math.floor((PRINT_OPTIONS.linewidth - indent) / (width + 2)))
    lines = [", ".join(parts[start : start + per_line]) for start in range(0, len(parts), per_line)]
    return "[" + (",\n" + margin).join(lines) + "]"
