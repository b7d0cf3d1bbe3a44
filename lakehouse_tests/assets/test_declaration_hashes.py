"""The hash of each shipped declaration is the one that snapshots of earlier homes are stamped
with: by another one, all of their partitions would be computed again.
"""

import pytest

from lakehouse.orchestration.discovery import declared_tables, modules_of

pytestmark = pytest.mark.unit

STAMPED = {
    "bronze.bnpl_transactions_raw": "rows:7cc9e69b09091bbc",
    "bronze.raw_fruits": "rows:c4e78b11656947ce",
    "gold.bnpl_daily_summary": "rows:0ad89fbbba84b6ef",
    "gold.customer_profiles": "rows:52174548226e8240",
    "monitoring.data_quality_metrics": "rows:dd1cf2cabf659744",
    "silver.bnpl_transactions_clean": "rows:01508785671ba087",
    "silver.bnpl_transactions_quarantine": "rows:437345a657ab40c7",
    "silver.fruits": "rows:d28e467acea4db8a",
    "silver.fruits_quarantine": "rows:c0b4906b3469dceb",
}
"""Change one only together with what decides the rows of that table."""


def test_shipped_declarations_have_the_hashes_that_homes_are_stamped_with() -> None:
    tables = declared_tables(modules_of("lakehouse.assets"))
    assert {name: table.declaration_hash for name, table in tables.items()} == STAMPED
