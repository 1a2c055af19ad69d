"""The project's own tests: `python -m unittest` from its root runs them all."""

from __future__ import annotations

import os
import unittest
from typing import Optional


def load_tests(loader: unittest.TestLoader, tests: unittest.TestSuite, pattern: Optional[str]) -> unittest.TestSuite:
    """All tests of this folder, in the order that takes the least time."""
    from .support import Together

    tests.addTests(loader.discover(os.path.dirname(__file__), pattern or "test*.py"))
    return Together(tests)
