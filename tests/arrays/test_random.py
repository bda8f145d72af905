"""Random streams against real torch's CPU generator: the same numbers and the same state afterwards, bit for bit."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

from rushlight.arrays import random

torch = pytest.importorskip("torch", reason="the numbers compared with are real torch's")

# What the x86 kernels of torch are compiled for; without these it computes with two roundings where we have one.
EXACT = torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
SIZES = (0, 1, 5, 15, 16, 17, 31, 100, 1000, 100003)
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64")


def numpy_dtype(name):
    if name == "bfloat16":
        return np.dtype(pytest.importorskip("ml_dtypes", reason="NumPy has no bfloat16 of its own").bfloat16)
    return np.dtype(name)


def as_bits(array):
    """The array's bytes as integers, so that signed zeros, NaNs and last bits all count."""
    array = np.ascontiguousarray(array)
    return array.view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.uint64}[array.dtype.itemsize])


def same(ours, theirs):
    """Equal to the last bit where torch runs its kernels with fused multiply-add, elsewhere but for rounding."""
    assert ours.shape == tuple(theirs.shape)
    assert str(ours.dtype) == str(theirs.dtype).removeprefix("torch.")
    if theirs.is_complex():
        ours, theirs = ours.view(ours.real.dtype), torch.view_as_real(theirs).flatten()
    if EXACT or not theirs.is_floating_point():
        short = theirs.view(torch.int16) if theirs.dtype == torch.bfloat16 else theirs
        np.testing.assert_array_equal(as_bits(ours), as_bits(short.detach().numpy()))
    else:
        rounding = 64 * torch.finfo(theirs.dtype).eps
        expected = theirs.detach().double().numpy()
        np.testing.assert_allclose(ours.astype(np.float64), expected, rtol=rounding, atol=rounding)


class Pair:
    """Our generator and torch's after the same seed."""

    def __init__(self, seed=0):
        self.ours = random.Generator().manual_seed(seed)
        self.theirs = torch.Generator().manual_seed(seed)

    def agree(self, our_values, their_values):
        same(our_values, their_values)
        np.testing.assert_array_equal(self.ours.get_state_array(), self.theirs.get_state().numpy())

    def fill(self, ours, name, shape, dtype, *arguments):
        """Compare one of our functions with the in-place method of that name on a torch tensor."""
        mine = ours(self.ours, shape, numpy_dtype(dtype), *arguments)
        tensor = torch.empty(shape, dtype=getattr(torch, dtype))
        self.agree(mine, getattr(tensor, name)(*arguments, generator=self.theirs))


# ---- seeds and states ----


@pytest.mark.parametrize("seed", [0, 1, 42, -1, -2, -(2**63), 2**32 - 1, 2**32, 2**33 + 5, 2**64 - 1])
def test_seed(seed):
    pair = Pair(seed)
    assert pair.ours.initial_seed() == pair.theirs.initial_seed()
    pair.agree(random.uniform(pair.ours, 700, np.float32), torch.rand(700, generator=pair.theirs))


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1, 2.0, True, "3", None, np.int64(3)])
def test_refused_seed(seed):
    with pytest.raises(Exception) as theirs:
        torch.Generator().manual_seed(seed)
    with pytest.raises(type(theirs.value)):
        random.Generator().manual_seed(seed)


def test_default_seeds():
    assert random.Generator().initial_seed() == torch.Generator().initial_seed()
    assert random.default_generator.initial_seed() != torch.Generator().initial_seed()


def test_seed_from_the_system():
    generator = random.Generator()
    seed = generator.seed()
    assert generator.initial_seed() == seed
    assert generator.seed() != seed


def test_seeding_drops_the_kept_normal():
    pair = Pair(3)
    pair.fill(random.normal, "normal_", (3,), "float32")
    pair.ours.manual_seed(4)
    pair.theirs.manual_seed(4)
    pair.fill(random.normal, "normal_", (3,), "float32")


@pytest.mark.parametrize("draws", [0, 1, 623, 624, 625, 1248, 5000])
def test_state_goes_both_ways(draws):
    pair = Pair(11)
    pair.agree(random.uniform(pair.ours, draws, np.float32), torch.rand(draws, generator=pair.theirs))
    random.normal(pair.ours, 5, np.float32)  # leaves a kept normal in the state
    ours = random.Generator()
    ours.set_state_array(pair.ours.get_state_array())
    theirs = torch.Generator()
    theirs.set_state(torch.from_numpy(pair.ours.get_state_array()))
    assert ours.initial_seed() == theirs.initial_seed() == 11
    same(random.normal(ours, 7, np.float64), torch.randn(7, generator=theirs, dtype=torch.float64))
    ours.set_state_array(theirs.get_state().numpy())
    same(random.normal(ours, 40, np.float32), torch.randn(40, generator=theirs))


def test_state_with_a_float_normal_is_kept():
    state = torch.Generator().manual_seed(1).get_state()
    state[5048:5052] = torch.tensor([1.5]).view(torch.uint8)
    state[5052] = 1
    theirs = torch.Generator().set_state(state)
    ours = random.Generator()
    ours.set_state_array(state.numpy())
    np.testing.assert_array_equal(ours.get_state_array(), theirs.get_state().numpy())


@pytest.mark.parametrize(
    "state", [np.zeros(5056, np.uint8), np.zeros(10, np.uint8), np.zeros(5056, np.float32)], ids=["zeros", "short", "f"]
)
def test_refused_state(state):
    with pytest.raises((RuntimeError, TypeError)) as theirs:
        torch.Generator().set_state(torch.from_numpy(state))
    with pytest.raises(type(theirs.value)) as ours:
        random.Generator().set_state_array(state)
    assert str(ours.value) == str(theirs.value)


def test_a_refused_state_changes_nothing():
    generator = random.Generator().manual_seed(5)
    before = generator.get_state_array()
    with pytest.raises(RuntimeError):
        generator.set_state_array(np.zeros(5056, np.uint8))
    np.testing.assert_array_equal(generator.get_state_array(), before)


@pytest.mark.parametrize("twin_of", [lambda g: g.clone_state(), copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_copies_go_their_own_way(twin_of):
    generator = random.Generator().manual_seed(5)
    random.normal(generator, 3, np.float32)
    twin = twin_of(generator)
    expected = random.normal(generator, 50, np.float32)
    np.testing.assert_array_equal(random.normal(twin, 50, np.float32), expected)


def test_other_devices_are_refused():
    with pytest.raises(NotImplementedError, match="only the 'cpu' device"):
        random.Generator("cuda")


def test_default_generator_is_used_without_one():
    random.default_generator.manual_seed(9)
    torch.manual_seed(9)
    same(random.uniform(None, (2, 3), np.float32), torch.rand(2, 3))
    same(random.normal(None, (2, 3), np.float32), torch.randn(2, 3))
    same(random.randperm(None, 10, np.int64), torch.randperm(10))


def test_threads_share_one_stream():
    generator = random.Generator().manual_seed(2)
    parts = []

    def draw():
        for _ in range(20):
            parts.append(random.normal(generator, 6, np.float64))  # three pairs that must stay together

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    theirs = torch.Generator().manual_seed(2)
    expected = {torch.randn(6, generator=theirs, dtype=torch.float64).numpy().tobytes() for _ in range(80)}
    assert {part.tobytes() for part in parts} == expected


# ---- continuous ----


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-0.7, 2.3), (-1.0, 1.0), (0.0, 0.1), (3.0, 4.0), (1.0, 1.0)], ids=str)
def test_uniform(dtype, bounds):
    pair = Pair(1)
    for size in SIZES:
        pair.fill(random.uniform, "uniform_", (size,), dtype, *bounds)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("parameters", [(0.0, 1.0), (0.3, 1.7), (-2.0, 1.0), (0.0, 0.02), (1.0, 0.0)], ids=str)
def test_normal(dtype, parameters):
    pair = Pair(2)
    for size in SIZES:
        pair.fill(random.normal, "normal_", (size,), dtype, *parameters)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("size", [0, 3, 8, 100])
def test_complex(dtype, size):
    pair = Pair(3)
    kind = getattr(torch, dtype)
    pair.agree(random.uniform(pair.ours, size, np.dtype(dtype)), torch.rand(size, dtype=kind, generator=pair.theirs))
    pair.agree(random.normal(pair.ours, size, np.dtype(dtype)), torch.randn(size, dtype=kind, generator=pair.theirs))


def test_many_normals_are_bit_identical():
    pair = Pair(123)
    pair.agree(random.normal(pair.ours, 1 << 20, np.float32), torch.randn(1 << 20, generator=pair.theirs))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [5, 100])
def test_normal_around_arrays(dtype, size):
    pair = Pair(4)
    means, deviations = np.linspace(-1, 1, size, dtype=dtype), np.linspace(0.1, 3, size, dtype=dtype)
    mean, std = torch.from_numpy(means), torch.from_numpy(deviations)
    pair.agree(random.normal_around(pair.ours, means, deviations), torch.normal(mean, std, generator=pair.theirs))
    pair.agree(random.normal_around(pair.ours, means, 0.7), torch.normal(mean, 0.7, generator=pair.theirs))
    pair.agree(random.normal_around(pair.ours, 0.3, deviations), torch.normal(0.3, std, generator=pair.theirs))
    column = means.reshape(-1, 1)
    pair.agree(
        random.normal_around(pair.ours, column, deviations),
        torch.normal(torch.from_numpy(column), std, generator=pair.theirs),
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "function, name, parameters",
    [
        (random.exponential, "exponential_", (1.0,)),
        (random.exponential, "exponential_", (1.3,)),
        (random.cauchy, "cauchy_", (0.0, 1.0)),
        (random.cauchy, "cauchy_", (0.3, 1.7)),
        (random.log_normal, "log_normal_", (1.0, 2.0)),
        (random.log_normal, "log_normal_", (0.3, 0.9)),
        (random.geometric, "geometric_", (0.3,)),
        (random.geometric, "geometric_", (0.001,)),
    ],
)
def test_transformed(dtype, function, name, parameters):
    pair = Pair(5)
    for size in (0, 1, 5, 16, 1000, 20003):
        pair.fill(function, name, (size,), dtype, *parameters)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gamma(dtype):
    pair = Pair(6)
    shapes = np.concatenate([np.linspace(0.0, 1.2, 300), np.geomspace(1e-3, 500, 300)]).astype(dtype)
    pair.agree(random.gamma(pair.ours, shapes), torch._standard_gamma(torch.from_numpy(shapes), pair.theirs))


# ---- discrete ----


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_random_without_bounds(dtype):
    pair = Pair(7)
    for size in SIZES:
        pair.fill(random.random_integers, "random_", (size,), dtype)


@pytest.mark.filterwarnings("ignore:(to - 1|from) is out of bounds")
@pytest.mark.parametrize(
    "dtype, low, high",
    [
        ("int64", 0, 10),
        ("int64", -5, 5),
        ("int64", 0, 2**28 - 1),
        ("int64", 0, 2**28),
        ("int64", 0, 2**32),
        ("int64", -(2**63), 2**63 - 1),
        ("int64", -(2**62), 2**62 + 12345),
        ("int64", 5, None),
        ("int64", -(2**63) + 1, None),
        ("int64", -(2**63), None),
        ("int32", -7, 2**31 - 1),
        ("int32", -(2**31), 2**31 - 1),
        ("int16", -300, 300),
        ("uint8", 0, 256),
        ("uint8", 3, None),
        ("int8", -128, 128),
        ("bool", 0, 2),
        ("bool", 0, None),
        ("float32", 0, 10),
        ("float32", -(2**24), 2**24),
        ("float32", 0, 2**40 + 1),
        ("float32", 2**25 + 1, 2**30 + 3),
        ("float32", -(2**63), None),
        ("float32", 3, None),
        ("float64", -3, 2**53),
        ("float64", -(2**63), None),
        ("float16", 0, 2049),
        ("float16", 0, 65504),
        ("float16", -4097, 4097),
        ("bfloat16", 0, 257),
        ("bfloat16", -1000, 12345),
    ],
)
def test_random_between_bounds(dtype, low, high):
    pair = Pair(8)
    for size in (0, 1, 17, 1000):
        pair.fill(random.random_integers, "random_", (size,), dtype, low, high)


def test_randint():
    pair = Pair(9)
    mine = random.random_integers(pair.ours, (3, 5), np.int64, -3, 40)
    pair.agree(mine, torch.randint(-3, 40, (3, 5), generator=pair.theirs))


def test_wide_float_bounds_warn():
    with pytest.warns(UserWarning, match="to - 1 is out of bounds"):
        random.random_integers(random.Generator(), 3, np.float16, 0, 4097)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 10, 100, 1000, 100003])
@pytest.mark.parametrize("dtype", ["int64", "int32", "float32", "float64"])
def test_randperm(count, dtype):
    pair = Pair(10)
    mine = random.randperm(pair.ours, count, np.dtype(dtype))
    pair.agree(mine, torch.randperm(count, dtype=getattr(torch, dtype), generator=pair.theirs))


def test_small_permutations():
    pair = Pair(21)
    for _ in range(300):
        for count in (2, 3, 4, 5, 6):
            mine = random.randperm(pair.ours, count, np.int64)
            same(mine, torch.randperm(count, generator=pair.theirs))


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("probability", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_bernoulli_number(dtype, probability):
    pair = Pair(12)
    for size in (0, 1, 17, 5000):
        pair.fill(random.bernoulli, "bernoulli_", (size,), dtype, probability)


@pytest.mark.parametrize("dtype", FLOATS)
def test_bernoulli_array(dtype):
    pair = Pair(13)
    chances = np.linspace(0, 1, 2000).astype(numpy_dtype(dtype)).reshape(40, 50)
    tensor = torch.from_numpy(chances.astype(np.float64)).to(getattr(torch, dtype))
    mine = random.bernoulli(pair.ours, chances.shape, chances.dtype, chances)
    pair.agree(mine, torch.bernoulli(tensor, generator=pair.theirs))
    mine = random.bernoulli(pair.ours, (7, 40, 50), np.dtype(np.int32), chances)
    pair.agree(mine, torch.empty(7, 40, 50, dtype=torch.int32).bernoulli_(tensor, generator=pair.theirs))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("p", [0.0, 0.1, 0.3, 0.5, 0.9, 1.0])
def test_dropout_noise(dtype, p):
    random.default_generator.manual_seed(14)
    torch.manual_seed(14)
    for size in (1, 17, 3000):
        theirs = torch.nn.functional.dropout(torch.ones(size, dtype=getattr(torch, dtype)), p)
        mine = random.dropout_noise(None, size, numpy_dtype(dtype), p)
        same(mine, theirs)
        np.testing.assert_array_equal(random.default_generator.get_state_array(), torch.get_rng_state().numpy())


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_geometric_integers(dtype):
    pair = Pair(15)
    pair.fill(random.geometric, "geometric_", (5000,), dtype, 0.4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1,), (7,), (1000,), (3, 7), (20, 200)], ids=str)
@pytest.mark.parametrize("samples, replacement", [(1, False), (1, True), (5, True), (300, True), (5, False)])
def test_multinomial(dtype, shape, samples, replacement):
    pair = Pair(16)
    weights = np.random.default_rng(0).random(shape).astype(dtype) * 3 + np.asarray(0.01, dtype)
    samples = samples if replacement else min(samples, shape[-1])
    mine = random.multinomial(pair.ours, weights, samples, replacement)
    pair.agree(mine, torch.multinomial(torch.from_numpy(weights), samples, replacement, generator=pair.theirs))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_multinomial_of_short_floats(dtype):
    pair = Pair(17)
    weights = np.random.default_rng(0).random((4, 30)).astype(numpy_dtype(dtype))
    tensor = torch.from_numpy(weights.astype(np.float32)).to(getattr(torch, dtype))
    mine = random.multinomial(pair.ours, weights, 40, True)
    pair.agree(mine, torch.multinomial(tensor, 40, True, generator=pair.theirs))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_poisson(dtype):
    pair = Pair(18)
    rates = np.concatenate([np.linspace(0, 12, 400), np.linspace(9, 300, 400)]).astype(dtype).reshape(20, 40)
    pair.agree(random.poisson(pair.ours, rates), torch.poisson(torch.from_numpy(rates), pair.theirs))


# ---- together ----


def test_mixed_calls_after_one_seed():
    pair = Pair(19)
    for _ in range(3):
        pair.fill(random.normal, "normal_", (3,), "float32")
        pair.fill(random.uniform, "uniform_", (5,), "float32")
        pair.fill(random.normal, "normal_", (4,), "float64")
        pair.fill(random.random_integers, "random_", (7,), "int64", 0, 10)
        pair.fill(random.normal, "normal_", (33,), "float32")
        pair.fill(random.log_normal, "log_normal_", (2,), "float32")
        pair.fill(random.bernoulli, "bernoulli_", (9,), "float32", 0.3)
        pair.agree(random.randperm(pair.ours, 11, np.int64), torch.randperm(11, generator=pair.theirs))
        pair.fill(random.exponential, "exponential_", (3,), "float32")
        pair.fill(random.normal, "normal_", (1,), "float32")


def test_initialisation_of_a_layer():
    torch.manual_seed(20)
    layer = torch.nn.Linear(37, 11)
    ours = random.Generator().manual_seed(20)
    bound = 1 / 37**0.5
    for parameter in (layer.weight, layer.bias):
        mine = random.uniform(ours, tuple(parameter.shape), np.float32, -bound, bound)
        same(mine, parameter)


REFUSED = {
    "uniform of integers": (
        lambda g: random.uniform(g, 3, np.int32),
        lambda g: torch.empty(3, dtype=torch.int32).uniform_(generator=g),
    ),
    "uniform backwards": (
        lambda g: random.uniform(g, 3, np.float32, 2, 1),
        lambda g: torch.empty(3).uniform_(2, 1, generator=g),
    ),
    "uniform too wide": (
        lambda g: random.uniform(g, 3, np.float32, -3e38, 3e38),
        lambda g: torch.empty(3).uniform_(-3e38, 3e38, generator=g),
    ),
    "normal of integers": (
        lambda g: random.normal(g, 3, np.int32),
        lambda g: torch.empty(3, dtype=torch.int32).normal_(generator=g),
    ),
    "normal with negative std": (
        lambda g: random.normal(g, 3, np.float32, 0, -1),
        lambda g: torch.empty(3).normal_(0, -1, generator=g),
    ),
    "exponential of integers": (
        lambda g: random.exponential(g, 3, np.int32),
        lambda g: torch.empty(3, dtype=torch.int32).exponential_(generator=g),
    ),
    "exponential of rate 0": (
        lambda g: random.exponential(g, 3, np.float32, 0.0),
        lambda g: torch.empty(3).exponential_(0.0, generator=g),
    ),
    "empty range": (
        lambda g: random.random_integers(g, 3, np.int64, 5, 5),
        lambda g: torch.randint(5, 5, (3,), generator=g),
    ),
    "range beyond the dtype": (
        lambda g: random.random_integers(g, 3, np.uint8, 0, 300),
        lambda g: torch.randint(0, 300, (3,), dtype=torch.uint8, generator=g),
    ),
    "bernoulli beyond one": (
        lambda g: random.bernoulli(g, 3, np.float32, 2.0),
        lambda g: torch.empty(3).bernoulli_(2.0, generator=g),
    ),
    "bernoulli array beyond one": (
        lambda g: random.bernoulli(g, 1, np.float32, np.array([2.0])),
        lambda g: torch.bernoulli(torch.tensor([2.0]), generator=g),
    ),
    "negative permutation": (lambda g: random.randperm(g, -1, np.int64), lambda g: torch.randperm(-1, generator=g)),
    "permutation of halves": (
        lambda g: random.randperm(g, 3000, np.float16),
        lambda g: torch.randperm(3000, dtype=torch.float16, generator=g),
    ),
    "negative weight": (
        lambda g: random.multinomial(g, np.array([-1.0, 2.0]), 1),
        lambda g: torch.multinomial(torch.tensor([-1.0, 2.0]), 1, generator=g),
    ),
    "negative weight, replaced": (
        lambda g: random.multinomial(g, np.array([-1.0, 2.0]), 3, True),
        lambda g: torch.multinomial(torch.tensor([-1.0, 2.0]), 3, True, generator=g),
    ),
    "too many samples": (
        lambda g: random.multinomial(g, np.array([1.0, 2.0]), 3),
        lambda g: torch.multinomial(torch.tensor([1.0, 2.0]), 3, generator=g),
    ),
    "negative rate": (
        lambda g: random.poisson(g, np.array([-1.0])),
        lambda g: torch.poisson(torch.tensor([-1.0]), g),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    ours, theirs = REFUSED[case]
    with pytest.raises(RuntimeError) as expected:
        theirs(torch.Generator())
    with pytest.raises(type(expected.value)) as raised:
        ours(random.Generator())
    opening = " ".join(str(expected.value).split()[:5])
    assert str(raised.value).startswith(opening)


def test_unsupported_permutation_says_so():
    with pytest.raises(NotImplementedError, match="randperm"):
        random.randperm(random.Generator(), 2**28, np.int64)
