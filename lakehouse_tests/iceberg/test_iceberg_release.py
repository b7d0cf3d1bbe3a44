"""What the Iceberg of an older Spark lacks is told and refused before it is asked for."""

from dataclasses import replace

import pytest

from lakehouse.iceberg.catalog.iceberg_release import IcebergRelease, spark_line
from lakehouse.iceberg.evolve.planning import plan
from lakehouse.iceberg.metadata.table_state import TableState
from lakehouse.tables.table import Append, Column, IcebergTable
from lakehouse.tables.upkeep import Upkeep
from lakehouse.upkeep.planner import Known, plan_upkeep
from lakehouse_tests.iceberg.evolving import declared, state_like
from lakehouse_tests.upkeep.sick_tables import NOW, step_of, table

pytestmark = pytest.mark.unit
OLD = IcebergRelease("1.7.1")
VECTORS = declared(format_version=3)


def test_upkeep_plans_no_step_that_it_cannot_do() -> None:
    lacking = {}
    for release in (OLD, IcebergRelease("1.12.0")):
        steps = plan_upkeep([table()], Known(iceberg=release), NOW).steps
        lacking[release] = [step.step for step in steps if "has no" in step.reason]
        assert not any(step.is_due for step in steps if "has no" in step.reason)
    assert lacking[OLD] == ["remove_orphans"]
    assert lacking[IcebergRelease("1.12.0")] == []


@pytest.mark.parametrize("state", [None, state_like(VECTORS)])
def test_a_table_of_format_3_is_rejected_by_one_that_would_write_it_wrongly(
    state: TableState | None,
) -> None:
    (denied,) = plan(VECTORS, state, OLD).denied
    assert "Iceberg 1.7.1 would write deleted rows of format 3 as files that" in str(denied)
    assert "Declare format_version=2" in str(denied)
    assert plan(VECTORS, state).denied == ()
    assert plan(declared(), None, OLD).denied == ()


# What EMR 7 has had in its releases from 7.0 to 7.14, and Glue 5; then what nobody has yet.
@pytest.mark.parametrize(
    ("version", "lacking", "writes_format_3", "limits"),
    [
        ("1.4.2-amzn-0", True, False, False),
        ("1.7.1", True, False, False),
        ("1.8.1-amzn-0", True, True, False),
        ("1.9.1-amzn-0", True, True, False),
        ("1.10.0-amzn-1", False, True, True),
        ("1.10", False, True, True),
        ("2.0.0-SNAPSHOT", False, True, True),
    ],
)
def test_a_release_is_known_by_the_number_that_it_begins_with(
    version: str, lacking: bool, writes_format_3: bool, limits: bool
) -> None:
    release = IcebergRelease(version)
    message = f"Iceberg {version} has no prefix_listing" if lacking else None
    assert release.lacks_prefix_listing() == message
    assert (plan(VECTORS, None, release).denied == ()) is writes_format_3
    assert release.limits_rewritten_files is limits


@pytest.mark.parametrize("version", ["unspecified", "", "v1.12.0"])
def test_of_a_version_without_a_number_nothing_is_taken_for_granted(version: str) -> None:
    release = IcebergRelease(version)
    (denied,) = plan(VECTORS, None, release).denied
    assert f"the version {version!r} does not show" in str(denied)
    assert plan(declared(), None, release).denied == ()
    left_out = step_of(plan_upkeep([table()], Known(iceberg=release), NOW), "remove_orphans")
    assert not left_out.is_due
    assert f"the version {version!r} does not show" in left_out.reason
    assert not release.limits_rewritten_files
    assert release.describe().startswith(f"{version!r}, of which no number can be read")


@pytest.mark.parametrize("columns", ["day", "seen", "id, seen"])
def test_plan_says_of_which_columns_it_has_no_z_order(columns: str) -> None:
    table = IcebergTable(
        "silver.seen",
        "",
        [Column("id", "bigint"), Column("day", "date"), Column("seen", "timestamp_ntz")],
        Append(once_by=()),
        upkeep=Upkeep(sort_by=columns.split(", "), z_order=True),
    )
    kind = "day (date)" if columns == "day" else "seen (timestamp_ntz)"
    assert plan(table, None, OLD).warnings == (
        f"silver.seen declares z_order, and Iceberg 1.7.1 has no z-order of {kind} on Spark"
        f" {spark_line()}: upkeep sorts by its columns in turn.",
    )
    known = replace(table, upkeep=Upkeep(sort_by=["id"], z_order=True))
    assert plan(known, None, OLD).warnings == ()
