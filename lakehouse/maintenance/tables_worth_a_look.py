"""Which tables are worth a look: those that changed since the last one, and those where time
alone may have made a step due; pure, and kept as text between two looks.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Self

from lakehouse.iceberg.metadata.measured_health import TableHealth
from lakehouse.maintenance.upkeep_plan import UpkeepPlan


@dataclass(frozen=True)
class LastLook:
    """Where a table's metadata was at the last look, and when to look again though it is still
    there.
    """

    metadata_location: str
    look_again_at: datetime | None = None


@dataclass(frozen=True)
class LastLooks:
    """The last look at each table."""

    by_table: Mapping[str, LastLook] = field(default_factory=dict)

    def worth_a_look(self, locations: Mapping[str, str], now: datetime) -> list[str]:
        """Return the tables whose health may call for something that it did not at the last
        look.

        :param locations: where the metadata of each table is now; the catalog knows that
            without reading any.
        """
        worth = []
        for table, location in locations.items():
            last = self.by_table.get(table)
            is_same = last is not None and last.metadata_location == location
            is_time = last is not None and last.look_again_at and last.look_again_at <= now
            if not is_same or is_time:
                worth.append(table)
        return worth

    def after(
        self,
        plan: UpkeepPlan,
        healths: Mapping[str, TableHealth],
        unread: Mapping[str, str] = MappingProxyType({}),
    ) -> "LastLooks":
        """Return the looks after a plan by which nothing was due of these tables; one where
        something is due is looked at again.

        :param unread: where the metadata is of tables that could not be read; they are looked at
            again once it is elsewhere, and every night.
        """
        looks = dict(self.by_table)
        for table, location in unread.items():
            looks[table] = LastLook(location)
        due = {step.table for step in plan.due}
        for table, health in healths.items():
            looks.pop(table, None)
            if table not in due:
                looks[table] = LastLook(health.metadata_location, plan.next_look(table))
        return LastLooks(looks)

    def to_json(self) -> str:
        """Return them as JSON, such as a sensor's cursor."""
        stored = {}
        for table, look in self.by_table.items():
            again = look.look_again_at
            stored[table] = [look.metadata_location, again.isoformat() if again else None]
        return json.dumps(stored)

    @classmethod
    def from_json(cls, text: str | None) -> Self:
        """Read what `to_json` gave; none of nothing, such as a sensor's first cursor."""
        looks = {}
        for table, (location, again) in json.loads(text or "{}").items():
            moment = datetime.fromisoformat(again) if again else None
            looks[table] = LastLook(location, moment)
        return cls(looks)
