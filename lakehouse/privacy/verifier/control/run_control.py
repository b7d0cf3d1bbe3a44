"""A search for a planted person, which has to find them in each class of place."""

import secrets
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from lakehouse.privacy.verifier.control.planted_person import PlantedPerson, columns
from lakehouse.privacy.verifier.control.plants import (
    COLUMN_PLANTS,
    FIELD_ID,
    PLANTS,
    Plant,
    plant_column,
)
from lakehouse.privacy.verifier.findings import Finding
from lakehouse.privacy.verifier.held_columns import ColumnNames, HeldColumns
from lakehouse.privacy.verifier.places import place_of
from lakehouse.privacy.verifier.report import ControlResult
from lakehouse.privacy.verifier.roots import FolderRoot
from lakehouse.privacy.verifier.search import search, search_hmacs
from lakehouse.tables.person import Person, folded, person_hmac


def run_control(
    places: Collection[str], scratch: Path | None = None, tables: Sequence[HeldColumns] = ()
) -> ControlResult:
    """Plant a person in each of some classes of place and in each column, and search for them.

    :param scratch: the folder in which a home is made for it, and removed; that of temporary
        files by default.
    :param tables: those in whose columns the person is planted too.
    """
    planted = PlantedPerson.new()
    with tempfile.TemporaryDirectory(prefix="lakehouse-control-", dir=scratch) as folder:
        home = Path(folder)
        files = _plant(home, planted, {place: PLANTS[place] for place in sorted(places)})
        people = [planted.person, *_plant_columns(home, planted, tables, files)]
        report = search([FolderRoot(home)], people, [*columns(), *tables])
        return _result(files, report.findings)


def run_hmac_control(
    scratch: Path | None = None, tables: Sequence[HeldColumns] = ()
) -> ControlResult:
    """Plant a person in columns, and search them by their HMACs."""
    planted = PlantedPerson.new()
    key = secrets.token_bytes(32)
    with tempfile.TemporaryDirectory(prefix="lakehouse-control-", dir=scratch) as folder:
        home = Path(folder)
        files = _plant(home, planted, COLUMN_PLANTS)
        people = [planted.person, *_plant_columns(home, planted, tables, files)]
        hmacs = [one for person in people for one in _hmacs(key, person)]
        report = search_hmacs([FolderRoot(home)], key, hmacs, [*columns(), *tables])
        return _result(files, report.findings)


def _hmacs(key: bytes, person: Person) -> Iterator[str]:
    for value in person.ids:
        yield person_hmac(key, person.subject, value)
    for column, values in person.personal.items():
        for value in values:
            yield person_hmac(key, column, folded(value))


def _plant_columns(
    home: Path,
    person: PlantedPerson,
    tables: Sequence[HeldColumns],
    files: dict[str, list[str]],
) -> Iterator[Person]:
    """Plant a person in each declared column of tables; yield whom the column then has.

    :param files: those that were written, by class of place; the others are added.
    """
    names = ColumnNames(tables)
    for table in tables:
        for column in table.schema or ():
            name = table.fields.get(int((column.metadata or {})[FIELD_ID]), "")
            held = names.of(f"{table.folders[0]}/").get(name.lower(), ())
            key = plant_column(home, table.folders[0], column, person) if held else None
            if key:
                files.setdefault(place_of(key), []).append(key)
            for one in held:
                personal = {} if one.is_subject else {one.name: person.texts}
                yield Person(one.name, person.texts - set(personal.get(one.name, ())), personal)


def _plant(
    home: Path, person: PlantedPerson, plants: dict[str, tuple[Plant, ...]]
) -> dict[str, list[str]]:
    """Return the files that were written, by class of place."""
    written: dict[str, list[str]] = {}
    for place, writers in plants.items():
        for plant in writers:
            key = plant(home, person).relative_to(home).as_posix()
            written.setdefault(place, []).append(key)
    return written


def _result(files: dict[str, list[str]], findings: Collection[Finding]) -> ControlResult:
    hits = {(finding.place, finding.file) for finding in findings}
    found = []
    missed = []
    for place, keys in files.items():
        unseen = [f"{place}: {key}" for key in keys if (place, key) not in hits]
        missed += unseen
        if not unseen:
            found.append(place)
    return ControlResult(tuple(found), tuple(missed))
