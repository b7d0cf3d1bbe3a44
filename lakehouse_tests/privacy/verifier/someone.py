"""Somebody to search for, and a search for them."""

from collections.abc import Iterable
from pathlib import Path

from lakehouse.privacy.verifier.columns import HeldColumns
from lakehouse.privacy.verifier.report import Finding, Report
from lakehouse.privacy.verifier.roots import FolderRoot
from lakehouse.privacy.verifier.search import by_values, search
from lakehouse.tables.person import Person

EMAIL = "maria.lopez.garcía/o'neil@example.org"
PHONE = "60123456789"
PERSON = Person(
    "customer_id",
    frozenset({"4711", PHONE}),
    {"customer_email": frozenset({EMAIL}), "nickname": frozenset({"Mia"})},
)
COLUMNS = (
    HeldColumns(
        ("warehouse/bronze/raw", "inbox/raw", "archive/raw", "rejected/raw"),
        {"customer_id": frozenset({"client"})},
        {"customer_email": frozenset({"mail"}), "nickname": frozenset()},
        {1: "client", 2: "mail"},
    ),
)


def searched(home: Path, *, person: Person = PERSON, remaining: Iterable[str] = ()) -> Report:
    """Search a home for somebody, without a control."""
    return search([FolderRoot(home)], by_values([person], COLUMNS, remaining))


def written(home: Path, key: str, content: bytes | str = b"") -> Path:
    """Write a file below a home."""
    file = home / key
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def places(report: Report) -> set[str]:
    """Return the kinds of files of a table in which somebody was found."""
    return {place_of(finding) for finding in report.findings}


def place_of(finding: Finding) -> str:
    """Return the kind of a file of a table."""
    if "/metadata/" not in finding.file:
        return "data file"
    return "manifest" if finding.file.endswith(".avro") else "metadata.json"
