"""A folder becomes a project; no existing file is overwritten."""

import importlib.util
import keyword
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakehouse.errors import UsageError
from lakehouse.project_file import FILE, find_project_file
from lakehouse.scaffolding.write_files import check_new, differs, write_files
from lakehouse.tables.escaping import shown

_PACKAGE = re.compile(r"[a-z][a-z0-9_]*")
_TAKEN = frozenset({"conftest", "lakehouse", "test", "tests"})
_SHARED_FILES = ("README.md", ".gitignore", "Makefile")
"""Files that a folder can have before it becomes a project."""
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


@dataclass(frozen=True)
class BegunProject:
    """The files of a project by their paths, those that were written, and those that exist with
    other content.
    """

    package: str
    texts: Mapping[Path, str]
    written: Sequence[Path]
    kept: Sequence[Path]


def begin_project(root: Path, package: str | None, version: str) -> BegunProject:
    """Make a folder a project, or add its missing files.

    :param package: the name of its package; by default that of the folder.
    :param version: the version of the lakehouse that the project depends on.
    :raises UsageError: the folder or the name is not usable, or a file exists with other
        content; then nothing is written.
    """
    if root.exists() and not root.is_dir():
        raise UsageError(
            f"{shown(str(root))} is a file; expected a folder, or a new path.",
            next_step="Give another FOLDER.",
        )
    known = _known_package(root)
    name = package or known or _name_of(root)
    if known and name != known:
        raise UsageError(
            f"{shown(str(root))} is the project {known} already; expected it, or another folder.",
            next_step="Omit --name, or give another FOLDER.",
        )
    _check_name(name, root)
    texts = {root / path: text for path, text in _project_files(name, version).items()}
    kept = [path for path, text in texts.items() if differs(path, text)]
    if not known:
        _check_kept(root, kept)
    missing = {path: text for path, text in texts.items() if path not in kept}
    return BegunProject(name, texts, write_files(missing), kept)


def _project_files(package: str, version: str) -> dict[Path, str]:
    """Return the files by their paths; the one that marks the folder as a project is last."""
    assets = f"{package}/assets"
    templates = {
        f"{package}/__init__.py": '"""Tables of {package}."""\n',
        f"{package}/definitions.py": _DEFINITIONS,
        f"{assets}/__init__.py": '"""One file for each table, in the folder of its layer."""\n',
        **{f"{assets}/{layer}/__init__.py": f'"""{doc}"""\n' for layer, doc in _LAYERS.items()},
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


def _known_package(root: Path) -> str | None:
    """Return the package of an existing project; None if the folder is none.

    :raises UsageError: the folder is inside of a project.
    """
    project = find_project_file(root.resolve())
    if project is None:
        return None
    name = project.assets.partition(".")[0]
    if project.root != root.resolve():
        raise UsageError(
            f"{shown(str(root))} lies in the project {name} ({shown(str(project.root))}); expected"
            " a folder outside of it.",
            next_step=f"Work in {shown(str(project.root))}, or give another FOLDER.",
        )
    return name


def _name_of(root: Path) -> str:
    words = re.sub(r"[^a-z0-9]+", "_", root.resolve().name.lower())
    return words.strip("_").lstrip("_0123456789")


def _check_name(name: str, root: Path) -> None:
    if not _PACKAGE.fullmatch(name) or keyword.iskeyword(name):
        raise UsageError(
            f"The name of the package is {name!r}; expected a lower case letter, then lower case"
            " letters, digits and underscores, and no keyword of Python.",
            next_step="Give --name, such as shop.",
        )
    if name in _TAKEN or name in sys.stdlib_module_names or _is_elsewhere(name, root):
        raise UsageError(
            f"There is a package {name} in this Python already; expected another name, since only"
            " one of them could be imported.",
            next_step="Give --name, such as shop.",
        )


def _is_elsewhere(name: str, root: Path) -> bool:
    spec = importlib.util.find_spec(name)
    if spec is None:
        return False
    places = [spec.origin or "", *(spec.submodule_search_locations or ())]
    return not any(Path(place).is_relative_to(root.resolve()) for place in places if place)


def _check_kept(root: Path, kept: Sequence[Path]) -> None:
    if root / FILE in kept:
        raise UsageError(
            f"{shown(str(root / FILE))} is there already, and has no [tool.lakehouse]; expected a"
            " folder without another project. Nothing was written.",
            next_step="Give another FOLDER, or add the table, see docs/your-data.md.",
        )
    check_new([path for path in kept if path.name not in _SHARED_FILES])
