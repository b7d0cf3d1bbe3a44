"""After an erasure every table of sums is what it would be if the person had never been delivered:
at any distance, in whatever way it is computed, and whatever was delivered before or after.
"""

import random

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.settings import Settings
from lakehouse_tests.examples import repeated
from lakehouse_tests.privacy.sums.some_sums import LARGE, SomeSums, some_nodes, some_orders

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("seed", repeated(range(10), tried=[0], tier="long"))
def test_no_sum_has_the_person_wherever_it_is_computed(
    embedded_engine: Engine, settings: Settings, seed: int
) -> None:
    """Deliver, compute, erase and deliver again; compare with plain Python at each point."""
    chance = random.Random(seed)
    sums = SomeSums(embedded_engine, settings, some_nodes(chance, 4 + seed % 6))
    told = f"seed {seed}: " + "; ".join(
        f"{node.table.name} ({node.table.on_erasure}) of {', '.join(node.sources)}"
        for node in sums.nodes
    )
    sums.land(some_orders(chance, 12, has_person=True))
    sums.compute()
    assert sums.everything() == sums.expected(), told
    before = sums.everything()
    is_pending = chance.random() < 0.5
    if is_pending:
        sums.land(some_orders(chance, 6, has_person=True))

    rows = sums.erase()
    sums.compute_anew(rows)

    kept = sums.sums().kept
    with_others = {name: before[name] for name in kept}
    after = sums.everything()
    assert {name: after[name] for name in kept} == with_others, told
    if not is_pending:
        assert after == sums.expected(with_others), told
    elif not kept:
        assert not [one for rows in after.values() for one in rows if one[3] >= LARGE], told

    sums.land(some_orders(chance, 6, has_person=False))
    sums.compute()
    computed = sums.everything()
    if not kept:
        assert computed == sums.expected(), told
    sums.compute()
    assert sums.everything() == computed, told
