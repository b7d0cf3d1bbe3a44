"""Strategies for tables of any declaration."""

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from lakehouse.iceberg.rules.aggregate_rules import mean, null_fraction, total
from lakehouse.iceberg.rules.reconciliation import reconciles
from lakehouse.iceberg.rules.rows import accepted, between, castable, expression, not_null
from lakehouse.iceberg.rules.size_schema_and_freshness import (
    fresh,
    row_count,
    schema_as_declared,
)
from lakehouse.iceberg.rules.unique_and_references import references, unique
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import Append, Column, IcebergTable, Merge, Overwrite
from lakehouse_tests.tables.test_types import types

TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\x00\r\x85\u2028\u2029"), max_size=30
)
RULES: list[Rule] = [
    not_null("id"),
    not_null("amount", on_failure="warn"),
    unique("id"),
    unique("id", "name"),
    accepted("name", ["it's", "öß", "${HOME}"]),
    between("amount", 0.5, 9, fail_above=0.29),
    castable("amount", "double"),
    expression("any_sql", "name RLIKE '^a\\\\s\"$' -- why", columns=["name"]),
    references("id", "silver.people", "person id", on_failure="warn"),
    references(["id", "name"], "silver.people"),
    row_count(1, 1),
    row_count(low=10, name="many"),
    mean("amount", 0.25, 7),
    total("amount", high=10**30),
    null_fraction("name", at_most=0.1),
    reconciles("silver.people"),
    fresh(within=timedelta(minutes=30)),
    schema_as_declared(),
]


def tables() -> st.SearchStrategy[IcebergTable]:
    """Any table: other columns of any type and text, any of the rules, any way to be written."""
    names = st.text(
        st.characters(codec="utf-8", categories=["L", "N", "S"]), min_size=1, max_size=8
    )
    columns = st.builds(
        Column, names.map(lambda name: f"c_{name}"), types().map(str), TEXTS, st.booleans()
    )
    further = st.lists(columns, max_size=4, unique_by=lambda column: column.name.lower())
    modes = st.sampled_from([Overwrite(), Append(once_by=()), Merge(on=["id", "name"])])
    rules = st.lists(st.sampled_from(RULES), unique_by=lambda rule: rule.name)
    options = st.fixed_dictionaries(
        {"comment": TEXTS, "write": modes, "rules": rules},
        optional={
            "owner": st.sampled_from(["team:data", "data", "data@example.com"]),
            "tags": st.dictionaries(TEXTS, TEXTS, max_size=2),
            "freshness": st.timedeltas(timedelta(seconds=1), timedelta(days=900)),
            "partitioning": st.just(["bucket(4, id)"]),
            "subject": st.just("id"),
        },
    )
    return st.builds(_table, further, options)


def _table(further: list[Column], options: dict[str, Any]) -> IcebergTable:
    columns = [
        Column("id", "bigint", "Its identifier."),
        Column("name", "string"),
        Column("amount", "double"),
        *further,
    ]
    known = {} if "subject" in options else {"no_subject": "they are made up"}
    is_personal = any(column.personal for column in columns)
    if "subject" in options:
        # A rule on the subject could show its values.
        options["partitioning"] = ()
    return IcebergTable(
        name="silver.anything",
        columns=columns,
        **options,
        **(known if is_personal else {}),
    )
