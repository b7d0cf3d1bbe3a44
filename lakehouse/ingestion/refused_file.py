"""Remove rows of erased data subjects from a file that is being rejected."""

from typing import NamedTuple

from lakehouse.ingestion.archive import sha256_of
from lakehouse.ingestion.found_rows import FoundRows, RowFinder, find_rows
from lakehouse.ingestion.rewrite_file import Rewriting
from lakehouse.ingestion.rewritten_files import NOTHING
from lakehouse.ingestion.row_numbers import RowNumbers
from lakehouse.storage.object_store import StoredObject


class Refused(NamedTuple):
    """A rejected file, None if it changed; the hashes of its delivery, and its original hash."""

    item: StoredObject | None
    forms: frozenset[str]
    sha256: str


def without_erased_rows(
    rewriting: Rewriting, seen: StoredObject, suppressed: RowFinder
) -> Refused:
    """Rewrite a rejected file without rows of erased data subjects, as far as it can be divided
    into rows, and without rows that earlier requests erased.
    """
    found = _look(rewriting, seen, suppressed)
    known = rewriting.ledger.find(seen.key, found.sha256)
    forms = known.forms | {found.sha256}
    if known.is_erased and found.sha256 != NOTHING:
        return Refused(rewriting.leave_nothing(seen, found.sha256, known), forms, known.sha256)
    numbers = RowNumbers.without(known.missing)
    rows = {numbers.number(position) for position in found.positions}
    rows |= known.erased - known.missing
    if not rows:
        return Refused(seen, forms, known.sha256)
    item = rewriting.leave_out(seen, found, known, rows)
    forms |= rewriting.ledger.find(seen.key, known.sha256).forms
    return Refused(item, forms, known.sha256)


def _look(rewriting: Rewriting, seen: StoredObject, suppressed: RowFinder) -> FoundRows:
    store = rewriting.store
    if rewriting.ledger.is_empty and not suppressed.columns:
        return FoundRows(sha256_of(store, seen.key), 0)
    return find_rows(rewriting.feed, seen.key, lambda: store.open(seen.key), suppressed)
