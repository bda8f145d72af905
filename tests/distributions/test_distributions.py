"""Distributions: samples, densities, moments, gradients and errors as in PyTorch."""
from __future__ import annotations

from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch", reason="real torch is the expectation")
ENGINES = (torch, rushlight)

# How to make each one, from a function that makes a parameter tensor of nested lists.
MAKERS: dict[str, Any] = {
    "normal": lambda d, t: d.Normal(t([0.5, -1.0, 2.0]), t([0.5, 1.0, 2.0])),
    "normal of numbers": lambda d, t: d.Normal(0.5, 2.0),
    "normal broadcast": lambda d, t: d.Normal(t([[0.0], [1.0]]), t([1.0, 2.0, 3.0])),
    "laplace": lambda d, t: d.Laplace(t([0.5, -1.0]), t([0.5, 2.0])),
    "exponential": lambda d, t: d.Exponential(t([0.5, 3.0])),
    "uniform": lambda d, t: d.Uniform(t([-1.0, 0.5]), t([1.0, 4.0])),
    "categorical": lambda d, t: d.Categorical(t([[0.2, 0.3, 0.5], [1.0, 2.0, 1.0]])),
    "categorical one": lambda d, t: d.Categorical(t([0.2, 0.3, 0.5])),
    "categorical logits": lambda d, t: d.Categorical(logits=t([[0.1, -1.0, 2.0], [0.0, 0.0, 1.0]])),
    "one-hot": lambda d, t: d.OneHotCategorical(t([[0.2, 0.3, 0.5], [1.0, 2.0, 1.0]])),
    "bernoulli": lambda d, t: d.Bernoulli(t([0.2, 0.5, 0.9])),
    "bernoulli logits": lambda d, t: d.Bernoulli(logits=t([-2.0, 0.0, 1.5])),
    "poisson": lambda d, t: d.Poisson(t([0.5, 4.0])),
    "multivariate covariance": lambda d, t: d.MultivariateNormal(t([1.0, -1.0]), t([[2.0, 0.5], [0.5, 1.0]])),
    "multivariate precision": lambda d, t: d.MultivariateNormal(t([1.0, -1.0]), precision_matrix=t([[2.0, 0.5], [0.5, 1.0]])),
    "multivariate batch": lambda d, t: d.MultivariateNormal(t([[1.0, -1.0], [0.0, 2.0]]), scale_tril=t([[2.0, 0.0], [0.5, 1.0]])),
    "independent": lambda d, t: d.Independent(d.Normal(t([[0.5, -1.0], [2.0, 0.0]]), t([0.5, 2.0])), 1),
    "gamma": lambda d, t: d.Gamma(t([0.5, 2.0, 7.0]), t([1.0, 0.5, 2.0])),
    "beta": lambda d, t: d.Beta(t([0.5, 2.0]), t([1.5, 3.0])),
    "dirichlet": lambda d, t: d.Dirichlet(t([[0.5, 2.0, 1.0], [3.0, 1.0, 1.0]])),
}  # fmt: skip
NAMES = list(MAKERS)
NO_RSAMPLE = ("categorical", "one-hot", "bernoulli", "poisson", "gamma", "beta", "dirichlet")


def make(engine: Any, name: str, requires_grad: bool = False) -> tuple[Any, list[Any]]:
    parameters: list[Any] = []

    def parameter(values: Any) -> Any:
        parameters.append(engine.tensor(values, requires_grad=requires_grad))
        return parameters[-1]

    return MAKERS[name](engine.distributions, parameter), parameters


def close(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    assert tuple(found.shape) == tuple(expected.shape)
    assert str(found.dtype) == str(expected.dtype)
    assert found.detach().flatten().tolist() == pytest.approx(expected.detach().flatten().tolist(), rel=tolerance, abs=tolerance,
                                                              nan_ok=True)


@pytest.mark.parametrize("sample_shape", [(), (4,), (2, 3)])
@pytest.mark.parametrize("name", NAMES)
def test_samples(name, sample_shape):
    drawn = []
    for engine in ENGINES:
        engine.manual_seed(11)
        sample = make(engine, name)[0].sample(sample_shape)
        drawn.append((sample, engine.rand(1)))
        assert not sample.requires_grad
    close(drawn[1][0], drawn[0][0])
    close(drawn[1][1], drawn[0][1])  # the stream goes on at the same place


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith(NO_RSAMPLE)])
def test_gradients_through_samples(name):
    results = []
    for engine in ENGINES:
        engine.manual_seed(12)
        distribution, parameters = make(engine, name, requires_grad=True)
        assert distribution.has_rsample
        sample = distribution.rsample((5,))
        grads = engine.autograd.grad((sample ** 2).sum(), parameters) if parameters else []
        results.append((sample, *grads))
    for expected, found in zip(*results, strict=True):
        close(found, expected, 1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_log_prob_and_its_gradients(name):
    results = []
    torch.manual_seed(13)
    values = make(torch, name)[0].sample((4,)).tolist()
    for engine in ENGINES:
        distribution, parameters = make(engine, name, requires_grad=True)
        log_prob = distribution.log_prob(engine.tensor(values))
        grads = engine.autograd.grad(log_prob.sum(), parameters) if parameters else []
        results.append((log_prob, *grads))
    for expected, found in zip(*results, strict=True):
        close(found, expected, 1e-4)


@pytest.mark.parametrize("what", ["mean", "mode", "variance", "stddev", "entropy", "perplexity"])
@pytest.mark.parametrize("name", NAMES)
def test_moments(name, what):
    results: list[Any] = []
    for engine in ENGINES:
        value = None
        try:
            value = getattr(make(engine, name)[0], what)
            value = value() if callable(value) else value
        except NotImplementedError:
            assert engine is torch or results == [None] or what == "mode", f"torch has {what} of {name}"
            value = None
        results.append(value)
    if results[1] is not None:
        close(results[1], results[0])


@pytest.mark.parametrize("name", ["normal", "laplace", "exponential", "uniform"])
def test_cdf_and_its_inverse(name):
    results = []
    for engine in ENGINES:
        distribution, _ = make(engine, name)
        at = distribution.icdf(engine.tensor([[0.1], [0.5], [0.9]]))
        results.append((at, distribution.cdf(at)))
    for expected, found in zip(*results, strict=True):
        close(found, expected)


@pytest.mark.parametrize("name", NAMES)
def test_shapes_and_expansion(name):
    shapes, samples = [], []
    for engine in ENGINES:
        distribution, _ = make(engine, name)
        wide = distribution.expand((3, *distribution.batch_shape))
        assert type(wide) is type(distribution)
        engine.manual_seed(14)
        sample = wide.sample()
        shapes.append([tuple(s) for d in (distribution, wide) for s in (d.batch_shape, d.event_shape)])
        samples.append((sample, wide.log_prob(sample)))
    assert shapes[0] == shapes[1]
    for expected, found in zip(*samples, strict=True):
        close(found, expected, 1e-4)


PAIRS: dict[str, tuple[Any, Any]] = {
    "normal": (MAKERS["normal"], lambda d, t: d.Normal(t([0.0, 1.0, 1.0]), t([1.0, 0.5, 3.0]))),
    "laplace": (MAKERS["laplace"], lambda d, t: d.Laplace(t([0.0, 1.0]), t([1.0, 0.5]))),
    "exponential": (MAKERS["exponential"], lambda d, t: d.Exponential(t([1.0, 0.5]))),
    "uniform": (MAKERS["uniform"], lambda d, t: d.Uniform(t([-2.0, 1.0]), t([1.0, 5.0]))),
    "poisson": (MAKERS["poisson"], lambda d, t: d.Poisson(t([1.0, 0.5]))),
    "bernoulli": (MAKERS["bernoulli"], lambda d, t: d.Bernoulli(t([0.5, 0.1, 0.3]))),
    "bernoulli at the ends": (lambda d, t: d.Bernoulli(t([0.0, 1.0, 0.5])), lambda d, t: d.Bernoulli(t([0.5, 0.5, 0.0]))),
    "categorical": (MAKERS["categorical"], lambda d, t: d.Categorical(logits=t([[0.5, 0.1, 0.3], [1.0, 0.0, 0.0]]))),
    "categorical with zeros": (lambda d, t: d.Categorical(t([0.0, 0.5, 0.5])), lambda d, t: d.Categorical(t([0.5, 0.5, 0.0]))),
    "one-hot": (MAKERS["one-hot"], lambda d, t: d.OneHotCategorical(t([0.5, 0.1, 0.4]))),
    "gamma": (MAKERS["gamma"], lambda d, t: d.Gamma(t([1.0, 1.0, 2.0]), t([2.0, 1.0, 1.0]))),
    "beta": (MAKERS["beta"], lambda d, t: d.Beta(t([1.0, 1.0]), t([2.0, 1.0]))),
    "dirichlet": (MAKERS["dirichlet"], lambda d, t: d.Dirichlet(t([1.0, 1.0, 2.0]))),
    "multivariate": (MAKERS["multivariate covariance"],
                     lambda d, t: d.MultivariateNormal(t([0.0, 0.0]), t([[1.0, 0.0], [0.0, 3.0]]))),
    "multivariate batch": (MAKERS["multivariate batch"], MAKERS["multivariate covariance"]),
    "independent": (MAKERS["independent"], lambda d, t: d.Independent(d.Normal(t([[0.0, 0.0]] * 2), 1.0), 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", list(PAIRS))
def test_kl_divergence(name):
    results = []
    for engine in ENGINES:
        p, q = (make_one(engine.distributions, engine.tensor) for make_one in PAIRS[name])
        results.append(engine.distributions.kl_divergence(p, q))
    close(results[1], results[0])


def test_kl_divergence_has_gradients():
    grads = []
    for engine in ENGINES:
        loc = engine.tensor([0.3, -1.0], requires_grad=True)
        normal = engine.distributions.Normal
        engine.distributions.kl_divergence(normal(loc, 2.0), normal(0.0, 1.0)).sum().backward()
        grads.append(loc.grad)
    close(grads[1], grads[0])


def test_kl_of_subclasses_and_registered_pairs():
    d = rushlight.distributions

    class Mine(d.Normal):
        pass

    assert d.kl_divergence(Mine(0.0, 1.0), d.Normal(0.0, 1.0)).item() == 0.0

    @d.register_kl(Mine, d.Normal)
    def _mine(p, q):
        return rushlight.tensor(7.0)

    assert d.kl_divergence(Mine(0.0, 1.0), d.Normal(0.0, 1.0)).item() == 7.0
    assert d.kl_divergence(d.Normal(0.0, 1.0), Mine(0.0, 1.0)).item() == 0.0


@pytest.mark.parametrize("name", ["categorical", "categorical one", "bernoulli"])
def test_enumerate_support(name):
    for expand in (True, False):
        expected, found = (make(engine, name)[0].enumerate_support(expand=expand) for engine in ENGINES)
        close(found, expected)


@pytest.mark.parametrize("call", [
    lambda e, d: d.Normal(e.tensor([0.0, 1.0]), e.tensor([1.0, -1.0])),
    lambda e, d: d.Normal(float("nan"), 1.0),
    lambda e, d: d.Normal("a", 1.0),
    lambda e, d: d.Normal(0.0, 1.0).log_prob(2.0),
    lambda e, d: d.Normal(0.0, 1.0).log_prob(e.tensor(float("nan"))),
    lambda e, d: d.Normal(e.zeros(2), 1.0).log_prob(e.zeros(3)),
    lambda e, d: d.Exponential(0.0),
    lambda e, d: d.Exponential(1.0).log_prob(e.tensor(-1.0)),
    lambda e, d: d.Uniform(1.0, 0.0),
    lambda e, d: d.Uniform(0.0, 1.0).log_prob(e.tensor(2.0)),
    lambda e, d: d.Categorical(e.tensor([-0.5, 1.5])),
    lambda e, d: d.Categorical(logits=e.tensor([float("nan"), 1.5])),
    lambda e, d: d.Categorical(),
    lambda e, d: d.Categorical(e.ones(2), e.ones(2)),
    lambda e, d: d.Categorical(e.tensor(1.0)),
    lambda e, d: d.Categorical(e.ones(3)).log_prob(e.tensor(3)),
    lambda e, d: d.Bernoulli(1.5),
    lambda e, d: d.Bernoulli(0.5).log_prob(e.tensor(0.5)),
    lambda e, d: d.Bernoulli(),
    lambda e, d: d.MultivariateNormal(e.zeros(2), -e.eye(2)),
    lambda e, d: d.MultivariateNormal(e.zeros(2)),
    lambda e, d: d.MultivariateNormal(e.tensor(0.0), e.eye(2)),
    lambda e, d: d.MultivariateNormal(e.zeros(2), e.ones(2)),
    lambda e, d: d.MultivariateNormal(e.zeros(2), scale_tril=e.ones(2, 2)),
    lambda e, d: d.MultivariateNormal(e.zeros(2), e.eye(2)).log_prob(e.zeros(3)),
    lambda e, d: d.Independent(d.Normal(e.zeros(2), 1.0), 2),
    lambda e, d: d.Gamma(-1.0, 1.0),
    lambda e, d: d.Dirichlet(e.tensor(1.0)),
    lambda e, d: d.Dirichlet(e.ones(2)).log_prob(e.ones(2)),
    lambda e, d: d.Categorical(e.ones(2)).rsample(),
    lambda e, d: d.kl_divergence(d.Categorical(e.ones(2)), d.Normal(0.0, 1.0)),
    lambda e, d: d.Normal(e.tensor([0.0, 1.0]), e.tensor([1.0, -1.0]), validate_args=False).mean,
    lambda e, d: d.Uniform(0.0, 1.0, validate_args=False).log_prob(e.tensor(2.0)),
])
def test_errors(call, same_error):
    same_error(lambda engine: call(engine, engine.distributions), words=5)


def test_full_words_of_a_bad_parameter():
    words = []
    for engine in ENGINES:
        with pytest.raises(ValueError) as caught:
            engine.distributions.Normal(engine.zeros(2), engine.tensor([1.0, -1.0]))
        words.append(" ".join(str(caught.value).split()))
    assert words[0] == words[1]


@pytest.mark.parametrize("engine", ENGINES, ids=["torch", "rushlight"])
def test_a_distribution_of_ones_own(engine):
    class Half(engine.distributions.Distribution):
        def rsample(self, sample_shape=()):
            return engine.full(self._extended_shape(sample_shape), 0.5)

    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        mine = Half(engine.Size((2,)))
    assert mine.sample((3,)).shape == (3, 2)
    assert Half(engine.Size((2,)), validate_args=False).batch_shape == (2,)


def test_printing():
    for name in ("normal", "normal of numbers", "categorical", "independent", "multivariate covariance", "uniform"):
        expected, found = (repr(make(engine, name)[0]) for engine in ENGINES)
        assert found == expected


def test_a_first_look_under_no_grad_does_not_cut_the_parameters_off():
    for engine in ENGINES:
        probs = engine.tensor([0.2, 0.8], requires_grad=True)
        distribution = engine.distributions.Categorical(probs)
        with engine.no_grad():
            distribution.logits  # noqa: B018
        assert distribution.log_prob(engine.tensor(1)).requires_grad


def test_gamma_samples_do_not_lose_gradients_without_a_word():
    concentration = rushlight.tensor([2.0], requires_grad=True)
    gamma = rushlight.distributions.Gamma(concentration, 1.0)
    assert gamma.sample().shape == (1,)
    with pytest.raises(NotImplementedError, match="use sample|Use sample"):
        gamma.rsample()


def test_absent_distributions_say_so():
    with pytest.raises(AttributeError, match="has no 'VonMises' yet"):
        rushlight.distributions.VonMises  # noqa: B018
