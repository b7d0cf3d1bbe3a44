"""A file of prices that cannot be used names itself, the key, and what was expected."""

import pytest

from lakehouse.errors import UsageError
from lakehouse.maintenance.prices import PRICES, read_prices

pytestmark = pytest.mark.unit

SHIPPED = PRICES.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("price = 0.44", "price =", "is not TOML"),
        (
            "[dollars_per_1000_gets]",
            "[dollars_per_get]",
            "dollars_per_1000_gets is missing; expected a table [dollars_per_1000_gets] of"
            " price, source, as_of",
        ),
        ("price = 0.44", "", "dollars_per_dpu_hour.price is missing; expected a number"),
        (
            "price = 0.44",
            "price = -1.0",
            "dollars_per_dpu_hour.price is -1.0; expected a number of US dollars, 0 or more",
        ),
        ("price = 0.44", "price = inf", "dollars_per_dpu_hour.price is inf; expected a number"),
        ("price = 0.44", 'price = "0.44"', "price is '0.44'; expected a number"),
        ("as_of = 2026", 'as_of = "soon" #', "as_of is 'soon'; expected a date without quotes"),
        (
            "price = 0.44",
            "price = 0.44\nunit = 1",
            "it has dollars_per_dpu_hour.unit; expected some of price, source, as_of",
        ),
        (
            "[dollars_per_dpu_hour]",
            "[dollars_per_hour]\n[dollars_per_dpu_hour]",
            "it has dollars_per_hour; expected some of dollars_per_gb_month,",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path, before, after, message) -> None:
    file = tmp_path / "prices.toml"
    assert before in SHIPPED
    file.write_text(SHIPPED.replace(before, after), encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        read_prices(file)
    assert str(raised.value).startswith(str(file))
    assert message in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path) -> None:
    with pytest.raises(UsageError, match=r"There is no file of prices .*/none\.toml; expected"):
        read_prices(tmp_path / "none.toml")


def test_a_whole_number_is_a_price(tmp_path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(SHIPPED.replace("price = 0.44", "price = 1"), encoding="utf-8")
    assert read_prices(file).dollars_per_dpu_hour.price == 1
