"""Which personal values results show unmasked, by their columns and what statements select."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakehouse.tables.table import IcebergTable

_WORD = re.compile(r"\w+")
_SELECTED = re.compile(r"\bselect\b(.*?)(?=\bfrom\b|\bselect\b|$)", re.DOTALL)
_COUNT = re.compile(r"\bcount\s*\(\s*(?:distinct\s+)?\w+\s*\)")


@dataclass
class ShownColumns:
    """The statements that ran, and the columns of all results.

    A later statement can show a view or a variable of an earlier one.
    """

    text: str = ""
    columns: set[str] = field(default_factory=set)

    def add(self, statement: str, columns: Sequence[str]) -> None:
        """Add a statement and the columns of its rows."""
        self.text += f"{_COUNT.sub('', statement.lower())}\nselect from "
        self.columns.update(name.lower() for name in columns)

    def notice(
        self,
        tables: Callable[[], Sequence[str]],
        declared: "Callable[[], Mapping[str, IcebergTable]]",
    ) -> str | None:
        """Return the line that names the personal columns shown, by table; None without any.

        :param tables: lists the tables of the catalog; declarations are loaded only if a
            statement names one of them.
        """
        if not self.columns:
            return None
        words = set(_WORD.findall(self.text))
        selected = self.columns.union(_WORD.findall(" ".join(_SELECTED.findall(self.text))))
        shown = []
        for name in sorted(name for name in tables() if name.rpartition(".")[2] in words):
            personal = declared()[name].masked_columns if name in declared() else ()
            if columns := sorted(one for one in personal if one.lower() in selected):
                shown.append(f"{', '.join(columns)} of {name}")
        return f"This shows personal values in clear: {'; '.join(shown)}." if shown else None
