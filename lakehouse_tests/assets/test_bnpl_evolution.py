"""A table evolves while it has rows, and writes continue."""

import pytest

from lakehouse.assets.silver.bnpl_transactions_clean import TABLE
from lakehouse.iceberg.evolve.planning import ensure
from lakehouse_tests.assets.bnpl_variants import (
    FRIDAY,
    WEDNESDAY,
    csv_text,
    transaction,
    without,
)
from lakehouse_tests.assets.pipeline import Pipeline

pytestmark = [pytest.mark.spark, pytest.mark.long]


def test_files_lack_payment_method_until_they_have_it(bnpl: Pipeline) -> None:
    """A silver table that was made without the column gains it, and it is NULL for what came
    without.
    """
    ensure(bnpl.engine, without(TABLE, "payment_method"))
    bnpl.write("lacks.csv", csv_text([transaction(3, WEDNESDAY)], lacking="payment_method"))
    assert bnpl.ingest().success
    bnpl.write("has.csv", csv_text([transaction(4, FRIDAY, payment_method="CARD")]), second=1)
    assert bnpl.ingest().success

    found = "transaction_id, payment_method"
    assert bnpl.rows(f"SELECT {found} FROM bronze.bnpl_transactions_raw ORDER BY 1") == [
        ("3", None),
        ("4", "CARD"),
    ]
    assert bnpl.rows(f"SELECT {found} FROM {TABLE.name} ORDER BY 1") == [(3, None), (4, "CARD")]
    profile = "SELECT transactions, preferred_payment_method FROM gold.customer_profiles"
    assert bnpl.rows(profile) == [(2, "CARD")]
