"""The files of a new project: what people expect to find in one, and a package of assets that
holds none yet.
"""

from pathlib import Path

from lakehouse.project_file import FILE

_LAYERS = {
    "bronze": "What was delivered, as it came: appended, every row stamped with its source.",
    "silver": "What was delivered, as it is used: typed, validated, deduplicated.",
    "gold": "What people query: facts and figures, computed from silver.",
}
_PYPROJECT = """\
[build-system]
requires = ["setuptools>=80"]
build-backend = "setuptools.build_meta"

[project]
name = "{package}"
version = "0.1.0"
description = "Tables of {package}, on lakehouse."
requires-python = ">=3.11,<3.14"
# Of lakehouse's own wheel; PyPI has a package of others by that name, and none of these versions.
dependencies = ["lakehouse~={version}"]

[project.optional-dependencies]
dev = ["pytest", "ruff"]

[tool.setuptools.packages.find]
include = ["{package}", "{package}.*"]

[tool.setuptools.package-data]
"*" = ["*.sql"]

# By this the commands of lakehouse find the project, in this folder and below it.
[tool.lakehouse]
definitions = "{package}.definitions"
assets = "{package}.assets"

[tool.dagster]
module_name = "{package}.definitions"
code_location_name = "{package}.definitions"

[tool.dg]
directory_type = "project"

[tool.dg.project]
root_module = "{package}"
code_location_target_module = "{package}.definitions"
code_location_name = "{package}.definitions"

[tool.pytest.ini_options]
testpaths = ["tests"]

[tool.ruff]
line-length = 96

[tool.ruff.lint]
select = ["E", "F", "I", "UP"]
"""
_WORKSPACE = """\
load_from:
  - python_module:
      module_name: {package}.definitions
      working_directory: .
      location_name: {package}.definitions
"""
_MAKEFILE = """\
.DEFAULT_GOAL := help
# That of the environment which lakehouse is installed in.
PYTHON ?= python

.PHONY: help
help: ## List the targets
\t@awk -F ':.*## ' '/^[a-z]+:.*## / {{ printf "  make %-6s %s\\n", $$1, $$2 }}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Install what tests and lint need, and fetch what Spark needs, once
\t@$(PYTHON) -m pip install -e '.[dev]'
\t@lakehouse setup

.PHONY: dev
dev: ## Open the Dagster UI; files in the inbox are ingested as long as it is open
\t@lakehouse dev

.PHONY: plan
plan: ## Compare the declarations with the tables; fails where a change waits
\t@lakehouse plan --check

.PHONY: test
test: ## Run the tests
\t@$(PYTHON) -m pytest

.PHONY: lint
lint: ## Check style and format
\t@$(PYTHON) -m ruff check .
\t@$(PYTHON) -m ruff format --check .
"""
_WORKFLOW = """\
name: ci
on: [push, pull_request]
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      # A variable of the repository says where the wheel of lakehouse is: its path or address.
      - run: python -m pip install "${{LAKEHOUSE_WHEEL:?is not set}}"
        env:
          LAKEHOUSE_WHEEL: ${{{{ vars.LAKEHOUSE_WHEEL }}}}
      - run: make setup lint plan test
"""
_GITIGNORE = """\
.lakehouse/
.venv/
__pycache__/
*.egg-info/
build/
dist/
.pytest_cache/
.ruff_cache/
spark-warehouse/
metastore_db/
derby.log
"""
_README = """\
# {package}

Tables of {package}, on lakehouse: declared once, audited before they are published.

```bash
python -m venv .venv && source .venv/bin/activate
pip install PATH_OF_THE_WHEEL_OF_LAKEHOUSE
make setup
```

| | |
|---|---|
| `lakehouse new feed FILE...` | looks at files, and writes a feed of them with its tables |
| `lakehouse new table NAME --from TABLE` | begins a table that is computed from another one |
| `lakehouse try TABLE` | computes a table on a sample, and writes nothing |
| `lakehouse ingest` | takes what waits in `.lakehouse/inbox/`, and brings the tables up to date |
| `lakehouse status` | lists the tables |
| `make dev` | opens the Dagster UI; files are ingested as long as it is open |
| `make plan lint test` | is what continuous integration runs |

Tables are declared in `{package}/assets/`, one file for each.
They are kept in `.lakehouse/`, unless `LAKEHOUSE_HOME` names another folder.
"""
_DEFINITIONS = '''\
"""What exists, as Dagster and the commands of lakehouse find it.

A table or a feed is added by a file in `{package}/assets/`, and needs no line here.
"""

from lakehouse.project import Project

PROJECT = Project("{package}.assets")
defs = PROJECT.defs
'''
_CONFTEST = '''\
"""The fixtures of lakehouse for all tests. That this file lies here lets them import {package}."""

pytest_plugins = ["lakehouse.testing"]
'''
_TEST = '''\
"""What is declared can be loaded, and goes together."""

import dagster as dg

from {package}.definitions import defs


def test_everything_can_be_loaded():
    dg.Definitions.validate_loadable(defs)
'''
EVERYBODYS = ("README.md", ".gitignore", "Makefile")
"""Files that a folder may have already which becomes a project."""


def project_files(package: str, version: str) -> dict[Path, str]:
    """Return the text of each file by its path in the folder of the project; that by which the
    folder is known as a project is the last one.

    :param version: of the lakehouse that the project needs at least.
    """
    assets = f"{package}/assets"
    layers = {
        f"{assets}/{layer}/__init__.py": f'"""{what}"""\n' for layer, what in _LAYERS.items()
    }
    templates = {
        f"{package}/__init__.py": '"""Tables of {package}."""\n',
        f"{package}/definitions.py": _DEFINITIONS,
        f"{assets}/__init__.py": '"""One file for each table, in the folder of its layer."""\n',
        **layers,
        "tests/test_definitions.py": _TEST,
        "conftest.py": _CONFTEST,
        "README.md": _README,
        "Makefile": _MAKEFILE,
        ".gitignore": _GITIGNORE,
        ".github/workflows/ci.yml": _WORKFLOW,
        "workspace.yaml": _WORKSPACE,
        FILE: _PYPROJECT,
    }
    return {
        Path(path): text.format(package=package, version=version)
        for path, text in templates.items()
    }
