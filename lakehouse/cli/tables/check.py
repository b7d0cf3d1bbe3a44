"""`lakehouse check`: evaluates the checks of tables without a write."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from lakehouse.cli.call_context import State, command, not_created_yet
from lakehouse.cli.output.printing import conclude, count
from lakehouse.cli.output.record_output import check_record, print_records, text_or_json

if TYPE_CHECKING:
    from lakehouse.orchestration.runs.run_result import CheckResult

_NO_TABLES = (
    "No declared table is there yet. `lakehouse demo` or `lakehouse ingest` makes some."
)


@command("check")
@click.argument("names", metavar="[TABLE]...", nargs=-1)
@text_or_json
def check(state: State, names: tuple[str, ...], form: str) -> None:
    """Evaluate the checks of tables, and write to none of them.

    Checks evaluate published rows, without names those of all tables. Exits with 1 if a check of
    severity ERROR fails; warnings are shown. The results are metrics of runs in
    monitoring.data_quality_metrics.
    """
    from lakehouse.quality.check_jobs import check as evaluate

    tables = _tables_to_check(state, names)
    if not tables:
        click.echo(_NO_TABLES, err=form == "json")
        if form == "json":
            print_records(())
        return
    with state.progress(f"Checking {count(len(tables), 'table')}"):
        run = evaluate(state.project.definitions, state.settings, tables)
    failed = [
        f"{result.table}: check {result.name} failed: {result.description}"
        for result in run.checks
        if not result.passed and result.severity == "ERROR"
    ]
    messages = failed or ([] if run.success else run.messages)
    if form == "json":
        print_records(map(check_record, run.checks))
    lines = () if form == "json" else _lines(tables, run.checks)
    conclude(lines, messages, success=run.success and not failed)


def _tables_to_check(state: State, names: tuple[str, ...]) -> list[str]:
    """Return the named tables, or all existing ones."""
    catalog = state.engine.catalog
    if not names:
        return list(filter(catalog.has, state.declared))
    named = [state.declared_table(name).name for name in dict.fromkeys(names)]
    for name in named:
        if not catalog.has(name):
            raise not_created_yet(name)
    return named


def _lines(tables: "Iterable[str]", checks: "Iterable[CheckResult]") -> Iterator[str]:
    of_tables: dict[str, list[CheckResult]] = {}
    for check in checks:
        of_tables.setdefault(check.table, []).append(check)
    for table, results in of_tables.items():
        failed = [check for check in results if not check.passed]
        passed = len(results) - len(failed)
        verb = "holds" if passed == 1 else "hold"
        yield f"{table}: {passed} of {count(len(results), 'check')} {verb}"
        yield from (f"  {check.severity} {check.name}: {check.description}" for check in failed)
    yield from (f"{table}: no checks" for table in tables if table not in of_tables)
