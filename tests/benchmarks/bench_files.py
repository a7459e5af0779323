"""What whole commands cost on whole files, beside the systems that could do the same.
`bench_all.py` runs them.

Both are measured in turn as whole processes (A B A B ...), medians. Bytes are counted by the
commands themselves. A smaller scale makes the files smaller.
"""

from __future__ import annotations

import compileall
import decimal
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from figures import Figure, Target, command, cost_of, in_turn, measure, python, timed, usage_of

import sbbf_tool
from sbbf_tool.numbers import format_count

SBBF = str(Path(sys.executable).with_name("sbbf"))
ROW_GROUP_ROWS = 500_000
START = {"--help": 1.5, "probe": 1.8, "inspect": 2.5}
"""How many times as long as importing click each command may take."""
COPIES = {20: {"pyarrow": 2, "DuckDB": 4.5}, 200: {"DuckDB": 10}}
"""How many times faster an atomic copy is to be than others rewriting the file, by the number of
columns."""


# --- Files ---


def wide_table(path: Path, rows: int, columns: int, *, with_filters: bool = False) -> None:
    """`columns` columns, of which `id` is unique and `key` is text; the rest are numbers and text
    of some repetition."""
    rng = np.random.default_rng(7)
    writer = None
    for start in range(0, rows, ROW_GROUP_ROWS):
        count = min(ROW_GROUP_ROWS, rows - start)
        data = {
            "id": rng.integers(0, 2**62, count),
            "key": pa.array(np.char.add("user-", rng.integers(0, 10**9, count).astype("U"))),
        }
        while len(data) < columns:
            number = len(data)
            kind = number % 4
            if kind == 0:
                data[f"n{number}"] = rng.integers(0, 2**31, count)
            elif kind == 1:
                data[f"x{number}"] = rng.random(count)
            elif kind == 2:
                data[f"i{number}"] = rng.integers(0, 10**6, count).astype("i4")
            else:
                data[f"s{number}"] = pa.array(rng.integers(0, 10**7, count).astype("U"))
        table = pa.table(data)
        options = (
            {name: {"ndv": ROW_GROUP_ROWS, "fpp": 0.01} for name in data} if with_filters else None
        )
        writer = writer or pq.ParquetWriter(path, table.schema, bloom_filter_options=options)
        writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
    assert writer is not None
    writer.close()


REWRITERS = {
    "pyarrow": (
        "import sys, pyarrow.parquet as pq\n"
        "f = pq.ParquetFile(sys.argv[1])\n"
        "o = {c: {'ndv': 500000, 'fpp': 0.01} for c in ('id', 'key')}\n"
        "with pq.ParquetWriter(sys.argv[2], f.schema_arrow, bloom_filter_options=o) as w:\n"
        "    for i in range(f.num_row_groups): w.write_table(f.read_row_group(i), "
        "row_group_size=500000)\n"
    ),
    "DuckDB": (
        "import sys, duckdb\nduckdb.sql(f\"copy (from '{sys.argv[1]}') to '{sys.argv[2]}' "
        '(format parquet, row_group_size 500000)")\n'
    ),
    "DataFusion": (
        "import sys, datafusion\n"
        "c = datafusion.SessionContext()\n"
        "c.register_parquet('t', sys.argv[1])\n"
        "c.sql(f\"copy (select * from t) to '{sys.argv[2]}' stored as parquet options ("
        "'format.bloom_filter_enabled::id' 'true', 'format.bloom_filter_enabled::key' "
        "'true')\").collect()\n"
    ),
}


# --- Figures ---


def add_filter(folder: Path, rounds: int, scale: float, columns: int) -> Iterator[Figure]:
    source, copy, out = (
        folder / f"wide{columns}.parquet",
        folder / "copy.parquet",
        folder / "out.parquet",
    )
    wide_table(source, int(3_000_000 * scale), columns)
    size = source.stat().st_size

    def rewrite(name: str) -> Callable[[], float]:
        def once() -> float:
            out.unlink(missing_ok=True)
            return python(REWRITERS[name], source, out)()

        return once

    def ours(*options: str) -> Callable[[], float]:
        def once() -> float:
            copy.unlink(missing_ok=True)
            shutil.copyfile(source, copy)
            # An existing file is already on the disk; the measurement must not wait for its bytes.
            os.sync()
            return timed(
                [SBBF, "add-filter", str(copy), "-c", "id", "-c", "key", "--in-place", *options]
            )

        return once

    def plain_copy() -> float:
        out.unlink(missing_ok=True)
        os.sync()
        return timed(["sh", "-c", f"cp '{source}' '{out}' && sync '{out}'"])

    work = {
        "append": ours("--append"),
        "copy": ours(),
        "cp": plain_copy,
        **{name: rewrite(name) for name in REWRITERS},
    }
    times = in_turn(rounds, work)
    note = f"{size / 1e6:,.0f} MB; " + ", ".join(
        f"{name} {times[name]:.2f} s" for name in REWRITERS
    )
    name = f"add-filter, 2 of {columns} columns, "
    appends = {"DuckDB": 14 if columns == 20 else 60}
    for way, kind, targets in (
        ("append", "in-place append", appends),
        ("copy", "atomic copy", COPIES[columns]),
    ):
        for peer, bound in targets.items():
            yield Figure(
                name + kind,
                times[way],
                f"{peer} rewriting",
                times[peer],
                Target.times_faster(bound),
                note,
            )
    yield Figure(
        name + "atomic copy",
        times["copy"],
        "cp and sync of the file",
        times["cp"],
        Target.of_the_peer(1.4),
    )
    source.unlink()


def narrow_table(path: Path, rows: int, columns: int) -> None:
    """`id` and `key` are unique; the values of the other columns repeat, every second one without a
    dictionary."""
    rng = np.random.default_rng(7)
    data = {
        "id": rng.permutation(rows),
        "key": pa.array(np.char.add("user-", rng.permutation(rows).astype("U"))),
    }
    data |= {f"n{number}": rng.integers(0, 5000, rows) for number in range(columns - len(data))}
    pq.write_table(
        pa.table(data),
        path,
        row_group_size=ROW_GROUP_ROWS,
        use_dictionary=[f"n{number}" for number in range(0, columns, 2)],
    )


def advise(folder: Path, rounds: int, scale: float) -> Iterator[Figure]:
    """Advice on 20 columns beside adding the filters that it recommends: those of most columns, and
    of few."""
    for write in (wide_table, narrow_table):
        source, out = folder / "advise.parquet", folder / "out.parquet"
        write(source, int(3_000_000 * scale), 20)
        done = subprocess.run(
            [SBBF, "advise", str(source), "--format", "json"],
            check=True,
            capture_output=True,
            text=True,
        )
        names = [
            column["column"]
            for column in json.loads(done.stdout)["columns"]
            if column["verdict"] == "add"
        ]
        options = [word for name in names for word in ("-c", name)]

        def add(source: Path = source, out: Path = out, options: list[str] = options) -> float:
            out.unlink(missing_ok=True)
            return timed([SBBF, "add-filter", str(source), *options, "-o", str(out)])

        name = f"advise, 20 columns, of which {len(names)} are recommended"
        yield measure(
            rounds,
            name,
            command(SBBF, "advise", source),
            "adding the recommended filters",
            add,
            Target.of_the_peer(1.5),
        )
        source.unlink()


def verify(folder: Path, rounds: int, scale: float) -> Iterator[Figure]:
    """All values of 20 columns of four types, each queried in the filter of its chunk, beside
    DuckDB hashing all of them."""
    source = folder / "verify.parquet"
    rows = int(3_000_000 * scale)
    wide_table(source, rows, 20, with_filters=True)
    program = (
        "import sys, duckdb\n"
        "names = [row[0] for row in duckdb.sql(f\"describe from '{sys.argv[1]}'\").fetchall()]\n"
        "duckdb.sql(f\"select {', '.join(f'bit_xor(hash({name}))' for name in names)} from "
        "'{sys.argv[1]}'\").fetchall()\n"
    )
    ours, theirs = [SBBF, "verify", "-q", str(source)], [sys.executable, "-c", program, str(source)]
    name, target = f"verify, {20 * rows:,} values", Target.of_the_peer(1.0)
    figure = measure(
        rounds, name, command(*ours), "DuckDB scanning and hashing", command(*theirs), target
    )
    seconds, of_peer = in_turn(
        rounds, {"ours": lambda: usage_of(ours)[0], "peer": lambda: usage_of(theirs)[0]}
    ).values()
    yield figure._replace(
        note=f"processor time {seconds:.2f} s, DuckDB {of_peer:.2f} s, ratio "
        f"{seconds / of_peer:.2f}"
    )


def dictionary(folder: Path, rounds: int, scale: float) -> Iterator[Figure]:
    """Bytes that add-filter reads of dictionary-encoded chunks, beside the bytes of their
    dictionary pages."""
    from sbbf_tool.file.parquet_file import ParquetFile

    source = folder / "dictionary.parquet"
    rows = int(3_000_000 * scale)
    values = np.char.add("city-", np.random.default_rng(1).integers(0, 20_000, rows).astype("U"))
    pq.write_table(
        pa.table({"city": values, "n": np.arange(rows)}), source, row_group_size=ROW_GROUP_ROWS
    )
    with ParquetFile.open(source) as file:
        metas = [file.footer.chunk(number, 0) for number in range(file.footer.num_row_groups)]
    pages = sum(meta.data_page_offset - meta.dictionary_page_offset for meta in metas if meta)
    words = [
        SBBF,
        "add-filter",
        str(source),
        "-c",
        "city",
        "-o",
        f"{source}.out",
        "--format",
        "json",
    ]
    read = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)[
        "data_bytes_read"
    ]
    note = f"the chunks have {sum(meta.total_compressed_size for meta in metas if meta):,} bytes"
    name, peer = (
        "add-filter on a dictionary-encoded column, bytes read",
        "bytes of its dictionary pages",
    )
    yield Figure(name, read, peer, pages, Target.of_the_peer(1.05), note, "{:,.0f} bytes")


def cold_probe(folder: Path, rounds: int, scale: float) -> Iterator[Figure]:
    """One value, 100 row groups with filters of 1 MiB."""
    source = folder / "hundred.parquet"
    rows = 100 * 1000
    options = {"id": {"ndv": 800_000, "fpp": 0.01, "fold": False}}
    pq.write_table(
        pa.table({"id": np.arange(rows)}), source, row_group_size=1000, bloom_filter_options=options
    )
    duckdb = (
        "import sys, duckdb; duckdb.sql(f\"from parquet_bloom_probe('{sys.argv[1]}', "
        "'id', {sys.argv[2]})\").fetchall()"
    )
    name, peer = (
        "probe of one value, cold, 100 row groups with 1 MiB filters",
        "DuckDB parquet_bloom_probe",
    )
    ours = command(SBBF, "probe", "-q", "--filters-only", source, "id", "-5")
    figure = measure(
        rounds * 3, name, ours, peer, python(duckdb, source, -5), Target.times_faster(1)
    )
    done = subprocess.run(
        [SBBF, "probe", "--filters-only", "--format", "json", str(source), "id", "-5"],
        capture_output=True,
        text=True,
    )
    beyond = json.loads(done.stdout)["bytes_read"] - _footer_bytes(source)
    yield figure._replace(note=f"{beyond / 100:.0f} bytes a row group beyond the footer")


def _footer_bytes(path: Path) -> int:
    with path.open("rb") as stream:
        stream.seek(-8, os.SEEK_END)
        return int.from_bytes(stream.read(4), "little") + 8


def many_files(folder: Path, rounds: int, scale: float) -> Iterator[Figure]:
    lake = folder / "lake"
    lake.mkdir()
    count = int(5000 * scale)
    for number in range(count):
        ids = np.arange(number * 200, (number + 1) * 200)
        table = pa.table({"id": ids, "name": [f"u{value}" for value in ids], "x": ids * 0.5})
        pq.write_table(
            table,
            lake / f"part-{number:05d}.parquet",
            bloom_filter_options={"id": {"ndv": 200, "fpp": 0.01}},
        )
    duckdb = (
        'import sys, duckdb; duckdb.sql(f"from '
        "parquet_bloom_probe('{sys.argv[1]}/*.parquet', 'id', 77777)\").fetchall()"
    )
    name, peer = (
        f"probe of one value over {count:,} small files",
        "DuckDB parquet_bloom_probe over the glob",
    )
    ours = command(SBBF, "probe", "-q", "--filters-only", lake, "id", "77777")
    yield measure(rounds, name, ours, peer, python(duckdb, lake), Target.times_faster(2))


def small_files(folder: Path, rounds: int, scale: float) -> Iterator[Figure]:
    """Two columns of many files of 100 kB get filters, with two processes each; new copies of the
    files in each round."""
    source, work = folder / "source", folder / "work"
    source.mkdir()
    count = int(3000 * scale)
    rng = np.random.default_rng(7)
    for number in range(count):
        ids = rng.integers(0, 2**62, 3300)
        table = pa.table(
            {
                "id": ids,
                "key": np.char.add("user-", (ids % 10**9).astype("U")),
                "x": rng.random(3300),
            }
        )
        pq.write_table(table, source / f"part-{number:05d}.parquet")
    num_bytes = sum(path.stat().st_size for path in source.iterdir())
    # As others do it: one process per core, a temporary file, a rename; without `fsync`.
    rewriting = (
        "import glob, os, sys\n"
        "from multiprocessing import Pool\n"
        "import pyarrow.parquet as pq\n"
        "def rewrite(path):\n"
        "    o = {c: {'ndv': 3300, 'fpp': 0.01} for c in ('id', 'key')}\n"
        "    pq.write_table(pq.read_table(path, use_threads=False), path + '.new', "
        "bloom_filter_options=o)\n"
        "    os.replace(path + '.new', path)\n"
        "if __name__ == '__main__':\n"
        "    with Pool(2) as pool: pool.map(rewrite, sorted(glob.glob(sys.argv[1] + '/*')), 16)\n"
    )
    add = [
        SBBF,
        "add-filter",
        str(work),
        "-c",
        "id",
        "-c",
        "key",
        "--in-place",
        "--jobs",
        "2",
        "-q",
    ]

    def on_copies(command: list[str]) -> Callable[[], float]:
        def once() -> float:
            shutil.rmtree(work, ignore_errors=True)
            shutil.copytree(source, work)
            os.sync()
            return timed(command)

        return once

    script = folder / "rewriting.py"
    script.write_text(rewriting)
    name = (
        f"add-filter, 2 columns of {count:,} files of "
        f"{num_bytes / max(count, 1) / 1000:.0f} kB, two processes"
    )
    theirs = on_copies([sys.executable, str(script), str(work)])
    figure = measure(
        rounds,
        name,
        on_copies(add),
        "pyarrow rewriting, two processes, no fsync",
        theirs,
        Target.in_seconds(3.8),
    )
    shutil.rmtree(work)
    shutil.copytree(source, work)
    yield figure._replace(note=cost_of(add))
    # The files have their filters now.
    read_metadata = (
        "import glob, sys, pyarrow.parquet as pq\n"
        "for path in glob.glob(sys.argv[1] + '/*'): pq.read_metadata(path)\n"
    )
    inspect = [SBBF, "inspect", str(work), "-q", "--jobs", "2"]
    reading = [sys.executable, "-c", read_metadata, str(work)]
    for again, what, peer, theirs, target in (
        (add, "add-filter again", "sbbf inspect", inspect, Target.of_the_peer(1)),
        (
            [SBBF, "check", "--quick", str(work), "-q"],
            "check --quick",
            "pyarrow reading metadata",
            reading,
            Target.of_the_peer(1.5),
        ),
    ):
        times = _processor_times(rounds, again, theirs)
        name = f"{what}, the same files with their filters, processor time"
        yield Figure(name, times["ours"], peer, times["peer"], target)


def many_keys(folder: Path, rounds: int, scale: float) -> Iterator[Figure]:
    """int64 keys, of which 1 % are stored: a million in one file of 30 row groups with 1 MiB
    filters, 10,000 in 3,000 small files."""
    source, keys, answers = folder / "keys.parquet", folder / "keys.txt", folder / "answers.txt"
    rng = np.random.default_rng(7)
    rows, count = int(500_000 * scale), int(1_000_000 * scale)
    options = {"id": {"ndv": 800_000, "fpp": 0.01}}
    stored = []
    with pq.ParquetWriter(
        source, pa.schema({"id": pa.int64()}), bloom_filter_options=options, use_dictionary=False
    ) as writer:
        for _ in range(30):
            ids = rng.integers(0, 2**62, rows)
            stored.append(rng.choice(ids, max(1, count // 3000)))
            writer.write_table(pa.table({"id": ids}), row_group_size=rows)
    sample = np.concatenate(stored)
    values = np.concatenate([sample, rng.integers(0, 2**62, count - len(sample))])
    rng.shuffle(values)
    keys.write_text("".join(f"{value}\n" for value in values.tolist()))
    # Hashing and checking alone, without reading keys or printing, by the kernel in this process.
    bound = (
        "import sys, numpy as np\n"
        "from sbbf_tool.bloom import kernels\n"
        "values = np.arange(int(sys.argv[1]))\n"
        "hashes = kernels.active().hash_fixed(values, 8)\n"
        "bitsets = [np.random.default_rng(n).bytes(1 << 20) for n in range(30)]\n"
        "for bitset in bitsets: kernels.active().check(bitset, len(bitset) // 32, hashes)\n"
    )

    def ours() -> float:
        with answers.open("wb") as stream:
            start = time.perf_counter()
            subprocess.run(
                [SBBF, "probe", str(source), "id", "--values-file", str(keys)],
                check=True,
                stdout=stream,
            )
            return time.perf_counter() - start

    name = f"probe of {count:,} values, 30 row groups with 1 MiB filters"
    figure = measure(
        rounds,
        name,
        ours,
        "kernel alone, with Python's start",
        python(bound, count),
        Target.in_seconds(1.0),
    )
    num_lines = answers.read_bytes().count(b"\n") - 2
    cost = cost_of([SBBF, "probe", str(source), "id", "--values-file", str(keys)])
    yield figure._replace(note=f"{cost}; {num_lines:,} values listed")
    source.unlink()
    lake = folder / "keys"
    lake.mkdir()
    files = int(3000 * scale)
    for number in range(files):
        ids = rng.integers(0, 2**62, 400)
        options = {"id": {"ndv": 200, "fpp": 0.0001}}
        pq.write_table(
            pa.table({"id": ids}),
            lake / f"part-{number:05d}.parquet",
            row_group_size=200,
            bloom_filter_options=options,
        )
    few = folder / "few.txt"
    few.write_text("".join(f"{value}\n" for value in values[:10_000].tolist()))
    open_alone = (
        "import sys, glob\nfor name in glob.glob(sys.argv[1] + '/*'): open(name, 'rb').read()\n"
    )
    probe = [SBBF, "probe", "-q", str(lake), "-c", "id", "--values-file", str(few)]
    name = f"probe of 10,000 values over {files:,} small files, {2 * files:,} filters"
    figure = measure(
        rounds,
        name,
        command(*probe),
        "Python reading the files",
        python(open_alone, lake),
        Target.in_seconds(0.9),
    )
    yield figure._replace(note=cost_of(probe))


def keys_of_two_writers(folder: Path, rounds: int, scale: float) -> Iterator[Figure]:
    """50,000 keys, of which 1 in 20 is stored, over 2,000 files in 100 folders by pyarrow and
    DuckDB: beside DuckDB's exact semi-join."""
    import duckdb

    lake, keys = folder / "two-writers", folder / "keys.txt"
    rng, connection, stored = np.random.default_rng(40), duckdb.connect(), []
    for number in range(int(2000 * scale)):
        ids = rng.integers(0, 50_000_000, 1650) + number * 500
        rows = pa.table(
            {
                "user_id": ids,
                "device": [f"device-{each % 977}" for each in ids],
                "amount": rng.random(1650),
            }
        )
        path = lake / f"day={number // 20:03d}" / f"part-{number % 20:03d}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        if number % 2:
            pq.write_table(rows, path, row_group_size=1250)
        else:
            connection.register("rows", rows).execute(
                f"copy (from rows) to '{path}' (format parquet)"
            )
        stored += ids[:2].tolist()
    subprocess.run([SBBF, "add-filter", "-q", str(lake), "-c", "user_id", "--in-place"], check=True)
    some = [
        *rng.choice(stored, 2500),
        *rng.integers(0, 50_000_000, 9500),
        *rng.integers(0, 1 << 60, 38_000),
    ]
    keys.write_text("".join(f"{each}\n" for each in some))
    semi_join = (
        "import duckdb, sys\n"
        "lake, keys = f\"read_parquet('{sys.argv[1]}/**/*.parquet', filename = true)\", "
        "f\"read_csv('{sys.argv[2]}', header = false)\"\n"
        "duckdb.sql(f'select filename, count(*) from {lake} where user_id in (from {keys}) group "
        "by 1').fetchall()\n"
    )
    for name, options, wanted in (("probe", [], 2.0), ("probe --confirm", ["--confirm"], 3.0)):
        probe = [
            SBBF,
            "probe",
            "-q",
            str(lake),
            "-c",
            "user_id",
            "--values-file",
            str(keys),
            *options,
        ]
        what = f"{name} of {len(some):,} values over {int(2000 * scale):,} files of two writers"
        theirs = python(semi_join, lake, keys)
        target = Target.of_the_peer(wanted)
        figure = measure(rounds, what, command(*probe), "DuckDB's semi-join", theirs, target)
        yield figure._replace(note=cost_of(probe))


_SEMI_JOIN = (
    "import duckdb, sys\n"
    "files, keys, kind = sys.argv[1:]\n"
    "csv = f\"read_csv('{keys}', header = false, all_varchar = true)\"\n"
    "keys = f'(select column0::{kind} from {csv})'\n"
    "files = f\"read_parquet('{files}', filename = true)\"\n"
    "rows = f'select filename, count(*) from {files} where key in {keys} group by 1'\n"
    "duckdb.sql(rows).fetchall()\n"
)


def _random_uuids(rng: np.random.Generator, count: int) -> pa.Array:
    digits = rng.bytes(16 * count).hex()
    texts = (digits[at : at + 32] for at in range(0, len(digits), 32))
    return pa.array(
        f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}" for text in texts
    )


def _random_emails(rng: np.random.Generator, count: int) -> pa.Array:
    return pa.array(f"user.{number}@example.com" for number in rng.integers(0, 1 << 40, count))


def _random_decimals(rng: np.random.Generator, count: int) -> pa.Array:
    numbers = pa.array(rng.integers(0, 10**15, count)).cast(pa.decimal128(19, 0))
    return pc.multiply(numbers, pa.scalar(decimal.Decimal("0.01"))).cast(pa.decimal128(22, 2))


def _random_dates(rng: np.random.Generator, count: int) -> pa.Array:
    return pa.array(rng.integers(0, 60_000, count).astype("i4")).cast(pa.date32())


def _random_integers(rng: np.random.Generator, count: int) -> pa.Array:
    return pa.array(rng.integers(0, 1 << 62, count))


class StoredKeys(NamedTuple):
    """Keys that are looked for in files of random values."""

    draw: Callable[[np.random.Generator, int], pa.Array]
    kind: str
    """The type in DuckDB."""
    files: int
    rows: int
    """Rows of a file."""
    stored: int
    others: int
    """Keys that are not stored."""
    options: tuple[str, ...]
    bound: float
    """The share of DuckDB's processor time that the probe may take."""


STORED_KEYS = (
    StoredKeys(_random_uuids, "varchar", 300, 2000, 10_000, 10_000, ("--confirm", "--rows"), 1.2),
    StoredKeys(_random_integers, "bigint", 1600, 2000, 25_000, 25_000, ("--confirm",), 1.2),
    StoredKeys(_random_integers, "bigint", 1600, 2000, 1, 0, ("--confirm",), 0.7),
    StoredKeys(_random_emails, "varchar", 1, 5_000_000, 2000, 0, ("--confirm",), 1.5),
    StoredKeys(_random_decimals, "decimal(22, 2)", 1, 5_000_000, 2000, 0, ("--confirm",), 2.0),
    StoredKeys(_random_dates, "date", 1, 5_000_000, 200, 0, ("--confirm",), 2.5),
)


def stored_keys(folder: Path, rounds: int, scale: float) -> Iterator[Figure]:
    """Certain answers for keys of which half or all are stored, beside DuckDB's exact semi-join, in
    processor time: many small files, then one large file, of which pages hold many keys."""
    rng = np.random.default_rng(55)
    for case in STORED_KEYS:
        name = case.draw.__name__.rpartition("_")[2]
        lake, keys, stored = folder / name, folder / f"{name}.txt", list[object]()
        lake.mkdir()
        files = case.files if case.files == 1 else int(case.files * scale)
        rows = int(case.rows * scale) if case.files == 1 else case.rows
        for number in range(files):
            values = case.draw(rng, rows)
            pq.write_table(
                pa.table({"key": values}),
                lake / f"{number:05}.parquet",
                row_group_size=ROW_GROUP_ROWS,
                bloom_filter_options={"key": {"ndv": min(rows, ROW_GROUP_ROWS), "fpp": 0.01}},
            )
            share = -(-case.stored // files)
            stored += values.take(rng.choice(rows, min(rows, share), replace=False)).to_pylist()
        asked = [*stored[: case.stored], *case.draw(rng, case.others).to_pylist()]
        rng.shuffle(asked)
        keys.write_text("".join(f"{value}\n" for value in asked))
        probe = [SBBF, "probe", "-q", str(lake), "-c", "key", "--values-file", str(keys)]
        probe += case.options
        semi_join = [sys.executable, "-c", _SEMI_JOIN, f"{lake}/*.parquet", str(keys), case.kind]
        times = _processor_times(rounds, probe, semi_join)
        what = f"{len(asked):,} {name}, {min(len(asked), case.stored):,} of them stored"
        yield Figure(
            f"probe {' '.join(case.options)} of {what}, in {files * rows:,} rows of "
            f"{format_count(files, 'file')}, processor time",
            times["ours"],
            "DuckDB's semi-join",
            times["peer"],
            Target.of_the_peer(case.bound),
            f"{cost_of(probe)}; DuckDB: {cost_of(semi_join)}",
        )
        shutil.rmtree(lake)


def _processor_times(rounds: int, ours: list[str], peer: list[str]) -> dict[str, float]:
    return in_turn(rounds, {"ours": lambda: usage_of(ours)[0], "peer": lambda: usage_of(peer)[0]})


def small_pages(folder: Path, rounds: int, scale: float) -> Iterator[Figure]:
    """A column chunk with a page for each row, beside pyarrow reading it, in processor time."""
    source, out = folder / "pages.parquet", folder / "out.parquet"
    filtered = folder / "filtered.parquet"
    rows = int(400_000 * scale)
    options = {"use_dictionary": False, "data_page_size": 1, "write_batch_size": 1}
    pq.write_table(pa.table({"key": np.arange(rows)}), source, **options)
    subprocess.run([SBBF, "add-filter", "-q", source, "-c", "key", "-o", filtered], check=True)
    read = "import sys, pyarrow.parquet as pq; pq.read_table(sys.argv[1], use_threads=False)"
    peer = [sys.executable, "-c", read, str(source)]
    for name, *words in (
        ("add-filter", str(source), "-c", "key", "-o", str(out)),
        ("verify", str(filtered)),
        ("check", str(filtered)),
    ):
        ours = [SBBF, name, "-q", *words]

        def usage(ours: list[str] = ours) -> float:
            out.unlink(missing_ok=True)
            return usage_of(ours)[0]

        times = in_turn(rounds, {"ours": usage, "peer": lambda: usage_of(peer)[0]})
        yield Figure(
            f"{name}, {rows:,} pages of one row, processor time",
            times["ours"],
            "pyarrow reading the file",
            times["peer"],
            Target.of_the_peer(2.0),
        )


def many_columns(path: Path, columns: int, row_groups: int, filtered: tuple[str, ...] = ()) -> None:
    """Columns of four types with statistics; a row group has 20 rows, so that the footer is the
    larger part of the file."""
    count = row_groups * 20
    kinds = (
        np.arange(count),
        np.arange(count) * 0.5,
        np.arange(count, dtype="i4"),
        pa.array([f"value-{number}" for number in range(count)]),
    )
    table = pa.table({f"c{number}": kinds[number % 4] for number in range(columns)})
    pq.write_table(
        table,
        path,
        row_group_size=20,
        bloom_filter_options={name: {"ndv": 20, "fpp": 0.01} for name in filtered} or None,
    )


def wide_footer(folder: Path, rounds: int, scale: float) -> Iterator[Figure]:
    """Footers of 2,000 columns x 50 row groups and of 500 x 100: one column is probed or gets
    filters, or all are inspected."""
    source, out = folder / "footer.parquet", folder / "out.parquet"
    columns, row_groups = 2000, max(2, int(50 * scale))
    many_columns(source, columns, row_groups, ("c0", "c3"))
    size = f"{columns:,} columns x {row_groups} row groups"
    duckdb = (
        "import sys, duckdb; duckdb.sql(f\"from parquet_bloom_probe('{sys.argv[1]}', "
        "'c0', -5)\").fetchall()"
    )
    read_footer = "import sys, pyarrow.parquet as pq; pq.read_metadata(sys.argv[1])"
    add = [SBBF, "add-filter", str(source), "-c", "c4", "-o", str(out)]

    def add_once() -> float:
        out.unlink(missing_ok=True)
        return timed(add)

    probe = command(SBBF, "probe", "-q", "--filters-only", source, "c0", "-5")
    name, peer = f"probe of one value, {size}", "DuckDB parquet_bloom_probe"
    figure = measure(rounds * 3, name, probe, peer, python(duckdb, source), Target.times_faster(2))
    yield figure._replace(note=f"footer of {_footer_bytes(source):,} bytes")
    name, peer = f"add-filter, 1 column, {size}", "pyarrow reading the footer"
    figure = measure(
        rounds * 3, name, add_once, peer, python(read_footer, source), Target.in_seconds(0.5)
    )
    out.unlink()
    yield figure._replace(
        note=f"{source.stat().st_size / 1e6:,.0f} MB; peak of {usage_of(add)[1] / 1e6:,.0f} MB"
    )
    columns, row_groups = 500, max(2, int(100 * scale))
    many_columns(source, columns, row_groups)
    offsets = (
        "import sys, pyarrow.parquet as pq\n"
        "m = pq.read_metadata(sys.argv[1])\n"
        "print(sum(m.row_group(r).column(c).bloom_filter_offset is not None"
        " for r in range(m.num_row_groups) for c in range(m.num_columns)))\n"
    )
    name, ours = (
        f"inspect, {columns} columns x {row_groups} row groups, no filters",
        command(SBBF, "inspect", source, "--format", "json"),
    )
    theirs, target = python(offsets, source), Target.of_the_peer(1.2)
    figure = measure(
        rounds * 3, name, ours, "pyarrow reading metadata and filter offsets", theirs, target
    )
    yield figure._replace(note=f"footer of {_footer_bytes(source):,} bytes")


def start(folder: Path, rounds: int, scale: float) -> Iterator[Figure]:
    """The package as it is when installed, its bytecode compiled, on a file of 1,000 rows: all that
    is measured is how a process begins."""
    package = Path(sbbf_tool.__file__).parent
    shutil.copytree(package, folder / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(folder / package.name, quiet=1)
    source = folder / "small.parquet"
    pq.write_table(
        pa.table({"id": np.arange(1000)}), source, bloom_filter_options={"id": {"ndv": 1000}}
    )
    paths = f"import sys; sys.path.insert(0, {str(folder)!r}); "
    ours = {
        "--help": ["--help"],
        "probe of one small file": ["probe", str(source), "id", "5"],
        "inspect of one small file": ["inspect", str(source)],
    }
    work = {
        name: python(f"{paths}from sbbf_tool.__main__ import main; main()", *words)
        for name, words in ours.items()
    }
    times = in_turn(
        max(3, round(rounds * 10 * scale)), {**work, "peer": python(f"{paths}import click")}
    )
    for name in ours:
        bound = START[name.partition(" ")[0]]
        yield Figure(
            f"start, {name}",
            times[name],
            'python -c "import click"',
            times["peer"],
            Target.of_the_peer(bound),
        )


BENCHMARKS: dict[str, Callable[[Path, int, float], Iterator[Figure]]] = {
    "add20": lambda folder, rounds, scale: add_filter(folder, rounds, scale, 20),
    "add200": lambda folder, rounds, scale: add_filter(folder, max(1, rounds // 3), scale, 200),
    "advise": advise,
    "dictionary": dictionary,
    "verify": verify,
    "probe": cold_probe,
    "files": many_files,
    "small": small_files,
    "keys": many_keys,
    "lake": keys_of_two_writers,
    "stored": stored_keys,
    "pages": small_pages,
    "footer": wide_footer,
    "start": start,
}
