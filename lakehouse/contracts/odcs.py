"""Export a table declaration, with its rules, as a contract of the Open Data Contract Standard.

A check that a reader of the table can run becomes a metric of the standard or a Spark SQL
query. A check that needs the write, such as a cast of delivered text, becomes text.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import yaml

from lakehouse.iceberg.catalog.catalog import CATALOG_NAME
from lakehouse.iceberg.rules.aggregate_rules import ColumnAggregateRule
from lakehouse.iceberg.rules.size_schema_and_freshness import FreshRule, RowCountRule
from lakehouse.iceberg.rules.unique_and_references import ReferencesRule
from lakehouse.settings import Settings
from lakehouse.tables import types
from lakehouse.tables.column import Column
from lakehouse.tables.feed import Feed
from lakehouse.tables.quoting import dotted, identifier
from lakehouse.tables.rule import Bounds, CastableRule, Number, Rule, hours
from lakehouse.tables.table import Append, IcebergTable, Merge, OverwritePartitions
from lakehouse.tables.types import Array, ColumnType, Decimal, Map, Struct

Check = dict[str, Any]


def quality_of_table(table: IcebergTable) -> list[Check]:
    """Return the checks of the table or of several columns."""
    return [_check(table, rule) for rule in table.rules if _column_of(table, rule) is None]


def quality_of_column(table: IcebergTable, column: str) -> list[Check]:
    """Return the checks of a single column."""
    return [_check(table, rule) for rule in table.rules if _column_of(table, rule) == column]


def is_always_there(table: IcebergTable, column: str) -> bool:
    """Return whether the column never contains NULL."""
    if table.column(column).required:
        return True
    return any(
        _counts_nulls(rule) and rule.columns == (column,) and _is_enforced(rule)
        for rule in table.rules
    )


def is_unique(table: IcebergTable, column: str) -> bool:
    """Return whether the column's values are unique."""
    return primary_key(table) == (column,) or any(
        _is_key(table, rule) and rule.columns == (column,) and _is_enforced(rule)
        for rule in table.rules
    )


def primary_key(table: IcebergTable) -> tuple[str, ...]:
    """Return the columns that every write ensures to be unique, or an empty tuple."""
    if isinstance(table.write, Merge):
        return tuple(table.write.on)
    for rule in table.rules:
        if _is_key(table, rule) and _is_enforced(rule):
            return rule.columns
    return ()


def _column_of(table: IcebergTable, rule: Rule) -> str | None:
    column = rule.columns[0] if len(rule.columns) == 1 else None
    return column if column in table.column_names else None


def _check(table: IcebergTable, rule: Rule) -> Check:
    return {
        "id": rule.name,
        "name": rule.name,
        "description": _rule_description(table, rule),
        **_evaluation(table, rule),
        "severity": "warning" if rule.on_failure == "warn" else "error",
        "customProperties": [{"property": "onFailure", "value": rule.on_failure}],
    }


def _rule_description(table: IcebergTable, rule: Rule) -> str:
    if rule.identifies_rows and not _is_key(table, rule):
        return f"{rule.description} among the rows that a run writes"
    return rule.description


def _is_key(table: IcebergTable, rule: Rule) -> bool:
    """Return whether every write ensures that a rule's columns are unique.

    An overwrite of some partitions does not check other partitions, except for versions.
    """
    if not rule.identifies_rows:
        return False
    by, versions = table.overwritten_by, table.versions
    is_of_versions = versions is not None and {*versions.of} <= {*rule.columns}
    return by is None or by in rule.columns or is_of_versions


def _evaluation(table: IcebergTable, rule: Rule) -> Check:
    if isinstance(rule, RowCountRule) and rule.bounds:
        return {"type": "library", "metric": "rowCount", **_within(rule.bounds)}
    if isinstance(rule, ColumnAggregateRule) and rule.bounds:
        value = rule.aggregates(table)[rule.name]
        query = f"SELECT {value} FROM {dotted(table.name)}"
        return {"type": "sql", "query": query, **_within(rule.bounds)}
    if _is_key(table, rule):
        check: Check = {"type": "library", "metric": "duplicateValues"}
        if len(rule.columns) > 1:
            check["arguments"] = {"properties": list(rule.columns)}
        return {**check, **_tolerated(rule)}
    if _counts_nulls(rule):
        return {"type": "library", "metric": "nullValues", **_tolerated(rule)}
    if rule.is_row_rule and not isinstance(rule, CastableRule):
        return {
            "type": "sql",
            "query": _count_of_broken_rows(table, rule),
            **_tolerated(rule),
        }
    return {"type": "text"}


def _counts_nulls(rule: Rule) -> bool:
    if not rule.is_row_rule or len(rule.columns) != 1:
        return False
    return rule.sql == f"({identifier(rule.columns[0])} IS NULL)"


def _count_of_broken_rows(table: IcebergTable, rule: Rule) -> str:
    broken = f"count_if({table.broken_by(rule)})"
    if _share(rule):
        broken = f"100.0 * {broken} / greatest(count(1), 1)"
    return f"SELECT {broken} FROM {dotted(table.name)}"


def _is_enforced(rule: Rule) -> bool:
    """Return whether no stored row can break the rule: it quarantines or blocks without
    tolerance.
    """
    return rule.on_failure != "warn" and _share(rule) == 0


def _share(rule: Rule) -> float:
    """Return the share of stored rows that may break the rule; 0 if they are quarantined."""
    if rule.on_failure == "quarantine":
        return 0.0
    return rule.warns_above if rule.on_failure == "warn" else rule.fails_above or 0.0


def _tolerated(rule: Rule) -> Check:
    share = _share(rule)
    if share == 0:
        return {"mustBe": 0, "unit": "rows"}
    return {"mustBeLessOrEqualTo": _plain(round(100 * share, 10)), "unit": "percent"}


def _within(bounds: Bounds) -> Check:
    low, high = bounds.low, bounds.high
    if low is None:
        assert high is not None
        return {"mustBeLessOrEqualTo": _plain(high)}
    if high is None:
        return {"mustBeGreaterOrEqualTo": _plain(low)}
    if low == high:
        return {"mustBe": _plain(low)}
    return {"mustBeBetween": [_plain(low), _plain(high)]}


def _plain(number: Number) -> int | float:
    """Return a number for YAML; an integer without a decimal point."""
    return int(number) if number == int(number) else float(number)


_LOGICAL_TYPES: dict[str, dict[str, Any]] = {
    "boolean": {"logicalType": "boolean"},
    "int": {"logicalType": "integer", "logicalTypeOptions": {"format": "i32"}},
    "bigint": {"logicalType": "integer", "logicalTypeOptions": {"format": "i64"}},
    "float": {"logicalType": "number", "logicalTypeOptions": {"format": "f32"}},
    "double": {"logicalType": "number", "logicalTypeOptions": {"format": "f64"}},
    "date": {"logicalType": "date"},
    "timestamp": {"logicalType": "timestamp", "logicalTypeOptions": {"timezone": True}},
    "timestamp_ntz": {"logicalType": "timestamp", "logicalTypeOptions": {"timezone": False}},
    "string": {"logicalType": "string"},
    # The standard has no logical type for bytes.
    "binary": {},
}
API_VERSION = "v3.2.0"
"""The version of the standard; earlier ones lack maps and times without a zone."""
_REFERENCE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\.[A-Za-z_][A-Za-z0-9_-]*")
_LONGEST_LINE = 100
Document = dict[str, Any]


def type_fields(column_type: ColumnType) -> dict[str, Any]:
    """Return the type fields of a property: the logical type, the physical type in Spark's
    notation, and the parts of a nested type.
    """
    physical = {"physicalType": str(column_type)}
    match column_type:
        case Decimal():
            return {"logicalType": "number", **physical}
        case Struct(fields=fields):
            parts = [{"name": field.name, **type_fields(field.type)} for field in fields]
            return {"logicalType": "object", **physical, "properties": parts}
        case Array(element=element):
            return {"logicalType": "array", **physical, "items": type_fields(element)}
        case Map(key=key, value=value):
            entries = {"key": type_fields(key), "value": type_fields(value)}
            return {"logicalType": "map", **physical, "map": entries}
        case _:
            return {**_LOGICAL_TYPES[str(column_type)], **physical}


def contract_of(table: IcebergTable, settings: Settings, feed: Feed | None = None) -> Document:
    """Return the contract of a table from its declaration and the deployment.

    The version is the tag `version` of the table, or a digest of the contract without its
    servers.

    :param feed: the feed that lands in the table, if any.
    """
    tags = [f"{name}:{value}" if value else name for name, value in table.tags.items()]
    content = {
        "status": "active",
        "domain": table.tags.get("domain", table.namespace),
        "tags": [table.namespace, *tags],
        "description": _description(table),
        "schema": [_schema(table)],
        **_people(table),
        "slaProperties": _service_levels(table, feed),
    }
    text = json.dumps(content, sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    document = {
        "apiVersion": API_VERSION,
        "kind": "DataContract",
        "id": f"{CATALOG_NAME}.{table.name}",
        "name": table.name,
        "version": table.tags.get("version") or digest,
        **content,
        "servers": [_server(table, settings)],
    }
    return {key: value for key, value in document.items() if value != []}


def contract_text(table: IcebergTable, settings: Settings, feeds: Mapping[str, Feed]) -> str:
    """Return the contract of a table as YAML.

    :param feeds: all feeds by name.
    """
    landing = next((feed for feed in feeds.values() if feed.table == table.name), None)
    return to_yaml(contract_of(table, settings, landing))


def to_yaml(document: Document) -> str:
    """Return a document as YAML, preserving the order of keys."""
    return yaml.dump(
        document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_LONGEST_LINE
    )


class _Dumper(yaml.SafeDumper):
    """Disables YAML aliases."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _description(table: IcebergTable) -> Document:
    limitations = []
    if table.quarantine is not None:
        limitations.append(
            f"Rows that a rule rejects are in {table.quarantine.name}, with its name as reason."
        )
    if table.personal_columns:
        names = [name for name in table.column_names if name in table.personal_columns]
        limitations.append(f"Personal data: {', '.join(names)}.")
    if table.subject:
        limitations.append(
            f"{table.subject} identifies a person, whose rows are erased on request."
        )
    elif table.no_subject and table.has_personal_data:
        reason = f"No column identifies a person: {table.no_subject}"
        limitations.append(reason.rstrip(".") + ".")
    description = {"purpose": table.comment, "usage": _usage(table)}
    return description | ({"limitations": " ".join(limitations)} if limitations else {})


def _usage(table: IcebergTable) -> str:
    match table.write:
        case Append():
            return "Rows are added, and stay as they are."
        case Merge(on=key):
            return f"Rows are added, and changed where {', '.join(key)} is the same."
        case OverwritePartitions(by=column):
            return f"Rows are replaced by partitions of {column}."
        case _:
            return "Each write replaces all rows."


def _schema(table: IcebergTable) -> Document:
    schema: Document = {
        "name": table.short_name,
        "physicalName": table.name,
        "physicalType": "table",
        "logicalType": "object",
        "description": table.comment,
        "properties": [_property(table, column) for column in table.columns],
        "relationships": _relationships(table),
        "quality": quality_of_table(table),
        "customProperties": [
            _custom("tableFormat", "iceberg"),
            _custom("sqlDialect", "spark"),
        ],
    }
    if table.partitioning:
        partitioning = _custom("partitioning", list(table.partitioning))
        schema["customProperties"].append(partitioning)
    return {key: value for key, value in schema.items() if value not in ([], "")}


def _property(table: IcebergTable, column: Column) -> Document:
    name = column.name
    fields: Document = {"name": name, **type_fields(types.parse(column.type))}
    fields["description"] = column.doc
    fields["required"] = is_always_there(table, name)
    fields["unique"] = is_unique(table, name)
    fields |= _positions("primaryKey", "primaryKeyPosition", primary_key(table), name)
    partitioned_by = tuple(dict.fromkeys(field.column for field in table.partition_fields))
    fields |= _positions("partitioned", "partitionKeyPosition", partitioned_by, name)
    if name in table.masked_columns:
        is_personal = name in table.personal_columns
        kind = "identifies a person" if is_personal else "stands for a person"
        fields["classification"] = "personal"
        fields["customProperties"] = [_custom("personalData", kind)]
    fields["quality"] = quality_of_column(table, name)
    # False is the default in the standard.
    return {key: value for key, value in fields.items() if value not in ([], "", False)}


def _positions(flag: str, position: str, names: tuple[str, ...], name: str) -> Document:
    return {flag: True, position: names.index(name) + 1} if name in names else {}


def _relationships(table: IcebergTable) -> list[Document]:
    relationships = []
    for rule in table.rules:
        if not isinstance(rule, ReferencesRule):
            continue
        partner = rule.table.rpartition(".")[2]
        here = [f"{table.short_name}.{name}" for name in rule.columns]
        there = [f"{partner}.{name}" for name in rule.other_columns]
        # The standard allows no other names in references; the rule is still among the checks.
        if all(map(_REFERENCE.fullmatch, [*here, *there])):
            relationships.append({"type": "foreignKey", "from": here, "to": there})
    return relationships


def _people(table: IcebergTable) -> Document:
    return {"team": {"name": table.owner.removeprefix("team:")}} if table.owner else {}


def _service_levels(table: IcebergTable, feed: Feed | None) -> list[Document]:
    levels = []
    if table.freshness is not None:
        description = "Rows are written no longer ago than this."
        levels.append(_level("freshness", "latency", table.freshness, description))
    for rule in table.rules:
        if isinstance(rule, FreshRule) and rule.bounds and rule.bounds.high is not None:
            within = timedelta(hours=float(rule.bounds.high))
            levels.append(_level(rule.name, "latency", within, rule.description))
    if feed is not None and feed.expected_within is not None:
        description = (
            f"The feed {feed.name} delivers no longer after its last delivery than this."
        )
        levels.append(_level("delivery", "frequency", feed.expected_within, description))
    return levels


def _level(name: str, prop: str, span: timedelta, description: str) -> Document:
    value = hours(span)
    return {
        "id": name,
        "property": prop,
        "value": int(value) if value.is_integer() else value,
        "unit": "h",
        "description": description,
    }


def _server(table: IcebergTable, settings: Settings) -> Document:
    if settings.deployment == "aws":
        server: Mapping[str, str | None] = {
            "server": "aws",
            "type": "athena",
            "catalog": "awsdatacatalog",
            "schema": table.namespace,
            "regionName": settings.region,
        }
    else:
        server = {
            "server": "local",
            "type": "custom",
            "description": f"Iceberg's SQL catalog in {settings.home / 'catalog.db'}.",
            "catalog": CATALOG_NAME,
            "schema": table.namespace,
            "format": "iceberg",
            "warehouse": settings.warehouse,
        }
    return {key: value for key, value in server.items() if value}


def _custom(name: str, value: Any) -> Document:
    return {"property": name, "value": value}
