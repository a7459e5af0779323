"""The one answer of `probe` and `explain` over URLs, whose files threads wait for."""

from __future__ import annotations

from itertools import cycle

import pytest

from sbbf_tool.cli import run
from support.three_files import CASES, FEW, FORMS, expected, words


def ask_of_urls(bucket, cases, *options):
    for form in FORMS:
        for case in cases[form]:
            urls = [bucket.put(f"{case}/{name}.parquet", content) for name, content in zip("abc", CASES[case].files, strict=True)]
            assert run([*words(form, bucket.url(f"{case}/"), urls), *options]) == expected(case, form), (case, form)


@pytest.mark.heavy
def test_of_a_prefix_and_of_urls(moto_bucket):
    ask_of_urls(moto_bucket, FEW)


def test_of_urls_and_files_together(moto_bucket, tmp_path):
    for case, form in zip(list(CASES)[::2], cycle(("probe of files", "explain of files")), strict=False):
        contents = CASES[case].files
        (tmp_path / "b.parquet").write_bytes(contents[1])
        names = [moto_bucket.put("a.parquet", contents[0]), str(tmp_path / "b.parquet"), moto_bucket.put("c.parquet", contents[2])]
        assert run(words(form, "", names)) == expected(case, form), (case, form)
