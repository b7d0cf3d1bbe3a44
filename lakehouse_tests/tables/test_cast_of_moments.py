"""Which texts are read as a moment or a day: one grammar makes those that are and those that are
not.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import product

import pytest

from lakehouse.tables.casts import Cast
from lakehouse.tables.quoting import literal

pytestmark = pytest.mark.spark
ZONE, ZONE_HOURS = "Asia/Kuala_Lumpur", 8
DAYS = {"2026-03-28": (2026, 3, 28), "2026-3-8": (2026, 3, 8)}
TIMES = {
    "20:15": (20, 15),
    "5:00": (5, 0),
    "20:15:07": (20, 15, 7),
    "05:00:07.5": (5, 0, 7, 500_000),
    "20:15:07.123456789": (20, 15, 7, 123_456),
}
OFFSETS: dict[str, float | None] = {
    "": None,
    "Z": 0,
    "z": 0,
    "UTC": 0,
    "GMT": 0,
    "+08": 8,
    "-0530": -5.5,
    "+05:30": 5.5,
    "UTC+08:00": 8,
}
NO_TIMES = ["20", "20:1", "20:15:", "20:15:7", "20:15:07."]
NO_OFFSETS = ["utc", "+8", "+08:0", "+8:00", "+08:00:00", "NZ", "CET", " Europe/Rome", "[UTC]"]
GAPS = ["", " ", "\t "]


def readable() -> Iterator[tuple[str, datetime, float | None]]:
    """Yield each text, the time on the wall that it has, and its offset in hours."""
    for day, between, time, gap, offset in product(DAYS, "T ", TIMES, GAPS, OFFSETS):
        at = datetime(*DAYS[day], *TIMES[time])  # type: ignore[arg-type]
        yield f"{day}{between}{time}{gap}{offset}", at, OFFSETS[offset]
    yield from ((day, datetime(*DAYS[day]), None) for day in DAYS)


def unreadable() -> Iterator[str]:
    for day, between, gap in product(DAYS, "T ", GAPS):
        for time, offset in product(NO_TIMES, OFFSETS):
            yield f"{day}{between}{time}{gap}{offset}"
        for time, offset in product(TIMES, NO_OFFSETS):
            yield f"{day}{between}{time}{gap}{offset}"
        yield from (f"{day}{between}{gap}x", f"{day}t20:15Z", f"{day}  20:15Z")
    yield from ("2026-03-1T", "2026-03-1x", "2026-02-30", "2026-02-30T20:15Z", "20:15Z")
    yield from ("2026", "2026-03", "soon", "2026-03-01 00:30:00 Asia/Tokyo")
    yield from ("12026-03-01 08:00:00", "+12026-03-01 08:00:00", "0000-03-01 08:00:00")


def cast(spark, texts: list[str], to: str) -> dict[str, str | None]:
    values = ", ".join(f"({literal(text)})" for text in texts)
    value = f"CAST({Cast(to, ZONE).sql('v')} AS string)"
    rows = spark.sql(f"SELECT v, {value} FROM VALUES {values} AS t(v)").collect()
    return {row[0]: row[1] for row in rows}


@pytest.mark.parametrize("to", ["timestamp", "date", "timestamp_ntz"])
def test_the_cast_reads_what_the_grammar_makes_and_nothing_else(spark, to) -> None:
    moments = {text: (at, offset) for text, at, offset in readable()}
    others = [text for text in dict.fromkeys(unreadable()) if text not in moments]
    read = cast(spark, [*moments, *others], to)

    def expected(at: datetime, offset: float | None) -> str | None:
        if to == "timestamp_ntz":
            return None if offset is not None else str(at)
        utc = at - timedelta(hours=ZONE_HOURS if offset is None else offset)
        if to == "date":
            return str((utc + timedelta(hours=ZONE_HOURS)).date())
        return str(utc)

    def shown(text: str | None) -> str | None:
        return text.rstrip("0").rstrip(".") if text and "." in text else text

    wrong = {
        text: (read[text], expected(*told))
        for text, told in moments.items()
        if shown(read[text]) != shown(expected(*told))
    }
    assert wrong == {}
    assert {text: read[text] for text in others if read[text] is not None} == {}
