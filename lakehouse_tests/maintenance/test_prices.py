"""An invalid file of prices is named with its key."""

import pytest

from lakehouse.errors import UsageError
from lakehouse.maintenance.table_cost import PRICES, read_prices

pytestmark = pytest.mark.unit

SHIPPED = PRICES.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("price = 0.44", "price =", "is not TOML"),
        ("[dollars_per_1000_gets]", "[dollars_per_get]", "dollars_per_1000_gets"),
        ("price = 0.44", "", "dollars_per_dpu_hour.price"),
        ("price = 0.44", "price = -1.0", "dollars_per_dpu_hour.price is -1.0"),
        ("price = 0.44", "price = inf", "dollars_per_dpu_hour.price is inf"),
        ("price = 0.44", 'price = "0.44"', "dollars_per_dpu_hour.price is '0.44'"),
        ("as_of = 2026", 'as_of = "soon" #', "as_of is 'soon'"),
        ("price = 0.44", "price = 0.44\nunit = 1", "dollars_per_dpu_hour.unit"),
    ],
)
def test_an_invalid_key_is_named(tmp_path, before, after, message) -> None:
    file = tmp_path / "prices.toml"
    assert before in SHIPPED
    file.write_text(SHIPPED.replace(before, after), encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        read_prices(file)
    assert str(raised.value).startswith(str(file))
    assert message in str(raised.value)


def test_a_missing_file_is_named(tmp_path) -> None:
    with pytest.raises(UsageError, match=r"There is no file of prices .*/none\.toml; expected"):
        read_prices(tmp_path / "none.toml")


def test_a_whole_number_is_a_price(tmp_path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(SHIPPED.replace("price = 0.44", "price = 1"), encoding="utf-8")
    assert read_prices(file).dollars_per_dpu_hour.price == 1
