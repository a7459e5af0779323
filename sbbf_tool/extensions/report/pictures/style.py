"""The style of pictures and tables, from `style.css` beside this module."""

from __future__ import annotations

from functools import lru_cache
from pkgutil import get_data


@lru_cache(maxsize=1)
def load_style() -> str:
    """Return the style, which applies below an element of the class `sbbf`."""
    data = get_data(__package__, "style.css")
    assert data is not None, "the package contains the file"
    return data.decode()
