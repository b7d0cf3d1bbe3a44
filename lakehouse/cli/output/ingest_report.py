"""Formats the result of an ingest; pure functions."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from lakehouse.cli.output.printing import conclude, count
from lakehouse.iceberg.read.rows_outside_partitions import HAS_PARTITION
from lakehouse.iceberg.write.split_rows import broken_rules
from lakehouse.quality.metrics.metric import NO_ANOMALY
from lakehouse.tables.quoting import shown

if TYPE_CHECKING:
    from lakehouse.ingestion.feed_runs import IngestResult
    from lakehouse.orchestration.metadata_keys import QuarantineMetadata, WriteMetadata
    from lakehouse.orchestration.runs.run_progress import TableProgress
    from lakehouse.orchestration.runs.run_result import AssetResult, RunResult

_MANY = 6
_DONE = ("published", "unchanged")


def summarize(result: "IngestResult") -> list[str]:
    """Return lines about landed files, table changes and quarantined rows."""
    notes = [
        f"{shown(key)} is still being written; the next ingest collects it"
        for key in result.unsettled
    ]
    notes += result.passed_over
    for asset in result.assets:
        notes += asset.landing.warnings
    return [
        _describe_delivery(result),
        *(f"  {note}" for note in notes),
        *describe_tables(result.assets),
        *_describe_anomalies(result),
    ]


def describe_progress(progress: "TableProgress") -> str:
    """Return the progress of a table: partitions and rows."""
    parts = [progress.table]
    if progress.partitions:
        total = count(progress.partitions, "partition")
        parts.append(f"{progress.done:,} of {total}")
    if progress.rows:
        parts.append(count(progress.rows, "row"))
    return ", ".join(parts)


def describe_failures(result: "IngestResult") -> list[str]:
    """Return one line for each rejected file and each failed table."""
    rejected = [
        f"{shown(file.file)} was rejected: {file.reason} It is kept as {shown(file.kept_as)}."
        for file in result.rejected
    ]
    return [*rejected, *result.messages]


def _describe_delivery(result: "IngestResult") -> str:
    feed = f"Feed {result.feed.name}"
    if result.files:
        is_known = not result.rows and any(file.rows for file in result.landed)
        known = ", all of it ingested before" if is_known else ""
        suppressed = count(result.suppressed_rows, "row")
        erased = f", {suppressed} of erased people suppressed" if result.suppressed_rows else ""
        files = f"{count(len(result.files), 'file')} ({_listed(result.files)})"
        return f"{feed}: {files}, nr_rows {result.rows}{known}{erased}"
    if result.missing:
        return (
            f"{feed}: no new file; files are put into the folder {shown(result.missing)}, which is"
            " not there yet"
        )
    landings = [asset for asset in result.assets if asset.table == result.feed.table]
    if any(asset.status == "failed" for asset in landings):
        return f"{feed}: nothing landed; the files stay where they are"
    if result.rejected:
        return f"{feed}: {count(len(result.rejected), 'file')} rejected, and no other new one"
    return f"{feed}: no new file in {result.feed.inbox}"


def _listed(names: Sequence[str]) -> str:
    """Return the names; only the first and last if there are many."""
    if len(names) > _MANY:
        return f"{shown(names[0])} … {shown(names[-1])}"
    return ", ".join(map(shown, names))


def conclude_runs(runs: "Sequence[RunResult]", *lines: str) -> None:
    """Print what runs changed and further lines; exit with 1 after a failure."""
    assets = (asset for run in runs for asset in run.assets)
    messages = (message for run in runs for message in run.messages)
    success = all(run.success for run in runs)
    conclude([*describe_tables(assets), *lines], messages, success=success)


def describe_tables(assets: "Iterable[AssetResult]") -> list[str]:
    """Return the changes of each table over all runs, and its quarantined rows."""
    by_table: dict[str, list[AssetResult]] = {}
    for asset in assets:
        by_table.setdefault(asset.table, []).append(asset)
    lines = []
    for of_table in by_table.values():
        done = [asset for asset in of_table if asset.status in _DONE]
        if done:
            lines.append(_describe_table(done))
    return [
        *lines,
        *map(_describe_quarantined, filter(_has_newly_quarantined, by_table.values())),
    ]


def _describe_table(assets: "list[AssetResult]") -> str:
    table, writes = assets[-1].table, [asset.write for asset in assets]
    total = count(writes[-1].row_count or 0, "row")
    if all(asset.status == "unchanged" for asset in assets):
        return f"{table}: unchanged, {total}"
    runs = f" in {len(assets)} runs" if len(assets) > 1 else ""
    return f"{table}: {', '.join(_describe_changes(writes))}{runs}, {total} in all"


def _describe_changes(writes: "list[WriteMetadata]") -> Iterator[str]:
    is_merge = any(
        write.inserted_rows is not None and write.updated_rows is not None for write in writes
    )
    if is_merge:
        yield f"{_sum(write.inserted_rows for write in writes):,} inserted"
        yield f"{_sum(write.updated_rows for write in writes):,} updated"
    else:
        replaced = _sum(write.deleted_rows for write in writes)
        verb = f"written in place of {replaced:,}" if replaced else "added"
        yield f"{_sum(write.added_rows for write in writes):,} {verb}"
    removed = _sum(write.removed_rows for write in writes)
    if removed:
        yield f"{removed:,} removed"
    suppressed = _sum(write.suppressed_rows for write in writes)
    if suppressed:
        yield f"{suppressed:,} of erased people suppressed"


def _sum(counts: Iterable[int | None]) -> int:
    return sum(number or 0 for number in counts)


def _has_newly_quarantined(assets: "list[AssetResult]") -> bool:
    """Whether rows were quarantined for the first time."""
    return any(asset.quarantine.new_rows for asset in assets)


def _describe_quarantined(assets: "list[AssetResult]") -> str:
    """Return the number and share of quarantined rows, the rules, and the command to see them."""
    quarantines = [asset.quarantine for asset in assets]
    outside = [one.outside_rows or 0 for one in quarantines]
    # Each run counts the rows outside of all partitions.
    quarantined = _sum(one.rows for one in quarantines) - sum(outside) + max(outside)
    new = _sum(one.new_rows for one in quarantines)
    evaluated = _sum(one.evaluated_rows for one in quarantines)
    if any(one.by_rule for one in quarantines):
        evaluated += max(outside)
    by_rule = _quarantined_by_rule(quarantines)
    verb = "was" if quarantined == 1 else "were"
    rows = (
        f"{quarantined:,} of {count(evaluated, 'row')}"
        if evaluated
        else count(quarantined, "row")
    )
    share = f" ({quarantined / evaluated * 100:.1f} %)" if evaluated else ""
    first = f", {new:,} for the first time" if new < quarantined else ""
    broken = f": {broken_rules(by_rule)}" if by_rule else ""
    table = assets[-1].table
    return (
        f"{table}: {rows} {verb} quarantined{share}{first}{broken}; "
        f"look at them with: lakehouse quarantine {table}"
    )


def _quarantined_by_rule(quarantines: "Iterable[QuarantineMetadata]") -> Counter[str]:
    by_rule: Counter[str] = Counter()
    for one in quarantines:
        for rule, rows in one.by_rule.items():
            is_of_each = rule == HAS_PARTITION
            by_rule[rule] = max(by_rule[rule], rows) if is_of_each else by_rule[rule] + rows
    return by_rule


def _describe_anomalies(result: "IngestResult") -> Iterator[str]:
    for check in chain.from_iterable(run.checks for run in result.runs):
        if check.name == NO_ANOMALY and not check.passed:
            yield f"{check.table} is unlike its recent past: {check.description}"
