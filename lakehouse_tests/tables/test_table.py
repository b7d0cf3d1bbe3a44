"""Declarations: what follows from them, and what is refused at import."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.rules.rows import castable, not_null
from lakehouse.tables.table import Append, Column, Merge, OverwritePartitions, Versions
from lakehouse.tables.table_properties import table_properties
from lakehouse_tests.iceberg.evolving import columns, declared

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a name without a layer": (
        {"name": "orders"},
        "'orders' is not a table name; expected layer.table",
    ),
    "no columns": ({"columns": []}, "silver.orders declares no columns"),
    "a column twice": (
        {"columns": columns(a="int", A="int")},
        "declares A, a more than once; names ignore case",
    ),
    "a dot in a name": (
        {"columns": columns(**{"a.b": "int"})},
        "the column 'a.b'; expected a name without dots",
    ),
    "a variable in a name": (
        {"columns": columns(**{"${x}": "int"})},
        "the column '${x}'; expected a name without",
    ),
    "a name that Iceberg keeps": (
        {"columns": columns(_file="string")},
        "the column _file: the name is reserved for Iceberg's metadata columns",
    ),
    "an unknown partition column": (
        {"partitioning": ["days(ts)"]},
        "partitioning names ts; expected columns among id",
    ),
    "a transform that does not fit": (
        {"partitioning": ["days(note)"]},
        "partitioning has days(note), and note is string; days takes date, timestamp",
    ),
    "a partition of structs": (
        {"columns": columns(s="struct<a:int>"), "partitioning": ["s"]},
        "s is struct<a:int>; expected a column without",
    ),
    "an unknown sort column": (
        {"sort_order": ["x desc"]},
        "sort_order names x; expected columns among id, note.",
    ),
    "a personal partition": (
        {"columns": [Column("mail", "string", personal=True)], "partitioning": ["mail"]},
        "silver.orders is partitioned by mail, which is personal",
    ),
    "a subject and why there is none": (
        {"subject": "id", "no_subject": "why"},
        "silver.orders has the subject id and no_subject='why'",
    ),
    "no reason for no subject": (
        {"no_subject": " "},
        "no_subject=' '; expected a subject, or the reason why no column identifies a person",
    ),
    "a person in a column that its quarantine fills": (
        {
            "columns": columns(id="bigint", _row_key="string"),
            "subject": "_row_key",
            "rules": [castable("id", "bigint")],
        },
        "_row_key is about people, and a quarantine fills a column of this name itself",
    ),
    "declared and dropped": (
        {"dropped": ["NOTE"]},
        "silver.orders both declares and drops note.",
    ),
    "a merge by no column": (
        {"write": Merge(on=["x"])},
        "Merge(on=…) names x; expected columns among id, note.",
    ),
    "versions of another key than that of the merge": (
        {"write": Merge(on=["id"]), "versions": Versions(of="note", newest="id")},
        "merges on id, and its versions are of note; expected the same columns",
    ),
    "versions by the time of the write": (
        {
            "write": Merge(on=["id"], stamp="at"),
            "versions": Versions("id", "at"),
            "columns": columns(id="int", at="timestamp"),
        },
        "versions are ordered by at, which the merge fills",
    ),
    "partitions of another column": (
        {"write": OverwritePartitions(by="id")},
        "overwrites partitions by id, which is not in its partitioning (none)",
    ),
    "an append once by what is not there": (
        {"write": Append()},
        "once_by names _source_file, _source_sha256",
    ),
    "rules of one name": (
        {"rules": [not_null("id"), not_null("id")]},
        "has rules of the same name",
    ),
    "a cast to another type": (
        {"columns": [Column("quantity", "int")], "rules": [castable("quantity", "bigint")]},
        (
            "rule castable_quantity reads quantity as bigint, and the column is int; expected"
            " int, or a type of which each value is one."
        ),
    ),
    "a cast to more decimals": (
        {
            "columns": [Column("sum", "decimal(10,2)")],
            "rules": [castable("sum", "decimal(10,4)")],
        },
        "reads sum as decimal(10,4), and the column is decimal(10,2)",
    ),
    "a rule on no column": (
        {"rules": [not_null("x")]},
        "rule not_null_x names x; expected columns among id, note.",
    ),
}


@pytest.mark.parametrize(("parts", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_declaration_that_cannot_work_is_rejected_by_name(
    parts: dict[str, Any], message: str
) -> None:
    with pytest.raises(DeclarationError) as raised:
        declared(**parts)
    assert message in str(raised.value)


DECIDES_NO_ROW: dict[str, dict[str, Any]] = {
    "comment": {"comment": "Other."},
    "no subject": {"no_subject": "why"},
    "erasure": {"on_erasure": "keep"},
    "subject": {"subject": "id"},
    "owner": {"owner": "somebody@example.com"},
    "tags": {"tags": {"tier": "1"}},
    "sort order": {"sort_order": ["id"]},
    "size of files": {"target_file_mb": 64},
    "properties": {"properties": {"a": "b"}},
    "freshness": {"freshness": timedelta(hours=1)},
    "a column's doc": {
        "columns": [replace(column, doc="Other.") for column in declared().columns]
    },
    "what warns": {"rules": [*declared().rules, not_null("id", on_failure="warn")]},
}
DECIDES_ROWS: dict[str, dict[str, Any]] = {
    "a column": {"columns": [*declared().columns, Column("added", "string")]},
    "a type": {
        "columns": [*declared().columns[:-1], replace(declared().columns[-1], type="double")]
    },
    "a rule": {"rules": [*declared().rules, not_null("id", on_failure="quarantine")]},
    "a rule that holds a write back": {
        "rules": [*declared().rules, not_null("id", on_failure="block")]
    },
    "a mode of writing": {"write": Append(once_by=["id"])},
    "partitioning": {"partitioning": ["bucket(4, id)"]},
}


@pytest.mark.parametrize("parts", DECIDES_NO_ROW.values(), ids=DECIDES_NO_ROW.keys())
def test_the_hash_of_a_declaration_stays_where_no_row_is_decided(parts: dict[str, Any]) -> None:
    assert declared(**parts).declaration_hash == declared().declaration_hash


@pytest.mark.parametrize("parts", DECIDES_ROWS.values(), ids=DECIDES_ROWS.keys())
def test_the_hash_of_a_declaration_changes_with_what_decides_rows(
    parts: dict[str, Any],
) -> None:
    assert declared(**parts).declaration_hash != declared().declaration_hash


def test_properties_have_the_last_word() -> None:
    table = declared(
        target_file_mb=64,
        properties={"write.target-file-size-bytes": "1", "format-version": "3"},
    )
    assert table_properties(table)["write.target-file-size-bytes"] == "1"
    assert table_properties(table)["format-version"] == "3"


def test_a_quarantine_follows_the_renames_and_drops_of_its_table() -> None:
    table = declared(
        columns=[Column("amount", "decimal(10,2)", required=True, renamed_from="sum")],
        dropped=["note"],
        rules=[castable("amount", "decimal(10,2)")],
    )
    kept = table.quarantine.column("amount")
    assert (kept.type, kept.required, kept.renamed_from) == ("string", False, ("sum",))
    assert table.quarantine.dropped == ("note",)


def test_a_table_without_quarantining_rules_has_no_quarantine() -> None:
    assert declared(rules=[not_null("id", on_failure="block")]).quarantine is None


@pytest.mark.parametrize(
    ("column_type", "is_checked"),
    [("decimal(10, 2)", False), ("string", True), ("decimal(20,2)", True)],
)
def test_a_cast_is_broken_only_by_stored_rows_of_another_type(
    column_type: str, is_checked: bool
) -> None:
    cast = castable("amount", "decimal(10,2)")
    columns = [Column("amount", column_type)]
    table = declared(columns=columns, write=Merge(on=["amount"]), rules=[cast])
    assert table.broken_by(cast) == (cast.predicate() if is_checked else "false")
