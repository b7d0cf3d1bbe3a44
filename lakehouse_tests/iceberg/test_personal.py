"""Personal data: hashed wherever rows are shown, without bounds in metadata, refused in partitions."""

import json
from dataclasses import replace

import pytest

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.engine import Engine
from lakehouse.iceberg.masking import mask
from lakehouse.iceberg.outcome import Refused
from lakehouse.iceberg.rules.rows import castable, excluded
from lakehouse.iceberg.table import Column, IcebergTable, Merge
from lakehouse.iceberg.write import write
from lakehouse_tests.iceberg.declarations import rows_of

CUSTOMERS = IcebergTable(
    name="silver.customers",
    comment="One row per customer.",
    columns=[Column("customer_id", "bigint"), Column("email", "string", personal=True), Column("age", "int")],
    write=Merge(on=["customer_id"]),
    subject="customer_id",
    rules=[castable("age", "int"), excluded("age", [7], on_failure="block")],
)
EMAIL = "somebody@example.org"


@pytest.mark.unit
def test_equal_values_have_equal_masks_under_one_key_only() -> None:
    assert mask(b"k", EMAIL) == mask(b"k", EMAIL) != mask(b"other", EMAIL)
    assert EMAIL not in str(mask(b"k", EMAIL)) and mask(b"k", None) is None


@pytest.mark.unit
def test_is_refused_in_partitions() -> None:
    with pytest.raises(DeclarationError, match="partitioned by email, which is personal"):
        replace(CUSTOMERS, partitioning=["email"])


@pytest.mark.unit
def test_stays_personal_in_the_quarantine() -> None:
    assert CUSTOMERS.quarantine is not None
    assert CUSTOMERS.quarantine.personal_columns == {"email"} and CUSTOMERS.quarantine.subject == "customer_id"


@pytest.mark.spark
def test_keeps_no_bounds_in_metadata(engine: Engine) -> None:
    write(engine, CUSTOMERS, rows_of(engine, "customer_id bigint, email string, age int", [(1, EMAIL, 30)]))
    bounds = engine.catalog.load(CUSTOMERS.name).inspect.files().to_pylist()[0]["readable_metrics"]
    assert bounds["customer_id"]["lower_bound"] == 1
    assert bounds["email"]["lower_bound"] is None and bounds["email"]["upper_bound"] is None


@pytest.mark.spark
def test_is_masked_in_samples(engine: Engine) -> None:
    rows = [(1, EMAIL, "7"), (2, EMAIL, "x")]
    done = write(engine, CUSTOMERS, rows_of(engine, "customer_id bigint, email string, age string", rows))
    assert isinstance(done, Refused)
    samples = json.dumps([list(result.sample) for result in done.results])
    assert "masked:" in samples and EMAIL not in samples
