"""Optimizers and learning-rate schedules."""

from . import lr_scheduler as lr_scheduler
from .adam import Adam, Adamax, AdamW, NAdam, RAdam
from .adaptive import ASGD, Adadelta, Adagrad, RMSprop, Rprop
from .lbfgs import LBFGS
from .optimizer import Optimizer
from .sgd import SGD

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam", "RMSprop",
    "Rprop", "lr_scheduler",
]  # fmt: skip
