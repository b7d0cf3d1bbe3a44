"""A shop's invoice lines as its till writes them: a file for each day that it was open, with
returns, guests without an account, decimal commas, and dates that the till writes otherwise since
it was replaced.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

from lakehouse_tests.scaffolding.kinds import put

FIRST_DAY = date(2025, 11, 3)
DAYS = 40
REPLACED_ON = date(2025, 12, 1)
"""Days before it are written `11/30/2025`, and from it on `2025-12-01`."""
CLOSED = (*(date(2025, 11, day) for day in range(17, 24)), date(2025, 12, 6), date(2025, 12, 7))
HEADER = (
    "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,CustomerEmail,"
    "Country"
)


@dataclass(frozen=True)
class Line:
    """A line of an invoice."""

    number: int
    day: date
    stock_code: str
    quantity: int
    price: Decimal
    customer: int | None

    @property
    def text(self) -> str:
        """The line as it is delivered."""
        kind = "C" if self.quantity < 0 else ""
        day = self.day
        shown = f"{day.month}/{day.day}/{day.year}" if day < REPLACED_ON else day.isoformat()
        who = f"{self.customer},c{self.customer}@mail.example" if self.customer else ","
        whole, cents = divmod(int(self.price * 100), 100)
        price = f"{whole:,}".replace(",", ".") + f",{cents:02}"
        return (
            f'{kind}{self.number // 3},{self.stock_code},"LANTERN, No. {self.stock_code}",'
            f'{self.quantity},{shown} {8 + self.number % 9}:{10 + self.number % 50},"{price}",{who},'
            "United Kingdom"
        )


def open_days() -> list[date]:
    """Days with a file: the shop was closed for a week, and for a weekend."""
    days = (FIRST_DAY + timedelta(days=number) for number in range(DAYS))
    return [day for day in days if day not in CLOSED]


def lines_of(day: date) -> list[Line]:
    """The lines of a day; the same ones each time."""
    chance = random.Random(day.toordinal())
    return [_line(day, number, chance) for number in range(chance.randint(4, 20))]


def deliver(folder: Path) -> list[Path]:
    """Write the files."""
    return [
        put(folder, f"invoices_{day.isoformat()}.csv", "\n".join([HEADER, *_texts(day)]) + "\n")
        for day in open_days()
    ]


def _texts(day: date) -> Iterator[str]:
    return (line.text for line in lines_of(day))


def _line(day: date, number: int, chance: random.Random) -> Line:
    quantity = chance.randint(1, 24)
    return Line(
        number=3 * day.toordinal() + number,
        day=day,
        stock_code=chance.choice(["85123A", "71053", "22752", "POST"]),
        quantity=-quantity if chance.random() < 0.1 else quantity,
        price=Decimal(chance.choice([85, 255, 339, 1850, 123450])) / 100,
        customer=chance.randint(12346, 12400) if chance.random() < 0.8 else None,
    )
