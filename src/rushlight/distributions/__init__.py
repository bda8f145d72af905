"""Probability distributions: samples from PyTorch's random streams, densities with gradients."""
from __future__ import annotations

from . import constraints
from .continuous import Exponential, Laplace, Normal, Uniform
from .discrete import Bernoulli, Categorical, OneHotCategorical, Poisson
from .distribution import Distribution
from .gamma import Beta, Dirichlet, Gamma
from .kl import kl_divergence, register_kl
from .multivariate import Independent, MultivariateNormal

__all__ = [
    "Bernoulli", "Beta", "Categorical", "Dirichlet", "Distribution", "Exponential", "Gamma", "Independent", "Laplace",
    "MultivariateNormal", "Normal", "OneHotCategorical", "Poisson", "Uniform", "constraints", "kl_divergence", "register_kl",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name[:1].isupper():
        raise AttributeError(f"rushlight.distributions has no {name!r} yet. It has {', '.join(__all__[:-3])}; write log_prob of "
                             "another one as a function of tensors.")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
