"""A table's namespace is told by its name."""

import pytest

from lakehouse.tables.table_names import namespace_of, namespaces_of

pytestmark = pytest.mark.unit


def test_the_namespace_is_what_stands_before_the_last_dot():
    assert namespace_of("silver.fruits") == "silver"
    assert namespace_of("lake.silver.fruits") == "lake.silver"
    assert namespace_of("fruits") == ""


def test_some_tables_are_in_few_namespaces():
    assert namespaces_of(["silver.a", "silver.b", "gold.a"]) == {"silver", "gold"}
