"""Build the page of `site/`: two HTML files that need nothing else, and the licenses of what is in them.

    python site/build.py                       installs the packages of package-lock.json with npm, and writes site/dist
    python site/build.py --packages FOLDER     takes them from FOLDER, which has a `node_modules`

`index.html` reads files that the user chooses, and its Content-Security-Policy forbids every connection; `url.html` reads URLs, and its
policy allows connections and nothing else foreign. Script and style are in the pages, by their hashes, so that both also work as files. The
same input gives the same bytes.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SITE = Path(__file__).parent
LICENSE_FILES = ("LICENSE", "LICENSE.md", "LICENSE.txt")
LOCAL, REMOTE = "index.html", "url.html"
NAMES = {LOCAL: "A file of this computer", REMOTE: "A file at a URL"}
CURRENT = ' aria-current="page"'
CHOOSERS = {
    LOCAL: """<div id="drop">
<label for="file">Drop a Parquet file here, or choose one</label>
<input type="file" id="file">
</div>""",
    REMOTE: """<form id="url-form" class="fields">
<div class="grow"><label for="url">URL of a Parquet file</label><input type="url" id="url" required placeholder="https://"></div>
<button type="submit">Read</button>
</form>
<p>The page reads the file by range requests, from its own server only. The server must allow it (CORS).</p>""",
}


def build(output: Path, packages: Path) -> None:
    """Write the pages to the folder `output`; `packages` is the folder in which npm installed the packages."""
    script = bundle(packages)
    style = (SITE / "style.css").read_text()
    output.mkdir(parents=True, exist_ok=True)
    for page in NAMES:
        (output / page).write_text(build_page(page, script, style))
    (output / "LICENSES.txt").write_text(collect_licenses(packages))


def bundle(packages: Path) -> str:
    """Bundle the modules and hyparquet to one classic script; imports are resolved in the folder `packages`."""
    modules = packages.resolve() / "node_modules"
    command = [
        str(modules / ".bin" / "esbuild"),
        "src/page.js",
        "--bundle",
        "--format=iife",
        "--platform=browser",
        "--target=chrome111,firefox114,safari16.4",
        "--charset=utf8",
        "--minify",
        "--legal-comments=none",
        "--log-level=warning",
    ]
    # esbuild looks for packages beside the modules that import them.
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(SITE / "src", Path(folder) / "src")
        (Path(folder) / "node_modules").symlink_to(modules)
        script = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout
    return script.replace("</script", "<\\/script").strip()


def build_page(page: str, script: str, style: str) -> str:
    """Fill the template for one of the two pages."""
    parts = {
        "{policy}": build_policy(page, script, style),
        "{navigation}": " ".join(f'<a href="{name}"{CURRENT if name == page else ""}>{text}</a>' for name, text in NAMES.items()),
        "{chooser}": CHOOSERS[page],
        "{style}": style,
        "{script}": script,
    }
    text = (SITE / "page.html").read_text()
    for name, part in parts.items():
        text = text.replace(name, part, 1)
    return text


def build_policy(page: str, script: str, style: str) -> str:
    """Build the Content-Security-Policy: nothing but this script and this style, and for URLs connections."""
    rules = [
        "default-src 'none'",
        f"script-src '{hash_source(script)}'",
        f"style-src '{hash_source(style)}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    if page == REMOTE:
        rules.append("connect-src https: http:")
    return "; ".join(rules)


def hash_source(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def collect_licenses(packages: Path) -> str:
    """Return the license of this project by name, and those of the bundled packages in full."""
    folder = packages / "node_modules" / "hyparquet"
    license_text = next((folder / name).read_text() for name in LICENSE_FILES if (folder / name).is_file())
    return f"The page: Apache License 2.0, as sbbf.\n\nhyparquet:\n\n{license_text.strip()}\n"


def install(folder: Path) -> None:
    """Install the packages of package-lock.json in the folder."""
    npm = shutil.which("npm")
    if npm is None:
        sys.exit("npm is not installed: install Node and npm, or give a folder of packages with --packages")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(SITE / name, folder)
    subprocess.run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder, check=True)


def main() -> None:
    """Build the pages as the command line says."""
    parser = argparse.ArgumentParser(description="Build the page of site/.")
    parser.add_argument("--output", type=Path, default=SITE / "dist", help="folder of the pages (site/dist)")
    parser.add_argument(
        "--packages", type=Path, help="folder with node_modules, as npm ci fills it; otherwise they are installed in site/build"
    )
    arguments = parser.parse_args()
    packages = arguments.packages
    if packages is None:
        packages = SITE / "build"
        packages.mkdir(exist_ok=True)
        install(packages)
    build(arguments.output, packages)
    print(f"{arguments.output}: {', '.join(NAMES)}")


if __name__ == "__main__":
    main()
