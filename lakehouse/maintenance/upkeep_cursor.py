"""Selects the tables for the upkeep sensor: changed tables, and those with a time-based step."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Self

from lakehouse.iceberg.metadata.measured_health import TableHealth
from lakehouse.maintenance.upkeep_plan import UpkeepPlan


@dataclass(frozen=True)
class LastCheck:
    """Metadata location at the last check of a table, and the time of the next check."""

    metadata_location: str
    check_again_at: datetime | None = None


@dataclass(frozen=True)
class UpkeepCursor:
    """The last check of each table."""

    by_table: Mapping[str, LastCheck] = field(default_factory=dict)

    def tables_to_check(self, locations: Mapping[str, str], now: datetime) -> list[str]:
        """Return the tables that changed since their last check or have a step due by time.

        :param locations: current metadata locations, which the catalog has without reading files.
        """
        worth = []
        for table, location in locations.items():
            last = self.by_table.get(table)
            is_same = last is not None and last.metadata_location == location
            is_time = last is not None and last.check_again_at and last.check_again_at <= now
            if not is_same or is_time:
                worth.append(table)
        return worth

    def after(
        self,
        plan: UpkeepPlan,
        healths: Mapping[str, TableHealth],
        unread: Mapping[str, str] = MappingProxyType({}),
    ) -> "UpkeepCursor":
        """Return the state after a plan; tables with due steps are checked again.

        :param unread: metadata locations of unreadable tables, which are checked again after a
            change and every night.
        """
        checks = dict(self.by_table)
        for table, location in unread.items():
            checks[table] = LastCheck(location)
        due = {step.table for step in plan.due}
        for table, health in healths.items():
            checks.pop(table, None)
            if table not in due:
                checks[table] = LastCheck(health.metadata_location, plan.next_check(table))
        return UpkeepCursor(checks)

    def to_json(self) -> str:
        """Return the JSON for the sensor cursor."""
        stored = {}
        for table, look in self.by_table.items():
            again = look.check_again_at
            stored[table] = [look.metadata_location, again.isoformat() if again else None]
        return json.dumps(stored)

    @classmethod
    def from_json(cls, text: str | None) -> Self:
        """Parse the output of `to_json`; empty for a sensor's first cursor."""
        checks = {}
        for table, (location, again) in json.loads(text or "{}").items():
            check_again_at = datetime.fromisoformat(again) if again else None
            checks[table] = LastCheck(location, check_again_at)
        return cls(checks)
