"""The recipe for Prometheus: its own program reads the text file, and evaluates the alerts on what the file says."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from support import environments
from support.environments import NotInstallableError
from support.recipes import DAYS, Lake, install, run, write_recipe

pytestmark = [pytest.mark.heavy(minutes=1), pytest.mark.environment(minutes=1), pytest.mark.timeout(600)]


def install_promtool() -> Path:
    """Return the program promtool of Debian's package, which is unpacked, not installed."""
    apt, dpkg = shutil.which("apt-get"), shutil.which("dpkg")
    if apt is None or dpkg is None:
        raise NotInstallableError("prometheus cannot be installed: there is no apt-get or no dpkg")

    def build(folder: Path) -> None:
        environments.run("prometheus", apt, "-o", "APT::Sandbox::User=root", "download", "-q", "prometheus", cwd=folder)
        environments.run("prometheus", dpkg, "-x", *map(str, folder.glob("*.deb")), str(folder), cwd=folder)

    return environments.install(f"prometheus-{platform.machine()}", build) / "usr" / "bin" / "promtool"


@pytest.fixture(scope="module")
def promtool() -> Path:
    try:
        return install_promtool()
    except NotInstallableError as error:
        pytest.skip(str(error))


def check(lake: Lake, folder: Path, code: int = 0) -> Path:
    """Run the script of the page; return the text file."""
    script = write_recipe("prometheus", folder)["sbbf-textfile.sh"]
    done = run(["sh", script], folder, {"LAKE": str(lake.folder), "TEXTFILES": str(folder)})
    assert (done.returncode, [path.name for path in folder.glob("*.prom*")]) == (code, ["sbbf.prom"]), done.stdout
    return folder / "sbbf.prom"


def fire(promtool: Path, text_file: Path | None, folder: Path, hours: int, alerts: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Let promtool evaluate the rules on the samples of the text file, some hours after 1970; `alerts` are those expected to fire."""
    samples = [line.rsplit(" ", 1) for line in text_file.read_text().splitlines() if line[0] != "#"] if text_file else []
    series = [{"series": name, "values": f"{'0' if name == 'sbbf_check_time_seconds' else value}x{hours}"} for name, value in samples]
    rules = yaml.safe_load((folder / "sbbf-rules.yml").read_text())["groups"][0]["rules"]
    tests = []
    for rule in rules:
        text = {"summary": alerts.get(rule["alert"], "")}
        expected = [{"exp_labels": rule["labels"], "exp_annotations": text}] if rule["alert"] in alerts else []
        tests.append({"eval_time": f"{hours}h", "alertname": rule["alert"], "exp_alerts": expected})
    assert len(tests) == 2
    document = {"rule_files": ["sbbf-rules.yml"], "tests": [{"interval": "1h", "input_series": series, "alert_rule_test": tests}]}
    (folder / "tests.yml").write_text(yaml.safe_dump(document))
    return run([promtool, "test", "rules", "tests.yml"], folder)


def test_prometheus_reads_the_text_file(promtool, tmp_path):
    text_file = check(Lake(tmp_path / "lake"), tmp_path)
    parsers = install("prometheus-client", "0.26.0")
    program = """
import json, sys
from prometheus_client.parser import text_string_to_metric_families
families = text_string_to_metric_families(open(sys.argv[1]).read())
print(json.dumps({family.name: len(family.samples) for family in families}))
"""
    done = run(["python", "-c", program, text_file], tmp_path, programs=parsers)
    assert done.returncode == 0, done.stdout
    assert '"sbbf_check_files": 3' in done.stdout
    done = run([promtool, "check", "metrics"], tmp_path, stdin=text_file.read_text())
    assert (done.returncode, done.stdout) == (0, "")
    done = run([promtool, "check", "rules", "sbbf-rules.yml"], tmp_path)
    assert done.returncode == 0, done.stdout
    assert "SUCCESS: 2 rules found" in done.stdout


def test_no_alert_fires_for_a_sound_lake(promtool, tmp_path):
    text_file = check(Lake(tmp_path / "lake"), tmp_path)
    done = fire(promtool, text_file, tmp_path, 24, {})
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("defect", "code"), [(Lake.remove_filters, 0), (Lake.break_filter, 0), (Lake.damage, 3)], ids=["missing", "broken", "unreadable"]
)
def test_an_alert_fires(promtool, tmp_path, defect, code):
    lake = Lake(tmp_path / "lake")
    defect(lake, DAYS[1])
    text_file = check(lake, tmp_path, code)
    done = fire(promtool, text_file, tmp_path, 24, {"BloomFiltersFail": "1 Parquet files fail sbbf check"})
    assert done.returncode == 0, done.stdout
    done = fire(promtool, text_file, tmp_path, 24, {})
    assert done.returncode == 1, done.stdout


@pytest.mark.parametrize("has_file", [True, False], ids=["old", "absent"])
def test_an_alert_fires_if_no_check_runs(promtool, tmp_path, has_file):
    text_file = check(Lake(tmp_path / "lake"), tmp_path)
    done = fire(promtool, text_file if has_file else None, tmp_path, 49, {"BloomFiltersNotChecked": "sbbf check has not run for two days"})
    assert done.returncode == 0, done.stdout


def test_the_script_fails_if_nothing_was_checked(tmp_path):
    script = write_recipe("prometheus", tmp_path)["sbbf-textfile.sh"]
    done = run(["sh", script], tmp_path, {"LAKE": str(tmp_path), "TEXTFILES": str(tmp_path / "no-such-folder")})
    assert done.returncode > 1, done.stdout
