"""Generations that several tests look at; each is made once."""

import pandas as pd
import pytest

from lakehouse.sample_data.bnpl.generator import Generated, generate
from lakehouse_tests.sample_data.bnpl.delivered import START, delivered


@pytest.fixture(scope="session", params=[1, 2, 3])
def least(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generated:
    return generate(
        tmp_path_factory.mktemp("least"), START, days=3, rows_per_day=1000, seed=request.param
    )


@pytest.fixture(scope="session")
def lines(least: Generated) -> pd.DataFrame:
    return delivered(least.files[0].parent)
