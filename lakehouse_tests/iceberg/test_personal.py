"""Personal data: hashed wherever rows are shown, without bounds in metadata, refused in
partitions.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.rules.aggregate_rules import mean
from lakehouse.iceberg.rules.rows import castable, excluded
from lakehouse.iceberg.values.write_result import Outcome, Refused
from lakehouse.tables.masking import mask
from lakehouse.tables.table import Column, IcebergTable, Merge, OverwritePartitions
from lakehouse_tests.examples import glue_in_test_all
from lakehouse_tests.iceberg.declarations import put

CUSTOMERS = IcebergTable(
    name="silver.customers",
    comment="One row per customer.",
    columns=[
        Column("customer_id", "bigint"),
        Column("email", "string", personal=True),
        Column("age", "int"),
        Column("status", "string"),
    ],
    write=Merge(on=["customer_id"]),
    subject="customer_id",
    rules=[castable("age", "int"), excluded("age", [7], on_failure="block")],
)
EMAIL = "somebody@example.org"
_KEYS = "customer_id bigint, email string"
_ID = 4711


@pytest.mark.unit
def test_equal_values_have_equal_masks_under_one_key_only() -> None:
    assert mask(b"k", EMAIL) == mask(b"k", EMAIL) != mask(b"other", EMAIL)
    assert EMAIL not in str(mask(b"k", EMAIL)) and mask(b"k", None) is None


@pytest.mark.unit
@pytest.mark.parametrize("transform", ["customer_id", "truncate(10, customer_id)"])
def test_a_subject_is_rejected_in_partitions_but_for_its_buckets(transform: str) -> None:
    with pytest.raises(
        DeclarationError, match="partitioned by customer_id, which identifies a person"
    ):
        replace(CUSTOMERS, partitioning=[transform])
    assert replace(CUSTOMERS, partitioning=["bucket(16, customer_id)"])


@pytest.mark.unit
def test_no_partitions_are_those_of_a_subject() -> None:
    by_subject = {
        "partitioning": ["bucket(16, customer_id)"],
        "write": OverwritePartitions(by="customer_id"),
    }
    with pytest.raises(DeclarationError, match="identifies a person"):
        replace(CUSTOMERS, **by_subject)


@pytest.mark.unit
def test_no_figure_is_taken_of_a_subject() -> None:
    with pytest.raises(
        DeclarationError, match=r"rule .* is about customer_id, which identifies a person"
    ):
        replace(CUSTOMERS, rules=[mean("customer_id", high=9)])


@glue_in_test_all
@pytest.mark.spark
def test_keeps_no_bounds_in_metadata(engine: Engine) -> None:
    put(engine, CUSTOMERS, [(1, EMAIL, 30, "NEW")])
    bounds = (
        engine.catalog.load(CUSTOMERS.name).inspect.files().to_pylist()[0]["readable_metrics"]
    )
    assert bounds["customer_id"]["lower_bound"] == 1
    assert bounds["email"]["lower_bound"] is None and bounds["email"]["upper_bound"] is None


@pytest.mark.spark
def test_no_sample_has_what_may_be_a_persons(embedded_engine: Engine) -> None:
    rows = [
        (_ID, EMAIL, "7", EMAIL),
        (_ID + 1, EMAIL, EMAIL, f"x{_ID}"),
        (_ID + 2, EMAIL, "30", EMAIL),
    ]
    done = put(embedded_engine, CUSTOMERS, rows, schema=f"{_KEYS}, age string, status string")
    assert isinstance(done, Refused)
    samples = json.dumps([list(result.sample) for result in done.results])
    assert "masked:" in samples and EMAIL not in samples and str(_ID) not in samples
    blocked, quarantined = (
        dict(sample(done, name)[0]) for name in ("excluded_age", "castable_age")
    )
    assert (
        blocked["age"] == "7"
        and blocked["status"] == quarantined["age"] == "20 characters: letters, @, dot"
    )


@pytest.mark.spark
def test_a_sample_has_what_several_persons_share(embedded_engine: Engine) -> None:
    rows = [(person, EMAIL, "x", "CANCELED") for person in range(5)]
    done = put(embedded_engine, CUSTOMERS, rows, schema=f"{_KEYS}, age string, status string")
    assert {row["status"] for row in sample(done, "castable_age")} == {"CANCELED"}


def sample(done: Outcome, rule: str) -> Sequence[Mapping[str, Any]]:
    return next(result.sample for result in done.results if result.rule.name == rule)
