"""Rules on keys, which other rows must answer: whether a key stands once, or has a partner in
another table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakehouse.tables.quoting import between, identifier, literal
from lakehouse.tables.rule import Rule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class KeyRule:
    """A rule on keys, and the rows beside those that are looked at.

    These are the rows that a key must not stand in, for `unique`, or must stand in, for
    `references`; None where there are none.
    """

    rule: Rule
    others: "DataFrame | None" = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the key in the rows that are looked at."""
        return self.rule.unique_on or self.rule.columns

    @property
    def other_columns(self) -> tuple[str, ...]:
        """The columns of the key in the other rows."""
        return self.rule.references.columns if self.rule.references else self.rule.unique_on

    def near(self, found: Mapping[str, Any]) -> "KeyRule":
        """Narrow the other rows to those whose key lies between the least and the greatest that
        is looked for.
        """
        if self.others is None:
            return self
        within = between(
            self.other_columns[0],
            found[f"__low_{self.rule.name}"],
            found[f"__high_{self.rule.name}"],
        )
        return replace(self, others=self.others.where(within))

    def counted(self, rows: "DataFrame") -> "DataFrame":
        """Return one row: how many rows break the rule; of a key that stands twice, the first
        new one does not.
        """
        broken = _LONELY if self.rule.references else _REPEATS
        return self._grouped(rows).selectExpr(
            f"{literal(self.rule.name)} AS rule",
            f"coalesce(sum(if(added > 0, {broken}, 0)), 0) AS failed",
        )

    def broken_rows(self, rows: "DataFrame") -> "DataFrame":
        """Return the rows that have no partner, or the keys that stand more than once with how
        often they do.
        """
        if self.rule.references:
            return self._without_partner(rows)
        keys = [identifier(name) for name in self.columns]
        return (
            self._grouped(rows)
            .where("standing > 1 AND added > 0")
            .selectExpr(*keys, "standing AS rows")
        )

    def _grouped(self, rows: "DataFrame") -> "DataFrame":
        """Return each key once, with how many rows it has, the others too, and how many of them
        are looked at.

        Partners are looked for like this as well: a join would read the smaller table first, in
        a job of its own.
        """
        keys = [identifier(name) for name in self.columns]
        looked_at = _with_key(rows, self.columns)
        if self.others is None:
            return (
                looked_at.groupBy(*keys)
                .count()
                .selectExpr(*keys, "count AS added", "count AS standing")
            )
        others = [identifier(name) for name in self.other_columns]
        marked = looked_at.selectExpr(*keys, "1 AS __new").unionAll(
            _with_key(self.others, self.other_columns).selectExpr(*others, "0 AS __new")
        )
        counts = marked.groupBy(*keys).agg({"__new": "sum", "*": "count"})
        return counts.selectExpr(*keys, "`sum(__new)` AS added", "`count(1)` AS standing")

    def _without_partner(self, rows: "DataFrame") -> "DataFrame":
        from pyspark.sql.functions import expr

        assert self.others is not None
        named = [
            f"{identifier(name)} AS __key_{at}" for at, name in enumerate(self.other_columns)
        ]
        partners = self.others.selectExpr(*named)
        same = [f"s.{identifier(name)} = p.__key_{at}" for at, name in enumerate(self.columns)]
        with_key = _with_key(rows, self.columns)
        return with_key.alias("s").join(
            partners.alias("p"), expr(" AND ".join(same)), "left_anti"
        )


_LONELY = "if(standing > added, 0, added)"
_REPEATS = "CASE WHEN standing > added THEN added ELSE added - 1 END"


def key_bounds(keyed: Sequence[KeyRule]) -> dict[str, str]:
    """Return the SQL aggregates of the least and greatest key that is looked for among other
    rows.
    """
    bounds: dict[str, str] = {}
    for key in keyed:
        column, name = identifier(key.columns[0]), key.rule.name
        bounds |= {f"__low_{name}": f"min({column})", f"__high_{name}": f"max({column})"}
    return bounds


def count_broken(rows: "DataFrame", keyed: Sequence[KeyRule]) -> dict[str, int]:
    """Return by rule how many rows break it: one query for all of them, and none for none."""
    if not keyed:
        return {}
    counted = keyed[0].counted(rows)
    for key in keyed[1:]:
        counted = counted.unionAll(key.counted(rows))
    return {row["rule"]: row["failed"] for row in counted.collect()}


def _with_key(rows: "DataFrame", columns: Sequence[str]) -> "DataFrame":
    return rows.where(" AND ".join(f"{identifier(name)} IS NOT NULL" for name in columns))
