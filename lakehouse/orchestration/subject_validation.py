"""Whether each table that holds people says which column stands for them, said at load: whoever is
erased would stay in one that does not.
"""

from collections.abc import Iterable, Mapping

import dagster as dg

from lakehouse.errors import DeclarationError
from lakehouse.orchestration.asset_inputs import inputs_of
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.tables.feed import Feed, bronze_table
from lakehouse.tables.people import Origin, Origins, origins_of
from lakehouse.tables.table import IcebergTable


def sources_of(
    computed: Iterable[dg.AssetSpec], tables: Mapping[str, IcebergTable]
) -> dict[str, set[str]]:
    """Return, by table, the tables that it is computed from; a quarantine is of its table.

    :param computed: what an asset makes, whose metadata says what it reads.
    """
    sources: dict[str, set[str]] = {}
    for spec in computed:
        read = inputs_of(spec.metadata).values()
        sources.setdefault(table_name(spec.key), set()).update(one.table for one in read)
    for table in tables.values():
        if table.quarantine:
            sources.setdefault(table.quarantine.name, set()).add(table.name)
    return sources


def check_subjects(
    tables: Mapping[str, IcebergTable],
    sources: Mapping[str, set[str]],
    feeds: Iterable[Feed],
) -> None:
    """Check that each table with columns about people has a subject, or says why it has none.

    :raises DeclarationError: names the table, those columns, and what is to be declared.
    """
    read = {name: set(names) for name, names in sources.items()}
    known = dict(tables)
    for feed in feeds:
        # What its files hold, whatever the table says that they land in.
        known[f"feed {feed.name}"] = bronze_table(feed, "What is delivered.")
        read.setdefault(feed.table, set()).add(f"feed {feed.name}")
    about_people = origins_of(known, read)
    for name, table in tables.items():
        if about_people[name]:
            _check_subject(table, about_people[name])
            _check_partitions(table, about_people[name])


def _check_subject(table: IcebergTable, columns: Origins) -> None:
    if table.subject is not None or table.no_subject is not None:
        return
    found = [f"{column} ({_describe(columns[column])})" for column in columns]
    raise DeclarationError(
        f"{table.name} has {', '.join(found)}, and declares no subject; expected one, by which"
        " the rows of a person are found who is to be erased.",
        next_step=(
            "Declare subject=…, the column that stands for the person, or no_subject='why' where"
            " none does; of a feed's table, in its Feed."
        ),
    )


def _check_partitions(table: IcebergTable, columns: Origins) -> None:
    for field in table.partition_fields:
        if field.column in columns and field.transform != "bucket":
            raise DeclarationError(
                f"{table.name} is partitioned by {field.column}"
                f" ({_describe(columns[field.column])}): its values would stand in paths and"
                " metadata, where erasure cannot reach them.",
                next_step=f"Partition by another column, or by bucket(16, {field.column}).",
            )


def _describe(origins: frozenset[Origin]) -> str:
    return " and ".join(str(origin) for origin in sorted(origins))
