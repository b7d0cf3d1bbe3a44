"""Which of several rows with one key counts, where only a row that the rules accept may count."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakehouse.iceberg.quoting import identifier
from lakehouse.iceberg.table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DELIVERED = "__delivered__"
_RANK = "__rank"
_REFUSED = "__refused"


def first_accepted(table: IcebergTable, frame: "DataFrame", *, key: Sequence[str], order: Sequence[str]) -> "DataFrame":
    """Keep, of the rows that share a key, the first that the table's rules accept, and every row that they refuse.

    A refused row goes to the quarantine and never displaces an accepted one, so that many deliveries taken at once come
    to the same as one after the other. The rows are returned as they were given.

    :param order: SQL sort terms such as `created_at DESC`; a column with a `castable` rule is compared in its type.
    """
    wanted = {rule.columns[0]: rule.castable_as for rule in table.rules if rule.castable_as}
    casts = {name: wanted[name] for name, found in frame.dtypes if wanted.get(name, found) != found}
    names = {name: f"{_DELIVERED}{name}" if name in casts else name for name in frame.columns}
    typed = [f"try_cast({identifier(name)} AS {to}) AS {identifier(name)}" for name, to in casts.items()]
    others = [f"{identifier(name)} AS {identifier(kept)}" for name, kept in names.items()]
    breaks = [rule.predicate(lambda name: identifier(names[name])) for rule in table.quarantining_rules]
    judged = frame.selectExpr(*others, *typed).selectExpr("*", f"({' OR '.join(breaks) or 'false'}) AS {_REFUSED}")
    within = f"PARTITION BY {', '.join(map(identifier, key))}, {_REFUSED} ORDER BY {', '.join(order)}"
    ranked = judged.selectExpr("*", f"row_number() OVER ({within}) AS {_RANK}").where(f"{_REFUSED} OR {_RANK} = 1")
    return ranked.selectExpr(*(f"{identifier(kept)} AS {identifier(name)}" for name, kept in names.items()))
