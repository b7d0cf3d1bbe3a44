"""Compute a table from given DataFrames and evaluate its rules like a write, without writing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from lakehouse.errors import UsageError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.frames.frames import union_all
from lakehouse.iceberg.metadata.snapshots import History, read_history
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.pinned_frames import narrowed
from lakehouse.iceberg.read.row_version_inputs import outside_name, with_version_reads
from lakehouse.iceberg.rules.audit import audit, count
from lakehouse.iceberg.rules.evaluable_rule import EvaluableRule, evaluable
from lakehouse.iceberg.rules.rows import InPartitionsRule
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.iceberg.values.write_result import RuleResult
from lakehouse.iceberg.write.kept_rows import Keep, keep_on_one_machine
from lakehouse.iceberg.write.merge_rows import merge_key_rule
from lakehouse.iceberg.write.prepared_frame import DELETED, PreparedFrame, prepare
from lakehouse.iceberg.write.row_versions import select_versions
from lakehouse.iceberg.write.split_rows import (
    count_terms,
    evaluate_rejections,
    evaluated,
    split_rows,
)
from lakehouse.tables.quoting import identifier, meant_name
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import IcebergTable, Merge, OverwritePartitions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Compute = Callable[..., "DataFrame"]
ReadOther = Callable[[str], "DataFrame | None"]


@dataclass(frozen=True)
class Trial:
    """The result that a write of computed rows would have."""

    table: IcebergTable
    rows: "DataFrame"
    """The accepted rows in the declared columns, without the stamp of a merge."""
    removed: "DataFrame | None"
    """Keys that a merge would delete; None without deletes."""
    rejected: "DataFrame | None"
    """The rejected rows in the form of the quarantine; None without a quarantine."""
    computed_rows: int
    """Number of computed rows, including all versions and rejected rows."""
    rejected_rows: int
    results: Sequence[RuleResult]
    """Results of all rules that were evaluated on rows."""
    not_evaluated: Sequence[Rule]
    """Rules that require the written table, or another table that does not exist."""

    @property
    def failed(self) -> list[RuleResult]:
        """The results that would block the publish."""
        return [result for result in self.results if result.blocks]


def compute_given(
    table: IcebergTable,
    compute: Compute,
    inputs: Mapping[str, Input],
    given: Mapping[str, "DataFrame"],
    existing: "DataFrame",
    partitions: Partitions | None = None,
) -> "DataFrame":
    """Return the result of a table's function for DataFrames of its inputs, filtered like in a
    run.

    :param given: rows by input; new rows, if it is incremental. Inputs of changed keys can be
        omitted, and are derived from all rows.
    :param existing: the existing rows of the table.
    :raises UsageError: if an input has no DataFrame, or a DataFrame has no input.
    """
    _check_given(table, inputs, given)
    reads = with_version_reads(table, inputs)
    run = Run(partitions=partitions)
    frames: dict[str, DataFrame] = {}
    for name, declared in reads.items():
        all_rows = _all_rows(name, inputs, given, existing)
        if declared.outside and partitions is None:
            frames[name] = all_rows.where("false")
            continue
        where = narrowed(declared, run)
        frames[name] = all_rows.where(where) if where else all_rows
    return select_versions(table, inputs, compute, partitions)(**frames)


def _check_given(
    table: IcebergTable, inputs: Mapping[str, Input], given: Mapping[str, "DataFrame"]
) -> None:
    unknown = sorted(given.keys() - inputs.keys())
    if unknown:
        raise UsageError(
            f"{table.name} has no input {unknown[0]!r}; {meant_name(unknown[0], inputs)}"
        )
    missing = [
        name
        for name, declared in inputs.items()
        if name not in given and declared.mode not in ("existing_rows", "changed_keys")
    ]
    if missing:
        raise UsageError(
            f"{table.name} has no rows for its input {', '.join(missing)}; expected rows for"
            f" each of {', '.join(inputs)}.",
            next_step="Pass an empty list for an input without rows.",
        )


def _all_rows(
    name: str,
    inputs: Mapping[str, Input],
    given: Mapping[str, "DataFrame"],
    existing: "DataFrame",
) -> "DataFrame":
    """Return all rows of an input."""
    if name in given:
        return given[name]
    for arrived in given:
        if name == outside_name(arrived):
            return given[arrived]
    if name in inputs and inputs[name].mode == "changed_keys":
        return _keys(inputs[name], inputs, given, existing)
    return existing


def _keys(
    declared: Input,
    inputs: Mapping[str, Input],
    given: Mapping[str, "DataFrame"],
    existing: "DataFrame",
) -> "DataFrame":
    """Return the distinct keys in the rows of a table and the target."""
    keys = [identifier(name) for name in declared.keys]
    of_table = [given[name] for name in given if inputs[name].table == declared.table]
    selected = [frame.selectExpr(*keys) for frame in (*of_table, existing)]
    return union_all(selected).distinct()


def judge(
    engine: Engine,
    table: IcebergTable,
    frame: "DataFrame",
    partitions: Partitions | None = None,
    *,
    is_first: bool = True,
    read_other: ReadOther,
    keep: Keep = keep_on_one_machine,
) -> Trial:
    """Evaluate a table's rules on computed rows, like a write before its publish.

    :param is_first: whether the table has no rows yet; then it is a first write, unless the
        catalog has a published table of this name.
    :param read_other: returns the rows of another table that a rule reads; None if unavailable,
        so that the rule is not evaluated.
    :param keep: caches the computed rows, so that counts and samples are consistent.
    :raises FrameMismatch: if the DataFrame does not match the declaration.
    """
    prepared = prepare(table, frame).evaluated()
    table = prepared.table
    kept = keep(prepared.frame)
    aggregate_values = count(kept, count_terms(prepared, table.row_rules))
    split = split_rows(prepared, kept, aggregate_values, keep)
    results = evaluated(engine, prepared, split, table.row_rules)
    read_target = partial(_published, engine, table) if is_first else None
    results += evaluate_rejections(prepared, split, read_target)
    rows, removed = _accepted(prepared, kept)
    row_set_rules = _row_set_rules(table, partitions)
    other_tables = {table.name: rows} | _other_tables(row_set_rules, read_other)
    evaluable_rules = [
        rule for rule in row_set_rules if rule.read_columns.keys() <= other_tables.keys()
    ]
    if evaluable_rules:
        read = other_tables.__getitem__
        results += audit(engine, table, rows, evaluable_rules, None, read).results
    known = {result.rule.name for result in results}
    return Trial(
        table,
        rows,
        removed,
        prepared.quarantine_rows(split.rejected) if table.quarantine else None,
        split.count,
        split.rejected_count,
        tuple(results),
        tuple(rule for rule in table.rules if rule.name not in known),
    )


def _published(engine: Engine, table: IcebergTable) -> History | None:
    """Return the history of a table; None if it does not exist."""
    return read_history(engine, table.name) if engine.catalog.has(table.name) else None


def _accepted(
    prepared: PreparedFrame, kept: "DataFrame"
) -> "tuple[DataFrame, DataFrame | None]":
    """Return the accepted rows, and the keys to delete."""
    accepted, mode = prepared.accepted(kept), prepared.table.write
    if not prepared.deletes or not isinstance(mode, Merge):
        return accepted, None
    is_deleted = f"coalesce({DELETED}, false)"
    staying = accepted.where(f"NOT {is_deleted}").drop(DELETED)
    going = accepted.where(is_deleted)
    return staying, going.selectExpr(*map(identifier, mode.on))


def _row_set_rules(table: IcebergTable, partitions: Partitions | None) -> list[EvaluableRule]:
    """Return the rules that are evaluated on all accepted rows together."""
    rules: list[Rule] = [rule for rule in table.rules if not rule.is_row_rule]
    if isinstance(table.write, Merge):
        key_rule = merge_key_rule(table, table.write)
        rules += [key_rule] if key_rule not in rules else []
    if isinstance(table.write, OverwritePartitions) and partitions:
        by = table.write.by
        rules.append(InPartitionsRule.of(by, partitions.predicate(by)))
    return [rule for rule in evaluable(rules) if rule.reads_rows]


def _other_tables(rules: Sequence[Rule], read_other: ReadOther) -> "dict[str, DataFrame]":
    other_tables: dict[str, DataFrame] = {}
    for rule in rules:
        for name in rule.read_columns:
            frame = read_other(name)
            if frame is not None:
                other_tables[name] = frame
    return other_tables
