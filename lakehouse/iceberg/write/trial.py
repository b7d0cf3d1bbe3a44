"""A table computed from frames that are given, and judged by its rules as a write does it;
nothing is written.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING

from lakehouse.errors import UsageError
from lakehouse.iceberg.metadata.all_partitions import AllPartitions
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.frame_joins import together, without_keys
from lakehouse.iceberg.metadata.history import History, read_history
from lakehouse.iceberg.metadata.write_context import Partitions, Run
from lakehouse.iceberg.metadata.write_result import RuleResult
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.pinned_frames import narrowed
from lakehouse.iceberg.read.row_version_inputs import elsewhere, with_version_reads
from lakehouse.iceberg.read.rows_outside_partitions import has_partition
from lakehouse.iceberg.read.stale_partitions import partition_only_sources
from lakehouse.iceberg.rules.audit import audit, count
from lakehouse.iceberg.rules.evaluable_rule import EvaluableRule, evaluable
from lakehouse.iceberg.write.append_or_overwrite import in_partitions
from lakehouse.iceberg.write.kept_rows import Keep, keep_on_one_machine
from lakehouse.iceberg.write.merge_rows import merge_key_rule
from lakehouse.iceberg.write.prepared_frame import DELETED, PreparedFrame, prepare
from lakehouse.iceberg.write.quarantine_outside_partitions import rows_without_partition
from lakehouse.iceberg.write.refused_share_result import evaluate_refusals
from lakehouse.iceberg.write.row_versions import select_versions
from lakehouse.iceberg.write.split_rows import Split, counted, evaluated, split_rows
from lakehouse.tables.quoting import identifier
from lakehouse.tables.rule import Rule
from lakehouse.tables.suggestions import meant_name
from lakehouse.tables.table import Append, IcebergTable, Merge, OverwritePartitions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Compute = Callable[..., "DataFrame"]
ReadOther = Callable[[str], "DataFrame | None"]


@dataclass(frozen=True)
class LeftOut:
    """The rows of a source that no run of a table reads, by the source's column that tells its
    partitions, and all of its rows.
    """

    rows: "DataFrame"
    column: str
    all_rows: "DataFrame"

    def as_refused(self, table: IcebergTable) -> "DataFrame":
        """Return the rows as the quarantine of a table would hold them."""
        return rows_without_partition(table, self.rows, self.column)


@dataclass(frozen=True)
class Trial:
    """What a write would do with the rows that a function computed."""

    table: IcebergTable
    rows: "DataFrame"
    """The rows that the rules accept, in the declared columns but for the stamp of a merge."""
    removed: "DataFrame | None"
    """The keys of the rows that a merge would delete; None where it is not asked to."""
    refused: "DataFrame | None"
    """The refused rows as the quarantine would hold them; None of a table that has none."""
    computed_rows: int
    """How many rows were computed, each version and the refused ones among them."""
    refused_rows: int
    results: Sequence[RuleResult]
    """What each rule found that rows answer."""
    not_evaluated: Sequence[Rule]
    """The rules that only the written table answers, or another that was not there."""

    @property
    def failed(self) -> list[RuleResult]:
        """The results for which nothing would be published."""
        return [result for result in self.results if result.blocks]


def leave_out(
    table: IcebergTable,
    inputs: Mapping[str, Input],
    given: "Mapping[str, DataFrame]",
    every: AllPartitions | None,
) -> "tuple[dict[str, DataFrame], list[LeftOut]]":
    """Return the rows that a run reads of those that are given, and those that none does, since
    they belong to no partition.

    :param every: all partitions that there are; None where they are not known.
    """
    read, left_out = dict(given), dict[str, LeftOut]()
    if every is None:
        return read, []
    columns = partition_only_sources(table, inputs)
    for name, frame in given.items():
        source = inputs[name].table
        if source in columns:
            outside = every.outside(columns[source])
            read[name] = frame.where(f"NOT {outside}")
            left_out[source] = LeftOut(frame.where(outside), columns[source], frame)
    return read, list(left_out.values())


def compute_given(
    table: IcebergTable,
    compute: Compute,
    inputs: Mapping[str, Input],
    given: Mapping[str, "DataFrame"],
    existing: "DataFrame",
    partitions: Partitions | None = None,
) -> "DataFrame":
    """Return what a table's function computes from frames of its inputs, each narrowed to the
    partitions as a run would read it.

    :param given: by input, the rows that a run would find of it; those that came, where it is
        incremental. Keys of changed rows may be left out: they are those of all rows.
    :param existing: the rows that the table has already.
    :raises UsageError: when an input has no frame, or a frame is of none; names it.
    """
    _check_given(table, inputs, given)
    reads = with_version_reads(table, inputs)
    run = Run(partitions=partitions)
    frames: dict[str, DataFrame] = {}
    for name, declared in reads.items():
        whole = _whole(name, inputs, given, existing)
        if declared.outside and partitions is None:
            frames[name] = whole.where("false")
            continue
        where = narrowed(declared, run)
        frames[name] = whole.where(where) if where else whole
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
            f"{table.name} was given no rows of its input {', '.join(missing)}; expected some of"
            f" each of {', '.join(inputs)}.",
            next_step="Give an empty list for an input that has none.",
        )


def _whole(
    name: str,
    inputs: Mapping[str, Input],
    given: Mapping[str, "DataFrame"],
    existing: "DataFrame",
) -> "DataFrame":
    """Return all rows that an input is read of."""
    if name in given:
        return given[name]
    for arrived in given:
        if name == elsewhere(arrived):
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
    """Return each key that the rows of a table, or of the target, have."""
    keys = [identifier(name) for name in declared.keys]
    of_table = [given[name] for name in given if inputs[name].table == declared.table]
    selected = [frame.selectExpr(*keys) for frame in (*of_table, existing)]
    return reduce(lambda one, other: one.unionAll(other), selected).distinct()


def judge(
    engine: Engine,
    table: IcebergTable,
    frame: "DataFrame",
    partitions: Partitions | None = None,
    *,
    existing: "DataFrame | None" = None,
    read_other: ReadOther,
    left_out: Sequence[LeftOut] = (),
    keep: Keep = keep_on_one_machine,
) -> Trial:
    """Evaluate a table's rules on computed rows, as a write does before it publishes them.

    :param existing: the rows that the table has already, among which those that are appended or
        merged must be unique too; None where there are none. Then it is a first write, unless
        the catalog has a table of this name to which something was published.
    :param read_other: gives the rows of another table that a rule refers to; None where there
        are none to be had, so that the rule is not evaluated.
    :param left_out: rows that are refused without being computed.
    :param keep: caches the computed rows, so that counted and shown rows are the same.
    :raises FrameMismatch: when the frame is not what the table declares.
    """
    prepared = prepare(table, frame).evaluated()
    table = prepared.table
    kept = keep(prepared.frame)
    counted_values = count(kept, counted(prepared, table.row_rules))
    split = split_rows(prepared, kept, counted_values, keep)
    results = evaluated(engine, prepared, split, table.row_rules)
    read_target = partial(_published, engine, table) if existing is None else None
    results += evaluate_refusals(prepared, split, read_target)
    rows, removed = _accepted(prepared, kept)
    asked = _asked(table, partitions)
    others = {table.name: rows} | _others(asked, read_other)
    answered = [rule for rule in asked if _is_answered(rule, others)]
    on_all_rows = [
        rule for rule in answered if existing is not None and _asks_existing(table, rule)
    ]
    among_each_other = [rule for rule in answered if rule not in on_all_rows]
    if among_each_other:
        found = audit(engine, table, rows, among_each_other, None, others.__getitem__)
        results += found.results
    if on_all_rows and existing is not None:
        added, staying = _beside_existing(table, rows, removed, existing)
        results += audit(engine, table, added, on_all_rows, staying).results
    refused, refused_count = _refused(prepared, split), split.refused_count
    if left_out:
        results.append(_evaluate_left_out(table, left_out))
    if left_out and refused is not None:
        refused = together([refused, *(part.as_refused(table) for part in left_out)])
        refused_count += results[-1].failed_rows
    return Trial(
        table,
        rows,
        removed,
        refused,
        split.count + refused_count - split.refused_count,
        refused_count,
        tuple(results),
        _not_evaluated(table, results),
    )


def _not_evaluated(table: IcebergTable, results: Sequence[RuleResult]) -> tuple[Rule, ...]:
    """Return the rules of a table that gave no result."""
    known = {result.rule.name for result in results}
    return tuple(rule for rule in table.rules if rule.name not in known)


def _published(engine: Engine, table: IcebergTable) -> History | None:
    """Return what was published of a table; None where it is not there yet."""
    return read_history(engine, table.name) if engine.catalog.has(table.name) else None


def _evaluate_left_out(table: IcebergTable, left_out: Sequence[LeftOut]) -> RuleResult:
    failed_rows = sum(part.rows.count() for part in left_out)
    total_rows = sum(part.all_rows.count() for part in left_out)
    return RuleResult(has_partition(table), failed_rows, total_rows)


def _accepted(
    prepared: PreparedFrame, kept: "DataFrame"
) -> "tuple[DataFrame, DataFrame | None]":
    """Return the rows that go on, and the keys of those that shall go."""
    accepted, mode = prepared.accepted(kept), prepared.table.write
    if not prepared.deletes or not isinstance(mode, Merge):
        return accepted, None
    goes = f"coalesce({DELETED}, false)"
    staying = accepted.where(f"NOT {goes}").drop(DELETED)
    going = prepared.accepted(kept.where(f"NOT {prepared.unknown_deletion}")).where(goes)
    return staying, going.selectExpr(*map(identifier, mode.on))


def _asked(table: IcebergTable, partitions: Partitions | None) -> list[EvaluableRule]:
    """Return the rules that all accepted rows together answer."""
    rules: list[Rule] = [rule for rule in table.rules if not rule.is_row_rule]
    if isinstance(table.write, Merge):
        key_rule = merge_key_rule(table, table.write)
        rules += [key_rule] if key_rule not in rules else []
    if isinstance(table.write, OverwritePartitions) and partitions:
        by = table.write.by
        rules.append(in_partitions(by, partitions.predicate(by)))
    return [rule for rule in evaluable(rules) if rule.reads_rows]


def _asks_existing(table: IcebergTable, rule: Rule) -> bool:
    """Whether a write compares the keys of its rows with those that the table has. A merge's own
    key may be there.
    """
    if isinstance(table.write, Merge):
        return rule.identifies_rows and not {*table.write.on} <= {*rule.columns}
    return rule.identifies_rows and isinstance(table.write, Append)


def _beside_existing(
    table: IcebergTable,
    rows: "DataFrame",
    removed: "DataFrame | None",
    existing: "DataFrame",
) -> "tuple[DataFrame, DataFrame]":
    """Return the rows that a write adds, and the existing ones that stay beside them."""
    if isinstance(table.write, Merge):
        keys = rows.selectExpr(*map(identifier, table.write.on))
        gone = keys if removed is None else keys.unionAll(removed)
        return rows, without_keys(existing, gone, table.write.on)
    once_by = table.once_by
    if not once_by or not {*once_by} <= {*table.column_names}:
        return rows, existing
    has_key = " AND ".join(f"{identifier(name)} IS NOT NULL" for name in once_by)
    keys = existing.where(has_key).selectExpr(*map(identifier, once_by))
    return without_keys(rows, keys, once_by), existing


def _others(rules: Sequence[Rule], read_other: ReadOther) -> "dict[str, DataFrame]":
    others: dict[str, DataFrame] = {}
    for rule in rules:
        for name in rule.read_columns:
            frame = read_other(name)
            if frame is not None:
                others[name] = frame
    return others


def _is_answered(rule: EvaluableRule, others: "Mapping[str, DataFrame]") -> bool:
    return all(name in others for name in rule.read_columns)


def _refused(prepared: PreparedFrame, split: Split) -> "DataFrame | None":
    return prepared.quarantine_rows(split.refused) if prepared.table.quarantine else None
