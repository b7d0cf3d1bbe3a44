"""Which alerts go where: by severity, owner and table, as a TOML file and the environment say.

repeat_after_hours = 24       # a thing that stays broken is told again after that long
at_once = 10                  # more messages than that in five minutes come as one summary

[[route]]
to = ["slack://token/#data", "arn:aws:sns:eu-central-1:123456789012:data"]
severity = ["error"]          # each of the three may be left out, and then all match
owner = ["data-platform"]
table = ["silver.*", "gold.*"]
"""

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from lakehouse.errors import SettingsError
from lakehouse.orchestration.alert_message import Alert
from lakehouse.settings import Settings

FILE = "alerts.toml"
_SEVERITIES = ("error", "warn")
_TOP = ("repeat_after_hours", "at_once", "route")
_PARTS = ("to", "severity", "owner", "table")


@dataclass(frozen=True)
class Route:
    """Where alerts go that match each of its parts; an empty part matches all."""

    to: tuple[str, ...]
    severity: tuple[str, ...] = ()
    owner: tuple[str, ...] = ()
    table: tuple[str, ...] = ()

    def takes(self, alert: Alert) -> bool:
        """Whether an alert goes there."""
        return (
            (not self.severity or alert.severity in self.severity)
            and (not self.owner or any(fnmatchcase(alert.owner, owner) for owner in self.owner))
            and (not self.table or any(fnmatchcase(alert.table, table) for table in self.table))
        )


@dataclass(frozen=True)
class Routes:
    """All of them, and how often something is told."""

    routes: tuple[Route, ...] = ()
    repeat_after: timedelta = timedelta(hours=24)
    at_once: int = 10

    @property
    def urls(self) -> tuple[str, ...]:
        """Every place that something goes to, each once."""
        return tuple(dict.fromkeys(url for route in self.routes for url in route.to))

    def of(self, alert: Alert) -> tuple[str, ...]:
        """Return the places that an alert goes to, each once."""
        return tuple(
            dict.fromkeys(
                url for route in self.routes if route.takes(alert) for url in route.to
            )
        )


def name_of(url: str) -> str:
    """Return what a place is called where its URL, which may hold a secret, must not stand."""
    kind = "sns" if url.startswith("arn:") else url.partition("://")[0]
    return f"{kind}-{hashlib.sha256(url.encode()).hexdigest()[:8]}"


def read_routes(settings: Settings) -> Routes:
    """Read where alerts go.

    :raises SettingsError: names the file, the part and what was expected.
    """
    everywhere = (Route(settings.alert_urls),) if settings.alert_urls else ()
    file = settings.alert_routes or settings.home / FILE
    if not file.is_file():
        if settings.alert_routes:
            raise SettingsError(
                f"LAKEHOUSE_ALERT_ROUTES is {file}, which is not there; expected a TOML file."
            )
        return Routes(everywhere)
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{file} is not TOML: {error}.", next_step="Correct it there."
        ) from error
    return _parse(file, found, everywhere)


def _parse(file: Path, found: Mapping[str, Any], everywhere: tuple[Route, ...]) -> Routes:
    _check_names(file, "it", found, _TOP)
    given = found.get("route", [])
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise _wrong(file, "route", "tables that begin with [[route]]")
    return Routes(
        (
            *everywhere,
            *(_route(file, number, one) for number, one in enumerate(given, start=1)),
        ),
        timedelta(hours=_number(file, found, "repeat_after_hours", 24)),
        int(_number(file, found, "at_once", 10)),
    )


def _route(file: Path, number: int, given: Mapping[str, Any]) -> Route:
    where = f"route {number}"
    _check_names(file, where, given, _PARTS)
    for name, value in given.items():
        if (
            not isinstance(value, list)
            or not value
            or not all(isinstance(one, str) for one in value)
        ):
            raise _wrong(file, f"{where}: {name}", 'a list of texts, such as ["…"]')
    if not all("://" in url or url.startswith("arn:") for url in given.get("to", ["nowhere"])):
        raise _wrong(file, f"{where}: to", "URLs as apprise has them, or ARNs of SNS topics")
    if not set(given.get("severity", ())) <= set(_SEVERITIES):
        raise _wrong(file, f"{where}: severity", f"some of {', '.join(_SEVERITIES)}")
    return Route(**{name: tuple(value) for name, value in given.items()})


def _number(file: Path, found: Mapping[str, Any], name: str, default: int) -> float:
    value = found.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise _wrong(file, name, "a number above 0")
    return float(value)


def _check_names(
    file: Path, where: str, given: Mapping[str, Any], known: Sequence[str]
) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise SettingsError(
            f"{file}: {where} has {', '.join(unknown)}; expected some of {', '.join(known)}."
        )


def _wrong(file: Path, part: str, expected: str) -> SettingsError:
    # What was found may be a URL with a secret in it.
    return SettingsError(f"{file}: {part} is something else; expected {expected}.")
