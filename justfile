# The ten everyday commands; CONTRIBUTING.md explains them. `just` lists them, and `pip install rust-just` installs it.

python := ".venv/bin/python"

_list:
    @just --list --unsorted

# Install the package and what its tests need into .venv
setup:
    python3 -m venv .venv
    .venv/bin/pip install -e ".[test]"

# Run the fast set of tests
test:
    {{python}} -m pytest -q -m "not heavy and not engines and not slow"

# Run all tests of files or folders, heavy ones too
only +PATHS:
    {{python}} -m pytest -q -n 0 -m "" {{PATHS}}

# Run all but the heavy tests
full:
    {{python}} -m pytest -m "not heavy"

# Run the tests of the filter without compiled code
numpy:
    {{python}} -m pytest -q --kernel numpy tests/bloom

# Check style and types
lint:
    .venv/bin/ruff check .
    .venv/bin/ruff format --check .
    .venv/bin/mypy

# Format the code, and fix what ruff can fix
format:
    .venv/bin/ruff check --fix .
    .venv/bin/ruff format .

# Write the expected outputs of rules, README and docs as they are now
bless:
    {{python}} -m pytest -q tests/golden --bless
    {{python}} -m pytest -q -n 0 tests/cli/test_check.py -k golden_reports --bless
    {{python}} -m pytest -q tests/golden tests/test_docs.py tests/test_architecture.py --bless

# Build a wheel
wheel:
    .venv/bin/pip wheel --no-deps -w dist .

# Run what must pass before a change is taken
ci:
    .ci/run
