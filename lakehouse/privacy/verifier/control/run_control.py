"""A search for a planted person, which has to find them in each class of place."""

import secrets
import tempfile
from collections.abc import Collection
from pathlib import Path

from lakehouse.privacy.verifier.column_values import person_hmac
from lakehouse.privacy.verifier.control.planted_person import (
    PERSONAL,
    SUBJECT,
    PlantedPerson,
    columns,
)
from lakehouse.privacy.verifier.control.plants import COLUMN_PLANTS, PLANTS, Plant
from lakehouse.privacy.verifier.findings import Finding
from lakehouse.privacy.verifier.report import ControlResult
from lakehouse.privacy.verifier.roots import FolderRoot
from lakehouse.privacy.verifier.search import search, search_hmacs


def run_control(places: Collection[str], scratch: Path | None = None) -> ControlResult:
    """Plant a person in each of some classes of place, and search their values.

    :param scratch: the folder in which a home is made for it, and removed; that of temporary
        files by default.
    """
    planted = PlantedPerson.new()
    with tempfile.TemporaryDirectory(prefix="lakehouse-control-", dir=scratch) as folder:
        home = Path(folder)
        files = _plant(home, planted, {place: PLANTS[place] for place in sorted(places)})
        report = search([FolderRoot(home)], [planted.person], columns())
        return _result(files, report.findings)


def run_hmac_control(scratch: Path | None = None) -> ControlResult:
    """Plant a person in columns, and search them by their HMACs."""
    planted = PlantedPerson.new()
    key = secrets.token_bytes(32)
    values = {SUBJECT: str(planted.small_id), PERSONAL: planted.email}
    hmacs = [person_hmac(key, column, value) for column, value in values.items()]
    with tempfile.TemporaryDirectory(prefix="lakehouse-control-", dir=scratch) as folder:
        home = Path(folder)
        files = _plant(home, planted, COLUMN_PLANTS)
        report = search_hmacs([FolderRoot(home)], key, hmacs, columns())
        return _result(files, report.findings)


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
