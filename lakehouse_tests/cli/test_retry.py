"""`lakehouse retry` of a table that is up to date."""

import pytest

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("table", "keys"),
    [("silver.fruits", ""), ("silver.bnpl_transactions_clean", " --from KEY --to KEY")],
)
def test_the_backfill_of_a_table_with_nothing_to_compute_is_shown(lakehouse, table, keys):
    ran = lakehouse("retry", table)
    assert (ran.code, ran.out) == (
        0,
        [
            f"{table}: nothing to compute. `lakehouse backfill {table}{keys}` computes it from"
            " all current rows of its inputs."
        ],
    )
