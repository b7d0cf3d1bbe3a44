"""An erasure that was killed is gone on from: whatever it had done, the next one ends the same."""

from contextlib import suppress
from datetime import date
from itertools import count

import pytest
from pyiceberg.table import Table

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.commit_files import has_removed_entries
from lakehouse.iceberg.erasure.delete_rows import count_rows, delete_rows
from lakehouse.iceberg.erasure.remove_from_files import (
    clean_manifests,
    rewrite_erased_files,
)
from lakehouse.iceberg.erasure.remove_unnamed import remove_unnamed
from lakehouse.iceberg.metadata.manifests import files
from lakehouse_tests.iceberg.erasure.people import (
    ANNA,
    ORDERS,
    REQUEST,
    content,
    data_paths,
    fill,
    paths_with,
    tag,
)

DAY = date(2024, 1, 1)
HERS = (1, 7, "anna@example.org", "hers", DAY)
OTHERS = [(2, 8, "ben@example.org", "his", DAY), (3, 9, "cleo@example.org", "another's", DAY)]


def erase(engine: Engine) -> None:
    """Erase her, as far as that needs no Spark."""
    delete_rows(engine, ORDERS, [ANNA], REQUEST)
    rewrite_erased_files(engine, ORDERS.name, REQUEST)
    clean_manifests(engine, ORDERS.name, REQUEST)
    remove_unnamed(engine, [ORDERS.name])


@pytest.mark.long
@pytest.mark.parametrize("killed_at", range(4))
def test_the_next_one_ends_in_the_same_state(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, killed_at: int
) -> None:
    fill(engine, ORDERS, [HERS, OTHERS[0]])
    fill(engine, ORDERS, [HERS])
    fill(engine, ORDERS, OTHERS[1:])
    (untouched,) = data_paths(engine, ORDERS) - paths_with(engine, ORDERS, "customer_id", 7)
    tag(engine, ORDERS, "month_end")
    commits, commit = count(), Table._do_commit

    def die_in_time(table: Table, *arguments, **named) -> None:
        if next(commits) == killed_at:
            raise KeyboardInterrupt
        commit(table, *arguments, **named)

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(Table, "_do_commit", die_in_time)
        erase(engine)
    erase(engine)

    assert count_rows(engine, ORDERS, [ANNA]) == {}
    assert content(engine, ORDERS) == content(engine, ORDERS, "month_end") == OTHERS
    assert {file.content for file in files(engine, ORDERS.name)} == {"data"}
    assert untouched in data_paths(engine, ORDERS)
    loaded = engine.catalog.load(ORDERS.name)
    for ref in loaded.metadata.refs.values():
        assert not has_removed_entries(loaded, ref.snapshot_id)
