"""Pages put to where they are read, so that every page is whole and every link leads somewhere at
any moment: also after a kill, which the next run goes on from.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lakehouse.errors import UsageError
from lakehouse.site.destination import Destination
from lakehouse.site.pages import INDEX

LISTING = "site-files.json"
"""The list of what the site has: what is in it may be replaced, and removed; nothing else."""
_UNFINISHED = ""
_PAGE = re.compile(r"(tables/)?[a-z0-9_-][a-z0-9_.-]*\.(html|odcs\.yaml)")


@dataclass(frozen=True)
class PublishedSite:
    """Where the site begins, and how many of its files are new or changed, were left alone, or
    were removed.
    """

    place: str
    written: int
    unchanged: int
    removed: int


def publish_site(pages: Mapping[str, str], destination: Destination) -> PublishedSite:
    """Write the pages that changed, and remove those of tables that are gone.

    New pages come first, then those that may link to them, the index last; what no page links
    to any more is removed after that. Of an equal site nothing is written.

    :raises UsageError: when other files are there, which are no site.
    """
    there = destination.names()
    known = _listed(destination)
    if known is None:
        _check_empty(destination, there)
        known = {}
    digests = {name: _digest(text) for name, text in pages.items()}
    changed = {
        name
        for name, digest in digests.items()
        if known.get(name) != digest or name not in there
    }
    gone = sorted(known.keys() - pages.keys())
    if changed or gone:
        destination.sweep([*pages, LISTING])
        # Before anything else: what is listed may be removed by who goes on after a kill.
        unfinished = dict.fromkeys(changed, _UNFINISHED)
        _list(destination, known | unfinished)
        for name in _in_order(changed, there):
            destination.write(name, pages[name])
        for name in gone:
            destination.remove(name)
        _list(destination, digests)
    place = destination.place(INDEX)
    return PublishedSite(place, len(changed), len(pages) - len(changed), len(gone))


def _in_order(changed: set[str], there: set[str]) -> Iterator[str]:
    yield from sorted(changed - there - {INDEX})
    yield from sorted(changed & there - {INDEX})
    yield from changed & {INDEX}


def _check_empty(destination: Destination, there: set[str]) -> None:
    if there:
        raise UsageError(
            f"{destination.place('')} has files that are no site of `lakehouse docs`, such as"
            f" {min(there)!r}; expected nothing there, or such a site.",
            next_step="Name another place by --out, or move the files away.",
        )


def _listed(destination: Destination) -> dict[str, str] | None:
    text = destination.read(LISTING)
    if text is None:
        return None
    try:
        files = json.loads(text)["files"]
        known = {str(name): str(digest) for name, digest in files.items()}
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise _not_ours(destination) from error
    # What is listed is removed once no table has it: nothing outside of the site may be.
    if not all(_PAGE.fullmatch(name) for name in known):
        raise _not_ours(destination)
    return known


def _not_ours(destination: Destination) -> UsageError:
    return UsageError(
        f"{destination.place(LISTING)} is not what `lakehouse docs` wrote there; expected its"
        " list of the site's files.",
        next_step="Name another place by --out, or remove the site.",
    )


def _list(destination: Destination, digests: Mapping[str, str]) -> None:
    listing = {"made_by": "lakehouse docs", "files": dict(sorted(digests.items()))}
    destination.write(LISTING, json.dumps(listing, indent=1) + "\n")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
