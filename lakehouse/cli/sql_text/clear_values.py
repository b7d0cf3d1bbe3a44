"""Which personal values a result shows in clear: told by its columns, and by what its
statements select.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakehouse.tables.sql_tokens import Token, tokenize

if TYPE_CHECKING:
    from lakehouse.tables.table import IcebergTable

_WORD = re.compile(r"\w+")


@dataclass
class ShownColumns:
    """What the results of some statements have shown: the statements that ran so far, and the
    columns of all results.

    A view or a variable of an earlier statement may be what a later one shows.
    """

    statements: list[str] = field(default_factory=list)
    columns: set[str] = field(default_factory=set)

    def add(self, statement: str, columns: Sequence[str]) -> None:
        """Remember a statement, and the columns of its rows."""
        self.statements.append(statement)
        self.columns |= {name.lower() for name in columns}

    def notice(
        self,
        tables: Callable[[], Sequence[str]],
        declared: "Callable[[], Mapping[str, IcebergTable]]",
    ) -> str | None:
        """Return the line that names the personal columns shown, by table; None where there are
        none.

        :param tables: lists the tables of the catalog; what is declared is loaded only where
            one of them is read.
        """
        if not self.columns:
            return None
        words: set[str] = set()
        for statement in self.statements:
            words.update(_WORD.findall(statement.lower()))
        read = sorted(name for name in tables() if name.rpartition(".")[2] in words)
        shown = []
        for name in read:
            columns = self._columns_of(declared()[name]) if name in declared() else []
            if columns:
                shown.append(f"{', '.join(columns)} of {name}")
        return f"This shows personal values in clear: {'; '.join(shown)}." if shown else None

    def _columns_of(self, table: "IcebergTable") -> list[str]:
        shown = set(self.columns)
        for statement in self.statements:
            shown.update(_selected(tokenize(statement)))
        return sorted(name for name in table.masked_columns if name.lower() in shown)


def _selected(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the names between SELECT and FROM, but for those that are only counted."""
    is_list = False
    for at, token in enumerate(tokens):
        is_list = token.keyword == "SELECT" or (is_list and token.keyword != "FROM")
        before = [word.text.lower() for word in tokens[max(0, at - 3) : at]]
        is_counted = before[-2:] == ["count", "("] or before == ["count", "(", "distinct"]
        if is_list and token.is_name and not is_counted:
            yield token.text.lower()
