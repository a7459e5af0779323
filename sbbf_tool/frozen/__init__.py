"""What programs that freeze Python need: PyInstaller finds the hook in this folder by the entry point `pyinstaller40`."""

from __future__ import annotations

import os


def hook_folders() -> list[str]:
    """Return the folders with PyInstaller's hooks."""
    return [os.path.dirname(__file__)]
