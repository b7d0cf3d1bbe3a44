"""Contracts of tables are complete and deterministic."""

from dataclasses import replace
from datetime import timedelta

import pytest
import yaml
from hypothesis import HealthCheck, given, settings

from lakehouse.contracts.odcs import contract_of, to_yaml
from lakehouse.iceberg.rules.aggregate_rules import null_fraction
from lakehouse.iceberg.rules.rows import castable, expression, not_null
from lakehouse.iceberg.rules.size_schema_and_freshness import fresh, row_count
from lakehouse.iceberg.rules.unique_and_references import references, unique
from lakehouse.settings import Settings
from lakehouse.tables.feed import Feed, bronze_table
from lakehouse.tables.table import Column, IcebergTable, Merge, Overwrite, Versions, by_day
from lakehouse_tests.contracts.declarations import tables
from lakehouse_tests.examples import examples

pytestmark = pytest.mark.unit

HERE = Settings.from_env({"LAKEHOUSE_HOME": "/lake"})
ORDERS = IcebergTable(
    name="silver.orders",
    comment="One row for each order.",
    columns=[
        Column("id", "bigint", "Identifier of the order."),
        Column("customer", "bigint", "Who ordered."),
        Column("email", "string", "Address of the customer.", personal=True),
        Column("amount", "decimal(10,2)"),
        Column("lines", "array<struct<article:string,pieces:int>>"),
        Column("day", "date"),
    ],
    write=Merge(on=["id"]),
    partitioning=["days(day)"],
    subject="customer",
    rules=[
        not_null("id"),
        unique("id"),
        expression("paid", "amount > 0", columns=["amount"]),
        null_fraction("email", at_most=0.25),
        references("customer", "silver.customers", "id", on_failure="warn"),
        row_count(low=1),
        fresh(within=timedelta(hours=36)),
    ],
    owner="orders@example.com",
    tags={"domain": "sales", "tier": "1"},
    freshness=timedelta(days=1),
)


def column(name: str) -> dict:
    (schema,) = contract_of(ORDERS, HERE)["schema"]
    return {part["name"]: part for part in schema["properties"]}[name]


def test_a_contract_has_its_table_and_server():
    contract = contract_of(ORDERS, HERE)

    assert contract["apiVersion"] == "v3.2.0"
    assert contract["id"] == "lakehouse.silver.orders"
    assert contract["domain"] == "sales"
    assert contract["tags"] == ["silver", "domain:sales", "tier:1"]
    assert contract["description"]["purpose"] == "One row for each order."
    assert (
        contract["description"]["usage"] == "Rows are added, and changed where id is the same."
    )
    (server,) = contract["servers"]
    assert server["warehouse"] == "file:///lake/warehouse"
    assert server["schema"] == "silver"


def test_on_aws_the_server_is_athena():
    aws = Settings.from_env(
        {"LAKEHOUSE_DEPLOYMENT": "aws", "LAKEHOUSE_BUCKET": "lake", "AWS_REGION": "eu-west-1"}
    )

    assert contract_of(ORDERS, aws)["servers"] == [
        {
            "server": "aws",
            "type": "athena",
            "catalog": "awsdatacatalog",
            "schema": "silver",
            "regionName": "eu-west-1",
        }
    ]


def test_the_version_depends_on_the_declaration_and_not_on_the_location():
    other_home = Settings.from_env({"LAKEHOUSE_HOME": "/other"})
    changed = replace(ORDERS, freshness=timedelta(days=2))
    versioned = replace(ORDERS, tags={"version": "2.1.0"})

    assert contract_of(ORDERS, HERE)["version"] == contract_of(ORDERS, other_home)["version"]
    assert contract_of(ORDERS, HERE)["version"] != contract_of(changed, HERE)["version"]
    assert contract_of(versioned, HERE)["version"] == "2.1.0"


def test_a_column_has_its_type_description_and_rules():
    identifier = column("id")

    assert identifier["logicalType"] == "integer"
    assert identifier["physicalType"] == "bigint"
    assert identifier["description"] == "Identifier of the order."
    assert identifier["required"] is True
    assert identifier["unique"] is True
    assert (identifier["primaryKey"], identifier["primaryKeyPosition"]) == (True, 1)
    assert [check["metric"] for check in identifier["quality"]] == [
        "nullValues",
        "duplicateValues",
    ]
    assert "required" not in column("amount")
    assert (column("day")["partitioned"], column("day")["partitionKeyPosition"]) == (True, 1)


def test_a_nested_column_has_its_fields():
    parts = column("lines")["items"]["properties"]

    assert [(part["name"], part["logicalType"]) for part in parts] == [
        ("article", "string"),
        ("pieces", "integer"),
    ]


def test_a_rule_without_a_metric_is_a_query():
    (check,) = column("amount")["quality"]

    assert check["query"] == (
        "SELECT count_if(coalesce(NOT (amount > 0), false)) FROM `silver`.`orders`"
    )
    assert (check["mustBe"], check["unit"], check["severity"]) == (0, "rows", "error")


def test_a_tolerated_share_is_a_percentage():
    (check,) = column("email")["quality"]

    assert (check["metric"], check["mustBeLessOrEqualTo"], check["unit"]) == (
        "nullValues",
        25,
        "percent",
    )
    assert "required" not in column("email")


VISITS = IcebergTable(
    name="silver.visits",
    comment="",
    columns=[Column("id", "bigint"), Column("day", "date"), Column("at", "timestamp")],
    write=by_day("day", since="2026-01-01"),
    rules=[unique("id")],
)


def test_a_column_that_is_unique_per_partition_is_no_key():
    (schema,) = contract_of(VISITS, HERE)["schema"]
    properties = {part["name"]: part for part in schema["properties"]}
    (check,) = properties["id"]["quality"]

    assert not {"unique", "primaryKey"} & properties["id"].keys()
    assert (check["type"], check["description"]) == (
        "text",
        "id is unique among the rows that a run writes",
    )
    assert "mustBe" not in check


@pytest.mark.parametrize(
    "parts",
    [
        {"rules": [unique("id", "day")]},
        {"rules": [unique("id")], "versions": Versions(of="id", newest="at")},
        {"rules": [unique("id")], "write": Overwrite()},
    ],
    ids=["with the partition", "of versions", "overwritten"],
)
def test_a_column_that_is_unique_in_all_rows_is_a_key(parts):
    (schema,) = contract_of(replace(VISITS, **parts), HERE)["schema"]
    checks = [*schema.get("quality", []), *schema["properties"][0].get("quality", [])]

    assert schema["properties"][0]["primaryKey"] is True
    assert [check["mustBe"] for check in checks] == [0]


def test_a_cast_of_delivered_text_is_text():
    table = IcebergTable(
        name="silver.a",
        comment="",
        columns=[Column("n", "int")],
        write=Overwrite(),
        rules=[castable("n", "int")],
    )
    (schema,) = contract_of(table, HERE)["schema"]
    (check,) = schema["properties"][0]["quality"]

    assert check["type"] == "text"
    assert check["description"] == "n can be read as int"


def test_personal_columns_are_classified():
    assert column("email")["classification"] == "personal"
    assert column("email")["customProperties"] == [
        {"property": "personalData", "value": "identifies a person"}
    ]
    assert column("customer")["customProperties"][0]["value"] == "stands for a person"
    assert "classification" not in column("amount")
    assert "Personal data: email." in contract_of(ORDERS, HERE)["description"]["limitations"]


def test_a_reference_is_a_relationship():
    (schema,) = contract_of(ORDERS, HERE)["schema"]

    assert schema["relationships"] == [
        {"type": "foreignKey", "from": ["orders.customer"], "to": ["customers.id"]}
    ]


def test_freshness_is_a_service_level():
    levels = contract_of(ORDERS, HERE)["slaProperties"]

    assert [(level["property"], level["value"], level["unit"]) for level in levels] == [
        ("latency", 24, "h"),
        ("latency", 36, "h"),
    ]


def test_the_frequency_of_a_feed_is_a_service_level():
    feed = Feed("orders", ["id"], "bronze.orders", expected_within=timedelta(hours=6))
    (level,) = contract_of(bronze_table(feed, "As delivered."), HERE, feed)["slaProperties"]

    assert (level["property"], level["value"], level["unit"]) == ("frequency", 6, "h")


def test_the_owner_is_the_team():
    assert contract_of(ORDERS, HERE)["team"] == {"name": "orders@example.com"}


@pytest.mark.long
@settings(
    deadline=None, max_examples=examples(20, 60), suppress_health_check=[HealthCheck.too_slow]
)
@given(tables())
def test_a_contract_is_the_same_after_yaml(table: IcebergTable):
    contract = contract_of(table, HERE)

    assert yaml.safe_load(to_yaml(contract)) == contract
    assert to_yaml(contract_of(table, HERE)) == to_yaml(contract)
