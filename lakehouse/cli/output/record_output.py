"""Results of commands as records for programs, with stable names."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lakehouse.cli.output.cell_values import as_text, plain_json
from lakehouse.cli.output.printing import FORMATS, json_list

if TYPE_CHECKING:
    from lakehouse.iceberg.evolve.planning import Plan
    from lakehouse.ingestion.feed_runs import IngestResult
    from lakehouse.orchestration.runs.run_result import AssetResult, CheckResult

F = TypeVar("F", bound=Callable[..., Any])


def _format_option(*forms: str) -> Callable[[F], F]:
    return click.option(
        "--format", "form", type=click.Choice(forms), default=forms[0], show_default=True
    )


text_or_json = _format_option("text", "json")
table_or_json = _format_option("table", "json")
table_csv_or_json = _format_option(*FORMATS)


def print_records(records: Iterable[Mapping[str, Any]]) -> None:
    """Print records as one JSON array, one per line."""
    click.echo(records_text(records))


def records_text(records: Iterable[Mapping[str, Any]]) -> str:
    """Return records as one JSON array, one per line."""
    return json_list([as_text(plain_json(record)) for record in records])


def check_record(check: "CheckResult") -> dict[str, Any]:
    """Return the record of a check result."""
    evaluation = check.evaluation
    return {
        "table": check.table,
        "check": check.name,
        "passed": check.passed,
        "severity": check.severity,
        "description": check.description,
        "failed_rows": evaluation.failed_rows,
        "total_rows": evaluation.total_rows,
        "threshold": evaluation.threshold,
        "evaluated": evaluation.evaluated,
        "snapshot_id": _id_text(evaluation.snapshot_id),
        "partitions": list(evaluation.partitions) or None,
    }


def plan_record(plan: "Plan") -> dict[str, Any]:
    """Return the record of a table's plan."""
    return {
        "table": plan.table,
        "as_declared": plan.is_empty,
        "by_itself": [step.description for step in plan.automatic],
        "by_apply": [step.description for step in plan.waiting],
        "refused": [str(change) for change in plan.denied],
        "warnings": list(plan.warnings),
    }


def ingest_record(result: "IngestResult") -> dict[str, Any]:
    """Return the record of a feed's ingest."""
    return {
        "feed": result.feed.name,
        "success": result.success,
        "files": list(result.files),
        "rows": result.rows,
        "left_out_rows": result.suppressed_rows,
        "unsettled": list(result.unsettled),
        "rejected": [
            {"file": file.file, "reason": file.reason, "kept_as": file.kept_as}
            for file in result.rejected
        ],
        "tables": [_table_record(asset) for asset in result.assets],
        "quarantined_rows": dict(result.quarantined),
        "runs": [run.run_id for run in result.runs],
        "messages": list(result.messages),
    }


def _table_record(asset: "AssetResult") -> dict[str, Any]:
    """Return the record of a table in a run."""
    write = asset.write
    return {
        "table": asset.table,
        "status": asset.status,
        "rows": write.row_count,
        "added_rows": write.added_rows,
        "inserted_rows": write.inserted_rows,
        "updated_rows": write.updated_rows,
        "snapshot_id": _id_text(write.snapshot_id),
    }


def _id_text(snapshot_id: int | None) -> str | None:
    """Return a snapshot id as text, since it exceeds the integer range of JSON."""
    return None if snapshot_id is None else str(snapshot_id)
