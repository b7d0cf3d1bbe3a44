"""Which columns are about people, told from declarations alone; no person slips through a table
between.
"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.orchestration.load_validation import check_subjects
from lakehouse.tables.feed import Feed, FeedColumn, bronze_table
from lakehouse.tables.person import Origin, names_of, origins_of
from lakehouse.tables.table import Append, Column, IcebergTable, Merge

pytestmark = pytest.mark.unit

NAMES = ("id", "customer_id", "client_id", "email", "Email", "amount")


def table(name: str, *columns: Column | str, **declaration: object) -> IcebergTable:
    typed = [Column(one, "string") if isinstance(one, str) else one for one in columns]
    return IcebergTable(f"silver.{name}", "", typed, write=Append(once_by=()), **declaration)


def by_name(*tables: IcebergTable) -> dict[str, IcebergTable]:
    return {one.name: one for one in tables}


CUSTOMERS = table(
    "customers", "customer_id", Column("email", "string", personal=True), subject="customer_id"
)
READS_CUSTOMERS = {"silver.reader": {"silver.customers"}}


@pytest.mark.parametrize(
    "column",
    [
        Column("customer_id", "bigint"),
        Column("CUSTOMER_ID", "bigint"),
        Column("email", "string"),
        Column("client", "bigint", renamed_from="customer_id"),
    ],
    ids=lambda column: column.name,
)
def test_a_table_that_has_a_column_about_people_declares_a_subject(column: Column) -> None:
    reader = table("reader", "amount", column)
    with pytest.raises(
        DeclarationError,
        match=rf"^silver\.reader has {column.name} \((the subject|personal) in silver\.customers\)"
        r", and declares no subject; .*no_subject='why'",
    ):
        check_subjects(by_name(CUSTOMERS, reader), READS_CUSTOMERS, [])

    told = by_name(CUSTOMERS, replace(reader, no_subject="Figures by e-mail domain."))
    check_subjects(told, READS_CUSTOMERS, [])


def test_a_personal_column_of_its_own_asks_for_a_subject() -> None:
    alone = table("alone", Column("email", "string", personal=True))
    with pytest.raises(DeclarationError, match=r"email \(personal in silver\.alone\)"):
        check_subjects(by_name(alone), {}, [])


def test_a_table_between_that_says_why_it_has_no_subject_hides_nobody() -> None:
    between = table("between", "customer_id", no_subject="Keys alone.")
    last = table("last", "customer_id")
    sources = {between.name: {CUSTOMERS.name}, last.name: {between.name}}
    with pytest.raises(DeclarationError, match=r"^silver\.last has customer_id"):
        check_subjects(by_name(last, between, CUSTOMERS), sources, [])


def test_what_a_feed_delivers_is_an_input_of_its_table() -> None:
    feed = Feed("people", [FeedColumn("email", personal=True)], table="silver.people")
    by_hand = table("people", "email")
    with pytest.raises(DeclarationError, match=r"email \(personal in silver\.people\)"):
        check_subjects(by_name(by_hand), {}, [feed])
    told = replace(feed, no_subject="Newsletters know an address alone.")
    check_subjects(by_name(bronze_table(told, "People.")), {}, [told])


def test_a_quarantine_follows_its_table() -> None:
    refusing = replace(CUSTOMERS, write=Merge(on="customer_id"), rules=[not_null("email")])
    assert refusing.quarantine is not None
    assert refusing.quarantine.subject == "customer_id"
    assert refusing.quarantine.personal_columns == {"email"}
    nobody = replace(refusing, subject=None, no_subject="Why not.")
    assert nobody.quarantine is not None
    assert nobody.quarantine.no_subject == "Why not."


def test_no_partition_is_of_a_column_that_stands_for_a_person_elsewhere() -> None:
    reader = table("reader", "customer_id", no_subject="Why.", partitioning=["customer_id"])
    with pytest.raises(DeclarationError, match=r"partitioned by customer_id \(the subject in"):
        check_subjects(by_name(CUSTOMERS, reader), READS_CUSTOMERS, [])
    buckets = replace(reader, partitioning=["bucket(4, customer_id)"])
    check_subjects(by_name(CUSTOMERS, buckets), READS_CUSTOMERS, [])


columns = st.builds(
    Column,
    name=st.sampled_from(NAMES),
    type=st.just("string"),
    personal=st.booleans(),
    renamed_from=st.lists(st.sampled_from(NAMES), max_size=1),
).filter(lambda column: column.name not in column.renamed_from)


@st.composite
def declared_lakehouses(draw: st.DrawFn) -> tuple[dict[str, IcebergTable], dict[str, set[str]]]:
    """Some tables with some columns, each computed from some tables, itself among them."""
    count = draw(st.integers(1, 5))
    tables, sources = {}, {}
    for number in range(count):
        drawn = draw(
            st.lists(columns, min_size=1, max_size=3, unique_by=lambda one: one.name.lower())
        )
        subject = draw(st.sampled_from([None, *(one.name for one in drawn)]))
        reason = draw(st.sampled_from([None, "why"])) if subject is None else None
        try:
            one = table(f"t{number}", *drawn, subject=subject, no_subject=reason)
        except DeclarationError:
            continue
        tables[one.name] = one
        sources[one.name] = draw(
            st.sets(st.sampled_from([f"silver.t{n}" for n in range(count)]))
        )
    return tables, sources


def reached(
    tables: dict[str, IcebergTable], sources: dict[str, set[str]], name: str, column: Column
) -> set[Origin]:
    """Follow a column to where it comes from, one step after the other; the slow and plain way."""
    found, seen, waiting = set(), set(), [(name, column.name)]
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        here = tables[at[0]]
        if at[1] == here.subject:
            found.add(Origin(here.name, at[1], is_subject=True))
        if here.column(at[1]).personal:
            found.add(Origin(here.name, at[1], is_subject=False))
        for source in sources[at[0]] & tables.keys() - {at[0]}:
            for other in tables[source].columns:
                if names_of(other) & names_of(here.column(at[1])):
                    waiting.append((source, other.name))
    return found


@given(declared_lakehouses())
def test_a_column_is_about_people_if_and_only_if_one_that_it_comes_from_is(lakehouse) -> None:
    tables, sources = lakehouse
    found = origins_of(tables, sources)
    for name, one in tables.items():
        for column in one.columns:
            assert found[name].get(column.name, set()) == reached(tables, sources, name, column)
