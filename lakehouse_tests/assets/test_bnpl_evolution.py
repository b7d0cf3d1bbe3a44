"""A table evolves while it has rows, and writes continue."""

from dataclasses import replace

import pytest

from lakehouse.assets.silver.bnpl_transactions_clean import TABLE
from lakehouse.iceberg.evolve.planning import ensure
from lakehouse_tests.assets.deliveries import DAYS, HEADER, line, put
from lakehouse_tests.assets.pipeline import Pipeline

pytestmark = [pytest.mark.spark, pytest.mark.long]


def test_files_lack_payment_method_until_they_have_it(bnpl: Pipeline) -> None:
    """A silver table that was made without the column gains it, and it is NULL for what came
    without.
    """
    columns = [column for column in TABLE.columns if column.name != "payment_method"]
    rules = [rule for rule in TABLE.rules if "payment_method" not in rule.columns]
    ensure(bnpl.engine, replace(TABLE, columns=columns, rules=rules))
    assert put(bnpl, "lacks.csv", line(3, DAYS[0])).success
    bnpl.write("has.csv", f"{HEADER},payment_method\n{line(4, DAYS[1])},CARD", second=1)
    assert bnpl.ingest().success

    found = "transaction_id, payment_method"
    assert bnpl.rows(f"SELECT {found} FROM bronze.bnpl_transactions_raw ORDER BY 1") == [
        ("3", None),
        ("4", "CARD"),
    ]
    assert bnpl.rows(f"SELECT {found} FROM {TABLE.name} ORDER BY 1") == [(3, None), (4, "CARD")]
    profile = "SELECT transactions, preferred_payment_method FROM gold.customer_profiles"
    assert bnpl.rows(profile) == [(2, "CARD")]
