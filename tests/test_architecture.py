"""Who may import whom. Data flows one way: storage, parquet and bloom know nothing of verbs, verbs
nothing of a screen."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TypeVar

import pytest

from parts.functions import public_names
from sbbf_tool.cli import COMMANDS, run
from sbbf_tool.extension import extensions
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.idl import ttypes

Node = TypeVar("Node", bound=ast.AST)

PACKAGE = Path(__file__).parent.parent / "sbbf_tool"
GENERATED = PACKAGE / "parquet" / "idl"

# The rooms from the lowest to the highest: each may import those before it, but for what FORBIDDEN
# says.
ORDER = (
    "exports", "frozen", "numbers", "display", "log", "hints", "errors", "records", "gregorian",
    "arguments", "predicates", "condition_parser", "extension",
    "bloom", "parquet", "encryption",
    "storage", "reports", "file", "query_engines", "rules", "writers", "advice", "editing", "verbs",
    "running", "spark", "cli",
)  # fmt: skip
CROSSINGS = {("paimon", "conformance")}
"""Imports of an extension by another: the corpus imports its part about Paimon, which is made of
the corpus' classes."""
EXTENSIONS = ("avro", "paimon", "tables", "report", "conformance", "engine_runs", "index")
FORBIDDEN = {
    "bloom": {"arguments", "gregorian", "records"},
    "encryption": {"bloom"},
    "storage": {"bloom", "parquet", "encryption"},
    "reports": {"bloom", "parquet", "encryption", "storage"},
    "spark": {"bloom", "parquet", "encryption"},
}
ROOMS = {room: set(ORDER[:at]) - FORBIDDEN.get(room, set()) for at, room in enumerate(ORDER)}
ROOMS |= {"__init__": set(ORDER) - {"cli"}, "__main__": {"display", "errors", "cli"}}
ROOMS |= {extension: {*ORDER, "avro"} for extension in EXTENSIONS}

# Third-party package -> the only rooms that may know it.
HOMES = {
    "azure": {"storage"},
    "botocore": {"storage"},
    "click": {"cli"},
    "cryptography": {"encryption"},
    "chdb": {"engine_runs"},
    "datafusion": {"engine_runs"},
    "duckdb": {"tables", "engine_runs"},
    "fastavro": {"avro"},
    "google": {"storage"},
    "google_crc32c": {"storage"},
    "jinja2": {"report"},
    "obstore": {"storage"},
    "polars": {"engine_runs"},
    "requests": {"storage"},
    "rich": {"cli"},
    "psycopg": {"tables"},
    "pyiceberg": {"tables"},
    "pyspark": {"spark", "engine_runs"},
    "thrift": {"parquet"},
    "urllib3": {"storage"},
    "xxhash": {"bloom", "paimon"},
}


SCREEN = {"click", "rich"}
"""What the commands of extensions draw and parse with."""


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def modules() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if GENERATED not in path.parents]


def room_of(path: Path) -> str:
    return room_named(path.relative_to(PACKAGE).with_suffix("").parts)


def room_named(parts: Sequence[str]) -> str:
    """Return the room of a module by its name below the package; an extension is a room."""
    return parts[1] if parts[0] == "extensions" and len(parts) > 1 else parts[0]


@cache
def screens() -> frozenset[str]:
    """The modules by which extensions add commands, options and topics to the command line."""
    names: set[str] = set()
    for extension in extensions():
        names |= {module for module, _ in extension.commands.values()}
        names |= {name.partition(":")[0] for name in extension.options.values()}
        names |= {name.partition(":")[0] for name in extension.topics.values()}
    return frozenset(names)


def is_screen(module: str) -> bool:
    """Return whether a module of an extension is part of the command line."""
    return any(module == screen or module.startswith(f"{screen}.") for screen in screens())


def module_of(path: Path) -> str:
    """Return the name by which a module is imported."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def named(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@cache
def all_nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree_of(path)))


def nodes_of(path: Path, kind: type[Node]) -> Iterator[Node]:
    return (node for node in all_nodes(path) if isinstance(node, kind))


def imports_of(path: Path) -> Iterator[str]:
    """Every module that is imported anywhere in the file, also inside functions."""
    for node in all_nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            assert node.module is not None
            yield node.module
            # Each may be a module as well as a name in one.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def import_graph(package: Path, paths: Iterable[Path]) -> dict[str, set[str]]:
    """For each module, the modules that importing it, or calling its functions, may run: `import
    a.b` runs `a/__init__` as well."""
    names = {
        ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        ): path
        for path in paths
    }
    graph: dict[str, set[str]] = {}
    for name, path in names.items():
        parts = [module.split(".") for module in imports_of(path)]
        imported = {
            ".".join(module[:length]) for module in parts for length in range(1, len(module) + 1)
        }
        # A module runs after the `__init__` of its own packages, which it imports only where it
        # names one of them.
        own = {name[:at] for at, letter in enumerate(name) if letter == "."}
        graph[name] = (
            (imported & names.keys())
            - {name}
            - (own - {node for node in imports_of(path) if node in own})
        )
    return graph


def circles(graph: dict[str, set[str]]) -> list[tuple[str, ...]]:
    """The strongly connected parts of more than one module."""
    below: dict[str, set[str]] = {}
    for start in graph:
        nodes, open_ = set(), [start]
        while open_:
            fresh = graph[open_.pop()] - nodes
            nodes |= fresh
            open_ += fresh
        below[start] = nodes
    return sorted(
        {
            tuple(
                sorted(
                    {node} | {neighbour for neighbour in below[node] if node in below[neighbour]}
                )
            )
            for node in graph
            if node in below[node]
        }
    )


ARCHITECTURE = PACKAGE.parent / "docs" / "architecture.md"
PAGE = ARCHITECTURE.read_text()


def build_table(*rows: Iterable[str]) -> str:
    """Build a table of Markdown; the first row is the head."""
    head, *body = ["| " + " | ".join(cells) + " |" for cells in rows]
    return "\n".join([head, "|" + "---|" * head.count(" | ") + "---|", *body])


def describe_packages() -> str:
    """Build the table of the packages in their order."""

    def quote(names: Iterable[str]) -> str:
        return ", ".join(f"`{name}`" for name in names)

    rows = []
    for room in (*ORDER, *EXTENSIONS):
        places = (
            PACKAGE / room / "__init__.py",
            PACKAGE / "extensions" / room / "__init__.py",
            PACKAGE / f"{room}.py",
        )
        docstring = ast.get_docstring(ast.parse(next(filter(Path.exists, places)).read_text()))
        assert docstring, f"{room} has no docstring"
        sentence = re.split(r"(?<=\.)\s", docstring.replace("|", "\\|"))[0].rstrip(".")
        forbidden = sorted(FORBIDDEN.get(room, ()), key=ORDER.index)
        rows.append(
            (
                f"`{room}`",
                sentence.replace("\n", " "),
                quote(forbidden),
                quote(name for name in sorted(HOMES) if room in HOMES[name]),
            )
        )
    return build_table(("package", "contains", "must not import", "third-party packages"), *rows)


def caches_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the size of each cache that a module keeps as long as its process
    lives."""
    for node in tree_of(path).body:
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                name = ast.unparse(decorator).removeprefix("functools.")
                if name.split("(")[0] in ("cache", "lru_cache"):
                    yield (
                        node.name,
                        f"{int(size[0]):,}"
                        if (size := re.findall(r"\d+", name))
                        else "all"
                        if name == "cache"
                        else "128",
                    )
        elif isinstance(node, ast.Assign) and re.match(r"(lru_)?cache\(", ast.unparse(node.value)):
            yield ast.unparse(node.targets[0]), "all"


def describe_caches() -> str:
    """Build the table of the caches of a process."""
    rows = [
        (f"`{path.relative_to(PACKAGE)}`", ", ".join(f"`{name}` ({size})" for name, size in caches))
        for path in modules()
        if (caches := list(caches_of(path)))
    ]
    return build_table(("module", "functions"), *rows)


GENERATED_TABLES = {"packages": describe_packages, "caches": describe_caches}


@pytest.mark.parametrize("name", GENERATED_TABLES)
def test_the_page_shows_the_packages_and_the_caches(name, request):
    """`--bless` writes the tables as they are now."""
    part = re.compile(rf"(<!-- begin: {name} -->\n)(.*?)(<!-- end: {name} -->\n)", re.DOTALL)
    table = GENERATED_TABLES[name]() + "\n"
    if request.config.getoption("--bless"):
        ARCHITECTURE.write_text(
            part.sub(lambda match: match[1] + table + match[3], ARCHITECTURE.read_text())
        )
    (match,) = part.findall(ARCHITECTURE.read_text())
    assert match[1] == table


REQUIRED_FIELDS = {"num_nulls", "IEEE_754_TOTAL_ORDER", "INT96_TIMESTAMP_ORDER"}
"""Fields that no code names: readers of a page need the first, and the orders are looked at as
one."""


def test_the_definition_of_the_format_has_only_fields_that_are_named():
    """The rest of a footer survives without: it is spliced, and never written from the classes."""
    names = {node.attr for path in modules() for node in nodes_of(path, ast.Attribute)}
    names |= {node.arg or "" for path in modules() for node in nodes_of(path, ast.keyword)}
    names |= {text for path in modules() for text in texts_of(path)}
    fields = {
        field[2]
        for cls in vars(ttypes).values()
        for field in getattr(cls, "thrift_spec", ())
        if field is not None
    }
    assert fields - names == REQUIRED_FIELDS


def test_the_docs_name_modules_that_exist():
    names = re.findall(r"`([\w/]+\.py)`", PAGE)
    assert len(names) > 30
    assert [
        name
        for name in names
        if not (PACKAGE / name).exists() and not (PACKAGE.parent / name).exists()
    ] == []


def test_every_room_is_on_the_plan():
    assert {room_of(path) for path in modules()} <= ROOMS.keys()


def test_imports_go_one_way():
    wrong = []
    crossings: set[tuple[str, str]] = set()
    for path in modules():
        room = room_of(path)
        for module in imports_of(path):
            parts = module.split(".")
            if parts[0] == "sbbf_tool":
                target = room_named(parts[1:]) if len(parts) > 1 else room
                # What two verbs stand on belongs into a room below, or is what all verbs are.
                if (target != room and target not in ROOMS[room]) or (
                    room == target == "verbs" and not module.startswith("sbbf_tool.verbs.verb")
                ):
                    if target in EXTENSIONS:
                        crossings.add((room, target))
                    else:
                        wrong.append(f"{named(path)} must not import {module}")
            elif room not in HOMES.get(parts[0], {room}) and not (
                parts[0] in SCREEN and is_screen(module_of(path))
            ):
                wrong.append(f"{named(path)}: {parts[0]} lives in {sorted(HOMES[parts[0]])}")
    assert wrong == []
    assert crossings == CROSSINGS


def test_the_library_imports_no_screen():
    """Only the command line and the screens of extensions import either of them."""
    wrong = []
    for path in modules():
        if room_of(path) in ("cli", "__main__") or is_screen(module_of(path)):
            continue
        wrong += [
            f"{named(path)} imports {module}"
            for module in imports_of(path)
            if module.startswith("sbbf_tool.cli") or is_screen(module)
        ]
    assert wrong == []
    assert len(screens()) >= 7


def test_imports_make_no_circle():
    assert circles(import_graph(PACKAGE, modules())) == []


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ({"a": "import p.b", "b": "import p.c", "c": ""}, []),
        (
            {"a": "def f():\n    from p import b", "b": "if TYPE_CHECKING:\n    from p.a import x"},
            [("p.a", "p.b")],
        ),
        ({"q/__init__": "import p.a", "q/b": "", "a": "import p.q.b"}, [("p.a", "p.q")]),
    ],
)
def test_circles_are_found(tmp_path, texts, expected):
    for name, text in {"__init__": "", **texts}.items():
        path = tmp_path / "p" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert circles(import_graph(tmp_path / "p", (tmp_path / "p").rglob("*.py"))) == expected


CHUNK_FIELDS = {
    "meta_data",
    "total_compressed_size",
    "null_count",
    "crypto_metadata",
    "bloom_filter_offset",
    "bloom_filter_length",
}


def test_a_chunk_is_looked_into_by_chunk_meta_alone():
    """Code that reads the structs directly would decide again what a missing or negative number
    means."""
    others = [
        path for path in modules() if room_of(path) not in ("parquet", "encryption", "conformance")
    ]  # the latter builds them
    assert [
        named(path)
        for path in others
        if {node.attr for node in nodes_of(path, ast.Attribute)} & CHUNK_FIELDS
    ] == []


def test_modules_keep_no_state():
    """What is worth keeping from one call to the next has an object with a lifetime, such as
    `file.reuse.Reuse`."""
    process_wide = {"gc.disable", "gc.set_threshold", "os.umask"}
    for path in modules():
        assert not any(nodes_of(path, ast.Global)), path
        if path.name != "__main__.py":
            names = {
                f"{node.value.id}.{node.attr}"
                for node in nodes_of(path, ast.Attribute)
                if isinstance(node.value, ast.Name)
            }
            assert not names & process_wide, path


def test_modules_are_short_and_introduce_themselves():
    for path in modules():
        text = path.read_text()
        assert len(text.splitlines()) <= 500, path
        if path.name != "__init__.py" or text.strip():
            assert ast.get_docstring(tree_of(path)), f"{path}: a module opens with what it is"
        assert path.stem not in {"utils", "common", "helpers", "base", "core", "misc"}, path


def test_a_class_name_occurs_once():
    """Who reads a name in an error, a log or a search then knows which class it is."""
    names = Counter(
        node.name
        for path in modules()
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, number in names.items() if number > 1] == []


def count_bindings(body: Iterable[ast.stmt]) -> Counter[str]:
    """Count how often each name is bound by statements of a module. Of alternatives, such as the
    branches of an `if`, that with the most bindings counts."""
    bound: Counter[str] = Counter()
    for node in body:
        match node:
            case ast.Import(names) | ast.ImportFrom(names=names):
                bound.update(alias.asname or alias.name for alias in names)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                decorators = map(ast.unparse, node.decorator_list)
                bound[node.name] += "overload" not in decorators
            case ast.If():
                bound += count_bindings(node.body) | count_bindings(node.orelse)
            case ast.Try():
                alternatives = count_bindings([*node.body, *node.orelse])
                for handler in node.handlers:
                    alternatives |= count_bindings(handler.body)
                bound += alternatives + count_bindings(node.finalbody)
            case ast.For(target=target):
                bound += count_bindings([*node.body, *node.orelse]) + stored_names(target)
            case ast.With(items=items):
                bound += count_bindings(node.body)
                for item in items:
                    bound += stored_names(item.optional_vars)
            case ast.Assign(targets=targets):
                for target in targets:
                    bound += stored_names(target)
            case ast.AnnAssign(target=target) if node.value is not None:
                bound += stored_names(target)
            case _:
                pass  # it binds nothing, or declares or changes what is bound
    return bound


def stored_names(target: ast.expr | None) -> Counter[str]:
    nodes = ast.walk(target) if target is not None else ()
    return Counter(
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )


def names_bound_twice(body: Iterable[ast.stmt]) -> list[str]:
    return [name for name, count in count_bindings(body).items() if count > 1]


def test_modules_bind_a_name_once():
    """Where two modules are merged, or a constant is added, the later one would silently take the
    place of the other."""
    twice = {named(path): names_bound_twice(tree_of(path).body) for path in modules()}
    assert {path: names for path, names in twice.items() if names} == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A = 1\nB = 2\nA = 3", ["A"]),
        ("from a import b\nif TYPE_CHECKING:\n  from a import b", ["b"]),
        ("import a.b\nimport a.c", []),
        ("def f(): ...\nclass f: ...", ["f"]),
        ("@overload\ndef f(): ...\n@overload\ndef f(): ...\ndef f(): ...", []),
        ("if x:\n  A = 1\nelse:\n  A = 2", []),
        ("try:\n  import a\nexcept ImportError:\n  a = None", []),
        ("try:\n  import a\nexcept ImportError:\n  a = None\nelse:\n  a = 1", ["a"]),
        ("A: int\nA = 1\nA += 1\nB = [A for A in ()]", []),
        ("A, (B, C) = 1, (2, 3)\nfor C in ():\n  D = 1", ["C"]),
    ],
)
def test_names_that_are_bound_twice_are_found(text, expected):
    assert names_bound_twice(ast.parse(text).body) == expected


ALLOWED_OPTIONS = {
    "extensions/engine_runs/process.py": "options of the Python interpreter",
    "spark/causes.py": "an option of spark-submit",
    "spark/java.py": "options of the Java VM",
    "storage/objects/arrow.py": "`hadoop classpath --glob`, a command of Hadoop",
}
OPTION = re.compile(
    rf"(?<![\w-])--[a-z]|(?<![\w-])-[a-zA-Z](?![\w-])|\bsbbf (?:{'|'.join(COMMANDS)})\b"
)


def texts_of(path: Path) -> Iterator[str]:
    """Every string literal of a module but for docstrings and texts on their own, which document
    what stands above them."""
    documentation = {id(node.value) for node in nodes_of(path, ast.Expr)}
    for node in nodes_of(path, ast.Constant):
        if isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


def test_only_cli_spells_options():
    """Below it, hints are plain words and fixes are values."""
    spelling = {
        named(path): options
        for path in modules()
        if (options := [text for text in texts_of(path) if OPTION.search(text)])
    }
    others = {
        name: options
        for name, options in spelling.items()
        if not name.startswith(("cli/", "__main__")) and not is_screen(module_of(PACKAGE / name))
    }
    assert others.keys() == ALLOWED_OPTIONS.keys(), others


OF_EXTENSIONS = re.compile(
    r"(?i:paimon|ducklake|iceberg|jinja|avro|conformance)|\bDelta\b|_delta_log|DeltaTable"
)
MAY_NAME = {
    "cli/advise.py": "Iceberg's writers",
    "cli/settings.py": "variables of the tests",
    "cli/text_checks.py": "how an Avro file begins",
    "display.py": "passwords in the names of DuckLake's catalogs are redacted everywhere",
    "editing/targets.py": "what the refusal to change one file of a table says",
    "verbs/prune.py": "what the refusal to prune the folder of a table says",
    "parquet/other_kinds.py": "how an Avro file begins",
    "reports/rows.py": "data files in Avro",
    "rules/catalog.py": "Iceberg as a reader of filters",
    "rules/efficiency.py": "Iceberg as a reader of filters",
    "rules/format.py": "Iceberg as a reader of filters",
    "storage/objects/listing.py": "the folders by which a table is recognised",
    "storage/places.py": "the folders by which a table is recognised",
    "storage/table_formats.py": "the folders by which a table is recognised",
    "writers/settings.py": "Iceberg's writers",
    "writers/properties.py": "Iceberg's writers",
}


def test_the_core_names_no_extension():
    core = [
        path
        for path in PACKAGE.rglob("*.py*")
        if path.suffix in (".py", ".pyi") and path.relative_to(PACKAGE).parts[0] != "extensions"
    ]
    assert {
        named(path) for path in core if OF_EXTENSIONS.search(path.read_text())
    } == MAY_NAME.keys()


def loaded_after(code: str) -> set[str]:
    """Top-level modules loaded by a fresh interpreter that ran `code`."""
    program = (
        f"{code}\nimport sys; print(*{{name.split('.')[0] for name in sys.modules}}, "
        "file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "arguments", [["--help"], ["paimon", "--help"], ["paimon", "probe", "--help"]], ids=" ".join
)
def test_help_loads_neither_numpy_nor_pyarrow(arguments):
    loaded = loaded_after(f"from sbbf_tool.cli import run; assert run({arguments!r}) == 0")
    assert "click" in loaded
    assert not loaded & {"numpy", "pyarrow", "pyspark", "rich", "thrift", "difflib"}


def test_inspect_and_probe_do_not_load_pyarrow(fixtures):
    path = str(fixtures / "pyarrow-filters.parquet")
    for arguments in (["inspect", path], ["probe", path, "id", "1"]):
        loaded = loaded_after(f"from sbbf_tool.cli import run; assert run({arguments!r}) in (0, 1)")
        assert "thrift" in loaded
        assert not loaded & {"pyarrow", "pyspark", "rich", "pandas", "difflib", "shutil"}


def test_probe_of_some_thousand_keys_does_not_load_numpy(fixtures, tmp_path):
    """Importing it takes longer than sorting them."""
    keys = tmp_path / "keys"
    keys.write_text("".join(f"{-number}\n" for number in range(5000)))
    path = str(fixtures / "pyarrow-filters.parquet")
    arguments = ["probe", path, "id", "--values-file", str(keys)]
    loaded = loaded_after(f"from sbbf_tool.cli import run; assert run({arguments!r}) == 1")
    assert "numpy" not in loaded


def test_probe_begins_with_few_modules_and_no_dataclass(fixtures):
    """A dataclass takes longer to make than most modules take to load."""
    program = (
        "import sys; from sbbf_tool.cli import run; run(sys.argv[1:])\n"
        "print(sum(name.startswith('sbbf_tool') for name in sys.modules), 'dataclasses' in "
        "sys.modules, file=sys.stderr)"
    )
    command = [
        sys.executable,
        "-c",
        program,
        "probe",
        str(fixtures / "pyarrow-filters.parquet"),
        "id",
        "1",
    ]
    modules, dataclasses = subprocess.run(
        command, check=True, capture_output=True, text=True
    ).stderr.split()
    assert int(modules) <= 101
    assert dataclasses == "False"


def test_add_filter_loads_numpy_only_for_values_that_must_be_decoded(fixtures, tmp_path):
    arguments = [
        "add-filter",
        str(fixtures / "events.parquet"),
        "-c",
        "user_id",
        "-o",
        str(tmp_path / "filtered.parquet"),
    ]
    assert not loaded_after(f"from sbbf_tool.cli import run; assert run({arguments!r}) == 0") & {
        "numpy",
        "pyarrow",
        "pandas",
    }


def test_the_public_names_are_there():
    import sbbf_tool

    assert len(sbbf_tool.__all__) == 30, "verbs have their own package, and so has each extension"
    for name, home in public_names().items():
        module = import_module(home)
        assert name in dir(module)
        assert getattr(module, name).__name__ == name
    names: dict[str, object] = {}
    exec("from sbbf_tool import *", names)
    assert set(sbbf_tool.__all__) < set(names)
    with pytest.raises(AttributeError, match=r"'no_such_name'$"):
        sbbf_tool.no_such_name  # noqa: B018
    for name, similar in {"add_filter": "add_filters", "resize": "resize_filters"}.items():
        with pytest.raises(AttributeError, match=f"; did you mean {similar}"):
            getattr(sbbf_tool, name)
    assert not hasattr(sbbf_tool, "__path_of_nothing__")


@pytest.mark.parametrize("files", [1, 3])
def test_five_functions_are_between_a_command_and_an_open_file(
    files, tmp_path, monkeypatch, fixtures
):
    for number in range(files):
        shutil.copy(fixtures / "events.parquet", tmp_path / f"{number}.parquet")
    stacks = []
    really = ParquetFile.open

    def noting(path, *options):
        stacks.append(
            [
                frame.name
                for frame in traceback.extract_stack()
                if Path(frame.filename).is_relative_to(PACKAGE)
            ]
        )
        return really(path, *options)

    monkeypatch.setattr(ParquetFile, "open", noting)
    run(["probe", str(tmp_path / "0.parquet" if files == 1 else tmp_path), "user_id", "42"])
    assert len(stacks) == files
    assert {tuple(stack[-6:]) for stack in stacks} == {
        ("command", "report_files", "_run", "run", "__call__", "carry")
    }
