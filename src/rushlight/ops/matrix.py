"""Products of matrices and vectors: mm, matmul and its kin, and the layer they are mostly used for, linear.

`mm`, `matmul` and `linear` on matrices are what training a small network spends its time on, so their functions are put
together here from the short paths of several entries: one call, whichever rank and whether or not there is a bias.
`ndarray.dot` is used throughout for two matrices: 0.34 us at 8x16, where `@` takes 0.89.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays import dtypes
from ..tensor import Tensor
from .shape import publish_as
from .table import RAW, TABLE, TENSORS, helper, install, method, operation, public


# -- what kernels share ----------------------------------------------------------------------------------------------
def scalar_name(dtype: np.dtype) -> str:
    """What error messages call a dtype: Float, Double, Long."""
    from .unpack import type_name
    return type_name(dtypes.from_numpy(dtype).name)


def _times(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _refuse_bool(dtype: np.dtype, kernel: str) -> None:
    if dtype.kind == "b":
        raise NotImplementedError(f'"{kernel}" not implemented for \'Bool\'')


def _check_matrices(first: np.ndarray, second: np.ndarray, names: tuple[str, str] = ("self", "mat2")) -> None:
    for array, name in zip((first, second), names, strict=True):
        if array.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix" if name == "self" else f"{name} must be a matrix, got "
                                                                                 f"{array.ndim}-D tensor")
    if first.shape[1] != second.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({_times(first.shape)} and {_times(second.shape)}): a "
                           f"matrix product (mm, matmul, linear) needs as many columns in the first, {first.shape[1]}, as rows "
                           f"in the second, {second.shape[0]}.")
    if first.dtype != second.dtype:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {_c_name(first.dtype)} != "
                           f"{_c_name(second.dtype)}")
    _refuse_bool(first.dtype, "addmm_impl_cpu_")


def _c_name(dtype: np.dtype) -> str:
    """A dtype as C++ spells it, which is how this one message has it."""
    known = {"float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
             "int32": "int", "int64": "int64_t", "bool": "bool", "complex64": "c10::complex<float>",
             "complex128": "c10::complex<double>"}
    return known.get(dtype.name, dtype.name)


def is_short(dtype: np.dtype) -> bool:
    """Whether it is a float of 16 bits."""
    return dtype.itemsize == 2 and dtype.kind in "fV"


def dot(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """A product of matrices or vectors; floats of 16 bits are multiplied as float32, which is faster and more exact."""
    if is_short(first.dtype):
        return np.asarray(first.astype(np.float32).dot(second.astype(np.float32))).astype(first.dtype)
    return np.asarray(first.dot(second))


def batched(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The same for stacks of matrices, which broadcast."""
    if is_short(first.dtype):
        return np.matmul(first.astype(np.float32), second.astype(np.float32)).astype(first.dtype)
    return np.matmul(first, second)


def _scaled(product: np.ndarray, input: np.ndarray, beta: Any, alpha: Any) -> np.ndarray:
    """beta * input + alpha * product, written over the fresh product. With beta 0 input is not looked at."""
    dtype = product.dtype
    if dtype.kind in "iu":
        alpha, beta = int(alpha), int(beta)
    if alpha != 1:
        np.multiply(product, np.asarray(alpha, dtype), product)
    if beta != 0:
        np.add(product, input if beta == 1 else np.multiply(input, np.asarray(beta, dtype)), product)
    return product


def _check_added(input: np.ndarray, shape: tuple[int, ...]) -> None:
    """The tensor that is added must broadcast to the product."""
    offset = len(shape) - input.ndim
    if offset < 0:
        raise RuntimeError(f"The expanded size of the tensor ({shape[0]}) must match the existing size "
                           f"({input.shape[0]}): the number of "
                           f"sizes provided ({len(shape)}) must be greater or equal to the number of dimensions in "
                           "the tensor "
                           f"({input.ndim})")
    for i, size in enumerate(input.shape):
        if size not in (1, shape[i + offset]):
            raise RuntimeError(f"The expanded size of the tensor ({shape[i + offset]}) must match the existing size "
                               f"({size}) at "
                               f"non-singleton dimension {i + offset}.  Target sizes: {list(shape)}.  Tensor sizes: "
                               f"{list(input.shape)}")


@helper
def times(F: Any, value: Any, number: Any) -> Any:
    """A gradient times the conjugate of a number, which mostly is 1."""
    return value if number == 1 else value * number.conjugate()


@helper
def turned(F: Any, input: Any) -> Any:
    """The matrices of a stack, transposed."""
    return F.transpose(input, -2, -1)


# -- the entries -----------------------------------------------------------------------------------------------------
@operation(input="mm(g, t(conj(mat2)))", mat2="mm(t(conj(input)), g)", inline="input.dot(mat2)")
def mm(input, mat2):
    _check_matrices(input, mat2)
    return dot(input, mat2)


@operation(input="outer(g, conj(vec))", vec="mv(t(conj(input)), g)")
def mv(input, vec):
    _check_vector_product(input, vec)
    return dot(input, vec)


def _check_vector_product(input: np.ndarray, vec: np.ndarray) -> None:
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {input.ndim}, {vec.ndim}")
    if input.shape[1] != vec.shape[0]:
        raise RuntimeError(f"size mismatch, got input ({input.shape[0]}), mat ({_times(input.shape)}), vec "
                           f"({vec.shape[0]})")
    if input.dtype != vec.dtype:
        raise RuntimeError("addmv input tensors must have the same dtype, but got "
                           f"{scalar_name(vec.dtype)}, {scalar_name(input.dtype)}, and {scalar_name(vec.dtype)}")
    _refuse_bool(input.dtype, "addmv_impl_cpu")


@operation(input="g * conj(tensor)", tensor="g * conj(input)", name="dot")
def _dot(input, tensor):
    _check_vectors(input, tensor, "dot")
    return dot(input, tensor)


@operation(input="conj(g) * other", other="g * input")
def vdot(input, other):
    _check_vectors(input, other, "vdot")
    return np.vdot(input, other) if input.dtype.kind == "c" else dot(input, other)


def _check_vectors(first: np.ndarray, second: np.ndarray, name: str) -> None:
    if first.ndim != 1 or second.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {first.ndim}D and {second.ndim}D tensors")
    if first.dtype != second.dtype:
        raise RuntimeError(f"{name} : expected both vectors to have same dtype, but found {scalar_name(first.dtype)} "
                           "and "
                           f"{scalar_name(second.dtype)}")
    if first.shape != second.shape:
        n, m = first.shape[0], second.shape[0]
        raise RuntimeError(f"inconsistent tensor size, expected tensor [{n}] and src [{m}] to have the same number of "
                           "elements, but "
                           f"got {n} and {m} elements respectively")
    _refuse_bool(first.dtype, "dot")


@operation(input="bmm(g, turned(conj(mat2)))", mat2="bmm(turned(conj(input)), g)")
def bmm(input, mat2):
    _check_batches(input, mat2)
    return batched(input, mat2)


def _check_batches(first: np.ndarray, second: np.ndarray) -> None:
    for name, array in (("batch1", first), ("batch2", second)):
        if array.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if second.shape[:2] != (first.shape[0], first.shape[2]):
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{first.shape[0]}, "
                           f"{first.shape[2]}] but "
                           f"got: [{second.shape[0]}, {second.shape[1]}].")
    if first.dtype != second.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(first.dtype)} but found {scalar_name(second.dtype)}")
    _refuse_bool(first.dtype, "bmm")


@operation(input="sum_to_size(matmul(g, turned(conj(other))), input_shape)",
           other="sum_to_size(matmul(turned(conj(input)), g), other_shape)",
           node="UnsafeViewBackward0", public=False, method=False)
def matmul_batched(input, other):
    if input.shape[-1] != other.shape[-2]:
        batch = int(np.prod(np.broadcast_shapes(input.shape[:-2], other.shape[:-2])))
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{batch}, "
                           f"{input.shape[-1]}] but got: "
                           f"[{batch}, {other.shape[-2]}].")
    if input.dtype != other.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(input.dtype)} but found {scalar_name(other.dtype)}")
    _refuse_bool(input.dtype, "bmm")
    try:
        return batched(input, other)
    except ValueError:
        one, two = input.shape[-3::-1], other.shape[-3::-1]
        k = next(k for k, sizes in enumerate(zip(one, two, strict=False)) if sizes[0] != sizes[1] and 1 not in sizes)
        raise RuntimeError(f"The size of tensor a ({one[k]}) must match the size of tensor b ({two[k]}) at "
                           "non-singleton dimension "
                           f"{max(len(one), len(two)) - 1 - k}") from None


@helper
def rows(F: Any, input: Any) -> Any:
    """A tensor as a matrix of its last dimension's rows."""
    return F.reshape(input, (_count(input.shape[:-1]), input.shape[-1]))


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _rows(array: np.ndarray) -> np.ndarray:
    return array.reshape(_count(array.shape[:-1]), array.shape[-1])


vars(RAW)["rows"] = _rows


@operation(input="reshape(product(rows(g), t(conj(other))), input_shape)",
           other="product(t(rows(conj(input))), rows(g))",
           node="UnsafeViewBackward0", public=False, method=False)
def matmul_folded(input, other):
    """A stack of matrices times one matrix: one large product."""
    flat = _rows(input)
    _check_matrices(flat, other)
    return dot(flat, other).reshape(*input.shape[:-1], other.shape[1])


@operation(input="sum_to_size(times(g, beta), input_shape)",
           mat1="times(product(g, t(conj(mat2))), alpha)",
           mat2="times(product(t(conj(mat1)), g), alpha)", inplace=True)
def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    if mat1.ndim != 2 or mat2.ndim != 2:
        _check_matrices(mat1, mat2, ("mat1", "mat2"))
    if mat1.dtype != mat2.dtype:
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {scalar_name(input.dtype)} and "
                           f"{scalar_name(mat2.dtype)}")
    _check_matrices(mat1, mat2)
    product = dot(mat1, mat2)
    return added(input, product, beta, alpha)


def added(input: np.ndarray, product: np.ndarray, beta: Any, alpha: Any) -> np.ndarray:
    if input.dtype != product.dtype:
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {scalar_name(input.dtype)} and "
                           f"{scalar_name(product.dtype)}")
    _check_added(input, product.shape)
    return _scaled(product, input, beta, alpha)


@operation(input="sum_to_size(times(g, beta), input_shape)",
           mat="times(outer(g, conj(vec)), alpha)",
           vec="times(mv(t(conj(mat)), g), alpha)", inplace=True)
def addmv(input, mat, vec, *, beta=1, alpha=1):
    if mat.ndim != 2 or vec.ndim != 1 or input.ndim > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {input.ndim}, {mat.ndim}, {vec.ndim}")
    if mat.shape[1] != vec.shape[0] or (input.ndim and input.shape[0] not in (1, mat.shape[0])):
        raise RuntimeError(f"size mismatch, got input ({input.shape[0] if input.ndim else 1}), mat "
                           f"({_times(mat.shape)}), "
                           f"vec ({vec.shape[0]})")
    _check_vector_product(mat, vec)
    return added(input, dot(mat, vec), beta, alpha)


@operation(input="sum_to_size(times(g, beta), input_shape)",
           vec1="times(mv(g, conj(vec2)), alpha)",
           vec2="times(mv(t(g), conj(vec1)), alpha)", inplace=True)
def addr(input, vec1, vec2, *, beta=1, alpha=1):
    for number, vector in enumerate((vec1, vec2), 1):
        if vector.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument vec{number}, but got {vector.ndim}-D")
    common = dtypes.promote(dtypes.promote(vec1.dtype, vec2.dtype), input.dtype)
    if dtypes.category(common) < dtypes.FLOATING and any(isinstance(x, (float, complex)) for x in (alpha, beta)):
        raise RuntimeError("For integral input tensors, argument alpha and beta must not be a floating point number.")
    product = np.multiply.outer(vec1.astype(common, copy=False), vec2.astype(common, copy=False))
    _check_added(input, product.shape)
    if common.kind == "b":
        return np.logical_or(np.logical_and(product, bool(alpha)), np.logical_and(input, bool(beta)))
    return _scaled(product, input.astype(common, copy=False), beta, alpha)


@operation(input="sum_to_size(times(g, beta), input_shape)",
           batch1="times(bmm(g, turned(conj(batch2))), alpha)",
           batch2="times(bmm(turned(conj(batch1)), g), alpha)", inplace=True)
def baddbmm(input, batch1, batch2, *, beta=1, alpha=1):
    _check_batches(batch1, batch2)
    return added(input, batched(batch1, batch2), beta, alpha)


@operation(input="sum_to_size(times(g, beta), input_shape)",
           batch1="times(matmul(g, turned(conj(batch2))), alpha)",
           batch2="times(matmul(turned(conj(batch1)), g), alpha)", inplace=True)
def addbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """input plus the sum of a batch of products, which is one product of long matrices."""
    _check_batches(batch1, batch2)
    count, height, inner = batch1.shape
    wide = batch1.transpose(1, 0, 2).reshape(height, count * inner)
    return added(input, dot(wide, batch2.reshape(count * inner, batch2.shape[2])), beta, alpha)


@method
@public
def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Every product of an element of one vector and one of the other."""
    for name, vector in (("input", input), ("vec2", vec2)):
        if vector.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {'self' if name == 'input' else name}, but got "
                               f"{vector.ndim}-D")
    return TENSORS.mul(TENSORS.reshape(input, (input._shape[0], 1)), vec2, out=out)


publish_as(outer, "ger")
vars(RAW)["outer"] = np.multiply.outer


@operation(input="expand(g, input_shape)", node="SumBackward1", jvp="linear", public=False, method=False)
def column_sum(input):
    """The sum of a matrix's rows. A vector of ones times the matrix takes 0.35 us at 8x16, NumPy's reduction 1.2."""
    key = input.shape[0], input.dtype
    ones = _ones.get(key)
    if ones is None:
        if len(_ones) > 64:
            _ones.clear()
        ones = _ones[key] = np.ones(key[0], key[1])
    return ones.dot(input)


_ones: dict[tuple[int, np.dtype], np.ndarray] = {}


# -- linear: input, weight and bias in one node ----------------------------------------------------------------------
@operation(input="mm(g, conj(weight))", weight="mm(t(g), conj(input))", node="MmBackward0", public=False, method=False,
           inline="input.dot(weight.T)")
def linear_plain(input, weight):
    _check_matrices(input, weight.T)
    return dot(input, weight.T)


@operation(input="mm(g, conj(weight))", weight="mm(t(g), conj(input))", bias="column_sum(g)", node="AddmmBackward0",
           public=False, method=False, inline="np_add(product := input.dot(weight.T), bias, product)")
def linear_biased(input, weight, bias):
    product = linear_plain(input, weight)
    _check_added(bias, product.shape)
    return added(bias, product, 1, 1)


@operation(input="reshape(product(rows(g), conj(weight)), input_shape)",
           weight="product(t(rows(g)), rows(conj(input)))",
           node="UnsafeViewBackward0", public=False, method=False)
def linear_plain_rows(input, weight):
    return linear_plain(_rows(input), weight).reshape(*input.shape[:-1], weight.shape[0])


@operation(input="reshape(product(rows(g), conj(weight)), input_shape)",
           weight="product(t(rows(g)), rows(conj(input)))",
           bias="column_sum(rows(g))", node="ViewBackward0", public=False, method=False)
def linear_biased_rows(input, weight, bias):
    return linear_biased(_rows(input), weight, bias).reshape(*input.shape[:-1], weight.shape[0])


# In a formula's ordinary run the shapes are known to fit, so the bare methods serve. `product` minds floats of 16 bits,
# which the entries whose formulas say `mm` never see.
vars(RAW).update(mm=np.ndarray.dot, t=np.ndarray.transpose, product=dot)
vars(TENSORS)["product"] = lambda first, second: TENSORS.mm(first, second)


# -- the functions of several entries --------------------------------------------------------------------------------
def _general(name: str, *values: Any) -> Tensor:
    """An entry's general way, which floats of 16 bits take as float32: NumPy multiplies them without BLAS."""
    from .apply import call
    tensors = [value for value in values if isinstance(value, Tensor)]
    if len(tensors) == len(values) and all(is_short(one._array.dtype) for one in tensors):
        kind = tensors[0]._array.dtype
        if all(one._array.dtype == kind for one in tensors):
            wide = [TENSORS.cast(one, np.dtype(np.float32)) for one in tensors]
            return TENSORS.cast(call(TABLE[name], tuple(wide)), kind)
    return call(TABLE[name], values)


def _other_linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    """linear on whatever is not a stack of rows, a matrix, and a vector or nothing."""
    for name, value in (("input", input), ("weight", weight)):
        if not isinstance(value, Tensor):
            raise TypeError(f"linear(): argument '{name}' (position {1 + (name == 'weight')}) must be Tensor, not "
                            f"{type(value).__name__}")
    if weight.ndim == 2 and input.ndim >= 2 and bias is not None:
        _check_added(bias._array, (_count(input._shape[:-1]), weight._shape[0]))
    if weight.ndim != 2 and bias is not None:
        raise RuntimeError(f"mat2 must be a matrix, got {weight.ndim}-D tensor")
    product = TENSORS.matmul(input, TENSORS.t(weight))
    return product if bias is None else TENSORS.add(product, bias)


def _other_matmul(input: Any, other: Any) -> Tensor:
    """matmul on anything but two matrices."""
    if not isinstance(input, Tensor) or not isinstance(other, Tensor):
        odd, position = (other, 2) if isinstance(input, Tensor) else (input, 1)
        raise TypeError(f"matmul(): argument '{'other' if position == 2 else 'input'}' (position {position}) must be "
                        "Tensor, not "
                        f"{type(odd).__name__}")
    first, second = input.ndim, other.ndim
    if first == 0 or second == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {first}D and {second}D")
    if second == 1:
        if first == 1:
            return TENSORS.dot(input, other)
        if first == 2:
            return TENSORS.mv(input, other)
        return TENSORS.squeeze(TENSORS.matmul_folded(input, TENSORS.unsqueeze(other, 1)), -1)
    if first == 1:
        return TENSORS.squeeze(_other_matmul(TENSORS.unsqueeze(input, 0), other), -2)
    if second == 2:
        return TENSORS.mm(input, other) if first == 2 else TENSORS.matmul_folded(input, other)
    return TENSORS.matmul_batched(input, other)


def _matmul_out(input: Tensor, other: Tensor, out: Tensor) -> Tensor:
    from ..graph.modes import state
    from .apply import write_out
    if state.grad and any(one._node is not None for one in (input, other, out)):
        raise RuntimeError("matmul(): functions with out=... arguments don't support automatic differentiation, but "
                           "one of the "
                           "arguments requires grad.")
    write_out("matmul", out, _other_matmul(input, other)._array)
    return out


def _matmul_text(path: Callable) -> str:
    return "\n    ".join((
        "def matmul(input, other, *, out=None):",
        "if out is not None: return matmul_out(input, other, out)",
        "try:",
        "    if len(input._shape) != 2 or len(other._shape) != 2: return other_matmul(input, other)",
        "except AttributeError:",
        "    return other_matmul(input, other)",
        "mat2 = other",
        *path("mm", "return general('mm', input, other)")))


def _mm_text(path: Callable) -> str:
    return "\n    ".join((
        "def mm(input, mat2, *, out=None):",
        "if out is not None: return call_out(_mm_op, (input, mat2), out)",
        "try:",
        "    if len(input._shape) != 2 or len(mat2._shape) != 2: return call(_mm_op, (input, mat2))",
        "except AttributeError:",
        "    return call(_mm_op, (input, mat2))",
        *path("mm", "return general('mm', input, mat2)")))


def _linear_text(path: Callable) -> str:
    def indented(name: str, arguments: str) -> list[str]:
        return ["        " + line for line in path(name, f"return general({name!r}, {arguments})")]

    plain, biased = "input, weight", "input, weight, bias"
    return "\n    ".join((
        "def linear(input, weight, bias=None):",
        "try:",
        "    rank = len(input._shape)",
        "    if rank < 2 or len(weight._shape) != 2: return other_linear(input, weight, bias)",
        "    if bias is not None and (len(bias._shape) != 1 or bias._shape[0] != weight._shape[0]): "
        "return other_linear(input, weight, bias)",
        "except AttributeError:",
        "    return other_linear(input, weight, bias)",
        "if rank == 2:",
        "    if bias is not None:",
        *indented("linear_biased", biased),
        "    else:",
        *indented("linear_plain", plain),
        "else:",
        "    if bias is not None:",
        *indented("linear_biased_rows", biased),
        "    else:",
        *indented("linear_plain_rows", plain)))


_builders: dict[str, Callable[[], Callable]] = {}


def assembled(name: str) -> Callable:
    """The final function of that name, for those who keep it: what is published at first builds it when called."""
    return _builders[name]()


def _assemble(name: str, text_of: Callable, parts: tuple[str, ...], place: Callable[[Callable], None]) -> None:
    """Publish a function that is put together, at its first call, from the short paths of the entries `parts`."""
    made: list[Callable] = []

    def build() -> Callable:
        if made:
            return made[0]
        from . import compile as compiler
        namespace = TENSORS.__dict__
        for part in parts:
            compiler.build_function(TABLE[part])  # which puts what its short path needs into the namespace
        namespace.update(other_matmul=_other_matmul, other_linear=_other_linear, matmul_out=_matmul_out,
                         np_add=np.add, general=_general, HALF=np.dtype(np.float16))

        def path(part: str, general: str) -> list[str]:
            lines = compiler._short_path(TABLE[part], f"_{part}", general, namespace)
            return [line.replace("real is None or", "real is None or real is HALF or") for line in lines]

        made.append(compiler._execute(name, text_of(path), namespace, name))
        place(made[0])
        return made[0]

    def first_call(*args: Any, **kwargs: Any) -> Any:
        return build()(*args, **kwargs)

    first_call.__name__ = first_call.__qualname__ = name
    _builders[name] = build
    place(first_call)


def _place_matmul(function: Callable) -> None:
    public(function)
    for name in ("matmul", "__matmul__"):
        setattr(Tensor, name, function)


_assemble("mm", _mm_text, ("mm",), lambda function: install(TABLE["mm"], function))
_assemble("matmul", _matmul_text, ("mm",), _place_matmul)
_assemble("linear", _linear_text, ("linear_biased", "linear_plain", "linear_biased_rows", "linear_plain_rows"),
          lambda function: setattr(TENSORS, "linear", function))
vars(RAW)["matmul"] = batched


@method
def __rmatmul__(self: Tensor, other: Any) -> Tensor:
    return TENSORS.matmul(other, self)
