"""torch.nn.modules: the modules under the path that older programs import them from."""

from .. import *  # noqa: F403
from .. import __all__ as __all__
from . import batchnorm as batchnorm
from . import loss as loss
from . import module as module
