"""The verifier shares with what erases how values are compared, and nothing else; and nothing
with what wrote the files.
"""

import ast
from pathlib import Path

import pytest

from lakehouse.privacy import verifier

pytestmark = pytest.mark.unit

FOLDER = Path(verifier.__file__).parent
SOURCES = sorted(FOLDER.rglob("*.py"))
ALLOWED = (
    "lakehouse.privacy.verifier",
    "lakehouse.tables.person",
    "lakehouse.tables.quoting",
    "lakehouse.iceberg.erasure.arrow_ids",
    "lakehouse.storage",
    "lakehouse.settings",
    "lakehouse.errors",
)
WRITERS = ("pyspark", "pyiceberg", "dagster", "py4j")


def imported(source: Path) -> list[str]:
    tree = ast.parse(source.read_text(encoding="utf-8"))
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    plain = [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    return modules + [name.name for node in plain for name in node.names]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_it_imports_neither_other_code_nor_the_writers_of_files(source):
    own = [name for name in imported(source) if name.startswith("lakehouse")]

    assert [name for name in own if not name.startswith(ALLOWED)] == []
    assert [name for name in imported(source) if name.startswith(WRITERS)] == []
