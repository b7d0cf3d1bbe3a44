"""Routes of alerts from the environment and from a TOML file."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from lakehouse.alerts.alert_routes import name_of, read_routes
from lakehouse.errors import SettingsError
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


def test_there_are_no_routes_by_default(settings: Settings) -> None:
    routes = read_routes(settings)
    assert (routes.urls, routes.repeat_after) == ((), timedelta(hours=24))


def test_recipients_of_the_environment_get_everything(settings: Settings) -> None:
    (route,) = read_routes(replace(settings, alert_urls=("json://here/",))).route
    assert route.model_dump() == {
        "to": ("json://here/",),
        "severity": (),
        "owner": (),
        "table": (),
    }


def test_a_file_has_routes_and_limits(settings: Settings) -> None:
    routes = read_routes(written(settings, FILE))
    assert routes.urls == ("slack://T0ken/#data", "arn:aws:sns:eu-central-1:123456789012:data")
    assert (routes.repeat_after, routes.at_once) == (timedelta(hours=4), 3)
    assert routes.route[0].severity == ("error",)
    assert (routes.route[1].owner, routes.route[1].table) == (("data-platform",), ("silver.*",))


def test_the_file_can_be_elsewhere(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "routes.toml"
    file.write_text(FILE)
    assert len(read_routes(replace(settings, alert_routes=file)).route) == 2


def test_the_name_of_a_recipient_contains_no_secret() -> None:
    assert "T0ken" not in name_of("slack://T0ken/#data")
    assert name_of("slack://T0ken/#data") != name_of("slack://other/#data")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("route = 3", "route"),
        ("repeat_after_hours = 0", "repeat_after_hours"),
        ("at_once = 1.5", "at_once"),
        ("colour = 3", "colour"),
        ("[[route]]\nseverity = ['error']", "route.0.to"),
        ("[[route]]\nto = ['T0ken']", "route.0.to.0"),
        ("[[route]]\nto = 'json://here'", "route.0.to"),
        ("[[route]]\nto = ['json://a']\nseverity = ['bad']", "route.0.severity.0"),
        ("[[route]]\nto = ['json://a']\nowners = ['a']", "route.0.owners"),
        ("[[route]", "is not TOML"),
    ],
)
def test_an_invalid_part_is_named_without_its_value(
    settings: Settings, text: str, part: str
) -> None:
    with pytest.raises(SettingsError) as raised:
        read_routes(written(settings, text))
    assert str(settings.home / "alerts.toml") in str(raised.value)
    assert part in str(raised.value)
    assert "T0ken" not in str(raised.value)


def test_a_named_file_must_exist(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"LAKEHOUSE_ALERT_ROUTES.*gone.toml"):
        read_routes(replace(settings, alert_routes=tmp_path / "gone.toml"))
