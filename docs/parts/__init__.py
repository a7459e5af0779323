"""The generated parts of the pages: cog puts what these functions return between the markers of a page.

`pytest -n 0 tests/test_docs_parts.py --bless` writes all of them, and begins the pages of new commands and rules.
"""

from __future__ import annotations

from collections.abc import Callable

from parts import commands, drawings, engines, functions, rules

PARTS: dict[str, Callable[..., str]] = {
    "command": commands.describe,
    "commands": commands.list_section,
    "draw_blocks": drawings.draw_blocks,
    "draw_file": drawings.draw_file,
    "draw_rates": drawings.draw_rates,
    "draw_skipping": drawings.draw_skipping,
    "engine_changes": engines.list_changes,
    "engine_defects": engines.list_defects,
    "engine_releases": engines.list_releases,
    "engine_sources": engines.list_sources,
    "engine_types": engines.list_types,
    "functions": functions.describe,
    "index_rules": rules.list_index_rules,
    "rule": rules.explain,
    "rules": rules.list_group,
}
"""What a marker may call, by name."""
