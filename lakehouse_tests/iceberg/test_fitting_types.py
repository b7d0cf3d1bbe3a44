"""Computed numbers are cast to the declared type; values that do not fit are rejected."""

from dataclasses import replace
from typing import Any

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.iceberg.values.write_result import Outcome, Published
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables import types
from lakehouse.tables.table import Append, Column, IcebergTable, Merge, Overwrite
from lakehouse.tables.type_promotion import always_fits
from lakehouse_tests.iceberg.declarations import content

TOTALS = IcebergTable(
    "silver.totals",
    "",
    [Column("id", "int"), Column("total", "decimal(11,3)"), Column("n", "int")],
    Merge(on=["id"]),
    rules=[not_null("id")],
)
MODES = [Merge(on=["id"]), Append(once_by=()), Overwrite()]
TOO_LARGE = "123456789.000"


def compute(engine: Engine, table: IcebergTable, *totals: str) -> Outcome:
    """Write `int * decimal(11,3)` and a bigint: a decimal(22,3) of which most values fit."""
    rows = ", ".join(f"({at}, {total}BD, {at}L)" for at, total in enumerate(totals))
    sql = (
        f"SELECT id, 1 * CAST(v AS decimal(12,3)) AS total, n FROM VALUES {rows} AS t(id, v, n)"
    )
    return write(engine, table, lambda: engine.sql(sql))


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
def test_a_row_that_does_not_fit_is_rejected_alone(embedded_engine: Engine, mode: Any) -> None:
    table = replace(TOTALS, write=mode)
    done = compute(embedded_engine, table, "1.500", TOO_LARGE, "-99999999.999")

    assert isinstance(done, Published)
    assert content(embedded_engine, table.name, "id", "CAST(total AS string)") == [
        (0, "1.500"),
        (2, "-99999999.999"),
    ]
    rejected = content(embedded_engine, "silver.totals_quarantine", "id", "total", "_reasons")
    assert rejected == [("1", TOO_LARGE, ["castable_total"])]
    failed = {result.rule.name: result.failed_rows for result in done.results}
    assert (failed["castable_total"], failed["castable_n"]) == (1, 0)
    main = read_history(embedded_engine, table.name).main
    assert main.commit.declaration == table.declaration_hash


@pytest.mark.spark
def test_without_a_quarantine_it_fails_the_write(embedded_engine: Engine) -> None:
    table = replace(TOTALS, rules=[])
    compute(embedded_engine, table, "1.500", "2.250")
    assert len(content(embedded_engine, table.name)) == 2

    with pytest.raises(
        Exception, match=r"a value of column total, which is decimal.+, does not"
    ):
        compute(embedded_engine, table, "1.500", TOO_LARGE)
    assert len(content(embedded_engine, table.name)) == 2


@pytest.mark.unit
@pytest.mark.parametrize(
    ("want", "have", "fits"),
    [
        ("decimal(12,3)", "decimal(10,2)", True),
        ("decimal(12,3)", "decimal(11,3)", True),
        ("decimal(11,3)", "decimal(11,2)", False),
        ("decimal(11,2)", "decimal(11,3)", False),
        ("decimal(10,0)", "int", True),
        ("decimal(9,0)", "int", False),
        ("decimal(19,0)", "bigint", True),
        ("decimal(18,0)", "bigint", False),
        ("int", "decimal(9,0)", True),
        ("int", "decimal(10,0)", False),
        ("int", "decimal(5,1)", False),
        ("bigint", "decimal(18,0)", True),
        ("int", "bigint", False),
        ("bigint", "int", True),
    ],
)
def test_what_always_fits_is_known_by_the_types(want: str, have: str, fits: bool) -> None:
    assert always_fits(types.parse(want), types.parse(have)) is fits
