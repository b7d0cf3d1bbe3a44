"""Routes of alerts by severity, owner and table, from a TOML file and the environment.

repeat_after_hours = 24       # an open error is repeated after this period
at_once = 10                  # more waiting messages are sent as one summary

[[route]]
to = ["slack://token/#data", "arn:aws:sns:eu-central-1:123456789012:data"]
severity = ["error"]          # severity, owner and table are optional
owner = ["data-platform"]
table = ["silver.*", "gold.*"]
"""

import hashlib
import tomllib
from collections.abc import Iterable
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import BaseModel, Field, Strict, StringConstraints, ValidationError

from lakehouse.alerts.incidents import Alert
from lakehouse.errors import SettingsError
from lakehouse.orchestration.incident_reports import Severity
from lakehouse.settings import Settings

FILE = "alerts.toml"
_EXPECTED = (
    "repeat_after_hours and at_once above 0, and [[route]] tables with lists of texts: to (URLs"
    " of apprise or ARNs of SNS topics), severity (error, warn), owner and table."
)

_Url = Annotated[str, StringConstraints(pattern=r"://|^arn:")]
_Names = Annotated[tuple[str, ...], Field(min_length=1)]
_Above0 = Annotated[float, Strict(), Field(gt=0)]


class Route(BaseModel, extra="forbid", frozen=True):
    """Recipients of the alerts that match all of its conditions."""

    to: Annotated[tuple[_Url, ...], Field(min_length=1)]
    severity: Annotated[tuple[Severity, ...], Field(min_length=1)] = ()
    owner: _Names = ()
    table: _Names = ()

    def matches(self, alert: Alert) -> bool:
        """Whether an alert matches."""
        return (
            (not self.severity or alert.severity in self.severity)
            and (not self.owner or any(fnmatchcase(alert.owner, owner) for owner in self.owner))
            and (not self.table or any(fnmatchcase(alert.table, table) for table in self.table))
        )


class Routes(BaseModel, extra="forbid", frozen=True):
    """All routes, and when alerts are repeated or summarized."""

    repeat_after_hours: _Above0 = 24
    at_once: Annotated[int, Strict(), Field(gt=0)] = 10
    route: tuple[Route, ...] = ()

    @property
    def repeat_after(self) -> timedelta:
        """After which period an open error is repeated."""
        return timedelta(hours=self.repeat_after_hours)

    @property
    def urls(self) -> tuple[str, ...]:
        """All distinct recipients."""
        return _distinct_urls(self.route)

    def of(self, alert: Alert) -> tuple[str, ...]:
        """Return the distinct recipients of an alert."""
        return _distinct_urls(route for route in self.route if route.matches(alert))


def _distinct_urls(routes: Iterable[Route]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(url for route in routes for url in route.to))


def name_of(url: str) -> str:
    """Return the name of a recipient without its URL, which can contain a secret."""
    kind = "sns" if url.startswith("arn:") else url.partition("://")[0]
    return f"{kind}-{hashlib.sha256(url.encode()).hexdigest()[:8]}"


def read_routes(settings: Settings) -> Routes:
    """Read which alerts go to which recipients.

    :raises SettingsError: names the file and the invalid part.
    """
    everywhere = (Route(to=settings.alert_urls),) if settings.alert_urls else ()
    file = settings.alert_routes or settings.home / FILE
    if not file.is_file():
        if settings.alert_routes:
            raise SettingsError(
                f"LAKEHOUSE_ALERT_ROUTES: the file {file} does not exist; expected a TOML file."
            )
        return Routes(route=everywhere)
    try:
        routes = Routes.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{file} is not TOML: {error}.", next_step="Correct the file."
        ) from error
    except ValidationError as error:
        # The value can be a URL with a secret.
        problem = error.errors(include_input=False, include_url=False)[0]
        part = ".".join(map(str, problem["loc"]))
        raise SettingsError(
            f"{file}: {part}: {problem['msg']}.", next_step=f"Expected: {_EXPECTED}"
        ) from None
    return routes.model_copy(update={"route": (*everywhere, *routes.route)})
