"""Views are no tables: commands that list tables skip them."""

import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse_tests.cli.conftest import Lakehouse
from lakehouse_tests.conftest import ON_GLUE, settings_at

pytestmark = [
    pytest.mark.usefixtures("spark"),
    pytest.mark.skipif(ON_GLUE, reason="on the embedded catalog alone: Glue has no views"),
]


@pytest.fixture
def with_view(lakehouse: Lakehouse) -> None:
    for statement in (
        "CREATE NAMESPACE IF NOT EXISTS lakehouse.shop",
        "CREATE TABLE lakehouse.shop.sales (id BIGINT)",
        "INSERT INTO lakehouse.shop.sales VALUES (1), (2)",
        "CREATE VIEW lakehouse.shop.first AS SELECT id FROM lakehouse.shop.sales WHERE id = 1",
    ):
        ran = lakehouse("sql", "--write", statement)
        assert ran.code == 0, ran.err


def test_what_looks_at_all_tables_passes_over_it(lakehouse, with_view, home, tmp_path):
    assert Catalog.of(settings_at(home)).with_cached_locations().tables() == ["shop.sales"]

    for command in (["status"], ["cost"], ["doctor"]):
        ran = lakehouse(*command)
        assert "shop.first" not in "".join([*ran.out, *ran.err])

    ran = lakehouse("copy", str(home), str(tmp_path / "other"))
    assert ran.code == 0
