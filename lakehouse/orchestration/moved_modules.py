"""What asset files imported and declared under other names before: where the modules are, and
what the arguments are called.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

MOVED = {
    "lakehouse.iceberg.table": "lakehouse.tables.table",
    "lakehouse.iceberg.casts": "lakehouse.tables.casts",
    "lakehouse.iceberg.quoting": "lakehouse.tables.quoting",
    "lakehouse.iceberg.partitioning": "lakehouse.tables.partitioning",
    "lakehouse.iceberg.rules.bounds": "lakehouse.tables.bounds",
    "lakehouse.iceberg.rules.tables.unique": "lakehouse.iceberg.rules.unique_and_references",
    "lakehouse.iceberg.rules.tables.references": "lakehouse.iceberg.rules.unique_and_references",
    "lakehouse.iceberg.rules.tables.null_fraction": "lakehouse.iceberg.rules.aggregate_rules",
    "lakehouse.iceberg.rules.tables.mean": "lakehouse.iceberg.rules.aggregate_rules",
    "lakehouse.iceberg.rules.tables.total": "lakehouse.iceberg.rules.aggregate_rules",
    "lakehouse.iceberg.rules.tables.reconciles": "lakehouse.iceberg.rules.reconciliation",
    "lakehouse.iceberg.rules.figures": "lakehouse.iceberg.rules.aggregate_rules",
    "lakehouse.iceberg.rules.column_aggregates": "lakehouse.iceberg.rules.aggregate_rules",
    "lakehouse.iceberg.rules.metadata": "lakehouse.iceberg.rules.size_schema_and_freshness",
    "lakehouse.iceberg.rules.rule": "lakehouse.tables.rule",
    "lakehouse.iceberg.read": "lakehouse.iceberg.read.inputs",
    "lakehouse.iceberg.versions": "lakehouse.iceberg.write.row_versions",
    "lakehouse.iceberg.write": "lakehouse.iceberg.write.write_audit_publish",
    "lakehouse.iceberg.writing.direct": "lakehouse.iceberg.write.append_without_spark",
    "lakehouse.iceberg.engine": "lakehouse.iceberg.metadata.engine",
    "lakehouse.iceberg.history": "lakehouse.iceberg.metadata.history",
    "lakehouse.ingestion.feed": "lakehouse.tables.feed",
    "lakehouse.resources.iceberg_asset": "lakehouse.orchestration.iceberg_asset",
    "lakehouse.resources.iceberg_io": "lakehouse.orchestration.io_manager",
    "lakehouse.resources.asset_specs": "lakehouse.orchestration.asset_specs",
    "lakehouse.resources.checks": "lakehouse.orchestration.asset_checks",
    "lakehouse.resources.partitions": "lakehouse.orchestration.partition_bounds",
    "lakehouse.orchestration.partitions": "lakehouse.orchestration.partition_bounds",
    "lakehouse.resources.engine": "lakehouse.runtime.deployment",
    "lakehouse.resources.spark": "lakehouse.runtime.spark",
}
"""By the old name of a module, or of what it held, the module that has it now."""
RENAMED = {"lakehouse.iceberg.read.inputs.standing": "existing_rows"}
"""By the path of what a module had under an old name, its new one there."""
RENAMED_ARGUMENTS = {
    ("Column", "measured"): "profiled",
    ("Column", "formerly"): "renamed_from",
    ("Merge", "near"): "prune_by",
    ("Upkeep", "keep_snapshots"): "keep_at_least",
}
"""By what takes an argument and its old name, its new one."""
REMOVED_ARGUMENTS = {
    ("Upkeep", "compact"): (
        "Upkeep(compact=…) is gone: leave it out, or declare kept_by='nobody' of a table that is"
        " to be left alone."
    ),
    ("Upkeep", "keep_snapshots_days"): (
        "Upkeep(keep_snapshots_days=…) is Upkeep(keep_snapshots_for=timedelta(days=…)) now."
    ),
}
"""By what took an argument and its name, what to do instead."""
_UNEXPECTED = re.compile(r"(\w+)(?:\.__init__)?\(\) got an unexpected keyword argument '(\w+)'")


def renamed_argument(error: TypeError) -> str:
    """Say what an argument is called now, where an error is of one with an old name; nothing of
    other errors.
    """
    unexpected = _UNEXPECTED.search(str(error))
    if unexpected is None:
        return ""
    argument = (unexpected[1], unexpected[2])
    if argument in RENAMED_ARGUMENTS:
        new = RENAMED_ARGUMENTS[argument]
        return f"{unexpected[1]}({unexpected[2]}=…) is {unexpected[1]}({new}=…) now."
    return REMOVED_ARGUMENTS.get(argument, "")


def import_advice(file: str, line: int) -> str:
    """Say what a file's import on a line has to say now; nothing where none of it has another
    place or name.

    A package that is gone is all that Python's own error tells of a path below it, so that the
    line itself is read.
    """
    advice = []
    for name in _imported_names(ast.parse(Path(file).read_bytes()), line):
        if name in MOVED:
            advice.append(f"{name} has moved: import from {MOVED[name]}.")
        if name in RENAMED:
            advice.append(f"{name} is {RENAMED[name]} now.")
    return " ".join(advice)


def _imported_names(tree: ast.Module, line: int) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom) or not node.lineno <= line <= (
            node.end_lineno or 0
        ):
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        for name in node.names:
            yield (
                f"{node.module}.{name.name}" if isinstance(node, ast.ImportFrom) else name.name
            )
