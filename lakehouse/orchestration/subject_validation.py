"""Load-time check that each table with personal data declares its data subject column.

Erasure could not find the rows of a table without one.
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
    """Return the upstream tables of each table; the source of a quarantine is its table.

    :param computed: asset specs with input metadata.
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
    """Check that each table with personal columns has a subject, or a reason for not having one.

    :raises DeclarationError: names the table, the columns and what to declare.
    """
    read = {name: set(names) for name, names in sources.items()}
    known = dict(tables)
    for feed in feeds:
        # Columns of the files, independent of the target table.
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
