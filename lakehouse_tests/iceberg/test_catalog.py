"""What the catalog says of its tables, while others commit to them."""

import pytest
from botocore.exceptions import ClientError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from lakehouse.errors import TableNotFound
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.settings import Settings
from lakehouse_tests.sqlite_statements import statements

pytestmark = pytest.mark.unit

NAME = "silver.fruits"


@pytest.fixture
def catalog(settings: Settings) -> Catalog:
    made = Catalog.of(settings)
    made.client.create_namespace("silver")
    create(made)
    return made


@pytest.fixture
def shared(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    """A catalog with a table of the lakehouse and one of others."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    made = Catalog.of(request.getfixturevalue(request.param))
    for name in (NAME, "others.table"):
        made.client.create_namespace(name.split(".")[0])
        create(made, name)
    return made


def create(catalog: Catalog, name: str = NAME) -> None:
    catalog.client.create_table(name, Schema(NestedField(1, "id", LongType())))


def left_in(catalog: Catalog) -> set[str]:
    """The file in a home has no tables of others: all of its tables are listed."""
    return {"others.table"} if catalog.is_embedded else set()


def colour(catalog: Catalog, value: str) -> None:
    with catalog.client.load_table(NAME).transaction() as change:
        change.set_properties(colour=value)


def test_metadata_is_parsed_once_for_as_long_as_nobody_commits(catalog: Catalog) -> None:
    assert catalog.load(NAME).metadata is catalog.load(NAME).metadata


def test_a_commit_of_another_process_is_seen_at_once(
    catalog: Catalog, settings: Settings
) -> None:
    other = Catalog.of(settings)
    for value in ("red", "green"):
        colour(other, value)
        assert catalog.load(NAME).properties["colour"] == value
    assert catalog.load(NAME).metadata_location == other.load(NAME).metadata_location


def test_a_commit_through_a_loaded_table_changes_no_other(catalog: Catalog) -> None:
    before, writing = catalog.load(NAME), catalog.load(NAME)
    with writing.transaction() as change:
        change.set_properties(colour="red")
    assert "colour" not in before.properties
    assert catalog.load(NAME).properties["colour"] == "red"


def test_a_table_that_was_dropped_is_gone_and_another_of_its_name_is_another(
    catalog: Catalog, settings: Settings
) -> None:
    first = catalog.load(NAME)
    other = Catalog.of(settings)
    other.client.drop_table(NAME)
    assert not catalog.has(NAME)
    with pytest.raises(TableNotFound):
        catalog.load(NAME)
    create(other)
    assert catalog.has(NAME)
    assert catalog.load(NAME).metadata.table_uuid != first.metadata.table_uuid


@pytest.mark.parametrize("shared", ["settings", "aws_settings"], indirect=True)
def test_where_all_tables_are_is_told_at_once(shared: Catalog) -> None:
    before = shared.metadata_locations()
    assert before[NAME] == shared.load(NAME).metadata_location
    colour(shared, "red")
    assert shared.metadata_locations()[NAME] not in before.values()


def test_at_one_moment_the_catalog_is_asked_once(catalog: Catalog) -> None:
    moment = catalog.with_cached_locations()
    with statements() as asked:
        assert moment.has(NAME)
        assert not moment.has("silver.other")
        assert moment.metadata_location(NAME) == catalog.load(NAME).metadata_location
        first = len(asked)
        assert moment.load(NAME).metadata is moment.load(NAME).metadata
    assert first == 1


@pytest.mark.parametrize("shared", ["settings", "aws_settings"], indirect=True)
def test_only_namespaces_of_tables_that_are_meant_are_asked_for(shared: Catalog) -> None:
    made = shared
    meant = (NAME, "gold.of_a_database_that_is_not_there_yet")
    assert set(made.metadata_locations()) == {NAME, "others.table"}
    assert set(made.metadata_locations(meant)) == {NAME}
    assert set(made.tables()) == {NAME, "others.table"}
    assert set(made.tables(meant)) == {NAME} | left_in(made)
    moment = made.with_cached_locations(meant)
    assert set(moment.metadata_locations()) == {NAME}
    assert not moment.has(meant[1])
    # What was not asked for is looked up.
    assert moment.has("others.table")
    assert moment.load("others.table").metadata_location


@pytest.mark.parametrize("shared", ["settings", "aws_settings"], indirect=True)
def test_within_the_databases_of_some_tables_no_other_is_listed(shared: Catalog) -> None:
    within, left = shared.within([NAME]), left_in(shared)
    assert set(within.tables()) == {NAME} | left
    assert set(within.metadata_locations()) == {NAME} | left
    assert set(within.with_cached_locations().metadata_locations()) == {NAME} | left
    # By its name it is found all the same.
    assert within.has("others.table")
    assert set(within.tables(["others.table"])) == {"others.table"} | (left and {NAME})


@pytest.mark.parametrize("shared", ["aws_settings"], indirect=True)
def test_a_database_of_others_that_may_not_be_read_stops_no_look(shared: Catalog) -> None:
    def deny(params: dict[str, str], **_: object) -> None:
        if params["DatabaseName"] == "others":
            raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "GetTables")

    glue = shared.client.glue  # type: ignore[attr-defined]
    glue.meta.events.register("provide-client-params.glue.GetTables", deny)
    assert set(shared.within([NAME]).tables()) == {NAME}
    assert set(shared.with_cached_locations([NAME]).metadata_locations()) == {NAME}


@pytest.mark.parametrize("shared", ["aws_settings"], indirect=True)
def test_a_database_that_was_dropped_since_it_was_listed_is_passed_over(
    shared: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = [("dropped",), *shared.client.list_namespaces()]
    monkeypatch.setattr(shared.client, "list_namespaces", lambda: listed)
    assert NAME in shared.metadata_locations()
