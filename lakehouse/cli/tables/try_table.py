"""`lakehouse try`: computes a table on a sample or a delivered file without writing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.cell_values import Cells, columns_named, masked_cells
from lakehouse.cli.output.printing import Format, count, print_result, table
from lakehouse.cli.output.record_output import print_records, table_csv_or_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakehouse.iceberg.values.write_result import RuleResult
    from lakehouse.iceberg.write.kept_rows import Keep
    from lakehouse.iceberg.write.trial import Trial
    from lakehouse.ingestion.table_trials import TableTrials, Taken, Tried
    from lakehouse.tables.table import IcebergTable

TAKEN_ROWS = 10_000
"""Default number of rows per input."""
SHOWN_ROWS = 20
"""Maximum number of computed and of rejected rows in a table."""


@command("try")
@click.argument("name", metavar="TABLE")
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Try it on this file, through its feed and the tables in between.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=TAKEN_ROWS,
    show_default=True,
    help="Rows to take of each input, or of the file.",
)
@table_csv_or_json
def try_table(state: State, name: str, file: Path | None, limit: int, form: Format) -> None:
    """Compute a table on a sample, and write nothing.

    The sample is the first rows of each input, or of a file that is not delivered yet. Shows the
    computed rows, rejected rows with their reasons, the result of each failed rule, and the
    columns. The table is computed as if it were empty; rules on files and age are not evaluated.

    Personal values are masked.
    """
    from lakehouse.iceberg.write.kept_rows import keeping_rows

    with state.progress("Reading the declarations"):
        named = state.table_function(name).table.name
    with keeping_rows(state.engine) as kept:
        trials = _trials(state, limit, kept.keep)
        trial = trials.of_file(named, file) if file else trials.of_tables(named)
        state.start_spark()
        with state.progress(f"Computing {named}"):
            tried = trial.run()
            shown = [_shown(state, trial) for trial in tried.trials]
    _print(tried, shown, form)


def _trials(state: State, limit: int, keep: "Keep") -> "TableTrials":
    from lakehouse.ingestion.table_trials import TableTrials

    suppressed = state.project.suppression_list(state.settings).filter()
    return TableTrials(state.engine, state.functions, state.declared, suppressed, limit, keep)


@dataclass(frozen=True)
class _Shown:
    """Masked rows of a dry run."""

    trial: "Trial"
    computed: Cells
    types: Sequence[tuple[str, str]]
    rejected: Cells = field(default_factory=Cells)


def _shown(state: State, trial: "Trial") -> _Shown:
    from lakehouse.iceberg.metadata.type_conversion import of_spark

    fields = trial.rows.schema.fields
    types = [(field.name, str(of_spark(field.dataType))) for field in fields]
    computed = _masked(state, trial.table, trial.rows)
    quarantine = trial.table.quarantine
    if quarantine is None or trial.rejected is None or not trial.rejected_rows:
        return _Shown(trial, computed, types)
    left_out = {"_reasons", "_row_key", "_source_sha256", "_quarantined_at", trial.table.stamp}
    names = ["_reasons", *(name for name in trial.rejected.columns if name not in left_out)]
    rejected = _masked(state, quarantine, trial.rejected.select(*names))
    return _Shown(trial, computed, types, rejected)


def _masked(state: State, declared: "IcebergTable", frame: "DataFrame") -> Cells:
    """Return rows with personal and possibly personal values masked."""
    from lakehouse.tables.masking import redacted

    key = state.engine.masking_key
    return masked_cells(
        frame, lambda rows: redacted(key, declared, rows, rows, for_command=True)
    )


def _print(tried: "Tried", shown: Sequence[_Shown], form: Format) -> None:
    if form == "json":
        print_records(map(_record, shown))
        return
    last = shown[-1]
    print_result(form, _summary(tried), last.computed.columns, last.computed.rows)
    if form != "table":
        return
    click.echo(_part(last.computed, "row"))
    for one in shown:
        if one.rejected.rows:
            click.echo(f"\nRejected by the rules of {one.trial.table.name}:")
            click.echo(_part(one.rejected, "rejected row"))
    click.echo(f"\nColumns of {last.trial.table.name}:")
    click.echo(table(columns_named(("column", "type")), last.types, noun="column"))


def _part(cells: Cells, noun: str) -> str:
    footer = ""
    if len(cells.rows) > SHOWN_ROWS:
        footer = f"{SHOWN_ROWS} of {count(len(cells.rows), noun)}; --format json has all"
    return table(cells.columns, cells.rows[:SHOWN_ROWS], noun=noun, footer=footer)


def _summary(tried: "Tried") -> list[str]:
    lines = [f"Taken: {', '.join(map(_taken, tried.taken)) or 'nothing'}; nothing is written."]
    for trial in tried.trials:
        lines.append(f"{trial.table.name}: {_counts(trial)}")
        lines += failure_lines(trial.results)
    not_evaluated = [rule.name for rule in tried.table.not_evaluated]
    if not_evaluated:
        lines.append(f"Not evaluated on a sample: {', '.join(not_evaluated)}")
    return lines


def failure_lines(results: "Iterable[RuleResult]") -> list[str]:
    """Return a line for each failed rule, with its effect."""
    lines = []
    for result in results:
        effect = "nothing would be published" if result.blocks else "warns"
        if result.rule.on_failure == "quarantine":
            effect = "quarantined"
        if not result.passed:
            lines.append(f"  {result.rule.name}: {result.summary}; {effect}")
    return lines


def rule_record(result: "RuleResult") -> Mapping[str, Any]:
    """Return the record of a failed rule."""
    return {
        "rule": result.rule.name,
        "found": result.summary,
        "on_failure": result.rule.on_failure,
        "blocks": result.blocks,
    }


def _taken(taken: "Taken") -> str:
    total = "" if taken.total_rows is None else f" of {taken.total_rows:,}"
    return f"{taken.rows:,}{total} rows of {taken.name}"


def _counts(trial: "Trial") -> str:
    computed = f"{count(trial.computed_rows, 'row')} computed"
    return (
        f"{computed}, {trial.rejected_rows:,} rejected" if trial.table.quarantine else computed
    )


def _record(shown: _Shown) -> Mapping[str, Any]:
    trial = shown.trial
    return {
        "table": trial.table.name,
        "computed_rows": trial.computed_rows,
        "refused_rows": trial.rejected_rows,
        "rows": shown.computed.records,
        "refused": shown.rejected.records,
        "broken_rules": [rule_record(result) for result in trial.results if not result.passed],
        "not_evaluated": [rule.name for rule in trial.not_evaluated],
        "columns": [{"name": name, "type": kind} for name, kind in shown.types],
    }
