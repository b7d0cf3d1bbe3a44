"""Prices of storage, requests and compute from a TOML file."""

import tomllib
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, Strict, StringConstraints, ValidationError

from lakehouse.errors import UsageError

PRICES = Path(str(files("lakehouse.maintenance") / "prices.toml"))
_EXPECTED = {
    "price": "a number of US dollars, 0 or more",
    "source": "a text that says where the price is from",
    "as_of": "a date without quotes, such as 2026-11-25",
}


class Price(BaseModel, extra="forbid", frozen=True):
    """A price in US dollars, its source, and its date."""

    price: Annotated[float, Strict(), Field(ge=0, allow_inf_nan=False)]
    source: Annotated[str, StringConstraints(min_length=1)]
    as_of: Annotated[date, Strict()]


class Prices(BaseModel, extra="forbid", frozen=True):
    """All prices; field names contain the unit. A GB is 10^9 bytes."""

    dollars_per_gb_month: Price
    dollars_per_1000_puts: Price
    dollars_per_1000_gets: Price
    dollars_per_dpu_hour: Price


def read_prices(file: Path = PRICES) -> Prices:
    """Read a price file.

    :raises UsageError: names the file, the key and the expected value.
    """
    next_step = f"{PRICES} is one to copy."
    if not file.is_file():
        raise UsageError(
            f"There is no file of prices {file}; expected TOML.", next_step=next_step
        )
    try:
        return Prices.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} is not TOML: {error}.", next_step=next_step) from error
    except ValidationError as error:
        raise UsageError(f"{file}: {_explain(error)}.", next_step=next_step) from error


def _explain(error: ValidationError) -> str:
    """Return the invalid key and the expected value."""
    problem = error.errors(include_url=False)[0]
    location = problem["loc"]
    key = ".".join(map(str, location))
    is_of_price = len(location) > 1
    if problem["type"] == "extra_forbidden":
        known = Price.model_fields if is_of_price else Prices.model_fields
        return f"it has {key}; expected some of {', '.join(known)}"
    expected = f"a table [{key}] of {', '.join(_EXPECTED)}"
    if is_of_price:
        expected = _EXPECTED[str(location[-1])]
    if problem["type"] == "missing":
        return f"{key} is missing; expected {expected}"
    return f"{key} is {problem['input']!r}; expected {expected}"
