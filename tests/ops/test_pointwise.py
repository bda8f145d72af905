"""Elementwise operations against real torch: values, gradients, what is saved, dtypes, special values, errors.

Each case is an expression that is evaluated on both engines, with `T` the engine, `F` its nn.functional and the tensors
that `variables` makes. OpInfo's samples are in test_opinfo; here is what they leave out.
"""
from __future__ import annotations

import importlib
import math
import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="real torch is the truth these cases are compared with (pip install torch)")

import rushlight  # noqa: E402

INF, NAN = math.inf, math.nan
ENGINES = (torch, rushlight)


def cases(text: str) -> list[str]:
    return [one.strip() for line in text.strip().splitlines() for one in line.split(";") if one.strip()]


def variables(engine: Any) -> dict[str, Any]:
    """Fresh tensors: x, y, w are leaves that require grad, u is a 0-dim leaf, z and v complex, i int64, b bool, m a "
      "mask."""
    def tensor(values: Any, dtype: str, requires_grad: bool = False) -> Any:
        return engine.tensor(values, dtype=getattr(engine, dtype), requires_grad=requires_grad)

    return {
        "T": engine, "F": importlib.import_module(f"{engine.__name__}.nn.functional"), "inf": INF, "nan": NAN,
        "x": tensor([0.3, 0.6, 0.85], "float64", True), "y": tensor([0.4, 0.7, 0.2], "float64", True),
        "w": tensor([[0.2], [0.9]], "float64", True), "u": tensor(0.45, "float64", True),
        "z": tensor([0.3 + 1j, 0.5 - 0.2j, -1.5 - 0.1j], "complex128", True),
        "v": tensor([1 - 1j, 0.25 + 2j, 0.75 + 0j], "complex128", True), "c": tensor([0.1, 0.2, 0.3], "float32"),
        "i": tensor([3, -2, 5], "int64"), "j": tensor([2, 3, -4], "int64"), "s": tensor([7, -7, 4], "int32"),
        "b": tensor([True, False, True], "bool"), "m": tensor([False, True, True], "bool"),
        "q": tensor([200, 5, 17], "uint8"),
        "k": tensor(2, "int64"), "f": tensor(2.5, "float64"), "h": tensor([0.5, -1.25, 3.0], "float16")}


def run(expression: str, engine: Any) -> tuple[Any, dict[str, Any]]:
    names = variables(engine)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(expression, names), names


def to_numpy(value: Any) -> np.ndarray:
    value = value.detach()
    value = value.resolve_conj() if hasattr(value, "resolve_conj") else value
    return np.asarray(value.float().numpy() if "bfloat16" in str(value.dtype) else value.numpy(force=True))


def assert_same(found: Any, expected: Any, what: str, tolerance: float = 1e-9) -> None:
    if expected is None or not hasattr(expected, "dtype"):
        assert found == expected, what
        return
    assert str(found.dtype) == str(expected.dtype), what
    assert tuple(found.shape) == tuple(expected.shape), what
    np.testing.assert_allclose(to_numpy(found), to_numpy(expected), rtol=tolerance, atol=tolerance, err_msg=what)


def leaves(names: dict[str, Any]) -> list[Any]:
    return [value for value in names.values() if hasattr(value, "requires_grad") and value.requires_grad]


def weights(engine: Any, like: Any) -> Any:
    """A fixed cotangent, complex for complex outputs."""
    numbers = np.cos(np.arange(like.numel()) + 1.0).reshape(tuple(like.shape))
    if like.is_complex():
        numbers = numbers + 1j * np.sin(np.arange(like.numel()) + 2.0).reshape(tuple(like.shape))
    return engine.tensor(numbers).to(like.dtype)


def gradients(engine: Any, output: Any, names: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """First gradients, and the gradients of a function of those."""
    inputs = leaves(names)
    first = engine.autograd.grad(output, inputs, weights(engine, output), create_graph=True, allow_unused=True)
    total = sum(((g * g.conj()).real.sum() for g in first if g is not None and g.requires_grad), start=0.0)
    if not hasattr(total, "requires_grad"):
        return list(first), []
    return list(first), list(engine.autograd.grad(total, inputs, allow_unused=True))


def node_facts(output: Any) -> tuple[str, set[str]]:
    """The node's name, and the tensors it saves."""
    node = output.grad_fn
    saved = {name for name in dir(node) if name.startswith("_saved_") and hasattr(getattr(node, name), "requires_grad")}
    return node.name().split("::")[-1], saved


DIFFERENTIABLE = cases("""
    x + y; x - y; 1 - x; x * y; x / y; x / 2; 2 / x; x * 2.5; -x; x + w; w * x; x * u; T.add(x, y, alpha=2)
    T.sub(x, w, alpha=3); T.rsub(x, y); T.rsub(x, 2, alpha=3); T.div(x, y, rounding_mode='floor')
    T.div(x, 2, rounding_mode='trunc'); x % y; x % 0.25; T.fmod(x, y); T.fmod(x, 0.25); x ** 2; x ** 3; x ** 0
    x ** 1; x ** -1.5; x ** y; 2 ** x; x ** f; T.float_power(x, 2); T.float_power(x, y); x.square()
    x.reciprocal(); T.addcmul(w, x, y); T.addcmul(w, x, y, value=2); T.addcdiv(w, x, y, value=0.5)
    T.lerp(x, y, 0.3); T.lerp(x, y, 0.8); T.lerp(x, y, w); x.exp(); x.exp2(); x.expm1(); x.log(); x.log2()
    x.log10(); x.log1p(); x.sqrt(); x.rsqrt(); x.sin(); x.cos(); x.tan(); x.asin(); x.acos(); x.atan(); x.sinh()
    x.cosh(); x.tanh(); x.asinh(); (x + 1).acosh(); x.atanh(); x.sinc(); x.logit(); x.logit(0.4); x.sigmoid()
    x.erf(); x.erfc(); x.erfinv(); x.lgamma(); x.digamma(); T.polygamma(1, x); x.polygamma(2)
    (x + 3).mvlgamma(2); x.i0(); x.deg2rad(); x.rad2deg(); x.floor(); x.ceil(); x.trunc(); x.round(); x.frac()
    x.sign(); x.round(decimals=1); x.abs(); x.sgn(); x.angle(); x.nan_to_num(); x.clamp(0.4, 0.8); x.clamp(0.4)
    x.clamp(max=0.5); x.clamp(y, y + 0.3); x.clamp(min=w); x.clamp_min(0.4); x.clamp_max(0.5); x.clamp_min(y)
    x.clamp_max(y); T.hypot(x, y); T.atan2(x, w); T.copysign(x, y); T.copysign(x, -2); T.ldexp(x, j.abs())
    T.logaddexp(x, w); T.logaddexp2(x, y); T.xlogy(x, y); T.special.xlog1py(x, y); T.maximum(x, w)
    T.minimum(x, y); T.fmax(x, y); T.fmin(x, y); T.nextafter(x, y); F.relu(x - 0.5); F.leaky_relu(x - 0.5)
    F.elu(x - 0.5, 1.5); F.selu(x - 0.5); F.celu(x - 0.5, 0.5); F.gelu(x); F.gelu(x, approximate='tanh')
    F.silu(x); F.mish(x); F.softplus(x, 2); F.softsign(x); F.hardtanh(x, -0.5, 0.5); F.relu6(9 * x)
    F.hardswish(x); F.hardshrink(x); F.softshrink(x); F.tanhshrink(x); F.threshold(x, 0.5, 2.0); F.logsigmoid(x)
    F.prelu(x - 0.5, y[:1]); F.glu(T.stack([x, y]), 0); T.where(m, x, y); T.where(m, x, 0.5); T.where(m, 1, w)
    x.where(m, y); x.masked_fill(m, 2.0); x.masked_fill(m, u); x.masked_fill(m[:1], 1); T.fill(x, 2.0)
    T.fill(x, u); x.float(); x.to(T.complex128); T.special.entr(x); T.special.erfcx(x); T.special.i0e(x)
    T.special.i1(x); T.special.i1e(x); T.special.log_ndtr(x); T.special.ndtri(x); T.special.expit(x)
    T.special.psi(x); T.special.gammaln(x); T.special.zeta(i + 4, x); T.igamma(j + 6, x); T.igammac(j + 6, x)
    z + v; z * v; z / v; x * z; x + z; z * 2; z ** 2; z ** v; 2 ** z; z ** (1 + 1j); z.exp(); z.log(); z.sqrt()
    z.sin(); z.tan(); z.tanh(); z.acos(); z.asinh(); z.atanh(); z.reciprocal(); z.rsqrt(); z.sigmoid(); z.abs()
    z.sgn(); z.angle(); z.conj(); z.conj_physical(); T.view_as_real(z); T.view_as_complex(T.stack([x, y], -1))
    T.complex(x, y); T.polar(x, y); T.addcmul(z, v, z, value=1j); T.lerp(z, v, 0.25); T.add(z, v, alpha=2j)
    z.sinc()""")

# The nodes differ on purpose: a part of a complex number is one node here, and a number is saved like a tensor.
OTHER_NODES = cases("z.real; z.imag; z.real * z.imag; T.special.ndtr(x); T.xlogy(x, 2); T.xlogy(2, x); T.frexp(x)[0]")


@pytest.mark.parametrize("expression", DIFFERENTIABLE + OTHER_NODES)
def test_values_and_gradients(expression: str) -> None:
    (theirs, their_names), (ours, our_names) = run(expression, torch), run(expression, rushlight)
    assert_same(ours, theirs, "value")
    assert ours.requires_grad == theirs.requires_grad
    expected_by_order, found_by_order = gradients(torch, theirs, their_names), gradients(rushlight, ours, our_names)
    for order, expected, found in zip((1, 2), expected_by_order, found_by_order, strict=True):
        for one, other in zip(expected, found, strict=True):
            if one is None or other is None:
                remaining = other if one is None else one
                assert remaining is None or not to_numpy(remaining).any(), f"order {order}"
            else:
                assert_same(other, one, f"order {order}", 1e-8)


@pytest.mark.parametrize("expression", DIFFERENTIABLE)
def test_node_and_what_it_saves(expression: str) -> None:
    assert node_facts(run(expression, rushlight)[0]) == node_facts(run(expression, torch)[0])


def second_pass(expression: str, engine: Any) -> str:
    output, _ = run(expression, engine)
    cotangent = weights(engine, output)
    output.backward(cotangent)
    try:
        output.backward(cotangent)
    except RuntimeError as error:
        return str(error)[:50]
    return "works"


@pytest.mark.parametrize("expression", DIFFERENTIABLE)
def test_second_pass_works_where_nothing_was_saved(expression: str) -> None:
    assert second_pass(expression, rushlight) == second_pass(expression, torch)


@pytest.mark.parametrize("expression", cases("x // y; x // 2; 2 // x; x.heaviside(y); T.igamma(x, y); "
                                             "T.special.zeta(x + 2, y)"))
def test_no_derivative_is_said_in_backward(expression: str) -> None:
    for engine in ENGINES:
        output, _ = run(expression, engine)
        assert output.requires_grad
        with pytest.raises(RuntimeError, match="is not implemented|not implemented"):
            output.sum().backward()


# -- special values --------------------------------------------------------------------------------------------------
SPECIAL = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 3.0, -3.0, 6.0, 1e-12, 100.0, -100.0]
UNARY = """exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
    sinc sigmoid logit erf erfc erfinv lgamma digamma i0 deg2rad floor ceil trunc round frac sign sgn abs angle
    nan_to_num reciprocal square neg signbit isnan isinf isfinite isposinf isneginf isreal relu logical_not
    positive""".split()
ACTIVATIONS = """relu relu6 leaky_relu elu selu celu gelu silu mish softplus softsign hardtanh hardsigmoid hardswish
    hardshrink softshrink tanhshrink logsigmoid""".split()
PAIRS = """maximum minimum fmax fmin hypot atan2 copysign logaddexp xlogy remainder fmod floor_divide pow true_divide eq
    lt ge isclose logical_xor heaviside nextafter""".split()
NO_SLOPE = {"heaviside", "floor_divide"}
# Torch's slopes differ between float64 and float32 here (at nan, at -0.0, in the precision of 1 / 6), and its trigamma
# is finite at the negative integers, where it has poles.
UNEVEN_SLOPE = {("logit", "float32"), ("F.elu", "float64"), ("F.selu", "float64"), ("F.celu", "float64"),
                ("F.hardswish", "float64"), ("F.hardsigmoid", "float64"), ("digamma", "float64"),
                ("digamma", "float32")}
# Torch's gelu of an infinity is nan in float32 and right in float64.
UNEVEN_VALUE = {("F.gelu", "float32")}
ON_SPECIAL = [(name, dtype) for name in UNARY + [f"F.{name}" for name in ACTIVATIONS]
              for dtype in ("float64", "float32") if (name, dtype) not in UNEVEN_VALUE]


def compare_special(make: Any, slopes: bool = True) -> None:
    found = []
    for engine in ENGINES:
        output, inputs = make(engine)
        slope = []
        if slopes and output.requires_grad:
            made = engine.autograd.grad(output.sum(), inputs, allow_unused=True)
            slope = [to_numpy(g) for g in made if g is not None]
        found.append([to_numpy(output), *slope])
    assert len(found[0]) == len(found[1])
    for expected, ours in zip(*found, strict=True):
        assert ours.dtype == expected.dtype
        np.testing.assert_allclose(ours, expected, rtol=1e-5 if ours.dtype == np.float32 else 1e-9, atol=1e-12)


@pytest.mark.parametrize(("name", "dtype"), ON_SPECIAL)
def test_special_values(name: str, dtype: str) -> None:
    def make(engine: Any) -> tuple[Any, list[Any]]:
        input = engine.tensor(SPECIAL, dtype=getattr(engine, dtype), requires_grad=True)
        home = importlib.import_module(f"{engine.__name__}.nn.functional") if name.startswith("F.") else engine
        return getattr(home, name.removeprefix("F."))(input), [input]

    compare_special(make, slopes=(name, dtype) not in UNEVEN_SLOPE)


@pytest.mark.parametrize("name", PAIRS)
def test_special_pairs(name: str) -> None:
    values = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.5, -0.5]

    def make(engine: Any) -> tuple[Any, list[Any]]:
        first = engine.tensor([[one] for one in values], dtype=engine.float64, requires_grad=True)
        second = engine.tensor(values, dtype=engine.float64, requires_grad=True)
        return getattr(engine, name)(first, second), [first, second]

    compare_special(make, slopes=name not in NO_SLOPE)


# -- dtypes ----------------------------------------------------------------------------------------------------------
PROMOTED = cases("""
    i + 1; i + 1.5; i + b; i * c; c + f; c * k; i / 2; i / j; s / 2; b + b; b * b; q + 1; q - i; i - 1.5
    1.5 - i; 2 - s; s * i; i ** 2; i ** 2.5; i ** k; 2 ** s; 2.5 ** i; i ** j.abs(); j ** i; b ** 2; i // 2
    i // -2; i % 3; i % -3; j % 2.5; T.fmod(i, 3); -i; +i; T.div(i, j, rounding_mode='trunc')
    T.div(s, -2, rounding_mode='floor'); T.div(i, 2.0, rounding_mode='trunc'); i.square(); i.exp(); i.sqrt()
    b.sin(); i.abs(); i.sign(); i.floor(); i.clamp(0); i.clamp(0.5); i.clamp(0, 4); s.clamp(i, j.abs())
    q.clamp_max(9); i.sigmoid(); i.reciprocal(); c.float_power(2); i.float_power(2); T.float_power(2, i); c * 1j
    c + z.detach(); i + 2j; T.addcmul(i, i, j); T.maximum(i, c); T.atan2(i, j); T.gcd(i, j); T.lcm(i, j)
    T.copysign(i, -1); i & j; i | 1; i ^ j; ~i; ~b; b & m; b ^ True; i << 2; i >> 1; i << 70; j >> 70; q << 3
    s >> j.abs(); 1 << j.abs(); i == 3; i != c; i < 2.5; c >= f; b == 1; i.logical_and(b); i.logical_not()
    3 == i; T.where(b, i, 2.5); T.where(b, 1, 2); T.where(b, c, k); T.where(b, c, f); T.where(b, q, i)
    i.masked_fill(b, 7); i.masked_fill(b, 2.7); c.masked_fill(b, f); T.xlogy(i, j.abs()); T.ldexp(c, i)
    T.hypot(c, c); T.heaviside(i, j); i.isfinite(); i.isnan(); T.isclose(i, j); T.equal(i, i)
    T.allclose(c, c + 1e-9); T.nan_to_num(i); T.rad2deg(i); i.angle(); T.polygamma(1, i.abs()); h + 1; h * c
    h.exp(); h.sigmoid(); F.gelu(h); F.silu(h); F.softplus(h); h / 3; h ** 2; h.erf(); T.real(c); i.conj()
    T.complex(c, c); c.to(T.complex64).abs(); c.signbit(); c.frac(); c.round(decimals=1)
    (c * 1000).round(decimals=-2); q.float(); c.bool(); T.lerp(c, c + 1, 0.5); T.special.xlog1py(i, c)
    T.special.bessel_j1(c); T.special.chebyshev_polynomial_t(c, i.abs()); T.true_divide(i, s)
    T.special.legendre_polynomial_p(c, 3); T.special.hermite_polynomial_h(c, 2)
    T.special.shifted_chebyshev_polynomial_w(c, 3); T.special.modified_bessel_k0(c)
    T.special.spherical_bessel_j0(c); T.special.airy_ai(c); c == None; c != 'text'; T.eq(b, m)""")


@pytest.mark.parametrize("expression", PROMOTED)
def test_promotion(expression: str) -> None:
    theirs, ours = run(expression, torch)[0], run(expression, rushlight)[0]
    half = str(getattr(theirs, "dtype", "")).endswith("float16")
    assert_same(ours, theirs, expression, 3e-3 if half else 1e-5)


@pytest.mark.parametrize("expression", cases("h.bfloat16() * 3; h.bfloat16().exp(); F.silu(h.bfloat16()); "
                                             "h.bfloat16() + c"))
def test_bfloat16(expression: str) -> None:
    pytest.importorskip("ml_dtypes", reason="bfloat16 arrays come from ml_dtypes (pip install ml_dtypes)")
    assert_same(run(expression, rushlight)[0], run(expression, torch)[0], expression, 2e-2)


# -- in place --------------------------------------------------------------------------------------------------------
INPLACE = cases("""
    a.add_(y); a.mul_(2); a.div_(y); a.div_(y, rounding_mode='floor'); a.pow_(2); a.pow_(y); a.exp_()
    a.sigmoid_(); a.clamp_(0.4, 0.8); a.clamp_min_(y); a.relu_(); a.tanh_(); a.fill_(2.0); a.fill_(u); a.zero_()
    a.copy_(y); a.copy_(c); a.copy_(u); a.copy_(i); a.masked_fill_(m, 2.0); a.masked_fill_(m, u)
    a.lerp_(y, 0.3); a.addcmul_(x, y, value=2); a.floor_(); a.square_(); a.gt_(0.5); a.copysign_(-y)
    a.remainder_(0.25); a.neg_(); a.sqrt_(); a.erf_(); a.atan2_(y); a.xlogy_(y); a.logit_(0.3)
    a.sub_(y, alpha=2); T.relu_(a); T.exp_(a); F.elu_(a); F.leaky_relu(a, 0.1, True)
    F.hardtanh(a, -0.5, 0.5, True); F.silu(a, True); T.zero_(a)""")


@pytest.mark.parametrize("expression", INPLACE)
def test_in_place(expression: str) -> None:
    results = []
    for engine in ENGINES:
        names = variables(engine)
        names["a"] = names["x"] * 1.0
        returned = eval(expression, names)
        assert returned is names["a"]
        del names["a"]
        results.append((returned, gradients(engine, returned, names)[0], returned._version))
    (theirs, expected, version), (ours, found, our_version) = results
    assert_same(ours, theirs, "value")
    assert our_version == version
    for one, other in zip(expected, found, strict=True):
        if one is not None and other is not None:
            assert_same(other, one, "gradient")


@pytest.mark.parametrize("expression", cases(
    "z.real.mul_(2); z.imag.zero_(); T.view_as_real(z).add_(1); z.real.copy_(y); T.view_as_complex(w.expand(2, "
    "2).clone()).mul_(1j)"))
def test_parts_of_complex_tensors_are_views(expression: str) -> None:
    results = []
    for engine in ENGINES:
        names = variables(engine)
        leaf = names["z"]
        names["z"] = leaf * 1
        eval(expression, names)
        gradient = engine.autograd.grad(names["z"], leaf, weights(engine, leaf))[0]
        results.append((names["z"], gradient))
    assert_same(results[1][0], results[0][0], "value")
    assert_same(results[1][1], results[0][1], "gradient")


def test_assigning_parts() -> None:
    for engine in ENGINES:
        z = engine.zeros(2, dtype=engine.complex64)
        z.real = engine.ones(2)
        z.imag = 3
        assert z.tolist() == [1 + 3j, 1 + 3j]


# -- errors ----------------------------------------------------------------------------------------------------------
ERRORS = cases("""
    i // 0; i % 0; T.fmod(i, 0); i ** -1; b - b; -b; +b; c & 1; c << 1; z.detach() < v.detach()
    T.maximum(z.detach(), v.detach()); T.maximum(i, 2); T.add(i, i, alpha=1.5); T.add(c, c, alpha=2j)
    T.div(i, 2, rounding_mode='up'); i.clamp(); T.gcd(c, c); T.addcdiv(i, i, j); T.lerp(c, f, 0.5)
    c.float_power_(2); T.where(i, 1, 2); c.masked_fill(i, 1); c.masked_fill(b, c); c.fill_(c)
    i.masked_fill(b, z.detach()[0]); T.complex(c, i); T.complex(c, f); T.view_as_real(c); T.view_as_complex(c)
    z.detach().floor(); z.detach().sign(); T.polygamma(-1, c); T.mvlgamma(c, 0); T.isclose(c, f)
    T.heaviside(c, i); T.imag(c); i.add_(1.5); b.add_(1); i.sqrt_(); c.add_(T.ones(2, 3)); T.ones(2) + T.ones(3)
    T.ones(2).copy_(T.ones(3)); T.ones(2).copy_(T.ones(2, 2)); F.gelu(i); F.gelu(c, approximate='cubic')
    F.prelu(c, c[:2]); F.prelu(T.tensor(1.), c); F.glu(c); F.celu(c, 0); F.softshrink(c, -1); T.hypot(i, i)
    z.detach().clamp(0); T.fmod(2, i); T.eq(2, i); T.logaddexp(i, i); T.nextafter(i, i); c - True; i - b
    c + 'text'; c ** 'text'; None ** c; [] / c; c < None""")


@pytest.mark.parametrize("expression", ERRORS)
def test_errors(expression: str) -> None:
    found = []
    for engine in ENGINES:
        with pytest.raises(Exception) as caught:
            run(expression, engine)
        found.append(caught.value)
    theirs, ours = found
    assert isinstance(ours, type(theirs)) or isinstance(theirs, type(ours)), f"{theirs!r} and {ours!r}"
    if not isinstance(theirs, TypeError | AttributeError):
        assert str(ours).split()[:3] == str(theirs).split()[:3]


def test_out() -> None:
    for engine in ENGINES:
        names = variables(engine)
        out = engine.empty(3, dtype=engine.float64)
        assert engine.add(names["f"], names["c"].double(), out=out) is out
        assert engine.pow(names["i"], 2, out=engine.empty(3, dtype=engine.int64)).tolist() == [9, 4, 25]
        with pytest.raises(RuntimeError, match="can't be cast"):
            engine.exp(names["c"], out=engine.empty(3, dtype=engine.int64))
        with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
            engine.exp(names["x"], out=out)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "complex64"])
def test_masks_on_large_arrays(dtype: str) -> None:
    """Large arrays are chosen from by their bits: infinities, nan and the sign of 0 must come through."""
    values = np.resize([INF, -INF, NAN, 0.0, -0.0, 1.5, -2.5], 5000) if dtype != "int64" else np.arange(5000) - 2500
    mask = np.random.default_rng(0).random(5000) < 0.5
    first, second = values.astype(dtype), values[::-1].astype(dtype)
    for pair in ((first, second), (first, 0), (0, second), (first, 1)):
        ours, theirs = (engine.where(engine.tensor(mask), *(
            engine.tensor(one) if isinstance(one, np.ndarray) else one for one in pair)).numpy() for engine in ENGINES)
        assert ours.dtype == theirs.dtype
        assert ours.tobytes() == theirs.tobytes() or np.array_equal(ours, theirs, equal_nan=True)
        if dtype != "int64":
            assert np.array_equal(np.signbit(ours.real), np.signbit(theirs.real))


def test_operators_leave_the_rest_to_the_other_operand() -> None:
    class Other:
        def answer(self, tensor: Any) -> str:
            return "other"

        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rpow__ = __rmod__ = __rfloordiv__ = __rand__ = answer

    for engine in ENGINES:
        tensor = engine.ones(2)
        other = Other()
        found = (tensor + other, tensor - other, tensor * other, tensor / other, tensor ** other, tensor % other,
                 tensor // other, tensor & other)
        assert set(found) == {"other"}
        with pytest.raises(TypeError):
            assert tensor < other
