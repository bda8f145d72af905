"""The Tensor class itself: its fields, its attributes and what ties it to the graph. The operations add its methods."""
from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import dtypes
from ..arrays.dtypes import FROM_NUMPY, REAL
from ..graph.modes import state
from ..graph.node import LEAF, SPEC, UNRECORDED, Output
from ..graph.versions import bump, family_of
from .size import Size

if TYPE_CHECKING:
    from collections.abc import Iterator

_new = object.__new__
_backward_from: Any = None


class View:
    """How a view came from its base: enough to make it again, on an array or on a tensor."""

    __slots__ = ("base", "refusal", "steps")

    def __init__(self, base: Tensor, steps: tuple, refusal: str | None) -> None:
        self.base = base
        self.steps = steps  # ((op, arguments after the first), ...) from the base to this view
        self.refusal = refusal  # why in-place writes are refused: "multi", "no_grad", "inference", "function"; or None


class Tensor:
    """An array that remembers how it was computed.

    The five fields in slots are set for every tensor, since every operation reads them:
    _array   the NumPy array
    _shape   its shape, as a tuple
    _real    its dtype if operations may take their short path with it: a real floating dtype and nothing special
    _node    None, LEAF for a leaf that requires grad, or the node (graph.node) or Output that computed it
    _family  None, or the tensors that share its memory (graph.versions)
    The others are absent until needed; the class attributes are their defaults.
    """

    __slots__ = ("__dict__", "__weakref__", "_array", "_family", "_node", "_real", "_shape")

    _array: np.ndarray
    _shape: tuple[int, ...]
    _real: np.dtype | None
    _node: Any
    _family: Any

    _grad: Tensor | None = None
    _view: View | None = None
    _hooked = False  # a leaf that has hooks of any kind
    _hooks: dict | None = None  # a leaf's tensor hooks
    _accumulate_hooks: dict | None = None  # a leaf's post-accumulate hooks
    _accumulator: Any = None  # a leaf's visible AccumulateGrad: weak reference, with its hooks in _accumulator_extra
    _accumulator_extra: Any = None
    _retains_grad = False
    _tangent: Any = None  # forward mode: (level, tangent)
    _inference = False
    _detached = 0  # the order of the latest detach_()
    name: str | None = None

    # NumPy leaves `array * tensor` to the tensor.
    __array_priority__ = 1000

    if TYPE_CHECKING:
        # For type checkers: the op table adds the methods and operators when the package is imported.
        def __getattr__(self, name: str) -> Any: ...
        def __add__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __eq__(self, other: Any) -> Any: ...
        def __ne__(self, other: Any) -> Any: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __iter__(self) -> Iterator[Tensor]: ...

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is Tensor or (args and not kwargs and cls.__init__ is object.__init__):
            from .construct import legacy_tensor
            made = legacy_tensor(*args, **kwargs)
            if cls is not Tensor:
                return _as_class(made, cls)
            return made
        return _blank(cls)

    # -- what it is --------------------------------------------------------------------------------------------------
    @property
    def shape(self) -> Size:
        return Size(self._shape)

    @property
    def dtype(self) -> dtypes.dtype:
        return FROM_NUMPY.get(self._array.dtype) or dtypes.from_numpy(self._array.dtype)

    @property
    def device(self) -> Any:
        from ..arrays.devices import CPU
        return CPU

    @property
    def layout(self) -> Any:
        from .construct import strided
        return strided

    @property
    def ndim(self) -> int:
        return len(self._shape)

    @property
    def itemsize(self) -> int:
        return self._array.itemsize

    @property
    def nbytes(self) -> int:
        return self._array.nbytes

    is_sparse = is_quantized = is_cuda = is_meta = is_mps = is_mkldnn = is_xpu = is_nested = is_sparse_csr = False
    is_cpu = True

    # -- its place in the graph --------------------------------------------------------------------------------------
    @property
    def requires_grad(self) -> bool:
        return self._node is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        node = self._node
        if requires_grad:
            if node is None or node is UNRECORDED:
                if dtypes.category(self._array.dtype) < dtypes.FLOATING:
                    raise RuntimeError("only Tensors of floating point dtype can require gradients, and of complex dtype: "
                                       f"this one is {self.dtype}")
                if self._inference and not state.inference:
                    raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
                self._node = LEAF
                self._tell_views(None, UNRECORDED)
        elif node is LEAF:
            self._node = None
            self._tell_views(UNRECORDED, None)
        elif node is not None:
            raise RuntimeError("you can only change requires_grad flags of leaf variables. This tensor was computed. To use its "
                               "value as a constant, take x.detach().")
        return self

    def _tell_views(self, before: Any, now: Any) -> None:
        """A view without a history of its own says of itself what its base says."""
        family = self._family
        if family is not None and family.views and self._view is None:
            for reference in family.views:
                view = reference()
                if view is not None and view._node is before:
                    view._node = now

    @property
    def is_leaf(self) -> bool:
        node = self._node
        if node is None or node is LEAF or node is UNRECORDED:
            return True
        if node.__class__ is list and getattr(node[SPEC], "refuses", None) is not None:
            raise node[SPEC].refuses(node)  # a view whose base was written, and which cannot follow it
        return False

    @property
    def grad_fn(self) -> Any:
        node = self._node
        if node is None or node is LEAF or node is UNRECORDED:
            return None
        from .visible import visible_node
        return visible_node(node.node if node.__class__ is Output else node)

    @property
    def output_nr(self) -> int:
        node = self._node
        return node.number if node.__class__ is Output else 0

    @property
    def grad(self) -> Tensor | None:
        grad = self._grad
        if grad is None and not self._retains_grad and not self.is_leaf:
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. backward() fills only leaves' "
                ".grad: call .retain_grad() on this tensor before backward if you need its gradient.",
                UserWarning, stacklevel=2)
        return grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}")
            if value is self:
                raise RuntimeError("can't assign Variable as its own grad")
            if value._array.dtype != self._array.dtype:
                raise RuntimeError(f"attempting to assign a gradient with dtype '{_c_name(value)}' to a tensor with dtype "
                                   f"'{_c_name(self)}'. A tensor and its gradient have one dtype.")
            if value._shape != self._shape:
                raise RuntimeError(f"attempting to assign a gradient of size '{list(value._shape)}' to a tensor of size "
                                   f"'{list(self._shape)}'. A tensor and its gradient have one shape.")
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def retains_grad(self) -> bool:
        return self._retains_grad

    @property
    def _version(self) -> int:
        if self._inference:
            raise RuntimeError("Inference tensors do not track version counter.")
        family = self._family
        return 0 if family is None else family.version

    @property
    def _base(self) -> Tensor | None:
        view = self._view
        return None if view is None else view.base

    def _is_view(self) -> bool:
        return self._view is not None

    def is_inference(self) -> bool:
        return self._inference

    # -- sharing memory without sharing history ----------------------------------------------------------------------
    @property
    def data(self) -> Tensor:
        """The same memory with neither history nor the version counter."""
        return wrap(self._array)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if self._node is not None and dtypes.category(value._array.dtype) < dtypes.FLOATING:
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        self._set_array(value._array)

    def _set_array(self, array: np.ndarray) -> None:
        """Put another array in, and keep the fields that mirror it true."""
        self._array = array
        self._shape = array.shape
        self._real = None if self._inference else REAL.get(array.dtype)

    def detach(self) -> Tensor:
        """The same memory and version counter, without history."""
        out = wrap(self._array)
        if self._inference:
            out._inference, out._real = True, None
        else:
            out._family = family_of(self)
        return out

    def detach_(self) -> Tensor:
        if self._view is not None:
            raise RuntimeError("Can't detach views in-place. Use detach() instead: it gives a new tensor over the same memory.")
        if self._node is not None and self._node is not LEAF:
            # A node that saved this tensor must notice: `written` moves, the version does not.
            from ..graph.node import next_order
            self._detached = family_of(self).written = next_order()
        self._node = None
        self._tell_views(UNRECORDED, None)
        return self

    # -- hooks -------------------------------------------------------------------------------------------------------
    def register_hook(self, hook: Any) -> Any:
        from .hooks import register_tensor_hook
        return register_tensor_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Any) -> Any:
        from .hooks import register_post_accumulate_grad_hook
        return register_post_accumulate_grad_hook(self, hook)

    def retain_grad(self) -> None:
        from .hooks import retain_grad
        retain_grad(self)

    @property
    def _backward_hooks(self) -> Any:
        return self._hooks

    def backward(self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
                 inputs: Any = None) -> None:
        """Compute the gradients of this tensor with respect to the leaves, and add them to their .grad."""
        global _backward_from
        if _backward_from is None:  # the engine comes after this room, so it is looked up at the first call
            from ..engine.call import backward_from as _backward_from
        _backward_from(self, gradient, retain_graph, create_graph, inputs)

    # No __getattr__ here: with one, CPython no longer specialises attribute loads, and every operation takes 0.2 us more.
    # Methods of families that are read on demand have stand-ins (ops.families).

    # -- Python's protocols ------------------------------------------------------------------------------------------
    __hash__ = object.__hash__  # by identity, although == compares elements

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        from .convert import tensor_repr
        return tensor_repr(self)

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of a 0-d tensor")
        return self._shape[0]

    def __bool__(self) -> bool:
        if self._array.size != 1:
            if self._array.size == 0:
                raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(self._array.reshape(()))

    def item(self) -> Any:
        if self._array.size != 1:
            raise RuntimeError(f"a Tensor with {self._array.size} elements cannot be converted to Scalar")
        value = self._array.item()
        return float(value) if self._array.dtype.kind == "V" else value

    def tolist(self) -> Any:
        return self._array.astype(np.float32).tolist() if self._array.dtype.kind == "V" else self._array.tolist()

    def __float__(self) -> float:
        return float(self._number("double"))

    def __int__(self) -> int:
        return int(self._number("int64_t"))

    def __complex__(self) -> complex:
        return complex(self._number(""))

    def _number(self, kind: str) -> Any:
        """The one element, for a conversion to a real `kind`."""
        if self._array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars, and this one has "
                             f"{self._array.size}")
        number = self.item()
        if kind and number.__class__ is complex:
            if number.imag:
                raise RuntimeError(f"value cannot be converted to type {kind} without overflow: it has an imaginary part")
            return number.real
        return number

    def __index__(self) -> int:
        if self._array.size != 1 or dtypes.category(self._array.dtype) > dtypes.INTEGER:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self._array.item())

    def __contains__(self, element: Any) -> bool:
        if isinstance(element, (Tensor, int, float, complex, bool)):
            return bool((self == element).any())  # type: ignore[attr-defined]
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()  # type: ignore[attr-defined]
        if dtype is not None and np.dtype(dtype) != array.dtype:
            if copy is False:
                raise ValueError("a copy is needed to convert the dtype, and copy=False forbids it")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __deepcopy__(self, memo: dict) -> Tensor:
        from .convert import deepcopy_tensor
        return deepcopy_tensor(self, memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        from .convert import reduce_tensor
        return reduce_tensor(self)


class Parameter(Tensor):
    """A tensor that a Module counts among its parameters."""

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = wrap(np.empty(0, dtypes.default_numpy()))
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter data has to be a tensor, but got {type(data).__name__}")
        made = _blank(cls)
        made._set_array(data._array)
        if requires_grad:
            made.requires_grad_(True)
        return made

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return "Parameter containing:\n" + Tensor.__repr__(self)


def _c_name(tensor: Tensor) -> str:
    """The dtype as this one message of PyTorch's calls it."""
    return {"float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16"}.get(
        tensor.dtype.name, tensor.dtype.name)


def _blank(cls: Any) -> Any:
    made = _new(cls)
    made._array = np.empty(0, dtypes.default_numpy())
    made._shape = (0,)
    made._real = made._node = made._family = None
    return made


def _as_class(source: Tensor, cls: Any) -> Any:
    made = _blank(cls)
    made._set_array(source._array)
    return made


def wrap(array: np.ndarray) -> Tensor:
    """A constant tensor over an array, without a copy."""
    made = _new(Tensor)
    made._array = array
    made._shape = array.shape
    made._real = REAL.get(array.dtype)
    made._node = made._family = None
    return made


def fresh(array: np.ndarray) -> Tensor:
    """A new tensor as a factory makes it: under inference_mode, an inference tensor."""
    made = wrap(array)
    if state.inference:
        made._inference, made._real = True, None
    return made


__all__ = ["Parameter", "Tensor", "View", "bump", "family_of", "fresh", "wrap"]
