"""A table with a type that Spark alone reads is not taken for a damaged one, and its files are
known all the same.
"""

from datetime import UTC, datetime

import pytest

from lakehouse.errors import DeclarationError, TypeUnsupported
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.catalog.iceberg_release import is_spark_3
from lakehouse.iceberg.erasure.remove_unnamed import remove_unnamed
from lakehouse.iceberg.metadata.referenced_files import missing_files, named_files
from lakehouse.iceberg.upkeep.remove_orphans import remove_orphans, tables_in_location
from lakehouse.settings import Settings
from lakehouse.tables.table import Column
from lakehouse_tests.examples import glue_in_test_all
from lakehouse_tests.iceberg.erasure.people import no_spark
from lakehouse_tests.iceberg.strangers import EVENTS, make_events
from lakehouse_tests.iceberg.upkeep.tables import NAME, create

unit = pytest.mark.unit
OURS = "silver.ours"


@pytest.fixture
def beside(settings: Settings) -> Engine:
    """A table of ours beside one of a stranger's."""
    catalog = Catalog.of(settings)
    make_events(catalog)
    make_events(catalog, "string", OURS)
    return Engine(Catalog.of(settings), no_spark, settings.lock_dir, masking_key=b"testing")


@pytest.mark.parametrize(
    "kind", ["variant", "geometry(srid:3857)", "geography(OGC:CRS84, spherical)", "interval"]
)
@unit
def test_the_table_and_the_type_are_named_and_nothing_is_called_damaged(
    settings: Settings, kind: str
) -> None:
    make_events(Catalog.of(settings), kind)

    with pytest.raises(TypeUnsupported) as raised:
        Catalog.of(settings).load(EVENTS)

    said = str(raised.value)
    assert said.startswith(
        f"{EVENTS} has a column of the type {kind}, which only Spark can read"
    )
    assert "expected boolean, int, long" in said
    assert "Nothing of the table is damaged. `lakehouse sql` reads and writes it." in said
    assert "backup" not in said


@unit
def test_its_files_are_known(beside: Engine) -> None:
    loaded = beside.catalog.load_for_files(EVENTS)
    (data,) = [file for file in named_files(loaded).values() if file.kind == "data"]
    assert data.is_of_main
    loaded.io.delete(data.path)
    assert missing_files(beside.catalog, EVENTS) == [data.path]


@unit
def test_one_that_lies_in_a_location_is_seen_there(beside: Engine) -> None:
    assert tables_in_location(beside, OURS) == []
    inside = f"{beside.catalog.load(OURS).location()}/inside"
    location = beside.catalog.load_for_files(EVENTS).location()
    file = beside.catalog.metadata_location(EVENTS)
    assert file
    io = beside.catalog.client.load_table(OURS).io
    with io.new_input(file).open() as source:
        text = source.read().decode()
    with io.new_output(file).create(overwrite=True) as target:
        target.write(text.replace(f'"{location}"', f'"{inside}"').encode())
    assert tables_in_location(beside, OURS) == [EVENTS]


@unit
def test_files_that_it_names_are_no_ones_to_remove(beside: Engine) -> None:
    ours = beside.catalog.load(OURS)
    unnamed = f"{ours.location()}/data/unnamed.parquet"
    with ours.io.new_output(unnamed).create() as file:
        file.write(b"nobody's")
    (named,) = [
        file.path
        for file in named_files(beside.catalog.load_for_files(EVENTS)).values()
        if file.kind == "data"
    ]

    (removed,) = remove_unnamed(beside, [OURS])

    assert (removed.outcome, removed.step_metrics["removed_files"]) == ("done", 1)
    assert ours.io.new_input(named).exists()
    assert not ours.io.new_input(unnamed).exists()


@unit
@pytest.mark.parametrize("kind", ["variant", "array<variant>", "struct<a:variant>"])
def test_a_declaration_of_a_variant_is_rejected(kind: str) -> None:
    with pytest.raises(DeclarationError, match=r"Column event: .* is not a column type"):
        Column("event", kind)


@glue_in_test_all
@pytest.mark.spark
@pytest.mark.skipif(is_spark_3(), reason="Spark 3.5 knows no VARIANT")
def test_one_that_spark_made_hinders_the_upkeep_of_no_other(engine: Engine) -> None:
    columns = "id bigint, event variant, nested struct<more:array<variant>>"
    events = create(engine, columns, properties={"format-version": "3"}, name=EVENTS)
    row = "1, parse_json('{\"a\": 1}'), named_struct('more', array(parse_json('2')))"
    engine.sql(f"INSERT INTO {events} SELECT {row}")
    engine.sql(f"INSERT INTO {create(engine, 'id bigint')} VALUES (1)")

    with pytest.raises(TypeUnsupported, match=f"^{EVENTS} has a column of the type variant, "):
        engine.catalog.load(EVENTS)
    assert missing_files(engine.catalog, EVENTS) == []
    found = remove_orphans(engine, NAME, older_than=datetime.now(UTC))
    assert "unreferenced" in found.reason
