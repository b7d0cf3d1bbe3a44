"""Some declared tables of a home, each computed from the first, to erase people from."""

from pathlib import Path

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.privacy.erasure import Erasure, How
from lakehouse.privacy.identity import Named
from lakehouse.privacy.run_erasure import erase
from lakehouse.settings import Settings
from lakehouse.tables.table import IcebergTable
from lakehouse_tests.privacy.small_lakehouse import People, erasable_of


class Lakehouse:
    """Some tables of a home, and their rows."""

    def __init__(self, engine: Engine, settings: Settings, *tables: IcebergTable) -> None:
        self.settings = settings
        self.tables = {table.name: table for table in tables}
        sources = {table.name: {tables[0].name} for table in tables[1:]}
        self.erasable = erasable_of(settings, engine, self.tables, sources)
        self.people = People(engine, self.erasable.subjects)

    def erase(self, column: str, value: str) -> Erasure:
        return erase(self.erasable, "R-1", [Named(column, value)], How("me", now=True))

    def data_files(self, table: IcebergTable) -> list[Path]:
        location = self.people.engine.catalog.load(table.name).location()
        return sorted(Path(location.removeprefix("file://"), "data").rglob("*.parquet"))
