"""Where alerts go: what a file of routes may say, and what is answered where it says something
else.
"""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from lakehouse.errors import SettingsError
from lakehouse.monitoring.alert_settings import name_of, read_routes
from lakehouse.settings import Settings

FILE = """
repeat_after_hours = 4
at_once = 3

[[route]]
to = ["slack://T0ken/#data"]
severity = ["error"]

[[route]]
to = ["arn:aws:sns:eu-central-1:123456789012:data", "slack://T0ken/#data"]
owner = ["data-platform"]
table = ["silver.*"]
"""


def written(settings: Settings, text: str) -> Settings:
    settings.home.mkdir(parents=True, exist_ok=True)
    (settings.home / "alerts.toml").write_text(text)
    return settings


def test_nothing_has_to_be_said(settings: Settings) -> None:
    found = read_routes(settings)
    assert found.urls == ()
    assert found.repeat_after == timedelta(hours=24)


def test_what_the_environment_names_gets_everything(settings: Settings) -> None:
    (route,) = read_routes(replace(settings, alert_urls=("json://here/",))).routes
    assert (route.to, route.severity, route.owner, route.table) == (
        ("json://here/",),
        (),
        (),
        (),
    )


def test_a_file_says_what_goes_where(settings: Settings) -> None:
    found = read_routes(written(settings, FILE))
    assert found.urls == ("slack://T0ken/#data", "arn:aws:sns:eu-central-1:123456789012:data")
    assert (found.repeat_after, found.at_once) == (timedelta(hours=4), 3)
    assert [(route.severity, route.owner, route.table) for route in found.routes] == [
        (("error",), (), ()),
        ((), ("data-platform",), ("silver.*",)),
    ]


def test_a_file_may_stand_elsewhere(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "routes.toml").write_text(FILE)
    assert (
        len(read_routes(replace(settings, alert_routes=tmp_path / "routes.toml")).routes) == 2
    )


def test_a_place_is_called_something_without_its_secret() -> None:
    assert "T0ken" not in name_of("slack://T0ken/#data")
    assert name_of("slack://T0ken/#data") != name_of("slack://other/#data")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("route = 3", "route is something else; expected tables that begin with [[route]]"),
        (
            "repeat_after_hours = 0",
            "repeat_after_hours is something else; expected a number above 0",
        ),
        ("colour = 3", "it has colour; expected some of repeat_after_hours, at_once, route"),
        ("[[route]]\nseverity = ['error']", "route 1: to is something else; expected URLs"),
        ("[[route]]\nto = ['T0ken']", "route 1: to is something else; expected URLs"),
        (
            "[[route]]\nto = 'json://here'",
            "route 1: to is something else; expected a list of texts",
        ),
        (
            "[[route]]\nto = ['json://a']\nseverity = ['bad']",
            "route 1: severity is something else; expected some of",
        ),
        (
            "[[route]]\nto = ['json://a']\nowners = ['a']",
            "route 1 has owners; expected some of to, severity,",
        ),
        ("[[route]", "is not TOML"),
    ],
)
def test_what_is_wrong_is_named_with_what_was_expected(
    settings: Settings, text: str, said: str
) -> None:
    with pytest.raises(SettingsError) as raised:
        read_routes(written(settings, text))
    assert str(settings.home / "alerts.toml") in str(raised.value)
    assert said in str(raised.value)
    assert "T0ken" not in str(raised.value)


def test_a_file_that_was_named_has_to_be_there(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(
        SettingsError, match=r"LAKEHOUSE_ALERT_ROUTES is .*gone.toml, which is not there"
    ):
        read_routes(replace(settings, alert_routes=tmp_path / "gone.toml"))
