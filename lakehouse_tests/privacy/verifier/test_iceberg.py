"""A person is found in all files of an Iceberg table, referenced or not."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.transforms import IdentityTransform

from lakehouse.privacy.verifier.columns import HeldColumns
from lakehouse.privacy.verifier.roots import FolderRoot
from lakehouse.privacy.verifier.search import by_values, search
from lakehouse.tables.person import Person
from lakehouse_tests.privacy.verifier.someone import EMAIL, place_of, places, searched, written

pytestmark = pytest.mark.unit

SCHEMA = pa.schema([("client", pa.int64()), ("mail", pa.string())])
SMALL = Person("customer_id", frozenset({"47110815"}), {})


@pytest.fixture
def catalog(tmp_path):
    catalog = SqlCatalog(
        "lakehouse",
        uri=f"sqlite:///{tmp_path}/catalog.db",
        warehouse=f"file://{tmp_path}/warehouse",
    )
    catalog.create_namespace("bronze")
    yield catalog
    catalog.engine.dispose()


def new_table(catalog, tmp_path, **options):
    location = f"file://{tmp_path}/warehouse/bronze/raw"
    return catalog.create_table("bronze.raw", SCHEMA, location, **options)


def rows(*clients, mail="nobody@example.org"):
    return pa.table({"client": clients, "mail": [mail] * len(clients)}, schema=SCHEMA)


def in_place(report, place):
    return {
        (item.kind, item.column, item.how)
        for item in report.findings
        if place_of(item) == place
    }


def test_a_row_is_found_in_data_files_and_bounds_of_manifests(tmp_path, catalog):
    new_table(catalog, tmp_path).append(rows(4711, mail=EMAIL))

    report = searched(tmp_path)

    assert places(report) == {"data file", "manifest"}
    assert ("id", "client", "column") in in_place(report, "manifest")


def test_bounds_are_read_by_the_type_of_their_column(tmp_path, catalog):
    schema = pa.schema([("client", pa.string()), ("mail", pa.string())])
    location = f"file://{tmp_path}/warehouse/bronze/raw"
    table = catalog.create_table("bronze.raw", schema, location)
    table.append(pa.table({"client": ["1", "99"], "mail": [None, None]}, schema=schema))

    # As integers, the bounds "1" and "99" would be 49 and 14649.
    others = Person("customer_id", frozenset({"49", "14649"}), {})
    assert searched(tmp_path, person=others).findings == ()


def test_a_deleted_row_is_found_in_unreferenced_files(tmp_path, catalog):
    table = new_table(catalog, tmp_path)
    table.append(rows(47110815, 1))
    table.delete("client = 47110815")
    table.maintenance.expire_snapshots().by_id(table.metadata.snapshots[0].snapshot_id).commit()

    report = searched(tmp_path, person=SMALL)

    assert places(report) == {"data file", "manifest"}


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_metadata_is_read_compressed_or_not(tmp_path, catalog, codec):
    properties = {"write.metadata.compression-codec": codec, "owner": EMAIL}
    new_table(catalog, tmp_path, properties=properties)

    assert places(searched(tmp_path)) == {"metadata.json"}


def test_a_partition_is_found_in_names_and_manifests(tmp_path, catalog):
    table = new_table(catalog, tmp_path)
    with table.update_spec() as update:
        update.add_field("client", IdentityTransform(), "client")
    table.append(rows(47110815, 1))

    report = searched(tmp_path, person=SMALL)

    assert ("id", "client", "name of a folder") in in_place(report, "data file")
    assert ("id", "client", "column") in in_place(report, "manifest")
    assert "47110815" not in report.as_text()


def test_a_row_that_is_deleted_by_position_is_found(tmp_path, catalog):
    new_table(catalog, tmp_path)
    file = written(tmp_path, "warehouse/bronze/raw/data/0-deletes.parquet")
    row = pa.array([{"client": 47110815}])
    pq.write_table(pa.table({"file_path": ["x"], "pos": [0], "row": row}), file)

    assert in_place(searched(tmp_path, person=SMALL), "data file") >= {
        ("id", "row.client", "column")
    }


@pytest.mark.parametrize("name", ["id", "key", "value"])
def test_fields_of_iceberg_metadata_identify_no_one(tmp_path, catalog, name):
    columns = HeldColumns(
        ("warehouse/bronze/raw",), {"customer_id": frozenset({name})}, fields={1: name}
    )
    table = catalog.create_table(
        "bronze.raw", pa.schema([(name, pa.int64())]), f"file://{tmp_path}/warehouse/bronze/raw"
    )
    table.append(pa.table({name: [47110815]}))

    def places_of(number):
        person = Person("customer_id", frozenset({number}))
        return places(search([FolderRoot(tmp_path)], by_values([person], [columns])))

    assert places_of("1") == set()
    assert places_of("47110815") == {"data file", "manifest"}
