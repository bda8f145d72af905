"""Kullback-Leibler divergence of two distributions, in closed form."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rushlight

from ..tensor import Tensor
from .continuous import Exponential, Laplace, Normal, Uniform
from .discrete import Bernoulli, Categorical, OneHotCategorical, Poisson
from .distribution import Distribution
from .gamma import Beta, Dirichlet, Gamma
from .multivariate import Independent, MultivariateNormal

_FORMULAS: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """Decorates the function that computes the divergence of these two types, or of subclasses of them."""
    if not (isinstance(type_p, type) and issubclass(type_p, Distribution)):
        raise TypeError(f"Expected type_p to be a Distribution subclass but got {type_p}")
    if not (isinstance(type_q, type) and issubclass(type_q, Distribution)):
        raise TypeError(f"Expected type_q to be a Distribution subclass but got {type_q}")

    def decorate(function: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
        _FORMULAS[type_p, type_q] = function
        return function

    return decorate


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p || q), one number for each of the batch."""
    # The nearest bases come first: those of p count before those of q.
    for first in type(p).__mro__:
        for second in type(q).__mro__:
            if (first, second) in _FORMULAS:
                return _FORMULAS[first, second](p, q)
    raise NotImplementedError(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}. "
                              "Register one with register_kl, or estimate it from samples: p.log_prob(x) - q.log_prob(x).")


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log())


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * rushlight.exp(-away / p.scale) - 1


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return result.masked_fill((q.low > p.low) | (q.high < p.high), math.inf)


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    softplus = rushlight.nn.functional.softplus
    yes = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    no = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    yes = yes.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0)
    no = no.masked_fill(q.probs == 1, math.inf).masked_fill(p.probs == 1, 0)
    return yes + no


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    return terms.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    return (q.concentration * (p.rate / q.rate).log() + rushlight.lgamma(q.concentration) - rushlight.lgamma(p.concentration)
            + (p.concentration - q.concentration) * rushlight.digamma(p.concentration)
            + (q.rate - p.rate) * (p.concentration / p.rate))


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    alpha, beta = p.concentration, q.concentration
    total = alpha.sum(-1, True)
    return (rushlight.lgamma(total.squeeze(-1)) - rushlight.lgamma(beta.sum(-1))
            - (rushlight.lgamma(alpha) - rushlight.lgamma(beta)).sum(-1)
            + ((alpha - beta) * (rushlight.digamma(alpha) - rushlight.digamma(total))).sum(-1))


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    return _dirichlet(p._pair(), q._pair())


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError("KL-divergence between two Multivariate Normals with different event shapes cannot be computed")
    solve = rushlight.linalg.solve_triangular
    spread = (solve(q.scale_tril, p.scale_tril, upper=False) ** 2).sum((-2, -1))
    away = (solve(q.scale_tril, (q.loc - p.loc).unsqueeze(-1), upper=False) ** 2).sum((-2, -1))
    return q._half_log_det() - p._half_log_det() + 0.5 * (spread + away - p.event_shape[0])


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("KL of two Independent distributions needs the same reinterpreted_batch_ndims in both")
    return p._summed(kl_divergence(p.base_dist, q.base_dist))
