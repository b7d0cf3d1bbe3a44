"""Each module of the engine's tests runs on both catalogs, or says here why not.

`engine` is an engine on each kind of catalog in turn. `embedded_engine` is one on SQLite in
`make test`, and on Glue in `make test-glue-catalog`, but for tests that say `on_embedded_alone`
with their reason. `filled_engine` is the same, filled once for the tests of a file.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
MODULES = {str(path.relative_to(FOLDER)): path for path in sorted(FOLDER.rglob("test_*.py"))}
ON_BOTH = {"engine", "embedded_engine", "filled_engine"}
_OF_A_FILE = "is of the file that the embedded catalog is"
_WITHOUT_TABLES = "decides from values, and opens no catalog"
_BY_PYICEBERG = "is of files that PyIceberg reads, to which it is one which catalog names them"
ELSEWHERE = {
    "copy/test_copy_table.py": "has a fixture of its own for both catalogs",
    "copy/test_row_checksum.py": _BY_PYICEBERG,
    "erasure/test_two_hosts.py": "is of hosts that share a Glue, and no catalog file",
    "test_both_catalogs.py": "reads the tests",
    "test_catalog.py": _OF_A_FILE,
    "test_catalog_file.py": _OF_A_FILE,
    "test_changed_rows.py": "compares frames, and opens no catalog",
    "test_code_versions.py": _WITHOUT_TABLES,
    "test_concurrency.py": "Glue: test_glue_conflicts.py has the writers that race there",
    "test_counted_rows.py": _BY_PYICEBERG,
    "test_evolution_order.py": _WITHOUT_TABLES,
    "test_evolution_plan.py": _WITHOUT_TABLES,
    "test_glue_conflicts.py": "is of Glue",
    "test_iceberg_release.py": _WITHOUT_TABLES,
    "test_health_measurement.py": "has a fixture of its own for both catalogs",
    "test_kept_rows_folder.py": "is of files beside tables, on both stores",
    "test_kill.py": "kills processes, which share a home and no emulator",
    "test_named_tables.py": _WITHOUT_TABLES,
    "test_older_spec.py": _BY_PYICEBERG,
    "test_one_reason.py": _WITHOUT_TABLES,
    "test_partition_rows.py": _BY_PYICEBERG,
    "test_partition_values.py": _WITHOUT_TABLES,
    "test_pyiceberg_internals.py": "is of PyIceberg",
    "test_pyspark_internals.py": "is of PySpark",
    "test_rows_elsewhere.py": _WITHOUT_TABLES,
    "test_snapshot_properties.py": "reads the sources",
    "test_snapshot_refs.py": _WITHOUT_TABLES,
    "test_stale_tables.py": _WITHOUT_TABLES,
    "test_time_series.py": _WITHOUT_TABLES,
    "test_unknown_commits.py": _OF_A_FILE,
    "test_written_at.py": _WITHOUT_TABLES,
    "upkeep/test_earliest_needed.py": _WITHOUT_TABLES,
    "upkeep/test_killed_steps.py": "kills processes, which share a home and no emulator",
    "upkeep/test_newer_procedures.py": "is of what the Iceberg of AWS Glue 5.0 lacks",
}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_runs_on_both_catalogs_or_says_why_not(module: str) -> None:
    asked = set(parameters(MODULES[module]))

    assert bool(asked & ON_BOTH) != (module in ELSEWHERE), (
        "A test asks for `engine`, `embedded_engine` or `filled_engine`, or ELSEWHERE says why it does not."
    )


def test_a_reason_is_of_a_module_that_is_there() -> None:
    assert set(ELSEWHERE) <= set(MODULES)


def parameters(path: Path) -> Iterator[str]:
    """Yield the names of what tests and fixtures of a module ask for."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and is_asked_by_pytest(node):
            yield from (argument.arg for argument in node.args.args)


def is_asked_by_pytest(node: ast.FunctionDef) -> bool:
    is_fixture = any("fixture" in ast.unparse(mark) for mark in node.decorator_list)
    return is_fixture or node.name.startswith("test_")
