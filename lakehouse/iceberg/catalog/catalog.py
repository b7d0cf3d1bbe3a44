"""The Iceberg catalog: Spark writes through it, PyIceberg reads from it without a JVM."""

import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lakehouse.errors import TableNotFound, TypeUnsupported
from lakehouse.iceberg.catalog import pyiceberg_internals
from lakehouse.iceberg.catalog.catalog_file import require_catalog_file
from lakehouse.iceberg.catalog.damaged_metadata import explain_catalog, explain_table
from lakehouse.iceberg.catalog.iceberg_release import PINNED, IcebergRelease
from lakehouse.settings import Settings
from lakehouse.tables.quoting import identifier, namespace_of, namespaces_of

if TYPE_CHECKING:
    from botocore.exceptions import ClientError
    from pyiceberg.catalog import Catalog as PyIcebergCatalog
    from pyiceberg.catalog.glue import GlueCatalog
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.table import Table


def open_for_files(client: "PyIcebergCatalog", table: str, metadata_location: str) -> "Table":
    """Open a table with `binary` in place of unsupported types; row values are incorrect."""
    from pyiceberg.io import load_file_io
    from pyiceberg.serializers import Compressor
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadataUtil

    io = load_file_io(dict(client.properties), metadata_location)
    with io.new_input(metadata_location).open() as file:
        packed = Compressor.get_compressor(metadata_location).stream_decompressor(file)
        metadata = json.loads(packed.read())
    for name in ("schema", "schemas"):
        if name in metadata:
            metadata[name] = _known(metadata[name])
    known = TableMetadataUtil.parse_obj(metadata)
    return Table(tuple(table.split(".")), known, metadata_location, io, client)


def _known(part: Any) -> Any:
    """Return a part of a schema with `binary` in place of unsupported types."""
    if isinstance(part, list):
        return [_known(item) for item in part]
    if not isinstance(part, Mapping):
        return part
    known = {name: _known(item) for name, item in part.items()}
    # The types of fields, lists and maps.
    for name in ("type", "element", "key", "value"):
        if isinstance(known.get(name), str) and not _is_known(known[name]):
            known[name] = "binary"
    return known


def _is_known(name: str) -> bool:
    from pyiceberg.exceptions import ValidationError
    from pyiceberg.types import IcebergType

    # The type names of structs, lists and maps.
    if name in ("struct", "list", "map"):
        return True
    try:
        IcebergType.model_validate(name)
    except (ValueError, ValidationError):
        return False
    return True


CATALOG_NAME = "lakehouse"
_NOT_FOUND = "EntityNotFoundException"
_NOT_READ = {"AccessDeniedException", _NOT_FOUND, "FederationSourceException"}
"""Errors of Glue for databases that do not exist or cannot be read."""
_SQLITE_OPTIONS = "journal_mode=WAL&busy_timeout=30000"
_SQLITE_READ_ONLY = "open_mode=1&busy_timeout=30000"


@dataclass(frozen=True)
class Catalog:
    """One Iceberg catalog, with the properties of Spark and PyIceberg."""

    name: str
    spark: Mapping[str, str]
    pyiceberg: Mapping[str, str] = field(default_factory=dict)
    iceberg: IcebergRelease = PINNED
    """Iceberg's features in the Spark session; unsupported requests fail early."""
    _read: dict[str, "Table"] = field(default_factory=dict, repr=False, compare=False)
    _locations: Mapping[str, str] | None = field(default=None, repr=False, compare=False)
    _namespaces: Collection[str] | None = field(default=None, repr=False, compare=False)
    """Namespaces to list, whose locations can be cached; None for all."""

    @classmethod
    def of(cls, settings: Settings, name: str = CATALOG_NAME) -> "Catalog":
        """Describe the catalog of a deployment: SQLite in the home, or Glue and S3.

        :raises CatalogDamaged: if the file in the home is not a database, or is missing
            although tables exist.
        """
        described = (
            _glue(settings, name) if settings.deployment == "aws" else _embedded(settings, name)
        )
        return replace(described, iceberg=IcebergRelease(settings.iceberg))

    def with_cached_locations(self, tables: Iterable[str] | None = None) -> "Catalog":
        """Return a catalog that lists all metadata locations once, for callers that only read.

        :param tables: see `metadata_locations`; tables of other namespaces are queried each
            time.
        """
        namespaces = self._listed(tables)
        return self._alike(namespaces, self._locations_in(namespaces))

    def within(self, tables: Iterable[str]) -> "Catalog":
        """Return a catalog that lists only the namespaces of some tables.

        Glue has the databases of the entire account. An embedded catalog is returned unchanged.
        """
        if self.is_embedded or self._locations is not None:
            return self
        return self._alike(namespaces_of(tables), None)

    def _alike(
        self, namespaces: Collection[str] | None, locations: Mapping[str, str] | None
    ) -> "Catalog":
        alike = replace(self, _namespaces=namespaces, _locations=locations)
        # `client` is a cached property.
        alike.__dict__["client"] = self.client
        return alike

    def read_only(self) -> "Catalog":
        """Return the catalog for a session that cannot commit to an embedded catalog."""
        options = {"lakehouse.session": "read-only"}
        if self.is_embedded:
            # In this mode SQLite does not create the file, and Spark adds no column.
            _ = self.client
            uri = self.spark["uri"].replace(_SQLITE_OPTIONS, _SQLITE_READ_ONLY)
            options |= {"uri": uri, "jdbc.schema-version": "V0"}
        return replace(self, spark={**self.spark, **options})

    @property
    def spark_configuration(self) -> dict[str, str]:
        """Spark settings that register this catalog; they can be set on a running session."""
        prefix = f"spark.sql.catalog.{self.name}"
        named = {f"{prefix}.{key}": value for key, value in self.spark.items()}
        return {prefix: "org.apache.iceberg.spark.SparkCatalog", **named}

    def sql_name(self, table: str, *, branch: str | None = None) -> str:
        """Return the quoted name of `namespace.table`, or of a branch of it, in Spark SQL."""
        parts = [self.name, *table.split(".")]
        return identifier(*parts, f"branch_{branch}") if branch else identifier(*parts)

    @cached_property
    def client(self) -> "PyIcebergCatalog":
        """PyIceberg's view of the catalog."""
        from pyiceberg.catalog import load_catalog

        pyiceberg_internals.mend()
        with explain_catalog(self.place):
            return load_catalog(self.name, **self.pyiceberg)

    @property
    def is_embedded(self) -> bool:
        """Whether the catalog is the SQLite file in the home."""
        return self.pyiceberg.get("type") == "sql"

    @property
    def place(self) -> str:
        """Location of the catalog, for messages."""
        return self.pyiceberg.get("uri", "AWS Glue").removeprefix("sqlite:///")

    def load(self, table: str) -> "Table":
        """Load a table's current metadata; each metadata file is parsed once.

        :raises TableNotFound: if the catalog has no such table.
        :raises TableDamaged: if its metadata file is missing or cannot be read.
        :raises TypeUnsupported: if a column has a type that only Spark reads.
        :raises CatalogDamaged: if the catalog cannot be read.
        """
        from pyiceberg.table import Table

        with explain_catalog(self.place), explain_table(table):
            read = self._read.get(table)
            if read is None or read.metadata_location != self.metadata_location(table):
                read = self._read[table] = self._read_metadata(table)
            # A new object each time, since a commit through a Table updates its metadata.
            return Table(
                tuple(table.split(".")),
                read.metadata,
                read.metadata_location,
                read.io,
                self.client,
                read.config,
            )

    def load_for_files(self, table: str) -> "Table":
        """Load a table for its files and locations, also with types that only Spark supports."""
        try:
            return self.load(table)
        except TypeUnsupported:
            location = self.metadata_locations([table])[table]
            with explain_table(table):
                return open_for_files(self.client, table, location)

    def _read_metadata(self, table: str) -> "Table":
        """Load the metadata from the cached location, or from the one in the catalog."""
        location = (self._locations or {}).get(table)
        if location:
            # A later commit can have removed the file. Without permission to list the bucket,
            # S3 reports this as access denied.
            with suppress(OSError):
                return self.open_at(location)
        return self.client.load_table(table)

    def open_at(self, metadata_location: str) -> "Table":
        """Open a table from any of its metadata files."""
        from pyiceberg.table import StaticTable

        return StaticTable.from_metadata(metadata_location, dict(self.client.properties))

    def has(self, table: str) -> bool:
        if self._locations is not None and self._is_known(table):
            return table in self._locations
        try:
            self.load(table)
        except TableNotFound:
            return False
        return True

    def metadata_locations(self, tables: Iterable[str] | None = None) -> dict[str, str]:
        """Return the current metadata location of each table, by name.

        :param tables: names; only their namespaces are listed. Glue has the databases of the
            entire account, some of which this user cannot read.
        """
        if self._locations is not None:
            return dict(self._locations)
        return self._locations_in(self._listed(tables))

    def _listed(self, tables: Iterable[str] | None) -> Collection[str] | None:
        """Return the namespaces of some tables, or this catalog's namespaces; None for all."""
        return self._namespaces if tables is None else namespaces_of(tables)

    def _locations_in(self, namespaces: Collection[str] | None) -> dict[str, str]:
        from pyiceberg.catalog.glue import GlueCatalog
        from pyiceberg.catalog.sql import SqlCatalog

        with explain_catalog(self.place):
            if isinstance(self.client, SqlCatalog):
                return _locations_of_sqlite(self.client, namespaces)
            assert isinstance(self.client, GlueCatalog)
            return _locations_of_glue(self.client, namespaces)

    def unlisted_locations(self) -> dict[str, str]:
        """Return the metadata locations in readable Glue databases that `within` excludes."""
        from botocore.exceptions import ClientError
        from pyiceberg.catalog.glue import GlueCatalog

        if self._namespaces is None or not isinstance(self.client, GlueCatalog):
            return {}
        try:
            databases = {name for (name,) in self.client.list_namespaces()}
        except ClientError as error:
            _raise_unless(error, _NOT_READ)
            return {}
        return _locations_of_glue(self.client, databases - {*self._namespaces}, _NOT_READ)

    def _is_known(self, table: str) -> bool:
        """Whether the cached locations cover the table's namespace."""
        return self._namespaces is None or namespace_of(table) in self._namespaces

    def metadata_location(self, table: str) -> str | None:
        """Return a table's metadata location; None if not embedded, or without such a table."""
        from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
        from sqlalchemy import select

        if self._locations is not None and self._is_known(table):
            return self._locations.get(table)
        if not isinstance(self.client, SqlCatalog):
            return None
        namespace, _, name = table.rpartition(".")
        pointer = select(IcebergTables.metadata_location).where(
            IcebergTables.catalog_name == self.client.name,
            IcebergTables.table_namespace == namespace,
            IcebergTables.table_name == name,
        )
        with self.client.engine.connect() as connection:
            return connection.scalar(pointer)

    def tables(self, declared: Iterable[str] | None = None) -> list[str]:
        """Return the sorted names of all tables.

        :param declared: names; in Glue, only the tables of their namespaces are listed.
        """
        return sorted(self.metadata_locations(None if self.is_embedded else declared))


def _locations_of_sqlite(
    client: "SqlCatalog", namespaces: Collection[str] | None
) -> dict[str, str]:
    from pyiceberg.catalog.sql import IcebergTables
    from sqlalchemy import select, text

    pointers = select(text("*")).select_from(IcebergTables)
    pointers = pointers.where(IcebergTables.catalog_name == client.name)
    if namespaces is not None:
        pointers = pointers.where(IcebergTables.table_namespace.in_(namespaces))
    with client.engine.connect() as connection:
        rows = connection.execute(pointers).mappings().all()
    return {
        f"{row['table_namespace']}.{row['table_name']}": row["metadata_location"]
        for row in rows
        # PyIceberg's first versions have no views, and no column for them.
        if row.get("iceberg_type") != "VIEW"
    }


def _locations_of_glue(
    client: "GlueCatalog",
    namespaces: Collection[str] | None,
    skipped_errors: Collection[str] = (_NOT_FOUND,),
) -> dict[str, str]:
    from botocore.exceptions import ClientError

    if namespaces is None:
        namespaces = [name for (name,) in client.list_namespaces()]
    locations: dict[str, str] = {}
    for namespace in sorted(namespaces):
        try:
            locations |= _locations_of_database(client, namespace)
        except ClientError as error:
            # Not found: it does not exist yet, or was dropped after it was listed.
            _raise_unless(error, skipped_errors)
    return locations


def _raise_unless(error: "ClientError", skipped_errors: Collection[str]) -> None:
    if error.response.get("Error", {}).get("Code") not in skipped_errors:
        raise error


def _locations_of_database(client: "GlueCatalog", namespace: str) -> dict[str, str]:
    locations = {}
    for page in client.glue.get_paginator("get_tables").paginate(DatabaseName=namespace):
        for table in page["TableList"]:
            location = table.get("Parameters", {}).get("metadata_location")
            if location:
                locations[f"{namespace}.{table['Name']}"] = location
    return locations


def _embedded(settings: Settings, name: str) -> Catalog:
    # The file must have a folder before either client opens it.
    settings.make_home()
    file = settings.home / "catalog.db"
    require_catalog_file(file, settings.home / "warehouse")
    return Catalog(
        name,
        spark={
            "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            "uri": f"jdbc:sqlite:{file}?{_SQLITE_OPTIONS}",
            "warehouse": settings.warehouse,
            "jdbc.schema-version": "V1",
            # With a cache, commits of other processes are seen up to 30 s late.
            "cache-enabled": "false",
            "unique-table-location": "true",
        },
        pyiceberg={"type": "sql", "uri": f"sqlite:///{file}", "warehouse": settings.warehouse},
    )


def _glue(settings: Settings, name: str) -> Catalog:
    spark = {
        "catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "warehouse": settings.warehouse,
        "cache-enabled": "false",
        "unique-table-location": "true",
    }
    pyiceberg = {"type": "glue", "warehouse": settings.warehouse}
    if settings.region:
        spark["client.region"] = settings.region
        pyiceberg |= {"glue.region": settings.region, "s3.region": settings.region}
    if settings.endpoint_url:
        endpoints = dict.fromkeys(("glue.endpoint", "s3.endpoint"), settings.endpoint_url)
        spark |= {**endpoints, "s3.path-style-access": "true"}
        pyiceberg |= {**endpoints, "s3.force-virtual-addressing": "false"}
    return Catalog(name, spark, pyiceberg)
