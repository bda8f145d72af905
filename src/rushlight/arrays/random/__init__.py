"""Random streams on raw arrays: with the same seed, the same numbers as PyTorch's CPU generator."""

from .continuous import cauchy, exponential, gamma, log_normal, normal, normal_around, uniform
from .discrete import bernoulli, dropout_noise, geometric, multinomial, poisson, random_integers, randperm
from .generator import Generator, default_generator

__all__ = [
    "Generator",
    "bernoulli",
    "cauchy",
    "default_generator",
    "dropout_noise",
    "exponential",
    "gamma",
    "geometric",
    "log_normal",
    "multinomial",
    "normal",
    "normal_around",
    "poisson",
    "random_integers",
    "randperm",
    "uniform",
]
