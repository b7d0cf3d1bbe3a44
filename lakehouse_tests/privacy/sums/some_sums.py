"""A small lakehouse of orders and a random graph of tables of sums that are computed from them,
from one another, or both; and what each of them should have, told by plain Python.

Amounts of the person who is erased are so large that a sum tells by itself whether it has any.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from types import MappingProxyType
from typing import Any

import dagster as dg

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.delete_rows import delete_rows
from lakehouse.iceberg.erasure.suppression_list import SuppressionList
from lakehouse.iceberg.read.inputs import (
    Input,
    changed_keys,
    existing_rows,
    incremental,
    latest,
)
from lakehouse.iceberg.read.stale_partitions import stale_values
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.orchestration.io_manager import IcebergIOManager
from lakehouse.orchestration.partitions.partition_bounds import (
    all_partitions_of,
    keys_holding,
    partitions_of,
)
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.folder import hmac_key
from lakehouse.privacy.recompute import Sums, find_sums, recompute_tables
from lakehouse.privacy.suppressed_people import (
    SuppressedPerson,
    add_suppressed,
    read_suppressed,
)
from lakehouse.settings import Settings
from lakehouse.tables.person import Person, person_hmac
from lakehouse.tables.table import (
    Append,
    Column,
    IcebergTable,
    Merge,
    Overwrite,
    OverwritePartitions,
)
from lakehouse_tests.frames import frame_of
from lakehouse_tests.privacy.small_lakehouse import erasable_of

REQUEST = "R-1"
PERSON = 7
LARGE = 1_000_000
"""The least amount of an order of theirs, and more than all others together."""
DAYS = dg.DailyPartitionsDefinition(start_date="2024-01-01", end_date="2024-02-06")
MONTHS = dg.MonthlyPartitionsDefinition(start_date="2024-01-01", end_date="2024-03-01")
SHOPS = dg.StaticPartitionsDefinition(["a", "b", "c"])
FIRST_DAY = date(2024, 1, 29)
_OF_A_FILE = (Column("_source_file", "string"), Column("_source_sha256", "string"))
_PARTITIONING = ("day", "shop")
ORDERS = IcebergTable(
    "silver.orders",
    "Orders of customers.",
    (
        Column("customer_id", "bigint"),
        Column("day", "date"),
        Column("shop", "string"),
        Column("amount", "bigint"),
        *_OF_A_FILE,
    ),
    write=Append(),
    partitioning=_PARTITIONING,
    subject="customer_id",
)
_SUMS = (
    Column("day", "date"),
    Column("shop", "string"),
    Column("orders", "bigint"),
    Column("amount", "bigint"),
)
_NOTHING: Mapping[str, Any] = MappingProxyType({})
Order = tuple[int, date, str, int]
"""Customer, day, shop and amount."""
Sum = tuple[date, str, int, int]
"""Day, shop, number of orders and their amount."""


@dataclass(frozen=True)
class Kind:
    """A way to compute a table of sums."""

    name: str
    mode: Any
    day: str = "day"
    """SQL of the day that a sum is of."""
    by: str | None = None
    definition: dg.PartitionsDefinition | None = None
    of_orders_only: bool = False
    is_of_rows: bool = False
    """Whether rows are taken over one by one, and not added up."""

    def to_day(self, day: date) -> date:
        """Return the day that a sum of a day's is of."""
        if self.day == "day":
            return day
        return day.replace(day=1) if "trunc" in self.day else FIRST_DAY


KINDS = (
    Kind("daily", OverwritePartitions("day"), by="day", definition=DAYS),
    Kind(
        "monthly",
        OverwritePartitions("day"),
        day="CAST(trunc(day, 'MM') AS DATE)",
        by="day",
        definition=MONTHS,
    ),
    Kind("by_shop", OverwritePartitions("shop"), by="shop", definition=SHOPS),
    Kind("whole", Overwrite()),
    Kind("merged", Merge(on=["day", "shop"])),
    Kind("changed", Merge(on=["shop"]), day=f"DATE'{FIRST_DAY}'"),
    Kind("appended", Append(), of_orders_only=True, is_of_rows=True),
    Kind(
        "growing",
        OverwritePartitions("day"),
        by="day",
        definition=DAYS,
        of_orders_only=True,
        is_of_rows=True,
    ),
)


@dataclass(frozen=True)
class Node:
    """A table of sums, how it is computed, and from which tables."""

    kind: Kind
    table: IcebergTable
    sources: tuple[str, ...]

    @property
    def inputs(self) -> dict[str, Input]:
        """What its function reads, by parameter."""
        first, by = self.sources[0], self.kind.by
        if self.kind.name == "appended":
            return {"first": incremental(first)}
        if self.kind.name == "growing":
            return {
                "first": incremental(first, by=by),
                "own": existing_rows(self.table.name, by="day"),
            }
        inputs = dict(
            zip(("first", "second"), (latest(one, by=by) for one in self.sources), strict=False)
        )
        if self.kind.name == "changed":
            return {"keys": changed_keys(first, of="shop", by="day"), "first": inputs["first"]}
        return inputs

    @property
    def compute(self) -> Callable[..., Any]:
        """Its function."""
        if self.kind.name == "appended":
            return lambda first: _sums_of(first, *(one.name for one in _OF_A_FILE))
        if self.kind.name == "growing":
            return lambda first, own: own.unionByName(_sums_of(first))
        if self.kind.name == "changed":
            return lambda keys, first: self._of_keys(keys, first)
        if len(self.sources) == 2:
            return lambda first, second: self._added_up(_sums_of(first), _sums_of(second))
        return lambda first: self._added_up(_sums_of(first))

    def _added_up(self, *frames: Any) -> Any:
        rows = frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])
        dated = rows.selectExpr(f"{self.kind.day} AS day", "shop", "orders", "amount")
        grouped = dated.groupBy("day", "shop").sum("orders", "amount")
        return grouped.toDF("day", "shop", "orders", "amount")

    def _of_keys(self, keys: Any, first: Any) -> Any:
        rows = self._added_up(_sums_of(first.join(keys, "shop", "left_semi")))
        joined = keys.join(rows, "shop", "left")
        return joined.selectExpr("day", "shop", "orders", "amount", "day IS NULL AS _deleted")

    def asset(self) -> dg.AssetsDefinition:
        """Return the asset that computes it."""
        decorate = iceberg_asset(
            self.table, inputs=self.inputs, partitions_def=self.kind.definition
        )
        return decorate(self.compute)

    def expected(self, given: Iterable[Sum]) -> list[Sum]:
        """Return what it has where its sources have some sums."""
        if self.kind.is_of_rows:
            return sorted(given)
        orders: Counter[tuple[date, str]] = Counter()
        amounts: Counter[tuple[date, str]] = Counter()
        for day, shop, count, amount in given:
            key = (self.kind.to_day(day), shop)
            orders[key] += count
            amounts[key] += amount
        return sorted((*key, orders[key], amounts[key]) for key in orders)


def _sums_of(frame: Any, *more: str) -> Any:
    orders = "orders" if "orders" in frame.columns else "1L AS orders"
    return frame.selectExpr("day", "shop", orders, "amount", *more)


def some_nodes(chance: random.Random, number: int) -> tuple[Node, ...]:
    """Return some tables, each computed from orders or from tables before it."""
    nodes: list[Node] = []
    for at in range(number):
        before = [node.table.name for node in nodes]
        kind = chance.choice(KINDS)
        # The further from the orders the better.
        names = [ORDERS.name, *before, *before]
        sources = [chance.choice(names)]
        if chance.random() < 0.4 and kind.name != "changed":
            sources.append(chance.choice(names))
        if kind.of_orders_only:
            sources = [ORDERS.name]
        on_erasure = "keep" if chance.random() < 0.15 else "recompute"
        nodes.append(node_of(f"gold.{kind.name}_{at}", kind, *sources, on_erasure=on_erasure))
    return tuple(nodes)


def node_of(name: str, kind: Kind | str, *sources: str, **parts: Any) -> Node:
    """Return a table of a kind."""
    if isinstance(kind, str):
        kind = next(one for one in KINDS if one.name == kind)
    columns = (*_SUMS, *_OF_A_FILE) if kind.name == "appended" else _SUMS
    table = IcebergTable(
        name, "Sums.", columns, write=kind.mode, partitioning=_PARTITIONING, **parts
    )
    return Node(kind, table, tuple(dict.fromkeys(sources)))


def some_orders(chance: random.Random, number: int, *, has_person: bool) -> list[Order]:
    """Return some orders; a shop on a day may have orders of the person alone."""
    orders = []
    for _ in range(number):
        day = FIRST_DAY + timedelta(days=chance.randrange(7))
        is_theirs = has_person and chance.random() < 0.3
        customer = PERSON if is_theirs else chance.choice([8, 9])
        shop = chance.choice("abc" if is_theirs else "ab")
        amount = chance.randint(1, 99) + (LARGE if is_theirs else 0)
        orders.append((customer, day, shop, amount))
    return orders


@dataclass
class SomeSums:
    """The lakehouse of a home."""

    engine: Engine
    settings: Settings
    nodes: tuple[Node, ...]
    orders: list[Order] = field(default_factory=list)
    files: int = 0

    @property
    def tables(self) -> dict[str, IcebergTable]:
        """What is declared."""
        return {ORDERS.name: ORDERS, **{node.table.name: node.table for node in self.nodes}}

    @property
    def erasable(self) -> Erasable:
        """What there is to erase from."""
        sources = {node.table.name: set(node.sources) for node in self.nodes}
        erasable = erasable_of(self.settings, self.engine, self.tables, sources)
        return replace(erasable, make_definitions=lambda _: self.definitions)

    @property
    def suppression(self) -> SuppressionList:
        """The erased people."""
        return SuppressionList(lambda: read_suppressed(self.settings), self.tables)

    @property
    def definitions(self) -> dg.Definitions:
        """What Dagster is told."""
        io_manager = IcebergIOManager(
            engine=self.engine, declared=self.tables, suppression=self.suppression
        )
        return dg.Definitions(
            assets=[node.asset() for node in self.nodes],
            resources={"settings": self.settings, "io_manager": io_manager},
        )

    def land(self, orders: Sequence[Order]) -> None:
        """Append some orders, as one file."""
        self.orders += orders
        self.files += 1
        of_file = (f"{self.files}.csv", f"{self.files}")
        schema = ", ".join(f"{one.name} {one.type}" for one in ORDERS.columns)
        rows = [(*order, *of_file) for order in orders]
        write(self.engine, ORDERS, lambda: frame_of(self.engine.spark, schema, rows))

    def compute(self) -> None:
        """Compute what is stale, in order, as a run that nobody asked for."""
        for node in self.nodes:
            run = self._run(node)
            if run is not None:
                write(
                    self.engine,
                    node.table,
                    node.compute,
                    node.inputs,
                    run,
                    suppression=self.suppression,
                )

    def _run(self, node: Node) -> Run | None:
        definition, by = node.kind.definition, node.kind.by
        if definition is None or by is None:
            return Run(full_recompute=False)
        every = all_partitions_of(node.table, definition)
        stale = stale_values(self.engine, node.table, node.inputs, every)
        keys = definition.get_partition_keys()
        column_type = node.table.column(by).type
        holding = keys_holding(definition, keys, stale, column_type)
        wanted = [key for key in keys if key in holding]
        if not wanted:
            return None
        partitions = partitions_of(definition, wanted, column=by, column_type=column_type)
        return Run(partitions=partitions, full_recompute=False)

    def erase(self) -> int:
        """Erase the person from the orders; return how many rows went."""
        digest = person_hmac(hmac_key(self.settings), "customer_id", str(PERSON))
        add_suppressed(
            self.settings, [SuppressedPerson("customer_id", digest, datetime.now(UTC))]
        )
        self.orders = [order for order in self.orders if order[0] != PERSON]
        deleted = delete_rows(self.engine, ORDERS, [_person()], REQUEST)
        return deleted.rows.get("main", 0)

    def sums(self) -> Sums:
        """Return what has the person in its sums."""
        return find_sums(self.erasable, [_person()], [ORDERS.name])

    def compute_anew(self, rows: int) -> list[str]:
        """Compute anew what has the person in its sums, and return these tables.

        :param rows: how many rows went.
        """
        lost = {ORDERS.name: rows}
        return recompute_tables(self.erasable, REQUEST, self.sums(), lost)

    def rows(self, table: str) -> list[Sum]:
        """Return the sums of a table."""
        names = tuple(column.name for column in _SUMS)
        loaded = self.engine.catalog.load(table)
        found = loaded.scan(selected_fields=names).to_arrow().select(names).to_pylist()
        return sorted(tuple(row.values()) for row in found)

    def everything(self) -> dict[str, list[Sum]]:
        """Return the sums of all tables."""
        return {node.table.name: self.rows(node.table.name) for node in self.nodes}

    def expected(self, kept: Mapping[str, list[Sum]] = _NOTHING) -> dict[str, list[Sum]]:
        """Return what all tables should have by the orders that there are.

        :param kept: what some tables have, whatever the orders are.
        """
        given = {ORDERS.name: [(day, shop, 1, amount) for _, day, shop, amount in self.orders]}
        for node in self.nodes:
            name = node.table.name
            rows: Iterator[Sum] = (row for source in node.sources for row in given[source])
            given[name] = kept[name] if name in kept else node.expected(rows)
        del given[ORDERS.name]
        return given


def _person() -> Person:
    return Person("customer_id", frozenset({str(PERSON)}))
