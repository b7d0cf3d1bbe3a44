"""The declared upkeep: what is taken from where, what is refused, and what Iceberg is told."""

import json
import re
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.model import OperationModel
from botocore.validate import ParamValidator
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.evolve.planning import plan
from lakehouse.iceberg.rules.rows import castable
from lakehouse.tables.table import Column
from lakehouse.tables.table_properties import table_properties
from lakehouse.tables.upkeep import DEFAULTS, Upkeep
from lakehouse_tests.iceberg.evolving import declared, state_like

pytestmark = pytest.mark.unit

DAYS = st.integers(min_value=1, max_value=90).map(lambda days: timedelta(days=days))
DECLARED = st.builds(
    Upkeep,
    keep_snapshots_for=st.none() | DAYS,
    keep_at_least=st.none() | st.integers(min_value=1, max_value=100),
    orphans_after=st.none() | DAYS,
    refused_for=st.none() | DAYS,
    metadata_files=st.none() | st.integers(min_value=1, max_value=100),
    sort_by=st.none() | st.just(("id",)),
    z_order=st.none() | st.booleans(),
    kept_by=st.none() | st.sampled_from(["lakehouse", "glue", "nobody"]),
)


@given(table=DECLARED, layer=DECLARED)
def test_each_part_is_the_tables_else_the_layers_else_the_default(
    table: Upkeep, layer: Upkeep
) -> None:
    policy = table.over(layer).policy
    for part in fields(policy):
        of_table, of_layer = getattr(table, part.name), getattr(layer, part.name)
        expected = getattr(DEFAULTS, part.name) if of_layer is None else of_layer
        assert getattr(policy, part.name) == (expected if of_table is None else of_table)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"orphans_after": timedelta(hours=23)},
            "orphans_after=23:00:00.; expected 1 day, 0:00:00 or more.",
        ),
        ({"refused_for": timedelta(hours=1)}, "expected 1 day, 0:00:00 or more."),
        ({"keep_at_least": 0}, "keep_at_least=0.; expected 1 or more."),
        ({"metadata_files": 0}, "metadata_files=0.* expected 1 or more."),
        ({"keep_snapshots_for": timedelta(-1)}, "keep_snapshots_for=-1 day.* expected 0"),
    ],
)
def test_what_would_remove_what_is_needed_is_rejected(
    parts: dict[str, Any], message: str
) -> None:
    with pytest.raises(DeclarationError, match=message):
        Upkeep(**parts)


def test_files_are_sorted_by_columns_that_there_are() -> None:
    assert declared(upkeep=Upkeep(sort_by="id")).upkeep_policy.sort_by == ("id",)
    with pytest.raises(DeclarationError, match=r"Upkeep\(sort_by=…\) names price; expected"):
        declared(upkeep=Upkeep(sort_by=["price"]))


def test_old_metadata_is_pruned_by_the_tables_own_properties() -> None:
    properties = table_properties(declared(upkeep=Upkeep(metadata_files=30)))
    assert properties["write.metadata.delete-after-commit.enabled"] == "true"
    assert properties["write.metadata.previous-versions-max"] == "30"
    assert table_properties(declared())["write.metadata.previous-versions-max"] == "20"
    kept = declared(properties={"write.metadata.delete-after-commit.enabled": "false"})
    assert table_properties(kept)["write.metadata.delete-after-commit.enabled"] == "false"


def test_another_upkeep_is_a_property_that_the_next_write_sets_and_no_other_declaration() -> (
    None
):
    before, after = declared(), declared(upkeep=Upkeep(metadata_files=30))
    (step,) = plan(after, state_like(before)).automatic
    assert "write.metadata.previous-versions-max" in step.description
    assert after.declaration_hash == before.declaration_hash


@pytest.mark.parametrize(
    ("days", "warning"),
    [
        (6.5, "silver.orders keeps snapshots for 6.5 days, after which earlier rows"),
        (7, None),
        (30, None),
        (31, "silver.orders keeps snapshots for 31 days, and replaced files"),
    ],
)
def test_a_plan_warns_of_snapshots_that_are_kept_for_too_short_or_too_long(
    days: float, warning: str | None
) -> None:
    table = declared(upkeep=Upkeep(keep_snapshots_for=timedelta(days=days)))
    warnings = plan(table, None).warnings
    if warning is None:
        assert warnings == ()
    else:
        assert warnings[0].startswith(warning)
        assert warnings[0].endswith("; expected 7 to 30 days.")


def test_a_plan_names_a_table_whose_upkeep_needs_glues_optimizers() -> None:
    (warning,) = plan(declared(upkeep=Upkeep(kept_by="glue")), None).warnings
    assert warning.startswith(
        "silver.orders is left to Glue's table optimizers, which apply does"
    )
    assert plan(declared(upkeep=Upkeep(kept_by="nobody")), None).warnings == ()


def test_the_optimizers_of_the_page_are_what_glue_takes() -> None:
    page = Path(__file__).parents[2] / "docs" / "upkeep.md"
    shape = _glue_operation("CreateTableOptimizer").input_shape
    configurations = dict(re.findall(r"^\| `(\w+)` \| `(\{.*\})` \|$", page.read_text(), re.M))
    assert set(configurations) == set(shape.members["Type"].enum)
    for kind, configuration in configurations.items():
        parameters = {
            "CatalogId": "123456789012",
            "DatabaseName": "silver",
            "TableName": "fruits",
            "Type": kind,
            "TableOptimizerConfiguration": json.loads(configuration),
        }
        assert not ParamValidator().validate(parameters, shape).has_errors()


def _glue_operation(name: str) -> OperationModel:
    client = boto3.client("glue", region_name="eu-central-1")
    return client.meta.service_model.operation_model(name)


def test_a_quarantine_has_the_upkeep_of_its_table_but_not_the_order_of_its_files() -> None:
    table = declared(
        columns=[Column("id", "bigint"), Column("at", "timestamp")],
        rules=[castable("id", "bigint")],
        upkeep=Upkeep(sort_by=["at"], z_order=True, metadata_files=3),
    )
    assert table.quarantine is not None
    assert table.quarantine.upkeep == Upkeep(metadata_files=3)
