"""The browser of all tests of this folder."""

from __future__ import annotations

from support.browser import browser

__all__ = ["browser"]
