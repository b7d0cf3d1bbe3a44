"""The content of the site from metadata, Dagster and monitoring; no JVM."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.site.pages import make_pages, page_of
from lakehouse.site.read_site import read_site
from lakehouse_tests.site.conftest import ORDERS, RAW, read, table_of


def test_a_table_has_its_rows_size_and_last_write(facts):
    orders = table_of(facts, ORDERS.name)

    assert (orders.rows, orders.total("data-files"), len(orders.history.snapshots)) == (2, 2, 2)
    assert orders.total("files-size") > 0
    assert facts.now - orders.history.written_at < timedelta(hours=1)


def test_checks_have_their_last_results(facts):
    checks = {check.name: check for check in table_of(facts, ORDERS.name).checks}

    failed, passed = checks["accepted_state"], checks["not_null_order_id"]
    assert (failed.outcome, failed.failed_rows, failed.total_rows) == ("failed", 2, 8)
    assert failed.on_failure == "quarantine"
    assert (passed.outcome, passed.failed_rows) == ("passed", 0)
    assert table_of(facts, ORDERS.name).state == "failed"


def test_quarantined_rows_are_counted_by_rule(facts):
    quarantined = table_of(facts, ORDERS.name).quarantined

    assert quarantined.rows == 1
    assert [(rule.name, rule.rows) for rule in quarantined.by_rule] == [("accepted_state", 1)]
    assert table_of(facts, "silver.orders_quarantine").quarantine_of == ORDERS.name


@pytest.mark.long
def test_a_table_becomes_late(lake, source, now):
    fresh = table_of(read(lake, source, now), ORDERS.name).condition.freshness
    late = table_of(
        read(lake, source, now + timedelta(days=2)), ORDERS.name
    ).condition.freshness

    assert [limit.is_late for limit in fresh] == [False]
    assert [limit.is_late for limit in late] == [True]
    assert late[0].due_at == fresh[0].due_at


def test_a_feed_limits_the_age_of_its_table(facts):
    (limit,) = table_of(facts, RAW.name).condition.freshness

    assert limit.allowed == timedelta(days=2)
    assert (limit.fresh_at, limit.is_late) == (None, False)


def test_open_incidents_name_no_file(facts):
    (rejected,) = table_of(facts, RAW.name).condition.incidents

    assert rejected.firing.title == "A delivered file was rejected"
    assert [incident.firing.title for incident in facts.incidents] == ["monitoring failed"]


def test_a_table_with_an_open_error_is_not_ok(facts):
    assert table_of(facts, RAW.name).state == "error"


@pytest.mark.long
def test_a_feed_with_a_rejected_file_is_marked(lake, source, now):
    reason = {"file": "a.csv", "reason": "no header", "found": "x", "expected": "id"}
    reason |= {"next_step": "", "rejected_at": now.isoformat()}
    folder = lake.home / "rejected" / "orders"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("x")
    (folder / "a.csv.reason.json").write_text(json.dumps(reason))
    facts = read(lake, source, now)

    assert facts.feed_warnings == {"orders": ("1 rejected file",)}
    assert '<span class="badge bad">1 rejected file</span>' in make_pages(facts)["index.html"]


def test_incidents_are_links_and_the_worst_table_is_first(facts):
    orders = table_of(facts, ORDERS.name)
    (incident,) = orders.condition.incidents
    link = "Run: http://127.0.0.1:3000/runs/1?a=1&b=2"
    linked = replace(incident, firing=replace(incident.firing, links=(link,)))
    failed = replace(orders, condition=replace(orders.condition, incidents=(linked,)))
    ok = replace(table_of(facts, "silver.orders_quarantine"), name="silver.a")
    pages = make_pages(replace(facts, tables={ok.name: ok, ORDERS.name: failed}))

    page, index = pages[page_of(ORDERS.name)], pages["index.html"]
    assert '<a href="http://127.0.0.1:3000/runs/1?a=1&amp;b=2">' in page
    assert f'<a href="{page_of(ORDERS.name)}#incidents">' in index
    places = [
        index.index(f'<th scope="row" class="text"><a class="name-of" href="{page_of(name)}"')
        for name in (ORDERS.name, "silver.a")
    ]
    assert places == sorted(places)


def test_an_empty_home_has_the_declared_tables(settings, source, now):
    facts = read_site(source, settings, Catalog.of(settings), None, now)

    assert {table.state for table in facts.tables.values()} == {"not there"}
    assert not settings.dagster_home.exists()


@pytest.mark.long
def test_a_damaged_table_does_not_hide_the_others(lake, source, now):
    (metadata, *_) = (lake.home / "warehouse" / "bronze").rglob("*.metadata.json")
    metadata.unlink()
    facts = read(lake, source, now)

    assert table_of(facts, RAW.name).state == "damaged"
    assert table_of(facts, ORDERS.name).rows == 2


@pytest.mark.long
def test_an_undeclared_table_has_a_page(lake, source, now):
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField

    client = Catalog.of(lake).client
    client.create_namespace("other")
    schema = Schema(NestedField(1, "id", LongType(), required=True, doc="Which."))
    client.create_table("other.made", schema)
    made = table_of(read(lake, source, now), "other.made")

    assert (made.declared, made.state) == (None, "ok")
    assert [(column.name, column.doc) for column in made.columns] == [("id", "Which.")]
