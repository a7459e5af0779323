"""The parts of the pages that the site has and the checkout has not: `fill` puts what these
functions return in place of their marks.

A mark is a line such as `<!-- site: rules format -->`: the function, and its argument if it takes
one.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from parts import commands, engines, functions, rules

PARTS: dict[str, Callable[..., str]] = {
    "commands": commands.describe_section,
    "engine_changes": engines.list_changes,
    "engine_defects": engines.list_defects,
    "engine_releases": engines.list_releases,
    "engine_sources": engines.list_sources,
    "engine_types": engines.list_types,
    "functions": functions.describe,
    "index_rules": rules.explain_index_rules,
    "rules": rules.explain_group,
    "schemas": commands.list_schemas,
}
"""What a mark may call, by name."""
_MARK = re.compile(r"^<!-- site: (\w+)(?: (\w+))? -->\n", re.MULTILINE)


def fill(text: str) -> str:
    """Return the text of a page with each mark replaced."""
    return _MARK.sub(lambda mark: PARTS[mark[1]](*filter(None, [mark[2]])), text)
