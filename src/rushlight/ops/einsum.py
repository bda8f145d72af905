"""Sums of products over named dimensions: einsum, tensordot, inner, kron, and products of many matrices.

An einsum is brought to a plan of permutations, sums and matrix products, which depends only on the equation and the
shapes and is remembered. The plan's steps are ordinary operations, so gradients of every order come with them.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ..tensor import Tensor
from .table import TENSORS, method, public

_plans: dict[tuple, tuple] = {}
_PLANS_KEPT = 512
_ELLIPSIS = 1000  # dimensions under an ellipsis get labels from here on, counted from the right


# -- reading the equation --------------------------------------------------------------------------------------------
def _label(letter: str) -> int:
    """A letter's label: capitals come first, as in torch's implicit output order."""
    return ord(letter) - 65 if letter <= "Z" else ord(letter) - 71


def _read_part(text: str, where: str) -> list[Any]:
    """One operand's subscripts: labels, and Ellipsis for '...'."""
    found: list[Any] = []
    i = 0
    while i < len(text):
        letter = text[i]
        if letter.isascii() and letter.isalpha():
            found.append(_label(letter))
        elif letter == ".":
            if Ellipsis in found:
                raise RuntimeError(f"einsum(): found '.' for {where} for which an ellipsis was already found")
            if text[i:i + 3] != "...":
                raise RuntimeError(f"einsum(): found '.' for {where} that is not part of any ellipsis")
            found.append(Ellipsis)
            i += 2
        else:
            raise RuntimeError(f"einsum(): invalid subscript given at index {i} in the equation string, subscripts "
                               "must be in [a-zA-Z]")
        i += 1
    return found


def _read_equation(equation: str, count: int) -> tuple[list[list[Any]], list[Any] | None]:
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) > count:
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    if len(parts) < count:
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    inputs = [_read_part(part, f"operand {i}") for i, part in enumerate(parts)]
    return inputs, _read_part(right, "the output") if arrow else None


def _read_sublist(sublist: Any) -> list[Any]:
    found = []
    for one in sublist:
        if one is not Ellipsis and not 0 <= one < 52:
            raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
        found.append(one if one is Ellipsis else int(one))
    return found


def _expand_ellipsis(labels: list[Any], ndim: int, number: int) -> list[int]:
    named = len(labels) - (Ellipsis in labels)
    if Ellipsis in labels:
        covered = ndim - named
        if covered < 0:
            raise RuntimeError(f"einsum(): the number of subscripts in the equation ({named}) is more than the number "
                               "of dimensions "
                               f"({ndim}) for operand {number}")
        at = labels.index(Ellipsis)
        return [*labels[:at], *range(_ELLIPSIS + covered - 1, _ELLIPSIS - 1, -1), *labels[at + 1:]]
    if named != ndim:
        raise RuntimeError(f"einsum(): the number of subscripts in the equation ({named}) does not match the number "
                           "of dimensions "
                           f"({ndim}) for operand {number} and no ellipsis was given")
    return labels


# -- planning --------------------------------------------------------------------------------------------------------
def _plan(inputs: list[list[Any]], output: Any, shapes: tuple) -> tuple:
    """(diagonals per operand, steps, how the last result is brought to the output).

    Operands are held in a list. A step takes the operands at two places off it and puts their contraction at its end.
    """
    labels = [_expand_ellipsis(one, len(shape), i) for i, (one, shape) in enumerate(zip(inputs, shapes, strict=True))]
    covered = max([1 + label - _ELLIPSIS for one in labels for label in one if label >= _ELLIPSIS], default=0)
    dots = list(range(_ELLIPSIS + covered - 1, _ELLIPSIS - 1, -1))
    flat = [label for one in labels for label in one if label < _ELLIPSIS]
    if output is None:
        wanted = dots + sorted(label for label in set(flat) if flat.count(label) == 1)
    else:
        wanted = []
        for label in output:
            if label is Ellipsis:
                wanted += dots
            elif label in wanted:
                raise RuntimeError(f"einsum(): output subscript {_letter(label)} appears more than once in the output")
            elif label not in flat:
                raise RuntimeError(f"einsum(): output subscript {_letter(label)} does not appear in the equation for "
                                   "any input operand")
            else:
                wanted.append(label)
    sizes: dict[int, int] = {}
    diagonals = []
    held = []
    for number, (one, shape) in enumerate(zip(labels, shapes, strict=True)):
        moves, rest, extents = _diagonals(one, shape, number)
        for label, size in zip(rest, extents, strict=True):
            known = sizes.setdefault(label, size)
            if size != known and size != 1:
                if known != 1:
                    raise RuntimeError(f"einsum(): subscript {_letter(label)} has size {size} for operand {number} "
                                       "which does not broadcast "
                                       f"with previously seen size {known}")
                sizes[label] = size
        diagonals.append(moves)
        held.append((rest, extents))
    steps = []
    for pair in _order(held, wanted, sizes):
        (b, b_shape), (a, a_shape) = held.pop(max(pair)), held.pop(min(pair))
        keep = {*wanted, *(label for one, _ in held for label in one)}
        step, labels_out, shape_out = _contract(a, a_shape, b, b_shape, keep)
        steps.append((min(pair), max(pair), *step))
        held.append((labels_out, shape_out))
    last, shape = held[0]
    summed = tuple(i for i, label in enumerate(last) if label not in wanted)
    left = [label for label in last if label in wanted]
    order = tuple(left.index(label) for label in wanted)
    return tuple(diagonals), tuple(steps), summed, None if order == tuple(range(len(order))) else order


def _letter(label: int) -> str:
    return "..." if label >= _ELLIPSIS else chr(label + 65 if label < 26 else label + 71)


def _diagonals(labels: list[int], shape: tuple[int, ...], number: int) -> tuple[tuple, list[int], list[int]]:
    """The diagonals to take until no label is repeated: (dim1, dim2) each, the diagonal becoming the last dimension."""
    labels, extents, moves = list(labels), list(shape), []
    while len(set(labels)) != len(labels):
        first = next(i for i, label in enumerate(labels) if label in labels[i + 1:])
        second = labels.index(labels[first], first + 1)
        if extents[first] != extents[second]:
            raise RuntimeError(f"einsum(): subscript {_letter(labels[first])} is repeated for operand {number} but "
                               "the sizes don't match, "
                               f"{extents[second]} != {extents[first]}")
        moves.append((first, second))
        label, size = labels[first], extents[first]
        for i in (second, first):
            del labels[i], extents[i]
        labels.append(label)
        extents.append(size)
    return tuple(moves), labels, extents


def _order(held: list, wanted: list[int], sizes: dict[int, int]) -> list[tuple[int, int]]:
    """Which two operands to contract next, over and over. For three and more, NumPy's search finds a cheap order."""
    if len(held) < 3:
        return [(0, 1)] * (len(held) - 1)
    arguments: list[Any] = []
    numbers = {label: i for i, label in enumerate(sizes)}
    for labels, _ in held:
        shape = [sizes[label] for label in labels]
        arguments += [np.broadcast_to(np.float32(0), shape), [numbers[label] for label in labels]]
    path = np.einsum_path(*arguments, [numbers[label] for label in wanted], optimize="greedy")[0][1:]
    pairs: list[tuple[int, int]] = []
    for chosen in path:
        many = list(chosen)
        if len(many) == 1:
            continue
        pairs.append((many[0], many[1]))
        # More than two at once: the rest join the last result, whose place is the list's end.
        count = len(held) - len(pairs)
        for one in sorted(many[2:], reverse=True):
            at = one - sum(m < one for m in many[:2])
            pairs.append((at, count - 1))
            count -= 1
    return pairs


def _contract(a: list[int], a_shape: list[int], b: list[int], b_shape: list[int],
              keep: set[int]) -> tuple[tuple, list[int], list[int]]:
    """A contraction of two operands as steps: sum, permute and reshape each to (stacks of) matrices; multiply."""
    a_size, b_size = dict(zip(a, a_shape, strict=True)), dict(zip(b, b_shape, strict=True))
    # A dimension of size 1 that meets a larger one broadcasts: there it is as good as absent.
    a_absent = [label for label in a if label in b_size and a_size[label] == 1 and b_size[label] != 1]
    b_absent = [label for label in b if label in a_size and b_size[label] == 1 and a_size[label] != 1]
    a_has = [label for label in a if label not in a_absent]
    b_has = [label for label in b if label not in b_absent]
    a_sum = [label for label in a_has if label not in b_has and label not in keep]
    b_sum = [label for label in b_has if label not in a_has and label not in keep]
    both = [label for label in a_has if label in b_has]
    batch = [label for label in both if label in keep]
    inner = [label for label in both if label not in keep]
    left = [label for label in a_has if label not in b_has and label in keep]
    right = [label for label in b_has if label not in a_has and label in keep]
    extent = {**b_size, **a_size, **{label: b_size[label] for label in a_absent}}
    sizes = [[extent[label] for label in group] for group in (batch, left, inner, right)]
    n, p, q, r = (int(np.prod(group)) for group in sizes)
    result_shape = (*sizes[0], *sizes[1], *sizes[3])
    if not inner:  # nothing is summed over both: a plain product with broadcasting
        a_target = (*sizes[0], *sizes[1], *(1 for _ in right))
        b_target = (*sizes[0], *(1 for _ in left), *sizes[3])
        kind = "mul"
    elif batch:
        a_target, b_target, kind = (n, p, q), (n, q, r), "bmm"
    else:
        a_target, b_target, kind = (p, q), (q, r), "mm"
    step = (_preparation(a, a_shape, a_sum, batch + left + inner, a_target),
            _preparation(b, b_shape, b_sum, batch + inner + right, b_target), kind, result_shape)
    return step, batch + left + right, list(result_shape)


def _preparation(labels: list[int], shape: list[int], summed: list[int], order: list[int], target: tuple) -> tuple:
    """(dimensions to sum, permutation, shape), None where nothing is to be done. Absent dimensions have size 1."""
    dims = tuple(i for i, label in enumerate(labels) if label in summed)
    rest = [label for label in labels if label not in summed]
    gone = [label for label in rest if label not in order]
    full = [*order, *gone]
    permutation = tuple(rest.index(label) for label in full)
    extents = dict(zip(labels, shape, strict=True))
    now = tuple(extents[label] for label in full)
    in_order = permutation == tuple(range(len(permutation)))
    return dims or None, None if in_order else permutation, None if now == target else target


# -- running ---------------------------------------------------------------------------------------------------------
def _prepare(operand: Tensor, how: tuple) -> Tensor:
    dims, permutation, shape = how
    if dims is not None:
        operand = TENSORS.sum(operand, dims)
    if permutation is not None:
        operand = TENSORS.permute(operand, permutation)
    return operand if shape is None else TENSORS.reshape(operand, shape)


def _run(plan: tuple, operands: list[Tensor]) -> Tensor:
    diagonals, steps, summed, order = plan
    held = []
    for operand, moves in zip(operands, diagonals, strict=True):
        for first, second in moves:
            operand = TENSORS.diagonal(operand, 0, first, second)
        held.append(operand)
    for first, second, a_how, b_how, kind, shape in steps:
        b, a = held.pop(second), held.pop(first)
        made = TENSORS.__dict__[kind](_prepare(a, a_how), _prepare(b, b_how))
        held.append(made if made._shape == shape else TENSORS.reshape(made, shape))
    result = held[0]
    if summed:
        result = TENSORS.sum(result, summed)
    return result if order is None else TENSORS.permute(result, order)


@public
def einsum(*args: Any) -> Tensor:
    """Sum the products of the operands' elements over the dimensions that an equation names."""
    if len(args) < 2:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one "
                         "operand and its "
                         "subscripts list")
    equation = args[0]
    if isinstance(equation, str):
        operands = list(args[1]) if len(args) == 2 and isinstance(args[1], (list, tuple)) else list(args[1:])
        key: tuple[Any, ...] = (equation,)
    else:
        pairs = len(args) // 2
        operands = list(args[:2 * pairs:2])
        subscripts = tuple(tuple(_read_sublist(one)) for one in args[1:2 * pairs:2])
        key = (subscripts, tuple(_read_sublist(args[-1])) if len(args) % 2 else None)
    for i, operand in enumerate(operands):
        if not isinstance(operand, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 1, but got {type(operand).__name__}")
    shapes = tuple([operand._shape for operand in operands])
    return _run(_planned(key, shapes), operands)


def _planned(key: tuple, shapes: tuple) -> tuple:
    """The plan for an equation, or for lists of labels with the output's, remembered."""
    plan = _plans.get((key, shapes))
    if plan is None:
        if len(_plans) >= _PLANS_KEPT:
            _plans.clear()
        inputs, output = _read_equation(key[0], len(shapes)) if len(key) == 1 else key
        plan = _plans[key, shapes] = _plan([list(one) for one in inputs], output, shapes)
    return plan


# -- named relatives -------------------------------------------------------------------------------------------------
@public
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Sum the products over the given dimensions of both tensors, or over the last and first `dims` of them."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, (list, tuple)) and len(dims) == 2 and isinstance(dims[0], (list, tuple)):
        first, second = list(dims[0]), list(dims[1])
    elif isinstance(dims, (list, tuple)):
        if len(dims) == 2:
            first, second = [int(dims[0])], [int(dims[1])]
        else:
            raise RuntimeError("tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] "
                               "containing two lists, "
                               f"but got dims={dims}")
    else:
        count = int(dims)
        if count < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={count}")
        if count > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={count}")
        first, second = list(range(a.ndim - count, a.ndim)), list(range(count))
    if len(first) != len(second):
        raise RuntimeError("both dimension lists should have same length")
    if a._array.dtype != b._array.dtype:
        raise RuntimeError("both inputs should have same dtype")
    first, second = [d % a.ndim if a.ndim else d for d in first], [d % b.ndim if b.ndim else d for d in second]
    a_labels = list(range(a.ndim))
    b_labels = [a.ndim + d for d in range(b.ndim)]
    for i, j in zip(first, second, strict=True):
        if a._shape[i] != b._shape[j] and 1 not in (a._shape[i], b._shape[j]):
            raise RuntimeError(f"contracted dimensions need to match, but first has size {a._shape[i]} in dim {i} and "
                               "second has size "
                               f"{b._shape[j]} in dim {j}")
        b_labels[j] = a_labels[i]
    output = [label for d, label in enumerate(a_labels) if d not in first] + [
        label for d, label in enumerate(b_labels) if d not in second]
    plan = _planned(((tuple(a_labels), tuple(b_labels)), tuple(output)), (a._shape, b._shape))
    return written(_run(plan, [a, b]), out, "tensordot")


def written(result: Tensor, out: Tensor | None, name: str) -> Tensor:
    """Write a composition's result into `out`, where one is given."""
    if out is None:
        return result
    from .apply import write_out
    if result._node is not None or out._node is not None:
        raise RuntimeError(f"{name}(): functions with out=... arguments don't support automatic differentiation, but "
                           "one of the "
                           "arguments requires grad.")
    write_out(name, out, result._array)
    return out


@method
@public
def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sum the products over the last dimension of both."""
    if not input._shape or not other._shape:
        return TENSORS.mul(input, other, out=out)
    if input._shape[-1] != other._shape[-1]:
        raise RuntimeError("inner() the last dimension must match on both input tensors but got shapes "
                           f"{list(input._shape)} and "
                           f"{list(other._shape)}")
    return tensordot(input, other, ([-1], [-1]), out)


@method
@public
def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Kronecker product: every element of `input` times the whole of `other`."""
    ndim = max(input.ndim, other.ndim)
    a_shape = (1,) * (ndim - input.ndim) + input._shape
    b_shape = (1,) * (ndim - other.ndim) + other._shape
    a = TENSORS.reshape(input, tuple(size for n in a_shape for size in (n, 1)))
    b = TENSORS.reshape(other, tuple(size for n in b_shape for size in (1, n)))
    product = TENSORS.reshape(TENSORS.mul(a, b), tuple(n * m for n, m in zip(a_shape, b_shape, strict=True)))
    return written(product, out, "kron")


def chain(matrices: list[Tensor]) -> Tensor:
    """The product of several matrices, in the order that multiplies the fewest numbers."""
    count = len(matrices)
    if count == 2:
        return TENSORS.mm(matrices[0], matrices[1])
    extents = [m._shape[0] for m in matrices] + [matrices[-1]._shape[1]]
    cost = [[0] * count for _ in range(count)]
    split = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            cost[i][j], split[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + extents[i] * extents[k + 1] * extents[j + 1], k) for k in range(i, j))

    def multiplied(i: int, j: int) -> Tensor:
        if i == j:
            return matrices[i]
        k = split[i][j]
        return TENSORS.mm(multiplied(i, k), multiplied(k + 1, j))

    return multiplied(0, count - 1)


@public
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """The product of several matrices."""
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for one in matrices:
        if one.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {one.ndim}, expected 2 instead.")
    result = matrices[0] if len(matrices) == 1 else chain(list(matrices))
    return written(result, out, "chain_matmul")
