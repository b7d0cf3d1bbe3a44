"""Cost of erasing data subjects, against a plain script that rewrites the Parquet files.

Run as `python -m benchmarks.bench_erasure [--rounds N] [--millions N] [--people N]
[--others-millions N]`. Measures: one person erased from the largest table; one person and many
erased from the entire lakehouse by one request (logically, physically, verified), with the time of
each step and the written bytes; and, on fewer rows, PyIceberg's delete and the usual four Spark
calls, with the files in which the verifier still finds the person.
"""

import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.bench_bnpl import DAYS, FIRST, Homes, through_dagster
from benchmarks.harness import (
    Figure,
    Measured,
    Way,
    compare,
    conditions,
    measured_against,
    options,
    plain_table,
    report,
    show,
)
from benchmarks.kept_home import KeptHome
from benchmarks.parquet_rewrite import ID, rewrite_parquet
from benchmarks.targets import NO_TARGET, Target, targets_of
from lakehouse.assets.silver.bnpl_transactions_clean import TABLE as CLEAN
from lakehouse.definitions import PROJECT
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.delete_rows import delete_rows
from lakehouse.iceberg.metadata.snapshots import MAIN
from lakehouse.orchestration.deployment import open_engine
from lakehouse.privacy.erasable import Erasable, people_in
from lakehouse.privacy.erasure import Erasure, How
from lakehouse.privacy.erasure_search import search_persons
from lakehouse.privacy.erasure_steps import (
    erase_files,
    erase_rows,
    remove_physically,
    verify_all,
)
from lakehouse.privacy.identity import Named, find_people
from lakehouse.privacy.run_erasure import STEPS, erase
from lakehouse.sample_data.bnpl.generator import generate
from lakehouse.settings import Settings
from lakehouse.tables.person import Person
from lakehouse.tables.quoting import identifier, literal
from lakehouse.tables.table import IcebergTable

MILLIONS, ALTERNATIVES_MILLIONS, PEOPLE = 5.0, 0.5, 1000
SCRIPT = "a plain script, all tables"
NO_ROWS = "no table has them"
LOGICALLY, PHYSICALLY, PROVEN = "logically gone", "physically gone", "proven"
PYICEBERG, FOUR_CALLS, ERASURE = "PyIceberg's delete", "the usual four calls", "our erasure"
TARGETS = targets_of("erasure")
OF_ONE = {NO_ROWS: TARGETS["all tables"], LOGICALLY: TARGETS["logical erasure"]}
"""Targets for one person."""
PROCEDURES = ("rewrite_data_files", "expire_snapshots", "remove_orphan_files")
AGAIN, ALL = "again.parquet", "together"
Seconds = Mapping[str, float]


@dataclass
class Lakehouse:
    """A filled home, and different people to erase for each number."""

    home: KeptHome
    everyone: list[int] = field(default_factory=list)
    """Ids of all customers with a transaction."""

    @classmethod
    def filled(cls, folder: Path, millions: float) -> "Lakehouse":
        """Fill a home through Dagster with all rules."""
        rows_a_day = int(millions * 1_000_000 / DAYS)
        generated = generate(folder / "files", FIRST, DAYS, rows_a_day, seed=1)
        show(f"{len(generated.files)} files of {rows_a_day} rows are generated")
        settings = Homes(folder, generated.files).fresh()
        through_dagster(settings)
        show("they are ingested")
        there = cls(KeptHome(settings))
        rows = there.engine.catalog.load(CLEAN.name).scan(selected_fields=(ID,)).to_arrow()
        there.everyone = np.unique(rows.column(ID).to_numpy()).tolist()
        return there

    @property
    def settings(self) -> Settings:
        """Settings of the home."""
        return self.home.settings

    @property
    def engine(self) -> Engine:
        """A new engine without caches."""
        return open_engine(self.settings)

    @property
    def erasable(self) -> Erasable:
        """Everything that can contain personal data."""
        return PROJECT.erasable(self.settings, self.engine)

    def people(self, number: int, size: int) -> list[Named]:
        """Return people distributed over all customers, different ones for each number."""
        apart = len(self.everyone) // size
        first = number * 7919
        chosen = [(first + apart * place) % len(self.everyone) for place in range(size)]
        return [Named(ID, str(self.everyone[place])) for place in chosen]

    def identified(self, named: Sequence[Named]) -> list[Person]:
        """Return people with all their identifiers from the tables."""
        there = self.erasable
        return [one.person for one in find_people(there.engine, there.subjects, named)]

    def files(self, tables: Sequence[IcebergTable]) -> dict[Path, int]:
        """Return the current data files of tables with their sizes in bytes."""
        files = {}
        for table in tables:
            for task in self.engine.catalog.load(table.name).scan().plan_files():
                path = Path(task.file.file_path.removeprefix("file://"))
                files[path] = task.file.file_size_in_bytes
        return files


def in_turn(
    home: KeptHome, actions: Sequence[Callable[[int], Seconds]], rounds: int, warm_ups: int
) -> dict[str, list[float]]:
    """Run each action once per round on a restored home, in alternating order.

    Returns the reported seconds by name.
    """
    seconds: dict[str, list[float]] = defaultdict(list)
    for number in range(-warm_ups, rounds):
        for action in reversed(actions) if number % 2 else actions:
            home.restore()
            took = action(number)
            times = ", ".join(f"{name} {value:.2f} s" for name, value in took.items())
            show(f"{'warm-up' if number < 0 else f'round {number + 1} of {rounds}'}: {times}")
            if number >= 0:
                for name, value in took.items():
                    seconds[name].append(value)
    return seconds


def measure_largest(lakehouse: Lakehouse, folder: Path, rounds: int) -> list[Measured]:
    """Compare the erasure of one person from the largest table; a different person each time."""
    lakehouse.home.restore()
    there = lakehouse.erasable
    people = lakehouse.identified(lakehouse.people(0, 100))
    holder, _ = max(
        there.holders(people), key=lambda one: sum(_sizes(lakehouse, there, one[0].table))
    )
    table = there.tables[holder.table]
    files = list(lakehouse.files([table]))
    of_script, people_of_erasure, requests = iter(people), iter(people), count()

    def by_script() -> None:
        assert rewrite_parquet(files, [next(of_script)], folder / AGAIN).rows

    def by_erasure() -> None:
        values = people_in(holder, [next(people_of_erasure)], frozenset())
        assert delete_rows(there.engine, table, values, f"B-{next(requests)}").rows[MAIN]

    show(f"{table.name} is the largest table: {len(files)} files")
    ways = [
        Way("a plain script writes its Parquet again", by_script),
        Way(
            "its rows are erased, as readers see it",
            by_erasure,
            TARGETS["largest table"],
            times=3,
        ),
    ]
    return compare(ways, rounds=rounds, warm_ups=1)


def _sizes(lakehouse: Lakehouse, there: Erasable, table: str) -> list[int]:
    if not there.engine.catalog.has(table):
        return []
    return list(lakehouse.files([there.tables[table]]).values())


@dataclass
class Clock:
    """Records start and end of each step of an erasure, in seconds from its start."""

    started: float = field(default_factory=time.perf_counter)
    steps: list[tuple[str, float, float]] = field(default_factory=list)

    @contextmanager
    def time(self, text: str) -> Iterator[None]:
        """Time a step by its progress text."""
        started_at = time.perf_counter() - self.started
        yield
        self.steps.append((text, started_at, time.perf_counter() - self.started))

    def took(self) -> dict[str, float]:
        """Return the duration of each step; steps with equal names are added."""
        seconds: dict[str, float] = defaultdict(float)
        for text, started_at, end in self.steps:
            seconds[text] += end - started_at
        return seconds

    def milestones(self) -> Seconds:
        """Return when people were erased from all tables, logically, physically, and verified."""
        took, ends = self.took(), {text: end for text, _, end in self.steps}
        physically = ends[_step_text(remove_physically)]
        return {
            NO_ROWS: ends[_step_text(erase_rows)] - took[_step_text(erase_files)],
            LOGICALLY: physically - took[_step_text(remove_physically)],
            PHYSICALLY: physically,
            PROVEN: ends[_step_text(verify_all)],
        }


def _step_text(step: Callable[[Erasure], None]) -> str:
    return next(text for text, one in STEPS if one is step)


@dataclass
class FullErasure:
    """Erases people from the entire lakehouse; records step times and bytes."""

    lakehouse: Lakehouse
    folder: Path
    size: int
    people: dict[int, list[Person]] = field(default_factory=dict)
    """People with their identifiers, by round."""
    steps: list[Seconds] = field(default_factory=list)
    affected_bytes: int = 0
    added_bytes: int = 0

    def measure(self, rounds: int, targets: Mapping[str, Target]) -> list[Measured]:
        """Compare an erasure with the script."""
        seconds = in_turn(self.lakehouse.home, [self._by_script, self._by_erasure], rounds, 0)
        return [
            measured_against(seconds[SCRIPT], name, targets.get(name, NO_TARGET), seconds[name])
            for name in (SCRIPT, NO_ROWS, LOGICALLY, PHYSICALLY, PROVEN)
        ]

    def steps_table(self, title: str) -> str:
        """Return the time of each step."""
        names = dict.fromkeys(name for took in self.steps for name in took)
        rows = []
        for name in names:
            seconds = [took[name] for took in self.steps]
            rows.append((name, f"{median(seconds):.2f}"))
        return plain_table(title, ("step", "median s"), rows)

    def bytes_figure(self, title: str) -> Figure:
        """Return the bytes written to data files relative to the affected files."""
        return Figure(title, self.added_bytes / self.affected_bytes, TARGETS["written bytes"])

    def _by_script(self, number: int) -> Seconds:
        files, people = self.lakehouse.files(self._tables), self._people(number)
        started = time.perf_counter()
        rewrite_parquet(files, people, self._again)
        return {SCRIPT: time.perf_counter() - started}

    def _by_erasure(self, number: int) -> Seconds:
        before = self.lakehouse.files(self._tables)
        rewritten = rewrite_parquet(before, self._people(number), self._again)
        clock = Clock()
        erasure = run_erasure(self.lakehouse, self.lakehouse.people(number, self.size), clock)
        after = self.lakehouse.files(self._tables)
        assert set(before) - set(after) == set(rewritten.files), "files of others were written"
        assert sum(rows.get(MAIN, 0) for rows in erasure.record.rows.values()) == rewritten.rows
        self.affected_bytes += sum(before[path] for path in rewritten.files)
        self.added_bytes += sum(after[path] for path in set(after) - set(before))
        self.steps.append(clock.took())
        return clock.milestones()

    def _people(self, number: int) -> list[Person]:
        if number not in self.people:
            named = self.lakehouse.people(number, self.size)
            self.people[number] = self.lakehouse.identified(named)
        return self.people[number]

    @property
    def _tables(self) -> list[IcebergTable]:
        return self.lakehouse.erasable.tables_of([Person(ID, frozenset())])

    @property
    def _again(self) -> Path:
        return self.folder / AGAIN


def run_erasure(lakehouse: Lakehouse, named: Sequence[Named], clock: Clock) -> Erasure:
    """Erase people at once with one request.

    :raises AssertionError: the erasure was not verified.
    """
    how = How("benchmark", now=True)
    erasure = erase(lakehouse.erasable, "B-1", named, how, progress=clock.time)
    proof = (
        erasure.search_report.as_text()
        if erasure.search_report
        else erasure.record.pending_removals
    )
    assert erasure.request.state == "verified", proof
    return erasure


@dataclass
class Alternatives:
    """Alternatives to an erasure, and the number of files that still contain the person."""

    lakehouse: Lakehouse
    folder: Path
    left: dict[str, Counter[str]] = field(default_factory=dict)
    not_written: set[str] = field(default_factory=set)
    """Tables that PyIceberg cannot write without pyiceberg-core."""

    def measure(self, rounds: int) -> list[Measured]:
        """Compare the alternatives; they have no targets, and erase less."""
        person = self._person()
        self.left["before"] = self._find(person)
        ways = {SCRIPT: self._script, PYICEBERG: self._pyiceberg, FOUR_CALLS: self._four_calls}
        actions = [*(self._timed(name, way) for name, way in ways.items()), self._erasure]
        seconds = in_turn(self.lakehouse.home, actions, rounds, 1)
        return [
            measured_against(seconds[SCRIPT], name, NO_TARGET, seconds[name])
            for name in (*ways, ERASURE)
        ]

    def left_table(self, title: str) -> str:
        """Return the number of files that still contain the person."""
        ways = ("before", PYICEBERG, FOUR_CALLS, ERASURE)
        places = sorted({place for files in self.left.values() for place in files} - {ALL})
        rows = [
            (place, *(str(self.left[way][place]) for way in ways)) for place in (*places, ALL)
        ]
        tables = ", ".join(sorted(self.not_written)) or "no table"
        text = f"{PYICEBERG} left out {tables}: without pyiceberg-core it writes no partitions by day."
        return f"{plain_table(title, ('files', *ways), rows)}\n{text}\n"

    def _timed(
        self, name: str, way: Callable[[Person, Sequence[IcebergTable]], None]
    ) -> Callable[[int], Seconds]:
        def run(_: int) -> Seconds:
            person = self._person()
            tables = self.lakehouse.erasable.tables_of([person])
            started = time.perf_counter()
            way(person, tables)
            took = time.perf_counter() - started
            if name != SCRIPT:
                self.left[name] = self._find(person)
            return {name: took}

        return run

    def _erasure(self, _: int) -> Seconds:
        person, clock = self._person(), Clock()
        run_erasure(self.lakehouse, self.lakehouse.people(0, 1), clock)
        self.left[ERASURE] = self._find(person)
        return {ERASURE: clock.milestones()[PROVEN]}

    def _person(self) -> Person:
        return self.lakehouse.identified(self.lakehouse.people(0, 1))[0]

    def _find(self, person: Person) -> Counter[str]:
        findings = search_persons(self.lakehouse.erasable, [person]).findings
        files = {finding.file for finding in findings}
        found = Counter(file.partition("/")[0] for file in files)
        return found + Counter({ALL: len(files)})

    def _script(self, person: Person, tables: Sequence[IcebergTable]) -> None:
        files = self.lakehouse.files(tables)
        rewrite_parquet(files, [person], self.folder / AGAIN)

    def _pyiceberg(self, person: Person, tables: Sequence[IcebergTable]) -> None:
        from pyiceberg.exceptions import NotInstalledError
        from pyiceberg.expressions import EqualTo

        engine = self.lakehouse.engine
        for table in tables:
            loaded = engine.catalog.load(table.name)
            is_text = str(loaded.schema().find_field(ID).field_type) == "string"
            for text in person.ids:
                try:
                    loaded.delete(EqualTo(ID, text if is_text else int(text)))
                except NotInstalledError:
                    self.not_written.add(table.name)

    def _four_calls(self, person: Person, tables: Sequence[IcebergTable]) -> None:
        """Run the calls of common guides with the procedures' defaults."""
        engine = self.lakehouse.engine
        for table in tables:
            name = engine.catalog.sql_name(table.name)
            ids = ", ".join(literal(text) for text in sorted(person.ids))
            engine.sql(f"DELETE FROM {name} WHERE CAST({ID} AS string) IN ({ids})")
            for procedure in PROCEDURES:
                call = identifier(engine.catalog.name, "system", procedure)
                engine.sql(f"CALL {call}(table => {literal(table.name)})").collect()


def main(rounds: int, millions: float, people: int, alternatives_millions: float) -> None:
    """Run all parts; exit with 1 if a limit is exceeded."""
    environment = conditions()
    title = f"{millions:g} million transactions"
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        # Also warms up Spark for the measurements on all rows.
        alternatives = Alternatives(
            Lakehouse.filled(folder / "others", alternatives_millions), folder
        )
        of_alternatives = alternatives.measure(1)
        lakehouse = Lakehouse.filled(folder / "all", millions)
        parts = {
            f"{title}, the largest table, one person": measure_largest(
                lakehouse, folder, rounds
            )
        }
        one, many = FullErasure(lakehouse, folder, 1), FullErasure(lakehouse, folder, people)
        parts[f"{title}, all that there is, one person"] = one.measure(rounds, OF_ONE)
        parts[f"{title}, all that there is, {people} people"] = many.measure(rounds, {})
        few = f"{alternatives_millions:g} million transactions, one person"
        parts[f"{few}, also as others do it"] = of_alternatives
        ratios = [one.bytes_figure("one person"), many.bytes_figure(f"{people} people")]
        more = [
            one.steps_table("Where the time goes, one person"),
            many.steps_table(f"Where the time goes, {people} people"),
            alternatives.left_table(f"Files in which the verifier finds them after it, {few}"),
        ]
    title_of_bytes = (
        "Bytes of data files that were written, of those of the files that held them"
    )
    sys.exit(0 if report("erasure", environment, parts, {title_of_bytes: ratios}, more) else 1)


if __name__ == "__main__":
    parser = options(__doc__, rounds=3)
    parser.add_argument("--millions", type=float, default=MILLIONS)
    parser.add_argument("--people", type=int, default=PEOPLE)
    parser.add_argument("--others-millions", type=float, default=ALTERNATIVES_MILLIONS)
    chosen = parser.parse_args()
    main(chosen.rounds, chosen.millions, chosen.people, chosen.others_millions)
