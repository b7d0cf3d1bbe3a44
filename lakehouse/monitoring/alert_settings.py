"""Which alerts go where: by severity, owner and table, as a TOML file and the environment say.

repeat_after_hours = 24       # an error that lasts is repeated after that long
at_once = 10                  # more messages than that in five minutes come as one summary

[[route]]
to = ["slack://token/#data", "arn:aws:sns:eu-central-1:123456789012:data"]
severity = ["error"]          # each of the three may be left out, and then all match
owner = ["data-platform"]
table = ["silver.*", "gold.*"]
"""

import hashlib
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import BaseModel, Field, Strict, StringConstraints, ValidationError

from lakehouse.errors import SettingsError
from lakehouse.orchestration.alert import Alert, Severity
from lakehouse.settings import Settings

FILE = "alerts.toml"
_EXPECTED = {
    "missing": "URLs as apprise has them, or ARNs of SNS topics",
    "string_pattern_mismatch": "URLs as apprise has them, or ARNs of SNS topics",
    "literal_error": "some of error, warn",
    "list_type": "tables that begin with [[route]]",
    "model_type": "tables that begin with [[route]]",
}
"""What was expected, by pydantic's name of what is wrong."""
_LIST = 'a list of texts, such as ["…"]'

_Url = Annotated[str, StringConstraints(pattern=r"://|^arn:")]
_Names = Annotated[tuple[str, ...], Field(min_length=1)]
_Above0 = Annotated[float, Strict(), Field(gt=0)]


class Route(BaseModel, extra="forbid", frozen=True):
    """Where alerts go that match each of its parts; a part that is left out matches all."""

    to: Annotated[tuple[_Url, ...], Field(min_length=1)]
    severity: Annotated[tuple[Severity, ...], Field(min_length=1)] = ()
    owner: _Names = ()
    table: _Names = ()

    def matches(self, alert: Alert) -> bool:
        """Whether an alert goes there."""
        return (
            (not self.severity or alert.severity in self.severity)
            and (not self.owner or any(fnmatchcase(alert.owner, owner) for owner in self.owner))
            and (not self.table or any(fnmatchcase(alert.table, table) for table in self.table))
        )


class _RoutesFile(BaseModel, extra="forbid"):
    repeat_after_hours: _Above0 = 24
    at_once: _Above0 = 10
    route: list[Route] = []


@dataclass(frozen=True)
class Routes:
    """All of them, and how often an alert is repeated."""

    routes: tuple[Route, ...] = ()
    repeat_after: timedelta = timedelta(hours=24)
    at_once: int = 10

    @property
    def urls(self) -> tuple[str, ...]:
        """Every place that something goes to, each once."""
        return _distinct_urls(self.routes)

    def of(self, alert: Alert) -> tuple[str, ...]:
        """Every place that an alert goes to, each once."""
        return _distinct_urls(route for route in self.routes if route.matches(alert))


def _distinct_urls(routes: Iterable[Route]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(url for route in routes for url in route.to))


def name_of(url: str) -> str:
    """Return what a place is called where its URL, which may hold a secret, must not stand."""
    kind = "sns" if url.startswith("arn:") else url.partition("://")[0]
    return f"{kind}-{hashlib.sha256(url.encode()).hexdigest()[:8]}"


def read_routes(settings: Settings) -> Routes:
    """Read where alerts go.

    :raises SettingsError: names the file, the part and what was expected.
    """
    everywhere = (Route(to=settings.alert_urls),) if settings.alert_urls else ()
    file = settings.alert_routes or settings.home / FILE
    if not file.is_file():
        if settings.alert_routes:
            raise SettingsError(
                f"LAKEHOUSE_ALERT_ROUTES is {file}, which is not there; expected a TOML file."
            )
        return Routes(everywhere)
    try:
        content = _RoutesFile.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{file} is not TOML: {error}.", next_step="Correct it there."
        ) from error
    except ValidationError as error:
        # Its text may hold a URL with a secret in it.
        raise SettingsError(f"{file}: {_explain(error)}.") from None
    return Routes(
        (*everywhere, *content.route),
        timedelta(hours=content.repeat_after_hours),
        int(content.at_once),
    )


def _explain(error: ValidationError) -> str:
    """Say which part of the file is wrong, and what was expected there."""
    problem = error.errors(include_input=False, include_url=False)[0]
    part, *inside = problem["loc"]
    model: type[BaseModel] = _RoutesFile
    where = ""
    if len(inside) > 1:
        number, part, *_ = inside
        model, where = Route, f"route {int(number) + 1}"
    if problem["type"] == "extra_forbidden":
        return f"{where or 'it'} has {part}; expected some of {', '.join(model.model_fields)}"
    expected = _LIST if where else "a number above 0"
    expected = _EXPECTED.get(problem["type"], expected)
    return f"{f'{where}: ' if where else ''}{part} is something else; expected {expected}"
