"""Rules on keys, which other rows must answer: whether a key is there once, or has a partner in
another table.

They are about many rows at once, so that no single row can be refused for them.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.rules.evaluable_rule import EvaluableRule, EvaluatedRows
from lakehouse.tables.column import tuple_of
from lakehouse.tables.declaration import TableDeclaration, name_of
from lakehouse.tables.quoting import between, identifier, literal, without_zone
from lakehouse.tables.rule import CountOptions, Rule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class KeyRule(EvaluableRule):
    """A rule on the key that its columns are; a row with a NULL among them passes."""

    reads_other_rows: ClassVar[bool] = True
    failed_sql: ClassVar[str]
    """How many of a key's rows break it, of those `__added` and of `__total_rows` that there
    are.
    """

    @property
    @abstractmethod
    def other_columns(self) -> tuple[str, ...]:
        """The columns of the key in the other rows."""

    @abstractmethod
    def other_rows(self, evaluated: EvaluatedRows) -> "DataFrame | None":
        """Return the rows beside the evaluated ones; None where there are none."""

    @abstractmethod
    def broken_rows(self, lookup: "KeyLookup", rows: "DataFrame") -> "DataFrame":
        """Return what to show of the rows that break it."""

    def lookup(self, evaluated: EvaluatedRows) -> "KeyLookup":
        """Return the lookup of the keys in the other rows."""
        first = evaluated.table.column(self.columns[0])
        return KeyLookup(self, self.other_rows(evaluated), first.type)


class UniqueRule(KeyRule):
    """No key is there twice, among the evaluated rows and those that exist."""

    identifies_rows: ClassVar[bool] = True
    # The first new row of a new key does not break it.
    failed_sql: ClassVar[str] = (
        "CASE WHEN __total_rows > __added THEN __added ELSE __added - 1 END"
    )

    @property
    def sql(self) -> str:
        """The key."""
        return f"unique({', '.join(self.columns)})"

    @property
    def other_columns(self) -> tuple[str, ...]:
        """The columns of the key."""
        return self.columns

    def other_rows(self, evaluated: EvaluatedRows) -> "DataFrame | None":
        """Return the rows that exist."""
        return evaluated.existing

    def broken_rows(self, lookup: "KeyLookup", rows: "DataFrame") -> "DataFrame":
        """Return the keys that are there more than once, with how often they are."""
        keys = [f"__key_{at} AS {identifier(name)}" for at, name in enumerate(self.columns)]
        repeated = lookup.grouped(rows).where("__total_rows > 1 AND __added > 0")
        return repeated.selectExpr(*keys, f"__total_rows AS {_other_than(self.columns)}")


@dataclass(frozen=True, kw_only=True)
class ReferencesRule(KeyRule):
    """Each key has a partner in another table."""

    table: str
    partner: tuple[str, ...]
    failed_sql: ClassVar[str] = "if(__total_rows > __added, 0, __added)"

    @property
    def other_columns(self) -> tuple[str, ...]:
        """The columns of the partner."""
        return self.partner

    @property
    def sql(self) -> str:
        """The columns, and those that have their values."""
        return f"({', '.join(self.columns)}) in {self.table} ({', '.join(self.other_columns)})"

    @property
    def read_columns(self) -> Mapping[str, Sequence[str]]:
        """The columns of the partners."""
        return {self.table: self.other_columns}

    def other_rows(self, evaluated: EvaluatedRows) -> "DataFrame":
        """Return the rows of the other table."""
        return evaluated.other_table(self.table)

    def broken_rows(self, lookup: "KeyLookup", rows: "DataFrame") -> "DataFrame":
        """Return the rows without a partner."""
        from pyspark.sql.functions import expr

        assert lookup.others is not None
        partners = lookup.others.selectExpr(*_numbered(self.other_columns))
        same = [f"s.{identifier(name)} = p.__key_{at}" for at, name in enumerate(self.columns)]
        with_key = _with_key(rows, self.columns)
        return with_key.alias("s").join(
            partners.alias("p"), expr(" AND ".join(same)), "left_anti"
        )


@dataclass(frozen=True)
class KeyLookup:
    """A rule on keys, the rows beside those that are evaluated, None where there are none, and
    the type of the key's first column.
    """

    rule: KeyRule
    others: "DataFrame | None" = None
    first_type: str = ""

    def aggregates(self) -> Mapping[str, str]:
        """Return the least and greatest key that is looked for among the other rows."""
        if self.others is None:
            return {}
        column, name = identifier(self.rule.columns[0]), self.rule.name
        least, greatest = (
            without_zone(f"{end}({column})", self.first_type) for end in ("min", "max")
        )
        return {f"__low_{name}": least, f"__high_{name}": greatest}

    def pruned(self, values: Mapping[str, Any]) -> "KeyLookup":
        """Return it with those of the other rows whose key lies between these."""
        if self.others is None:
            return self
        low, high = (values[f"__{end}_{self.rule.name}"] for end in ("low", "high"))
        column = self.rule.other_columns[0]
        within = between(column, low, high)
        return replace(self, others=self.others.where(within))

    def count(self, rows: "DataFrame") -> "DataFrame":
        """Return one row: how many rows break the rule."""
        return self.grouped(rows).selectExpr(
            f"{literal(self.rule.name)} AS rule",
            f"coalesce(sum(if(__added > 0, {self.rule.failed_sql}, 0)), 0) AS failed",
        )

    def broken_rows(self, rows: "DataFrame") -> "DataFrame":
        """Return what to show of the rows that break the rule."""
        return self.rule.broken_rows(self, rows)

    def grouped(self, rows: "DataFrame") -> "DataFrame":
        """Return each key once, with how many of the evaluated rows it has (`__added`), and how
        many rows with the others (`__total_rows`).

        Its columns are numbered, such as `__key_0`: a column of the table may be called `count`.
        Partners are looked for like this as well: a join would read the smaller table first, in
        a job of its own.
        """
        from pyspark.sql.functions import expr

        columns, other_columns = self.rule.columns, self.rule.other_columns
        keys = [f"__key_{at}" for at in range(len(columns))]
        added, total = "count(1)", expr("count(1)").alias("__total_rows")
        marked = _with_key(rows, columns).selectExpr(*_numbered(columns), "1 AS __new")
        if self.others is not None:
            others = _with_key(self.others, other_columns)
            marked = marked.unionAll(others.selectExpr(*_numbered(other_columns), "0 AS __new"))
            added = "sum(__new)"
        return marked.groupBy(*keys).agg(expr(added).alias("__added"), total)


def unique(*columns: str, **options: Unpack[CountOptions]) -> Rule:
    """Say that no two rows have the same values in these columns; a row with a NULL among them
    counts as itself.
    """
    description = f"{', '.join(columns)} is unique"
    return UniqueRule.declare("unique", columns, description, options)


def references(
    columns: str | Sequence[str],
    table: str | TableDeclaration,
    other_columns: str | Sequence[str] | None = None,
    **options: Unpack[CountOptions],
) -> Rule:
    """Say that each row has a partner in another table; a row with a NULL among the columns
    passes.

    An input of the write is looked at as the write reads it, and any other table as readers see
    it.

    :param table: the other table, or its name.
    :param other_columns: the other table's columns, in the same order; those of the same names
        where left out.
    """
    other, keys = name_of(table), tuple_of(columns)
    other_keys = tuple_of(other_columns) if other_columns is not None else keys
    if len(keys) != len(other_keys) or not keys:
        raise DeclarationError(
            f"references({columns!r}, {other!r}, {other_columns!r}) compares {len(keys)} with"
            f" {len(other_keys)} columns; expected as many of one table as of the other."
        )
    return ReferencesRule.declare(
        "references",
        keys,
        f"{', '.join(keys)} is one of {other} ({', '.join(other_keys)})",
        options,
        table=other,
        partner=other_keys,
    )


def _numbered(columns: Sequence[str]) -> list[str]:
    return [f"{identifier(name)} AS __key_{at}" for at, name in enumerate(columns)]


def _other_than(columns: Sequence[str]) -> str:
    """Return the name of what says how many rows there are, beside columns of any name."""
    name, taken = "rows", {column.lower() for column in columns}
    while name in taken:
        name = f"_{name}"
    return name


def _with_key(rows: "DataFrame", columns: Sequence[str]) -> "DataFrame":
    return rows.where(" AND ".join(f"{identifier(name)} IS NOT NULL" for name in columns))
