"""A week of late files with automatic upkeep does not make reads more expensive."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import count

import dagster as dg
import pytest

from lakehouse.definitions import definitions
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.upkeep_results import JOB
from lakehouse.sample_data.bnpl.generator import generate
from lakehouse.upkeep.upkeep_sensor import SENSOR
from lakehouse_tests.assets.deliveries import PROFILES
from lakehouse_tests.assets.pipeline import Pipeline
from lakehouse_tests.iceberg.upkeep.clock import let_days_pass

FILES_A_DAY = 5
"""So many small files are worth a compaction, so that each day has its most and its fewest."""
LATE_ROWS = 30


@dataclass(frozen=True)
class Cost:
    files: int
    delete_files: int
    size_bytes: int


@dataclass
class Late:
    header: str
    lines: Sequence[str]
    ids: Iterator[int] = field(default_factory=lambda: count(10**17))

    def deliver(self, pipeline: Pipeline) -> None:
        number = next(self.ids)
        rows = [f"{next(self.ids)},{line.partition(',')[2]}" for line in self.lines]
        pipeline.write(f"late{number}.csv", "\n".join([self.header, *rows]))
        assert pipeline.ingest().success


def cost_of(pipeline: Pipeline, table: str) -> Cost:
    tasks = list(pipeline.engine.catalog.load(table).scan().plan_files())
    deletes = {file.file_path: file for task in tasks for file in task.delete_files}
    opened = [*(task.file for task in tasks), *deletes.values()]
    return Cost(len(tasks), len(deletes), sum(file.file_size_in_bytes for file in opened))


class Upkeep:
    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline, self._cursor = pipeline, ""
        self._project = definitions(lambda: pipeline.settings)
        self.runs = 0

    def look(self) -> None:
        """Look at the tables, and do what is due."""
        sensor, job = (
            self._project.resolve_sensor_def(SENSOR),
            self._project.resolve_job_def(JOB),
        )
        with open_instance(self._pipeline.settings) as instance:
            context = dg.build_sensor_context(
                instance,
                cursor=self._cursor,
                repository_def=self._project.get_repository_def(),
            )
            asked = sensor(context)
            self._cursor = context.cursor or ""
            if isinstance(asked, dg.RunRequest):
                assert job.execute_in_process(asked.run_config, instance=instance).success
                self.runs += 1


def replay(pipeline: Pipeline, late: Late, days: int) -> list[Cost]:
    upkeep, most = Upkeep(pipeline), []
    for _ in range(days):
        costs = []
        for _ in range(FILES_A_DAY):
            late.deliver(pipeline)
            costs.append(cost_of(pipeline, PROFILES))
            let_days_pass(pipeline.engine, 1 / FILES_A_DAY, PROFILES)
            upkeep.look()
        most.append(
            Cost(
                max(cost.files for cost in costs),
                max(cost.delete_files for cost in costs),
                max(cost.size_bytes for cost in costs),
            )
        )
    assert upkeep.runs >= days
    return most


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_week_of_late_files_leaves_the_profiles_as_cheap_as_they_were(
    bnpl: Pipeline, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("generated")
    generated = generate(folder, date(2026, 10, 1), days=3, rows_per_day=500, seed=1)
    assert bnpl.deliver(*generated.files).success
    header, *lines = generated.files[0].read_text(encoding="utf-8").splitlines()
    rows = bnpl.rows(f"SELECT count(1) FROM {PROFILES}")

    first, *_, last = replay(bnpl, Late(header, lines[:LATE_ROWS]), days=7)

    assert bnpl.rows(f"SELECT count(1) FROM {PROFILES}") == rows
    assert last.files <= 1.1 * first.files, (first, last)
    assert last.delete_files <= 1.1 * first.delete_files, (first, last)
    assert last.size_bytes <= 1.1 * first.size_bytes, (first, last)
