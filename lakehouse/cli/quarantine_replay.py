"""`lakehouse quarantine replay`: re-evaluates the quarantined rows of a table."""

from typing import TYPE_CHECKING

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.ingest_report import describe_tables
from lakehouse.cli.output.printing import conclude, count
from lakehouse.cli.quarantined_tables import table_with_quarantine
from lakehouse.iceberg.read.rows_outside_partitions import HAS_PARTITION

if TYPE_CHECKING:
    from lakehouse.iceberg.read.refused_rows import RefusedRows
    from lakehouse.orchestration.replay import Replayed


@command("replay")
@click.argument("name", metavar="TABLE")
def replay(state: State, name: str) -> None:
    """Evaluate the refused rows of a table again, and compute what follows.

    Use it after a correction of the table's function, rules or declaration. Passing rows are
    inserted into the table, and the remaining rows stay in quarantine. Partitions with such rows
    are recomputed in full, an unpartitioned table entirely, as by `lakehouse backfill`.
    """
    from lakehouse.iceberg.read.refused_rows import count_refused
    from lakehouse.orchestration.replay import replay as judge_again

    owner = table_with_quarantine(state, name)
    with state.progress(f"Computing {owner.name}"):
        replayed = judge_again(state.project.definitions, state.settings, state.engine, owner)
    assets = (asset for run in replayed.runs for asset in run.assets)
    messages = (message for run in replayed.runs for message in run.messages)
    lines = [*describe_tables(assets), *_describe(owner.name, replayed)]
    lines += _describe_outside(owner.name, count_refused(state.engine, owner))
    conclude(lines, messages, success=replayed.success)


def _describe(table: str, replayed: "Replayed") -> list[str]:
    if not replayed.rows:
        return [f"{table}: no row is in quarantine."]
    stay = replayed.rows - replayed.left
    new = f", and {replayed.new_rows:,} came to it" if replayed.new_rows else ""
    left = (
        f"{table}: {replayed.left:,} of {count(replayed.rows, 'refused row')} left the"
        f" quarantine, {stay:,} {'stays' if stay == 1 else 'stay'}{new}."
    )
    clear = f"lakehouse quarantine clear {table} --why …: takes out what nobody will correct."
    return [left, clear] if stay else [left]


def _describe_outside(table: str, refused: "RefusedRows") -> list[str]:
    """Return the next step for rows that no correction of the table can change."""
    rows = sum(rule.rows for rule in refused.by_rule if rule.name == HAS_PARTITION)
    if not rows:
        return []
    belong = "belongs" if rows == 1 else "belong"
    return [
        f"{count(rows, 'row')} {belong} to no partition, by a column that was computed as"
        f" {'it' if rows == 1 else 'they'} landed. After a correction there, take the file out by"
        f" `lakehouse reject`, and deliver it again; lakehouse quarantine {table} --rule"
        f" {HAS_PARTITION} shows which."
    ]
