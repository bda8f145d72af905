"""`python -m rushlight.cli` is the `rushlight` command."""

import sys

from . import main

sys.exit(main())
