"""How files are changed, whatever is changed in them: where the result goes, what is allowed, and with what means."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sbbf_tool.editing.build import Progress
from sbbf_tool.file.cross_check import CrossChecks
from sbbf_tool.file.page_limit import PageLimit
from sbbf_tool.storage.places import TableFinder

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysGiven


@dataclass(frozen=True, slots=True)
class Edit:
    """Where changed files go and how they are changed; one object serves a run, and can be sent to other processes and machines."""

    output: str | None = None
    """The name of the new file; for one file."""
    in_place: bool = False
    append: bool = False
    """With `in_place`: write behind the file itself rather than to a copy."""
    dry_run: bool = False
    """Do everything but publish."""
    allow_table_files: bool = False
    keys: KeysGiven = field(default=None, repr=False, compare=False)
    """Of encrypted files, whose encrypted columns get encrypted filters."""
    limit: PageLimit = field(default_factory=PageLimit, compare=False)
    """What a page may state that it decompresses to."""
    jobs: int | None = None
    """Column chunks of a file to work on concurrently; the cores where None."""
    progress: Progress | None = field(default=None, repr=False, compare=False)
    cross_checks: CrossChecks = field(default_factory=CrossChecks, repr=False, compare=False)
    """The kinds of column chunk that pyarrow has decoded in this run."""
    tables: TableFinder = field(default_factory=TableFinder, repr=False, compare=False)
    """Which prefixes this run knows to be tables, or none."""
