"""What the Iceberg of an older Spark lacks is told and refused before it is asked for."""

from dataclasses import replace

import pytest

from lakehouse.errors import EvolutionRefused
from lakehouse.iceberg.evolve.planning import ensure, plan
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.iceberg_release import iceberg_release
from lakehouse.iceberg.metadata.table_state import TableState
from lakehouse.maintenance.planner import Known, plan_upkeep
from lakehouse.settings import Settings
from lakehouse_tests.iceberg.erasure.people import no_spark
from lakehouse_tests.iceberg.evolving import declared, state_like
from lakehouse_tests.maintenance.sick_tables import NOW, step_of, table

pytestmark = pytest.mark.unit
OLD = iceberg_release("1.7.1")
VECTORS = declared(format_version=3)


def test_upkeep_plans_no_step_that_it_cannot_do() -> None:
    steps = {}
    for release in (OLD, iceberg_release("1.12.0")):
        steps[release] = plan_upkeep([table()], Known(iceberg=release), NOW)
    for step, lacking in (
        ("remove_orphans", "prefix_listing"),
        ("compute_statistics", "compute_table_stats"),
    ):
        left_out = step_of(steps[OLD], step)
        assert (left_out.is_due, left_out.reason) == (False, f"Iceberg 1.7.1 has no {lacking}")
        assert "has no" not in step_of(steps[iceberg_release("1.12.0")], step).reason
    assert "has no" not in step_of(steps[OLD], "expire_snapshots").reason


@pytest.mark.parametrize("state", [None, state_like(VECTORS)])
def test_a_table_of_format_3_is_refused_by_one_that_would_write_it_wrongly(
    state: TableState | None,
) -> None:
    (refusal,) = plan(VECTORS, state, OLD).refusals
    assert "Iceberg 1.7.1 would write deleted rows of format 3 as files that" in str(refusal)
    assert "Declare format_version=2" in str(refusal)
    assert plan(VECTORS, state).refusals == ()
    assert plan(declared(), None, OLD).refusals == ()


def test_a_table_that_has_format_3_is_refused_whatever_is_declared() -> None:
    found = replace(state_like(declared()), format_version=3)
    assert "is 3 in the table and 2 in the declaration" in str(
        plan(declared(), found, OLD).refusals[0]
    )


def test_it_is_not_created_either(settings: Settings) -> None:
    catalog = replace(Catalog.of(settings), iceberg=OLD)
    engine = Engine(catalog, no_spark, settings.lock_dir, masking_key=b"testing")
    with pytest.raises(EvolutionRefused, match="its format version is none yet in the table"):
        ensure(engine, VECTORS)
    assert not catalog.has(VECTORS.name)


def test_all_that_it_lacks_is_said_in_one_line() -> None:
    assert OLD.describe() == (
        "1.7.1: upkeep leaves out compute_statistics (no compute_table_stats), remove_orphans"
        " (no prefix_listing); tables of format 3 are not written"
    )
    assert iceberg_release("1.12.0").describe() == "1.12.0"
