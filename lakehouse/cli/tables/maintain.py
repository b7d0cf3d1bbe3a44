"""`lakehouse maintain`: runs or shows the upkeep of tables."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.cell_values import columns_named
from lakehouse.cli.output.printing import conclude, count, table
from lakehouse.cli.output.record_output import print_records, table_or_json
from lakehouse.storage.byte_sizes import size_text

if TYPE_CHECKING:
    from lakehouse.iceberg.upkeep.step_result import StepResult
    from lakehouse.upkeep.upkeep_job import MaintainResult
    from lakehouse.upkeep.upkeep_plan import PlannedStep, UpkeepPlan

_COLUMNS = columns_named(("table", "step", "due", "reason", "gain", "cost"))


@command("maintain")
@click.argument("names", metavar="[TABLE]...", nargs=-1)
@click.option("--dry-run", is_flag=True, help="Show what is due and why, and do nothing.")
@table_or_json
def maintain(state: State, names: tuple[str, ...], dry_run: bool, form: str) -> None:
    """Keep tables healthy, each as its metadata calls for.

    Compacts files, expires snapshots, and removes unreferenced files. Without names: all declared
    tables within the daily byte budget, most saved files per byte first. With names: all that
    these tables need now. Upkeep does not wait for writers; a writer on this machine waits for a
    running step, in a compaction usually for at most 512 MB of it.
    """
    from lakehouse.upkeep.upkeep_job import maintain as run
    from lakehouse.upkeep.upkeep_run import plan_run, with_cached_locations

    tables = list(dict.fromkeys(map(state.existing_table, names)))
    upkept, engine = state.project.upkept(), state.engine
    if not names:
        engine = with_cached_locations(engine, upkept)
        tables = upkept.tables(engine)
    with state.progress(f"Reading the metadata of {count(len(tables), 'table')}"):
        plan = plan_run(engine, upkept, tables, named_by_user=bool(names))
    for name, reason in plan.unread.items():
        click.echo(f"{name} is not kept: {reason}", err=True)
    if dry_run:
        _print_plan(plan, form, with_all=bool(names))
        return
    if not plan.due:
        if form == "json":
            print_records(())
        click.echo(f"No upkeep is due of {count(len(tables), 'table')}.", err=form == "json")
        return
    due = sorted({step.table for step in plan.due})
    with state.progress(f"Keeping {count(len(due), 'table')}"):
        result = run(state.project.definitions, state.settings, due, named_by_user=bool(names))
    _print_result(result, form)


def _print_plan(plan: "UpkeepPlan", form: str, *, with_all: bool) -> None:
    if form == "json":
        print_records(map(_plan_record, plan.steps))
        return
    shown = [step for step in plan.steps if with_all or step.is_due or step.notes]
    waiting = len(plan.steps) - len(plan.due)
    footer = f"{count(len(plan.due), 'step')} due, {waiting} not"
    if not with_all:
        footer += "; name a table to see why"
    click.echo(table(_COLUMNS, [_cells(step) for step in shown], footer=footer))


def _cells(step: "PlannedStep") -> list[Any]:
    due = "now" if step.is_due else "no"
    if step.not_before:
        due = f"{step.not_before:%Y-%m-%d %H:%MZ}"
    gain = ", ".join(_gain(step))
    cost = size_text(step.cost_bytes) if step.cost_bytes else ""
    reasons = "; ".join([step.reason, *step.notes])
    return [step.table, step.step, due, reasons, gain, cost]


def _gain(step: "PlannedStep") -> Iterator[str]:
    for number, noun in (
        (step.fewer_files, "fewer file"),
        (step.fewer_snapshots, "fewer snapshot"),
        (step.fewer_manifests, "fewer manifest"),
    ):
        if number:
            yield count(number, noun)


def _plan_record(step: "PlannedStep") -> dict[str, Any]:
    return {
        "table": step.table,
        "step": step.step,
        "due": step.is_due,
        "reason": step.reason,
        "notes": step.notes,
        "partitions": [dict(key.values) for key in step.partitions],
        "fewer_files": step.fewer_files,
        "fewer_snapshots": step.fewer_snapshots,
        "fewer_manifests": step.fewer_manifests,
        "cost_bytes": step.cost_bytes,
        "not_before": step.not_before,
    }


def _print_result(result: "MaintainResult", form: str) -> None:
    if form == "json":
        print_records(map(_result_record, result.steps))
    lines = [] if form == "json" else [_line(step) for step in result.steps]
    bad = [step for step in result.steps if step.outcome in ("failed", "partial")]
    complaints = [_line(step) for step in bad]
    for step in bad:
        complaints += [f"{step.table}: still there: {path}" for path in step.remaining]
    if not bad and not result.success:
        complaints += result.messages
    conclude(lines, complaints, success=result.success and not bad)


def _line(step: "StepResult") -> str:
    from lakehouse.upkeep.upkeep_job import result_text

    return f"{step.table}: {result_text(step)}"


def _result_record(step: "StepResult") -> Mapping[str, Any]:
    return {
        "table": step.table,
        "step": step.step,
        "outcome": step.outcome,
        "reason": step.reason or None,
        "figures": dict(step.step_metrics),
        "remaining": list(step.remaining),
    }
