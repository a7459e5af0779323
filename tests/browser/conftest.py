"""The browser of all tests of this folder."""

from __future__ import annotations

from browser.chromium import browser

__all__ = ["browser"]
