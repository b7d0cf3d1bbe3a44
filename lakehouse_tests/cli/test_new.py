"""`lakehouse new`: what it writes, says and refuses. No JVM."""

import io
from pathlib import Path

import pytest

import lakehouse.cli.project.new as new_feed
from lakehouse_tests.scaffolding import kinds
from lakehouse_tests.scaffolding.kinds import put
from lakehouse_tests.scaffolding.packages import empty_project

pytestmark = pytest.mark.unit


@pytest.fixture
def assets(tmp_path) -> Path:
    """The folder of a package of assets that holds none."""
    return empty_project(tmp_path, "shop").assets


def test_a_feed_is_written_and_what_was_guessed_is_said(
    lakehouse, tmp_path, assets, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    path = put(tmp_path, "orders_2026-03-01.csv", kinds.ORDERS)
    ran = lakehouse("new", "feed", str(path), "--time-zone", "UTC", "--into", str(assets))

    assert (ran.code, ran.err) == (0, [])
    assert ran.out == [
        "wrote shop/assets/bronze/__init__.py",
        "wrote shop/assets/silver/__init__.py",
        "wrote shop/assets/bronze/orders_raw.py",
        "wrote shop/assets/silver/orders.py",
        "wrote tests/test_orders.py",
        "wrote tests/orders_sample.csv",
        "Guessed from 40 rows of 1 file; please confirm:",
        "  customer_id stands for a person, by whom rows are erased.",
        "  order_id is the key: no two rows have the same.",
        "  Rows are partitioned by the day of ordered_at: 8 days from 2026-03-01 to 2026-03-08 have rows.",
        "Look through the sample before you share it: text is in it as it was delivered.",
        "Next:",
        "  lakehouse plan bronze.orders_raw silver.orders",
        f"  lakehouse ingest orders --path {path}",
        "  lakehouse new table gold.orders_daily --from silver.orders",
    ]


def test_what_cannot_be_told_is_said(lakehouse, tmp_path, assets):
    path = put(tmp_path, "dues.csv", kinds.AMBIGUOUS)
    ran = lakehouse("new", "feed", str(path), "--time-zone", "UTC", "--into", str(assets))

    assert (
        "  stays text: due: dates in several forms, or of which the day or the month may come first."
        in ran.out
    )


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (["a.csv"], [], "--time-zone is not given; expected the zone"),
        (["a.csv"], ["--time-zone", "Moon"], "--time-zone is 'Moon'; expected a name"),
        (
            ["a.csv"],
            ["--time-zone", "UTC", "--name", "My Feed"],
            "The name of the feed is 'My Feed'; expected",
        ),
        (
            ["a.csv"],
            ["--time-zone", "UTC", "--name", "class"],
            "The name of the feed is 'class'; expected",
        ),
        (["a.csv", "b.csv"], ["--time-zone", "UTC"], "The name of the feed is None; expected"),
        (["2026.csv"], ["--time-zone", "UTC"], "The name of the feed is ''; expected"),
        (["a.xlsx"], ["--time-zone", "UTC"], "a.xlsx is in no format that feeds read"),
        ([], ["--time-zone", "UTC"], "Missing argument"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_written(
    lakehouse, tmp_path, assets, monkeypatch, names, options, message
):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    paths = [str(put(tmp_path, name, "id,n\n1,2\n")) for name in names]
    ran = lakehouse("new", "feed", *paths, *options, "--into", str(assets))

    assert ran.code == 2
    assert message in " ".join(ran.err)
    assert [path.name for path in assets.iterdir()] == ["__init__.py"]


def test_a_person_at_a_terminal_is_asked_for_the_time_zone(
    lakehouse, tmp_path, assets, monkeypatch
):
    monkeypatch.setattr(new_feed, "is_terminal", lambda _stream: True)
    monkeypatch.setattr("sys.stdin", io.StringIO("Asia/Tokyo\n"))
    path = put(tmp_path, "orders.csv", kinds.ORDERS)
    ran = lakehouse("new", "feed", str(path), "--into", str(assets))

    assert ran.code == 0
    text = (assets / "bronze" / "orders_raw.py").read_text(encoding="utf-8")
    assert 'time_zone="Asia/Tokyo",' in text


def test_a_feed_of_a_name_that_there_is_is_rejected(lakehouse, tmp_path):
    path = put(tmp_path, "bnpl.csv", kinds.ORDERS)
    ran = lakehouse("new", "feed", str(path), "--time-zone", "UTC")

    assert ran.code == 2
    assert "There is a feed bnpl already; nothing was written." in ran.err[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["days", "--from", "silver.fruits"], "'days' is no name for a table"),
        (["gold.class", "--from", "silver.fruits"], "'gold.class' is no name for a table"),
        (["gold.days", "--from", "silver.fruit"], "did you mean silver.fruits?"),
        (["gold.days", "--from", "silver.fruits_quarantine"], "is the quarantine of"),
        (
            ["gold.customer_profiles", "--from", "silver.fruits"],
            "already there with other content",
        ),
        (["gold.days"], "Missing option '--from'"),
    ],
)
def test_a_table_that_cannot_be_begun_is_named(lakehouse, arguments, message):
    ran = lakehouse("new", "table", *arguments)

    assert ran.code == 2
    assert message in " ".join(ran.err)
