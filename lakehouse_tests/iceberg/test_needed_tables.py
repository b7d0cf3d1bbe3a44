"""A table is not made for a write that fails, since a table that it reads is not there."""

import pytest

from lakehouse.errors import TableNotFound
from lakehouse.iceberg.read.inputs import latest
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Append, Column, IcebergTable
from lakehouse_tests.without_spark import engine_without_spark, no_spark

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("opened", ["settings", "aws_settings"])
def test_a_table_is_not_created_if_an_input_does_not_exist(
    request: pytest.FixtureRequest, opened: str
) -> None:
    engine = engine_without_spark(request.getfixturevalue(opened))
    columns, mode = [Column("id", "bigint")], Append(once_by=())
    table = IcebergTable("silver.sales", "", columns, mode, rules=[not_null("id")])
    with pytest.raises(TableNotFound, match=r"^There is no table silver\.shops in the catalog"):
        write(engine, table, no_spark, {"shops": latest("silver.shops")})
    assert engine.catalog.tables() == []
