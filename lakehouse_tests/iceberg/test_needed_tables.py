"""A table is not made for a write that fails, since a table that it reads is not there."""

from dataclasses import replace
from typing import Any

import pytest

from lakehouse.errors import TableNotFound
from lakehouse.iceberg.read.inputs import latest
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.orchestration.deployment import open_engine
from lakehouse.tables.table import Append, Column, IcebergTable

pytestmark = pytest.mark.unit


def no_spark() -> Any:
    raise AssertionError("Spark was started")


@pytest.mark.parametrize("opened", ["settings", "aws_settings"])
def test_a_table_is_not_created_if_an_input_does_not_exist(
    request: pytest.FixtureRequest, opened: str
) -> None:
    engine = replace(open_engine(request.getfixturevalue(opened)), session=no_spark)
    columns, mode = [Column("id", "bigint")], Append(once_by=())
    table = IcebergTable("silver.sales", "", columns, mode, rules=[not_null("id")])
    with pytest.raises(TableNotFound, match=r"^There is no table silver\.shops in the catalog"):
        write(engine, table, no_spark, {"shops": latest("silver.shops")})
    assert engine.catalog.tables() == []
