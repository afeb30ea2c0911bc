"""`python -m pai_labextension.console`: the console, as the Hub starts it."""

from __future__ import annotations

import sys

from .program import main

sys.exit(main())
