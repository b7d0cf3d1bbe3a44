"""The pipelines of the samples, each on a home of its own."""

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakehouse.settings import Settings
from lakehouse_tests.assets.pipeline import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Fruits(Pipeline):
    def put(
        self, name: str, *rows: str, second: int = 0, header: str = "id,fruit,berry"
    ) -> Path:
        return self.write(name, "\n".join([header, *rows]), second=second)

    def put_samples(self) -> None:
        for sample in files("lakehouse.sample_data.fruits").iterdir():
            if sample.name.endswith(".csv"):
                self.write(sample.name, sample.read_text(encoding="utf-8"))

    def silver(self) -> dict[str, tuple[int, bool]]:
        found = self.rows("SELECT fruit, id, berry FROM silver.fruits")
        return {name: (number, berry) for name, number, berry in found}


@pytest.fixture
def fruits(spark: "SparkSession", settings: Settings) -> Fruits:
    return Fruits(settings, "fruits")


@pytest.fixture
def bnpl(spark: "SparkSession", settings: Settings) -> Pipeline:
    return Pipeline(settings, "bnpl")
