"""Column lineage from a declaration or a query; never guessed."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from lakehouse.iceberg.read.inputs import Input
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.sql_function import SqlFunction
from lakehouse.orchestration.sql_relations import QUERY_WORDS
from lakehouse.tables.sql_tokens import Token
from lakehouse.tables.table import IcebergTable

COLUMN_LINEAGE = "dagster/column_lineage"
"""Dagster's metadata key."""
Source = tuple[str, str]
"""A table and a column of it."""


def lineage_metadata(
    table: IcebergTable,
    compute: Callable[..., Any],
    inputs: Mapping[str, Input],
    declared: Mapping[str, IcebergTable],
) -> dict[str, dg.TableColumnLineage]:
    """Return the column lineage metadata of a table; empty if it is unknown.

    :param declared: declared tables of the project, by name.
    """
    if isinstance(compute, SqlFunction):
        sources = _of_query(table, compute, inputs, declared)
    else:
        sources = _of_rows(table, inputs)
    if not sources:
        return {}
    lineage = {
        name: [dg.TableColumnDep(asset_key(source), column) for source, column in found]
        for name, found in sources.items()
    }
    return {COLUMN_LINEAGE: dg.TableColumnLineage(lineage)}


def _of_rows(table: IcebergTable, inputs: Mapping[str, Input]) -> dict[str, list[Source]]:
    """Return the source columns of a table that has `rows_of`."""
    raw = table.rows_of
    if raw is None or raw.name not in {declared.table for declared in inputs.values()}:
        return {}
    sources: dict[str, list[Source]] = {}
    for column in table.columns:
        names = (column.name, *column.renamed_from)
        there = [name for name in names if name in raw.column_names]
        if there and column.cast and column.name != table.stamp:
            sources[column.name] = [(raw.name, there[0])]
    return sources


def _of_query(
    table: IcebergTable,
    query: SqlFunction,
    inputs: Mapping[str, Input],
    declared: Mapping[str, IcebergTable],
) -> dict[str, list[Source]]:
    columns = {}
    for name, read in inputs.items():
        # A past snapshot can have other columns.
        if read.table in declared and read.mode != "as_of":
            columns[name] = read.keys or declared[read.table].column_names
    known = {name.lower(): name for name in table.column_names}
    sources: dict[str, list[Source]] = {}
    for passed in passed_on(query.tokens, columns):
        column = known.get(passed.name.lower())
        if column and column != table.stamp:
            sources.setdefault(column, []).append(
                (inputs[passed.input_name].table, passed.source)
            )
    # A name with two sources is ambiguous.
    return {name: found for name, found in sources.items() if len(found) == 1}


_JOINS = frozenset(
    {"JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "OUTER", "SEMI", "ANTI", "NATURAL"}
)
_ENDS = frozenset({"WHERE", "GROUP", "HAVING", "ORDER", "SORT", "LIMIT", "WINDOW", "QUALIFY"})
_UNCLEAR = frozenset({"UNION", "EXCEPT", "INTERSECT", "MINUS", "LATERAL", "PIVOT", "UNPIVOT"})
"""Keywords with which a column can have another source than the text names."""
Columns = Mapping[str, Collection[str]]


@dataclass(frozen=True)
class PassedOn:
    """A result column and the input column that it passes through."""

    name: str
    input_name: str
    source: str


def passed_on(tokens: Sequence[Token], columns: Columns) -> list[PassedOn]:
    """Return the columns that a query passes through, under their own name or an alias.

    Supports only a single SELECT from inputs with known columns.

    :param columns: column names by input; an unknown input has no entry.
    """
    top = _outermost(tokens)
    words = [token.keyword for token in top]
    if words[:1] != ["SELECT"] or "FROM" not in words:
        return []
    if not _UNCLEAR.isdisjoint(words):
        return []
    end = words.index("FROM")
    relations = _relations(top[end + 1 :], columns)
    if relations is None:
        return []
    begin = 2 if words[1] in ("DISTINCT", "ALL") else 1
    found: list[PassedOn] = []
    for item in _split(top[begin:end]):
        found += _of_item(item, relations, columns)
    return found


def _outermost(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens outside of parentheses; each pair of parentheses is one token."""
    outermost: list[Token] = []
    depth = 0
    for token in tokens:
        if token.is_mark(")"):
            depth -= 1
            continue
        if depth == 0:
            outermost.append(token)
        if token.is_mark("("):
            depth += 1
    return outermost


def _relations(tokens: Sequence[Token], columns: Columns) -> dict[str, str] | None:
    """Return the inputs by their alias; None if the query reads anything else."""
    known = {name.lower(): name for name in columns}
    relations: dict[str, str] = {}
    expects = True
    for at, token in enumerate(tokens):
        if token.keyword in _ENDS:
            break
        if token.is_mark(",") or token.keyword == "JOIN":
            expects = True
        elif expects and token.keyword not in _JOINS:
            if not token.is_name or token.text.lower() not in known:
                return None
            alias = _alias(tokens[at + 1 :]) or token.text
            relations[alias.lower()] = known[token.text.lower()]
            expects = False
    return relations


def _alias(tokens: Sequence[Token]) -> str:
    """Return the alias of a table; empty if it has none."""
    if tokens and tokens[0].keyword == "AS":
        tokens = tokens[1:]
    words = _JOINS | _ENDS | QUERY_WORDS | {"ON", "USING", "TABLESAMPLE"}
    is_name = bool(tokens) and tokens[0].is_name and tokens[0].keyword not in words
    return tokens[0].text if is_name else ""


def _split(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    begin = 0
    for at, token in enumerate(tokens):
        if token.is_mark(","):
            yield tokens[begin:at]
            begin = at + 1
    yield tokens[begin:]


def _of_item(
    item: Sequence[Token], relations: Mapping[str, str], columns: Columns
) -> list[PassedOn]:
    """Return what one SELECT item passes through: one column, all columns, or none."""
    qualifier = ""
    if len(item) > 2 and item[0].is_name and item[1].is_mark("."):
        qualifier, item = item[0].text.lower(), item[2:]
    if not item or (qualifier and qualifier not in relations):
        return []
    read = [relations[qualifier]] if qualifier else list(relations.values())
    if len(item) == 1 and item[0].is_mark("*"):
        return _all_of(read, columns)
    source, named = item[0], item[1:]
    if named and named[0].keyword == "AS":
        named = named[1:]
    words = [source, *named]
    if len(words) > 2 or not all(word.is_name for word in words):
        return []
    having = [one for one in read if _find(source.text, columns[one])]
    if len(having) != 1:
        # Unknown or ambiguous source.
        return []
    column = _find(source.text, columns[having[0]])
    return [PassedOn(words[-1].text, having[0], column)]


def _all_of(inputs: Sequence[str], columns: Columns) -> list[PassedOn]:
    passed = []
    for name in inputs:
        passed += [PassedOn(column, name, column) for column in columns[name]]
    return passed


def _find(name: str, names: Collection[str]) -> str:
    """Return a name in its original case; empty if it is not found."""
    return next((known for known in names if known.lower() == name.lower()), "")
