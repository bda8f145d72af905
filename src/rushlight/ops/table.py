"""The op table: one entry per operation, from which everything else about it is derived.

An entry is the operation's kernel, a function on raw arrays with PyTorch's argument names, under a decorator that gives
one gradient formula per differentiable argument:

    @elementwise(input="g * conj(other)", other="g * conj(input)")
    def mul(input, other):
        return np.multiply(input, other)

A formula is an expression as text, or a function. The names it uses say what is saved:

    g                       the gradient of the output (g0, g1, ... where there are several outputs)
    a tensor argument       saved as a tensor, freed by backward, visible as _saved_...
    result                  the output (result0, result1, ...); saved likewise
    a name given in extra=  a further array the kernel returns after its outputs; saved likewise
    any other argument      kept as it is
    NAME_shape              the shape of a tensor argument or of result; kept
    anything else           an operation or helper, taken from the namespace in force

It is run on raw arrays in an ordinary backward pass, where `exp(x)` is exp's kernel, and on tensors under create_graph,
where it is the operation itself. A formula that is a function takes those names as its parameters, and `F` for the
namespace. It must not name NumPy. Un-broadcasting and casting to the argument's shape and dtype are done for it.
`together=` takes one function that returns the gradients of all differentiable arguments as a tuple; its parameter
`needs` is a tuple of booleans that says which are wanted.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..graph.modes import listen
from ..tensor import Tensor


class Namespace:
    """What formulas find functions in."""

    def __getattr__(self, name: str) -> Any:
        from .families import load_until
        load_until(lambda: name in self.__dict__)
        try:
            return self.__dict__[name]
        except KeyError:
            raise AttributeError(f"no operation named {name!r}") from None


RAW = Namespace()  # name -> kernel
TENSORS = Namespace()  # name -> operation on tensors
TABLE: dict[str, Op] = {}
# Where users find operations as functions: the package's own namespace is added to it.
PUBLIC: list[dict] = [TENSORS.__dict__]

listen(TENSORS.__dict__)


class Op:
    """One operation."""

    __slots__ = (
        "aliases", "defaults", "differentiable", "elementwise", "extra", "formulas", "function", "inline", "inplace_function",
        "jvp", "kernel", "keyword_only", "lists", "method", "name", "namespace", "node", "numbers", "output_names", "output_real",
        "outputs", "parameters", "promote", "public", "tensors", "together", "variants", "view", "writable", "zeros")

    def __init__(self, kernel: Callable, formulas: dict[str, Any], *, elementwise: bool = False, promote: Any = "same",
                 tensors: str = "", lists: str = "", outputs: int | str | None = 1, extra: str = "", view: bool | str = False,
                 node: Any = None, name: str | None = None, aliases: str = "", together: Callable | None = None,
                 differentiable: str = "", method: bool = True, public: bool = True, inplace: bool | None = None,
                 inline: str | None = None, jvp: Any = None, zeros: bool = True, output_real: bool = True,
                 numbers: bool | str = True) -> None:
        code = kernel.__code__
        count = code.co_argcount
        self.kernel = kernel
        self.name = name or kernel.__name__.rstrip("_")
        self.parameters: tuple[str, ...] = code.co_varnames[:count + code.co_kwonlyargcount]
        self.keyword_only = code.co_kwonlyargcount
        positional = kernel.__defaults__ or ()
        self.defaults = dict(zip(self.parameters[count - len(positional):count], positional, strict=True))
        self.defaults.update(kernel.__kwdefaults__ or {})
        self.formulas = formulas
        self.together = together
        self.elementwise = elementwise
        self.promote = promote
        # Differentiable arguments in the kernel's order; then all tensor arguments; then lists of tensors.
        listed = lists.split()
        chosen = [*formulas, *differentiable.split()]
        unknown = [name for name in chosen if name not in self.parameters]
        if unknown:
            raise TypeError(f"{self.name}: a gradient is given for {sorted(unknown)}, which is no argument of it")
        self.differentiable = tuple([p for p in self.parameters if p in chosen])
        self.lists = tuple([p for p in self.parameters if p in listed])
        taken = chosen + tensors.split()
        self.tensors = tuple([p for p in self.parameters if p in taken and p not in listed])
        # None: as many as the kernel's tuple has. A text: PyTorch's names for them, by which saved ones are seen.
        self.output_names = tuple(outputs.split()) if isinstance(outputs, str) else ()
        self.outputs = len(self.output_names) if isinstance(outputs, str) else outputs
        self.extra = tuple(extra.split())
        self.view = view  # False, True, or "multi" for several views at once
        self.node = node
        self.aliases = tuple(aliases.split())
        self.method = method
        self.public = public
        self.writable = elementwise if inplace is None else inplace
        self.inline = inline
        self.jvp = jvp  # "linear", "elementwise", a function, or None: derived from the gradient formula
        self.zeros = zeros  # a missing gradient among several outputs reaches the formula as zeros, not None
        self.output_real = output_real  # on real inputs the output has their dtype
        self.numbers = numbers  # Python numbers are taken for tensor arguments: all of them, none, or the one named
        self.variants: dict = {}
        self.function: Callable | None = None
        self.inplace_function: Callable | None = None

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def node_name(self, kept: dict) -> str:
        if self.node is None:
            return "".join(part.capitalize() for part in self.name.strip("_").split("_")) + "Backward0"
        return self.node if isinstance(self.node, str) else self.node(kept)

    def call(self, *values: Any) -> Any:
        """Call by position with every parameter given, as replaying a view does."""
        fixed = len(self.parameters) - self.keyword_only
        return self.function(*values[:fixed], **dict(zip(self.parameters[fixed:], values[fixed:], strict=True)))  # type: ignore[misc]


def elementwise(**options: Any) -> Callable[[Callable], Callable]:
    """Register an operation that works element by element, broadcasting and promoting its tensor arguments.

    promote: "same" (the common dtype), "float" (integers become the default dtype), "bool" (compare in the common dtype;
    the result is bool), "none" (arrays reach the kernel as they are), or a function in place of dtypes.result_type.
    """
    options.setdefault("jvp", "elementwise")
    return _register(True, options)


def operation(**options: Any) -> Callable[[Callable], Callable]:
    """Register any other operation."""
    return _register(False, options)


_OPTIONS = frozenset(("promote", "tensors", "lists", "outputs", "extra", "view", "node", "name", "aliases", "together",
                      "differentiable", "method", "public", "inplace", "inline", "jvp", "zeros", "output_real", "numbers"))


def _register(is_elementwise: bool, options: dict[str, Any]) -> Callable[[Callable], Callable]:
    formulas = {key: value for key, value in options.items() if key not in _OPTIONS}
    settings = {key: value for key, value in options.items() if key in _OPTIONS}

    def register(kernel: Callable) -> Callable:
        op = Op(kernel, formulas, elementwise=is_elementwise, **settings)
        if op.name in TABLE:
            raise RuntimeError(f"the operation {op.name} is registered twice")
        TABLE[op.name] = op
        _publish(op)
        return kernel

    return register


def _publish(op: Op) -> None:
    """Put the operation where it is looked for. What is put there compiles the real function at its first call."""

    def first_call(*args: Any, **kwargs: Any) -> Any:
        from .compile import build_function, build_operator
        if op.function is first_call:
            install(op, build_function(op), build_operator(op) if op.name in OPERATORS else None)
        return op.function(*args, **kwargs)  # type: ignore[misc]

    def first_operator(*args: Any) -> Any:
        from .compile import build_function, build_operator
        operator = build_operator(op)
        install(op, build_function(op), operator)
        return operator(*args)

    first_call.__name__ = first_call.__qualname__ = op.name
    install(op, first_call, first_operator if op.name in OPERATORS else None)
    setattr(RAW, op.name, op.kernel)
    for alias in op.aliases:
        setattr(RAW, alias, op.kernel)
    if op.writable:
        def first_inplace(*args: Any, **kwargs: Any) -> Any:
            from .compile import build_inplace
            if op.inplace_function is first_inplace:
                install_inplace(op, build_inplace(op))
            return op.inplace_function(*args, **kwargs)  # type: ignore[misc]

        first_inplace.__name__ = first_inplace.__qualname__ = op.name + "_"
        install_inplace(op, first_inplace)


# Python's operators, by the operation behind them.
OPERATORS = {
    "add": ("__add__", "__radd__"), "mul": ("__mul__", "__rmul__"), "sub": ("__sub__",), "rsub": ("__rsub__",),
    "true_divide": ("__truediv__",), "neg": ("__neg__",), "matmul": ("__matmul__",), "abs": ("__abs__",),
    "floor_divide": ("__floordiv__",), "remainder": ("__mod__",), "lt": ("__lt__",),
    "le": ("__le__",), "gt": ("__gt__",), "ge": ("__ge__",), "bitwise_and": ("__and__", "__rand__"),
    "bitwise_or": ("__or__", "__ror__"), "bitwise_xor": ("__xor__", "__rxor__"), "bitwise_not": ("__invert__",),
    "bitwise_left_shift": ("__lshift__",), "bitwise_right_shift": ("__rshift__",)}
INPLACE_OPERATORS = {
    "add": "__iadd__", "mul": "__imul__", "sub": "__isub__", "true_divide": "__itruediv__",
    "floor_divide": "__ifloordiv__", "remainder": "__imod__", "bitwise_and": "__iand__", "bitwise_or": "__ior__",
    "bitwise_xor": "__ixor__", "bitwise_left_shift": "__ilshift__", "bitwise_right_shift": "__irshift__"}


def install(op: Op, function: Callable, operator: Callable | None = None) -> None:
    op.function = function
    for name in (op.name, *op.aliases):
        TENSORS.__dict__[name] = function
        if op.public:
            for place in PUBLIC:
                place[name] = function
        if op.method:
            setattr(Tensor, name, function)
    for name in OPERATORS.get(op.name, ()):
        setattr(Tensor, name, operator or function)


def install_inplace(op: Op, function: Callable) -> None:
    op.inplace_function = function
    for name in (op.name, *op.aliases):
        setattr(Tensor, name + "_", function)
        TENSORS.__dict__[name + "_"] = function
        if op.public:
            for place in PUBLIC:
                place[name + "_"] = function
    if op.name in INPLACE_OPERATORS:
        setattr(Tensor, INPLACE_OPERATORS[op.name], function)


def public(function: Callable) -> Callable:
    """Publish a composition of operations, which needs no entry of its own, as a function."""
    for place in PUBLIC:
        place[function.__name__] = function
    return function


def method(function: Callable) -> Callable:
    """Publish a composition as a method of Tensor."""
    setattr(Tensor, function.__name__, function)
    return function


def helper(function: Callable) -> Callable:
    """Make a function available to formulas: called with the namespace in force as its first argument, `F`."""
    from functools import partial
    setattr(RAW, function.__name__, partial(function, RAW))
    setattr(TENSORS, function.__name__, partial(function, TENSORS))
    return function
