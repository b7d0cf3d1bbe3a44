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


def create(catalog: Catalog) -> None:
    catalog.client.create_table(NAME, Schema(NestedField(1, "id", LongType())))


def colour(catalog: Catalog, value: str) -> None:
    """Commit to the table."""
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


@pytest.mark.parametrize("kind", ["settings", "aws_settings"])
def test_where_all_tables_are_is_told_at_once(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    made = Catalog.of(request.getfixturevalue(kind))
    made.client.create_namespace("silver")
    create(made)
    before = made.metadata_locations()
    assert before == {NAME: made.load(NAME).metadata_location}
    colour(made, "red")
    assert made.metadata_locations()[NAME] not in before.values()


def test_at_one_moment_the_catalog_is_asked_once(catalog: Catalog) -> None:
    moment = catalog.with_cached_locations()
    with statements() as asked:
        assert moment.has(NAME)
        assert not moment.has("silver.other")
        assert moment.metadata_location(NAME) == catalog.load(NAME).metadata_location
        first = len(asked)
        assert moment.load(NAME).metadata is moment.load(NAME).metadata
    assert first == 1


@pytest.mark.parametrize("kind", ["settings", "aws_settings"])
def test_only_namespaces_of_tables_that_are_meant_are_asked_for(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = on_catalog(kind, request, monkeypatch)
    meant = (NAME, "gold.of_a_database_that_is_not_there_yet")
    assert set(made.metadata_locations()) == {NAME, "others.table"}
    assert set(made.metadata_locations(meant)) == {NAME}
    assert set(made.tables()) == {NAME, "others.table"}
    # The file in a home has no tables of others.
    left = {"others.table"} if kind == "settings" else set()
    assert set(made.tables(meant)) == {NAME} | left
    moment = made.with_cached_locations(meant)
    assert set(moment.metadata_locations()) == {NAME}
    assert not moment.has(meant[1])
    # What was not asked for is looked up.
    assert moment.has("others.table")
    assert moment.load("others.table").metadata_location


@pytest.mark.parametrize("kind", ["settings", "aws_settings"])
def test_within_the_databases_of_some_tables_no_other_is_listed(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = on_catalog(kind, request, monkeypatch)
    within = made.within([NAME])
    left = {"others.table"} if kind == "settings" else set()
    assert set(within.tables()) == {NAME} | left
    assert set(within.metadata_locations()) == {NAME} | left
    assert set(within.with_cached_locations().metadata_locations()) == {NAME} | left
    # By its name it is found all the same.
    assert within.has("others.table")
    assert set(within.tables(["others.table"])) == {"others.table"} | (left and {NAME})


def test_a_database_of_others_that_may_not_be_read_stops_no_look(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = on_catalog("aws_settings", request, monkeypatch)
    deny_tables_of(made, "others")
    assert set(made.within([NAME]).tables()) == {NAME}
    assert set(made.with_cached_locations([NAME]).metadata_locations()) == {NAME}


def test_a_database_that_was_dropped_since_it_was_listed_is_passed_over(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = on_catalog("aws_settings", request, monkeypatch)
    listed = [("dropped",), *made.client.list_namespaces()]
    monkeypatch.setattr(made.client, "list_namespaces", lambda: listed)
    assert NAME in made.metadata_locations()


def on_catalog(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Catalog:
    """Return a catalog that has a table of ours and one of others."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    made = Catalog.of(request.getfixturevalue(kind))
    for namespace in ("silver", "others"):
        made.client.create_namespace(namespace)
    create(made)
    made.client.create_table("others.table", Schema(NestedField(1, "id", LongType())))
    return made


def deny_tables_of(catalog: Catalog, database: str) -> None:
    """Let the tables of a database be listed for nobody."""
    glue = catalog.client.glue  # type: ignore[attr-defined]

    def deny(params: dict[str, str], **_: object) -> None:
        if params["DatabaseName"] == database:
            raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "GetTables")

    glue.meta.events.register("provide-client-params.glue.GetTables", deny)
