"""Preview of a full run, staged on a branch that is dropped afterwards."""

from collections.abc import Callable

from lakehouse.errors import UsageError
from lakehouse.iceberg.erasure.suppression_list import SuppressionList
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.write_context import Run
from lakehouse.iceberg.metadata.write_result import Outcome
from lakehouse.iceberg.write.preview import preview
from lakehouse.orchestration.io_manager import run_partitions
from lakehouse.orchestration.run_failures.function_error_text import in_one_line
from lakehouse.orchestration.run_failures.withheld_values import values_withheld
from lakehouse.orchestration.table_function import TableFunction


def preview_table(
    engine: Engine,
    function: TableFunction,
    look: Callable[[str], None],
    gone: SuppressionList,
) -> Outcome:
    """Compute a table in full without publishing; see `lakehouse.iceberg.write.preview`.

    :raises UsageError: a feed fills the table.
    """
    table, name = function.table, function.table.name
    if function.feed:
        raise UsageError(
            f"{name} is filled by the feed {function.feed.name}; expected a table that is"
            " computed from others.",
            next_step=f"`lakehouse try {name} --file FILE` shows what becomes of a file.",
        )
    definition, partitions = function.partitions_def, None
    if definition:
        partitions = run_partitions(definition, definition.get_partition_keys(), table)
    run = Run(partitions=partitions, reads_everything=partitions is None)
    with (
        values_withheld(table),
        in_one_line(table, function.compute, f"lakehouse preview {name}"),
    ):
        return preview(engine, table, function.compute, function.inputs, run, look, gone=gone)
