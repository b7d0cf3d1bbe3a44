"""Which checks need a look at all rows before they pass."""

import dagster as dg
import pytest

from lakehouse.iceberg.rules.rows import not_null
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.blocked_tables import need_full_check
from lakehouse.orchestration.metadata_keys import CheckMetadata
from lakehouse.tables.table import Column, IcebergTable, Overwrite

pytestmark = pytest.mark.unit

TABLE = IcebergTable(
    "gold.figures",
    "Figures.",
    [Column("id", "bigint"), Column("name", "string")],
    Overwrite(),
    rules=[not_null("id", on_failure="warn"), not_null("name")],
)
MAIN, CANDIDATE = "main", "candidate"


@pytest.mark.parametrize(
    ("check", "evaluated", "is_needed"),
    [
        ("not_null_id", [(MAIN, True)], False),
        ("not_null_id", [(MAIN, False)], True),
        ("not_null_id", [(MAIN, False), (MAIN, True)], False),
        # Rows of a blocked write say nothing about published rows.
        ("not_null_id", [(MAIN, True), (CANDIDATE, False)], True),
        ("not_null_id", [(MAIN, False), (CANDIDATE, True)], True),
        # What breaks it is in the quarantine.
        ("not_null_name", [(MAIN, False)], False),
        # It is of what a write was given.
        ("refused_share", [(MAIN, False)], False),
    ],
)
def test_a_check_that_failed_last_on_what_readers_see_needs_one(
    instance: dg.DagsterInstance,
    check: str,
    evaluated: list[tuple[str, bool]],
    is_needed: bool,
) -> None:
    for what, passed in evaluated:
        instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(
                asset_key(TABLE.name),
                check,
                passed,
                CheckMetadata(evaluated=what).to_metadata(),
            )
        )
    assert need_full_check(instance, TABLE, [check]) == ({check} if is_needed else set())
