"""A filter that a released writer really gets wrong: parquetjs (`@dsnp/parquetjs` of npm) hashes text, and shares one block."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sbbf_tool import check, verify
from sbbf_tool.reports.verify import VerifyReport
from support.environments import NotInstallableError, install_npm

pytestmark = [pytest.mark.nightly, pytest.mark.environment(minutes=1)]

COLUMNS = ["id", "name", "price", "small", "ratio", "flag"]
PROGRAM = """
const {ParquetSchema, ParquetWriter} = require('@dsnp/parquetjs');
const XxHasher = require('@dsnp/parquetjs/dist/lib/bloom/xxhasher.js').default;
(async () => {
  await new XxHasher().hash64('The writer does not wait for its hashes. While the hasher is still loading, it writes an empty filter.');
  const [path, columns, rows] = [process.argv[2], process.argv[3].split(','), Number(process.argv[4])];
  const types = {id: 'INT64', name: 'UTF8', price: 'DOUBLE', small: 'INT32', ratio: 'FLOAT', flag: 'BOOLEAN'};
  const schema = new ParquetSchema(Object.fromEntries(columns.map(column => [column, {type: types[column]}])));
  const writer = await ParquetWriter.openFile(schema, path, {bloomFilters: columns.map(column => ({column, numFilterBytes: 1024}))});
  for (let n = 0; n < rows; n++)
    await writer.appendRow({id: 1000 + 17 * n, name: 'name-' + n, price: n * 1.1, small: n - 5, ratio: n / 8, flag: n % 2 == 0});
  await writer.close();
})();
"""


@pytest.fixture(scope="module")
def parquetjs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which node finds the writer."""
    try:
        installed = install_npm("parquetjs-1.8", '{"dependencies": {"@dsnp/parquetjs": "1.8"}}')
    except NotInstallableError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("parquetjs")
    (folder / "node_modules").symlink_to(installed / "node_modules")
    (folder / "write.js").write_text(PROGRAM)
    return folder


def write(parquetjs: Path, rows: int) -> Path:
    path = parquetjs / f"{rows}.parquet"
    subprocess.run(["node", "write.js", str(path), ",".join(COLUMNS), str(rows)], cwd=parquetjs, check=True, timeout=60)
    return path


def columns_with(report: VerifyReport, rule: str) -> set[str]:
    return {finding.column for finding in report.findings if finding.rule == rule}


def test_few_values_are_hashed_as_text_and_missed(parquetjs: Path):
    """Text is its own text, so a string column is right."""
    report = verify(write(parquetjs, 8))
    by_column = {result.column: result for result in report.filters}
    assert columns_with(report, "hashed-as-text") == {"id", "price", "small", "ratio", "flag"}
    assert columns_with(report, "false-negatives") == set()
    assert by_column["name"].is_verified
    assert {result.cause for result in report.filters} == {"text", None}
    assert all("JavaScript" in (result.explanation or "") for result in report.filters if result.false_negatives)
    assert columns_with(report, "unknown-header") == columns_with(report, "missing-length") == set(COLUMNS)
    assert not report.is_sound


def test_one_block_is_shared_by_all(parquetjs: Path):
    rules = {finding.rule: finding.column for finding in check(write(parquetjs, 8)).findings}
    assert "identical-blocks" in rules


def test_many_values_fill_it_so_that_nothing_is_missed_or_skipped(parquetjs: Path):
    path = write(parquetjs, 1000)
    report = verify(path)
    assert all(result.measured_fpp == 1.0 for result in report.filters if result.column != "flag")
    assert columns_with(report, "hashed-as-text") == {"flag"}
    assert {finding.column for finding in check(path).findings if finding.rule == "saturated"} == set(COLUMNS) - {"flag"}
