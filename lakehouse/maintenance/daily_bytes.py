"""The daily byte budget of upkeep, and size formatting."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


@dataclass
class DailyBytes:
    """Daily budget of bytes to read and write, shared by all tables.

    A step that exceeds the entire budget runs if nothing else ran that day.
    """

    bytes_a_day: int
    spent_bytes: int = 0

    @property
    def left_bytes(self) -> int:
        """Remaining bytes of the day."""
        return max(0, self.bytes_a_day - self.spent_bytes)

    def take(self, cost_bytes: int) -> bool:
        """Deduct bytes; return False if the budget is exceeded."""
        is_a_day_of_its_own = cost_bytes > self.bytes_a_day and not self.spent_bytes
        if cost_bytes > self.left_bytes and not is_a_day_of_its_own:
            return False
        self.spent_bytes += cost_bytes
        return True


def next_day(now: datetime) -> datetime:
    """Return the start of the next UTC day."""
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + timedelta(days=1)


def size_text(size_bytes: int) -> str:
    """Return a size with a unit: `3 kB`, `1.5 MB`, `100 GB`."""
    size = float(size_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
