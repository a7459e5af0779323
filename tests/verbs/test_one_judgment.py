"""The verbs agree: `check` accepts what `advise` recommends and other verbs write, its fixes make
it pass, and no verb undoes another."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import sbbf_tool
from sbbf_tool import (
    FilterSpec,
    Limits,
    Policy,
    RefusedError,
    add_filters,
    advise,
    apply,
    check,
    repair,
)
from sbbf_tool.hints import Fix
from sbbf_tool.reports.findings import ERROR, INFO, Finding
from support.defects import DEFECTS
from support.samples import places
from support.tables import each

SHAPES = {
    "unique": lambda dice, n: dice.sample(range(1 << 40), n),
    "sorted": lambda dice, n: sorted(dice.sample(range(1 << 40), n)),
    "repeated": lambda dice, n: [dice.randrange(max(1, n // 3)) for _ in range(n)],
    "few": lambda dice, n: [dice.randrange(12) for _ in range(n)],
    "with nulls": lambda dice, n: [dice.choice((None, dice.getrandbits(40))) for _ in range(n)],
    "nulls": lambda dice, n: [None] * n,
    "one value": lambda dice, n: [None] * (n - 1) + [5],
    "nulls at the end": lambda dice, n: [
        *dice.sample(range(1 << 40), n // 2),
        *[None] * (n - n // 2),
    ],
}
TYPES = {
    "int64": lambda value: value,
    "int32": lambda value: value & 0x7FFFFFFF,
    "int8": lambda value: value & 0x7F,
    "string": lambda value: f"user-{value}",
    "binary": lambda value: value.to_bytes(8, "big"),
    "halffloat": lambda value: float(value % 2000),
    "float64": lambda value: value / 7,
    "bool": lambda value: value % 2 == 0,
    "timestamp[ms]": lambda value: value,
    "decimal128(38, 0)": lambda value: value,
}
if int(pa.__version__.split(".")[0]) < 15:
    del TYPES["halffloat"]  # pyarrow 15 is the first that writes half floats
WRITERS = (
    {"use_dictionary": False}, {}, {"compression": "zstd"},
    {"data_page_version": "2.0", "use_dictionary": False},
    {"write_page_index": True},
)  # fmt: skip
ENGINES = ((), ("duckdb",), ("spark",), ("duckdb", "spark"), ("cudf", "clickhouse"), ("trino",))


def column_of(kind: str, values: list[int | None]) -> pa.Array:
    items = [None if value is None else TYPES[kind](value) for value in values]
    if kind == "halffloat":
        return pa.array(items, pa.float32()).cast(pa.float16())
    return pa.array(
        items, pa.decimal128(38, 0) if kind.startswith("decimal") else pa.type_for_alias(kind)
    )


def write_lake(folder: Path, dice: random.Random) -> None:
    """Write one to three files of the same columns, of random types, shapes, sizes and
    encodings."""
    kinds = {
        f"{shape}: {kind}": (shape, kind)
        for shape in dice.sample(list(SHAPES), 3)
        for kind in dice.sample(list(TYPES), 3)
    }
    folder.mkdir()
    for number in range(dice.randint(1, 3)):
        rows = dice.choice((1, 30, 900, 5000))
        table = pa.table(
            {
                name: column_of(kind, SHAPES[shape](dice, rows))
                for name, (shape, kind) in kinds.items()
            }
        )
        groups = dice.choice((1, 2, 4))
        pq.write_table(
            table,
            folder / f"{number}.parquet",
            row_group_size=-(-rows // groups),
            **dice.choice(WRITERS),
        )


def carry_out(fix: Fix) -> None:
    """Make the change that a finding proposes, on each of its files."""
    for name in fix.files:
        for path in sorted(Path(name).glob("*.parquet")) if Path(name).is_dir() else [name]:
            getattr(sbbf_tool, fix.verb)(path, **fix.parameters())


def findings_of(folder: Path, policy: Policy) -> list[Finding]:
    return [
        finding
        for path in sorted(folder.glob("*.parquet"))
        for finding in check(path, policy).findings
    ]


def follow(folder: Path, policy: Policy) -> list[Finding]:
    """Make the changes that `check` proposes, one after the other, and return the findings that are
    left; each resolves its finding."""
    for _ in range(50):
        findings = findings_of(folder, policy)
        proposed = next((finding for finding in findings if finding.fix is not None), None)
        if proposed is None:
            return findings
        carry_out(proposed.fix)
        left = [
            (finding.rule, finding.file, finding.column) for finding in findings_of(folder, policy)
        ]
        assert (proposed.rule, proposed.file, proposed.column) not in left, proposed
    raise AssertionError(f"the fixes have no end: {proposed}")


def objections(findings: list[Finding]) -> list[tuple[str, str | None, str]]:
    """Return what takes back what another verb did: findings above info, and fixes that remove
    filters."""
    return [
        (finding.rule, finding.column, str(finding.fix))
        for finding in findings
        if finding.severity != INFO
        or (finding.fix is not None and finding.fix.verb == "remove_filters")
    ]


@each("seed", range(24), every=4)
def test_check_accepts_what_advise_recommends_and_others_write(tmp_path: Path, seed: int):
    dice = random.Random(seed)
    folder, engines = tmp_path / "lake", dice.choice(ENGINES)
    write_lake(folder, dice)
    fix = advise(folder, all_types=True, engine_names=engines).fix
    if fix is None:
        return
    carry_out(fix)
    policy = Policy(Limits(filters=FilterSpec(fix.columns, judge="existence"), engines=engines))
    assert objections(findings_of(folder, policy)) == []
    # Nothing is left to do, and nothing is taken back.
    assert advise(folder, all_types=True, engine_names=engines).fix is None
    for path in folder.glob("*.parquet"):
        before = places(path)
        assert repair(path, in_place=True).is_clean
        apply(path, Policy(Limits(filters=FilterSpec(fix.columns))), in_place=True)
        assert places(path).keys() == before.keys()
    # What `check` proposes about sizes is accepted too, by all of them.
    assert objections(follow(folder, policy)) == []
    assert advise(folder, all_types=True, engine_names=engines).fix is None


SIZE_RULES = ("nearly-empty", "larger-than-chunk", "large-for-chunk")


@each("seed", range(24), every=4)
def test_no_rule_finds_the_sizes_that_advise_recommends(tmp_path: Path, seed: int):
    folder = tmp_path / "lake"
    write_lake(folder, random.Random(seed))
    for path in sorted(folder.glob("*.parquet")):
        fix = advise(path, all_types=True).fix
        if fix is None:
            continue
        carry_out(fix)
        findings = check(path, Policy(select=SIZE_RULES)).findings
        assert [(finding.rule, finding.column) for finding in findings] == []
        assert advise(path, all_types=True).fix is None


@each("times, rule", [(2, "large-for-chunk"), (8, "larger-than-chunk")])
def test_a_size_that_is_found_has_a_fix(tmp_path: Path, times: int, rule: str):
    path = tmp_path / "large.parquet"
    pq.write_table(pa.table({"id": list(range(900))}), path, compression="none")
    add_filters(path, "id", in_place=True, ndv=900 * times)
    (finding,) = check(path, Policy(select=(rule,))).findings
    assert finding.fix is not None
    carry_out(finding.fix)
    assert not check(path, Policy(select=SIZE_RULES)).findings


def test_a_size_that_nothing_resolves_says_why(tmp_path: Path):
    path = tmp_path / "small.parquet"
    pq.write_table(pa.table({"id": [7]}), path, compression="none", use_dictionary=False)
    add_filters(path, "id", in_place=True)
    (finding,) = check(path, Policy(select=SIZE_RULES)).findings
    assert (finding.rule, finding.fix) == ("larger-than-chunk", None)
    assert all("no smaller filters" in evidence.fact for evidence in finding.evidence)
    (column,) = advise(path).columns
    assert column.verdict == "no gain"


@each("seed", range(24), every=4)
def test_what_is_added_by_default_is_nothing_to_warn_of(tmp_path: Path, seed: int):
    folder = tmp_path / "lake"
    write_lake(folder, random.Random(seed))
    for path in folder.iterdir():
        report = add_filters(
            path,
            [
                name
                for name in pq.read_schema(path).names
                if not name.endswith(("bool", "halffloat"))
            ],
            in_place=True,
        )
        assert not report.saturated_filters
    findings = [finding for finding in findings_of(folder, Policy()) if finding.severity != INFO]
    assert [(finding.rule, finding.column, finding.evidence[:2]) for finding in findings] == []


@each("fpp, ndv", [(1e-6, None), (0.2, None), (0.01, 200_000)], every=3)
def test_check_accepts_what_is_declared(tmp_path: Path, fpp: float, ndv: int | None):
    path = tmp_path / "declared.parquet"
    pq.write_table(
        pa.table({"id": random.Random(1).sample(range(1 << 40), 3000)}), path, row_group_size=1000
    )
    spec = FilterSpec("id", fpp, ndv)
    policy = Policy(Limits(filters=spec))
    apply(path, policy, in_place=True)
    old = path.read_bytes()
    findings = check(path, policy).findings
    assert objections(list(findings)) == []
    assert [finding.rule for finding in findings if finding.fix is not None] == []
    apply(path, policy, in_place=True)
    assert path.read_bytes() == old


@each("seed", range(48), every=8)
def test_the_fixes_of_limits_are_accepted_and_have_an_end(tmp_path: Path, seed: int):
    dice = random.Random(seed)
    folder, path = tmp_path / "lake", tmp_path / "lake/0.parquet"
    write_lake(folder, dice)
    for name in pq.read_schema(path).names:
        with suppress(RefusedError):  # of chunks without values
            add_filters(
                path,
                name,
                in_place=True,
                force=True,
                fpp=dice.choice((1e-6, 0.01, 0.3)),
                ndv=dice.choice((None, 30, 9000)),
            )
    filters = dice.choice(((), FilterSpec(pq.read_schema(path).names[0], dice.choice((0.1, 1e-4)))))
    limits = Limits(
        dice.choice((None, 0.3, 0.01, 1e-4)),
        dice.choice((0.5, 0.3, 0.11, 0.05, 0.01)),
        filters=filters,
    )
    over = {"fpp-above-limit", "bytes-share-above-limit"}
    for finding in follow(folder, Policy(limits)):
        assert finding.rule not in over or all(
            "no filter has both" in evidence.fact for evidence in finding.evidence
        ), finding


@each("seed", range(48), every=8)
def test_the_fixes_of_one_report_do_not_contradict_each_other(tmp_path: Path, seed: int):
    dice = random.Random(seed)
    folder, path = tmp_path / "lake", tmp_path / "lake/0.parquet"
    write_lake(folder, dice)
    columns = [name for name in pq.read_schema(path).names if not name.endswith("bool")]
    # Too large, too weak, with a single block, or only of some row groups.
    for name in columns:
        options = dice.choice(({"fpp": 1e-6}, {"ndv": 100_000}, {"ndv": 1}, {"fpp": 0.4}, None))
        with suppress(RefusedError):  # of chunks without values
            add_filters(path, name, in_place=True, force=True, **options) if options else None
    chosen = tuple(dice.sample(columns, 2))
    filters = dice.choice(
        (
            (),
            (FilterSpec(chosen, dice.choice((0.2, 0.01, 1e-5))),),
            (FilterSpec(chosen, judge="existence"),),
        )
    )
    limits = Limits(
        dice.choice((None, None, 0.3, 1e-4)),
        dice.choice((None, 0.3, 0.11, 0.05, 0.01)),
        dice.choice((None, None, 50)),
        dice.choice((None, None, 2000)),
        filters,
        dice.choice(ENGINES),
    )
    policy = Policy(limits)
    findings = check(path, policy).findings
    for fix in dict.fromkeys(finding.fix for finding in findings if finding.fix is not None):
        with suppress(RefusedError):  # another fix has done it
            carry_out(fix)
    left = [(finding.rule, finding.column) for finding in check(path, policy).findings]
    assert [
        each for each in findings if each.fix is not None and (each.rule, each.column) in left
    ] == []


NOT_FIXED = {"wrong-statistics", "oversized-page", "damaged-encrypted-filter"}
"""Rules of errors that no filter resolves, or only one that is built with a key."""


@each(
    "rule, requires",
    [(rule, requires) for rule in sorted(DEFECTS.keys() - NOT_FIXED) for requires in (False, True)],
    every=9,
)
def test_the_fixes_of_check_make_it_pass(tmp_path: Path, rule: str, requires: bool):
    path = tmp_path / "defect.parquet"
    DEFECTS[rule].make(path)
    # A required filter of a BOOLEAN column is never built, and one of an encrypted column only with
    # its key.
    never = ("empty-boolean-filter", "plaintext-filter-on-encrypted-column")
    left = ["missing-filter"] if requires and rule in never else []
    columns = tuple(dict.fromkeys(column for _, column in places(path))) if requires else ()
    policy = Policy(Limits(filters=FilterSpec(columns, judge="existence"))) if columns else Policy()
    assert [
        finding.rule for finding in follow(tmp_path, policy) if finding.severity == ERROR
    ] == left
