"""What a deployment's engine is made of, before any Spark is started."""

import pytest

from lakehouse.errors import LakehouseError
from lakehouse.orchestration.deployment import masking_key


def test_a_home_makes_one_masking_key_and_keeps_it_to_itself(settings):
    first = masking_key(settings)

    assert masking_key(settings) == first
    assert len(first) == 64
    assert (settings.home / "masking.key").stat().st_mode & 0o777 == 0o600
    files = sorted(file.name for file in settings.home.iterdir())
    assert files == [".masking.key.made", "masking.key"]


def test_a_lost_masking_key_is_not_replaced(settings):
    masking_key(settings)
    (settings.home / "masking.key").unlink()

    with pytest.raises(LakehouseError, match=r"masking\.key is lost"):
        masking_key(settings)

    assert not (settings.home / "masking.key").exists()
