"""A person's rows go from delivered files, and nothing else does."""

import gzip
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lakehouse.iceberg.erasure.suppression_list import NO_SUPPRESSION
from lakehouse.ingestion.archive import archive_files
from lakehouse.ingestion.collect import collect_files
from lakehouse.ingestion.feed_lock import lock_feed
from lakehouse.ingestion.rewritten_files import NOTHING, RewrittenFiles
from lakehouse.privacy.delivered_files import find_in_files
from lakehouse.privacy.erasable import people_in
from lakehouse.privacy.holders import find_subjects
from lakehouse.tables.feed import Feed, FeedColumn, bronze_table
from lakehouse.tables.person import Person
from lakehouse_tests.conftest import keep_versions
from lakehouse_tests.privacy.files.conftest import (
    ANN,
    ANNS,
    ARCHIVED,
    BOBS,
    CUSTOMERS,
    CYS,
    HEADER,
    MIXED,
    WITHOUT,
    sha256,
    suppressed,
)

BOB = Person("customer_id", frozenset({"8"}), {"email": frozenset({"bob@example.com"})})
LATER = datetime(2026, 6, 1, tzinfo=UTC)
CUSTOMERS_BY_MAIL = replace(
    CUSTOMERS,
    columns=["customer_id", FeedColumn("E-Mail", personal=True)],
    moment=None,
)


@pytest.mark.parametrize(
    "key", ["inbox/customers/c.csv", f"{ARCHIVED}c.{{}}.csv", "rejected/customers/c.{}.csv"]
)
def test_rows_go_and_all_other_bytes_stay(files, key: str) -> None:
    key = files.put(key, MIXED)

    done = files.erase()

    assert files.text(key) == WITHOUT
    assert [(file.key, file.rows) for file in done.files] == [(key, 1)]
    assert done.unreadable == ()


@pytest.mark.parametrize("rest", ["", "10;x;y\n"], ids=["readable", "ragged"])
def test_rows_go_from_files_of_another_delimiter(folder, rest: str) -> None:
    folder.feed = replace(folder.feed, delimiter=";")
    note = '"8;9,\n7";bob@example.com\n'
    text = MIXED.replace(",", ";") + note + rest
    key = folder.put(f"{ARCHIVED}c.{{}}.csv", text)

    folder.erase()

    assert folder.text(key) == WITHOUT.replace(",", ";") + note + rest


def test_a_file_without_the_person_is_not_touched(files) -> None:
    key = files.put(f"{ARCHIVED}c.{{}}.csv", WITHOUT)
    before = files.store.stat(key)

    done = files.erase()

    assert files.store.stat(key) == before
    assert done.files == ()


def test_a_compressed_file_is_compressed_again_to_the_same_bytes(files) -> None:
    once = files.put(f"{ARCHIVED}c.{{}}.csv.gz", gzip.compress(MIXED.encode()))
    twice = files.put(f"{ARCHIVED}d.{{}}.csv.gz", gzip.compress(MIXED.encode()))

    files.erase()

    assert files.text(once) == WITHOUT
    assert files.read(once) == files.read(twice)
    assert files.read(once)[4:8] == b"\0\0\0\0"


@pytest.mark.parametrize(
    ("content", "left"),
    [
        pytest.param(
            "\ufeff\r\nemail,customer_id\r\n\r\nann@example.com,7\r\nx,8",
            "\ufeff\r\nemail,customer_id\r\n\r\nx,8",
            id="a mark, blank lines, another order, no last line end",
        ),
        pytest.param(
            'customer_id,email\r8,"a ""b""\n7,c"\r7,"x\r\ny"\r',
            'customer_id,email\r8,"a ""b""\n7,c"\r',
            id="line breaks in values",
        ),
        pytest.param(
            'customer_id,email\n"+007",x\n 7 ,x\n77,x\n7.0,x\n',
            "customer_id,email\n77,x\n",
            id="all forms of the id",
        ),
        pytest.param(
            "customer_id,email\n, ann@example.com \n8,ann@example.com\n",
            "customer_id,email\n8,ann@example.com\n",
            id="the address alone, and another's that is the same",
        ),
        pytest.param(HEADER + ANNS, HEADER, id="no row is left"),
        pytest.param(
            "customer_id,email,more\n7,x,y\n8,b,c\n",
            "customer_id,email,more\n8,b,c\n",
            id="an unknown column",
        ),
        pytest.param(
            HEADER + "8,b,b,b\n7,a,a\n9,c\n", HEADER + "8,b,b,b\n9,c\n", id="a ragged row"
        ),
        pytest.param(
            "x,y\n1,ann@example.com\n2,b\n", "x,y\n2,b\n", id="a header that nobody knows"
        ),
        pytest.param(ANNS + BOBS, BOBS, id="no header"),
        pytest.param(
            HEADER + ANNS + '8,"b\n9,c\n', HEADER + '8,"b\n9,c\n', id="an open quote behind"
        ),
    ],
)
def test_only_the_bytes_of_the_rows_are_removed(folder, content: str, left: str) -> None:
    """Also from files that are not as their feed declares."""
    key = folder.put(f"{ARCHIVED}c.{{}}.csv", content)

    done = folder.erase()

    assert folder.text(key) == left
    assert done.unreadable == ()


def test_without_a_subject_a_personal_value_tells(folder) -> None:
    folder.feed = Feed(
        "customers", [FeedColumn("email", personal=True), "n"], "bronze.raw_customers"
    )
    key = folder.put(f"{ARCHIVED}c.{{}}.csv", "n,email\n1,ann@example.com\n7,bob\n")

    folder.erase()

    assert folder.text(key) == "n,email\n7,bob\n"


def test_a_value_of_a_customer_goes_from_a_feed_without_ids_whatever_its_spelling(
    folder,
) -> None:
    """The column of the feed has upper case letters too."""
    folder.feed = Feed(
        "letters",
        [FeedColumn("E-Mail", personal=True), "n"],
        "bronze.letters",
        no_subject="By address alone.",
    )
    letters, customers = bronze_table(folder.feed, ""), bronze_table(CUSTOMERS_BY_MAIL, "")
    tables = {table.name: table for table in (letters, customers)}
    (subject,) = find_subjects(tables, {})
    (holder,) = (one for one in subject.holders if one.table == letters.name)
    ann = Person("customer_id", frozenset({"7"}), {"e-mail": frozenset({"ann@example.com"})})
    key = folder.put(
        "archive/letters/2026-11-01/c.{}.csv", "n,E-Mail\n1,Ann@example.com\n7,b\n"
    )

    folder.erase(*people_in(holder, [ann], frozenset()))

    assert folder.text(key) == "n,E-Mail\n7,b\n"


def test_it_is_done_once_and_said_again(files) -> None:
    key = files.put(f"{ARCHIVED}c.{{}}.csv", MIXED)
    first = files.erase()
    before = files.store.stat(key)

    assert files.erase() == first
    assert files.store.stat(key) == before


def test_another_request_goes_on_from_there_and_rows_keep_their_numbers(files) -> None:
    key = files.put(f"{ARCHIVED}c.{{}}.csv", MIXED + BOBS)
    files.erase()

    done = files.erase(BOB, request="R-2")

    assert files.text(key) == HEADER + CYS
    assert [file.rows for file in done.files] == [2]


def test_a_dry_run_counts_and_changes_nothing(files) -> None:
    key = files.put(f"{ARCHIVED}c.{{}}.csv", MIXED)

    assert find_in_files(files.store, files.feed, [ANN], home=files.home) == {key: 1}
    assert files.text(key) == MIXED


def test_no_value_is_in_the_ledger(folder) -> None:
    folder.put("inbox/customers/ann@example.com.csv", MIXED)

    done = folder.erase()

    ledger = folder.home / "privacy" / "rewritten"
    written = "".join(path.read_text() for path in ledger.rglob("*.json"))
    assert "R-1" in written
    assert "ann@" not in written
    assert [(file.key, file.why) for file in done.unreadable] == [
        ("inbox/customers/[erased].csv", "its name contains a value of a person")
    ]


def test_what_a_killed_process_left_is_removed(folder) -> None:
    left = folder.put(f"{ARCHIVED}.c.csv.tmp", MIXED)
    staged = folder.put("staging/customers/dead/rows/a.parquet", MIXED)

    folder.erase()

    assert not folder.store.exists(left)
    assert not folder.store.exists(staged)


@pytest.mark.long
def test_versions_that_a_bucket_keeps_go_too(bucket) -> None:
    files = bucket
    keep_versions(files.store)
    files.put("inbox/customers/c.csv", MIXED)
    ingest(files)
    files.put(f"{ARCHIVED}d.csv", WITHOUT)
    files.put(f"{ARCHIVED}d.csv", HEADER)
    files.put(f"{ARCHIVED}e.csv", MIXED)

    files.erase()

    old_versions = files.store.old_versions("archive/") + files.store.old_versions("inbox/")
    kept = [files.store.open_old(old).read() for old in old_versions]
    assert kept == [WITHOUT.encode()]


HIDDEN = [
    pytest.param("c.{}.csv", HEADER + '8,"b\n7,ann@example.com\n', id="behind an open quote"),
    pytest.param("c.{}.csv", HEADER + '8,"b\n7,other\n', id="an id behind an open quote"),
    pytest.param("c.{}.csv", "x,y\n7,b\n", id="an id in a column that nobody knows"),
    pytest.param("c.{}.csv", MIXED.encode("utf-16"), id="another encoding"),
    pytest.param("c.{}.csv.gz", gzip.compress(MIXED.encode())[:-9], id="a cut archive"),
    pytest.param("c.{}.xlsx", b"PK\x03\x04\0\0", id="another kind of file"),
]


@pytest.mark.parametrize(("name", "content"), HIDDEN)
def test_what_cannot_be_told_is_listed_and_can_be_erased_as_a_whole(
    files, name: str, content: str | bytes
) -> None:
    key = files.put(f"rejected/customers/{name}", content)

    listed = files.erase().unreadable
    done = files.erase(erase_whole=[key])

    assert [file.key for file in listed] == [key]
    assert "ann@" not in str(listed)
    assert (files.read(key), done.unreadable) == (b"", ())
    assert [file.new_sha256 for file in done.files] == [NOTHING]
    assert files.erase() == replace(done, emptied=frozenset())


def ingest(files, suppression=NO_SUPPRESSION):
    """Collect and archive what waits."""
    with lock_feed(files.feed, files.home) as held:
        delivery = collect_files(files.store, held, suppression=suppression)
        return delivery, archive_files(delivery, files.store)


@pytest.mark.parametrize("form", [MIXED, WITHOUT])
def test_either_form_delivered_again_is_the_same_delivery(files, form: str) -> None:
    files.put("inbox/customers/c.csv", MIXED)
    ingest(files)
    files.erase()

    files.put("inbox/customers/c.csv", form)

    assert files.staged() == [(sha256(MIXED), 1, "8"), (sha256(MIXED), 3, "9")]


@pytest.mark.parametrize("form", [MIXED, WITHOUT])
def test_either_form_is_archived_once_and_only_as_rewritten(files, form: str) -> None:
    files.put("inbox/customers/c.csv", MIXED)
    ingest(files)
    files.erase()
    files.put("inbox/customers/c.csv", form)

    delivery, archived = ingest(files)

    (item,) = files.store.objects(files.feed.archive)
    assert archived == (item.key,)
    assert sha256(MIXED)[:12] in item.key
    assert files.text(item.key) == WITHOUT
    assert files.store.objects(files.feed.inbox) == []
    assert delivery.suppressed_rows == 1
    assert "1 row of people who were erased" in delivery.warnings[0]


def test_a_file_that_waits_keeps_the_numbers_of_its_rows(files) -> None:
    files.put("inbox/customers/c.csv", MIXED)
    files.erase()

    assert files.staged() == [(sha256(MIXED), 1, "8"), (sha256(MIXED), 3, "9")]


def test_a_rejected_file_that_is_put_back_stays_rewritten_under_its_name(files) -> None:
    broken = MIXED + "1,2,3\n"
    files.put("inbox/customers/c.csv", broken)
    ingest(files)
    files.erase()
    files.put("inbox/customers/c.csv", broken)

    (rejected,) = ingest(files)[0].rejected

    assert rejected.sha256 == sha256(broken)
    assert files.text(rejected.key) == WITHOUT + "1,2,3\n"


def test_a_file_that_was_erased_as_a_whole_does_not_come_back(files) -> None:
    hidden = HEADER + '8,"b\n7,ann@example.com\n'
    files.put("inbox/customers/c.csv", hidden)
    ((rejected,), _) = (ingest(files)[0].rejected, None)
    files.erase(erase_whole=[rejected.key])
    files.put("inbox/customers/c.csv", hidden)

    (again,) = ingest(files)[0].rejected

    assert again.key == rejected.key
    assert files.read(again.key) == b""


@pytest.mark.parametrize("name", ["c.csv", "c.csv.gz"])
def test_rows_of_who_is_gone_do_not_land_and_are_not_archived(files, name: str) -> None:
    content = MIXED.encode()
    content = gzip.compress(content) if name.endswith(".gz") else content
    files.put(f"inbox/customers/{name}", content)

    delivery, archived = ingest(files, suppressed({"7": LATER}))

    assert (delivery.rows, delivery.suppressed_rows) == (2, 1)
    assert files.text(archived[0]) == WITHOUT
    assert delivery.files[0].sha256 == sha256(content)


def test_a_row_that_is_newer_lands(folder) -> None:
    moments = [
        "2026-05-31T23:59:59Z",
        "2026-06-01 08:00+07:00",
        "2026-06-01",
        "2026-06-01T00:00:00.5",
        "soon",
        "",
    ]
    rows = "".join(f"7,a,{moment}\n" for moment in moments)
    folder.put("inbox/customers/c.csv", f"customer_id,email,made_at\n{rows}")

    numbers = [row[1] for row in folder.staged(suppressed({"7": LATER}))]

    assert numbers == [2, 3, 4]


def test_of_a_rejected_file_the_rows_of_who_is_gone_go(files) -> None:
    files.put("inbox/customers/c.csv", MIXED + "1,2,3\n")

    (rejected,) = ingest(files, suppressed({"7": LATER}))[0].rejected

    assert files.text(rejected.key) == WITHOUT + "1,2,3\n"


def test_a_damaged_ledger_stops_an_ingest(folder) -> None:
    from lakehouse.errors import LakehouseError

    folder.put("inbox/customers/c.csv", MIXED)
    folder.put(f"privacy/rewritten/customers/{sha256(MIXED)}.json", "{")

    with pytest.raises(LakehouseError, match="Put a copy of it back"):
        folder.staged()


class Killed(BaseException):
    """As the process ends."""


class KilledStore:
    """A store whose process ends at one of its changes, before or after it."""

    def __init__(self, store, at: int) -> None:
        self._store = store
        self._left = at

    def __getattr__(self, name: str):
        effect = getattr(self._store, name)
        if name not in ("exchange", "write_text", "remove", "put", "move"):
            return effect

        def killed(*arguments):
            self._left -= 1
            if self._left == 0:
                raise Killed
            done = effect(*arguments)
            self._left -= 1
            if self._left == 0:
                raise Killed
            return done

        return killed


def test_an_ingest_killed_at_each_step_ends_in_the_same_state(folder, tmp_path) -> None:
    suppression = suppressed({"7": LATER})
    for at in range(1, 100):
        one = replace(folder, home=tmp_path / f"killed-{at}")
        one.store = replace(folder.store, root=one.home)
        one.put("inbox/customers/c.csv", MIXED)
        try:
            ingest(replace(one, store=KilledStore(one.store, at)), suppression)
        except Killed:
            ingest(one, suppression)
        else:
            break
        (item,) = one.store.objects(one.feed.archive)
        assert one.text(item.key) == WITHOUT
        assert RewrittenFiles(one.store, one.feed).find(
            item.key, sha256(WITHOUT)
        ).missing == frozenset({2})
    assert at > 6


@pytest.mark.parametrize("rest", ["", "10,ragged,x\n"])
def test_people_are_found_where_files_call_the_columns_otherwise(files, rest):
    """Also in a file that is not as its feed declares."""
    columns = [
        FeedColumn("customer_id", header="Cust. No."),
        FeedColumn("email", header="E-Mail Adr.", personal=True),
    ]
    own = replace(
        files,
        feed=Feed("customers", columns, "bronze.raw_customers", subject="customer_id"),
    )
    header = "Cust. No.,E-Mail Adr.\n"
    key = own.put(f"{ARCHIVED}a-{{}}.csv", header + BOBS + ANNS + CYS + rest)
    own.erase()

    assert own.text(key) == header + BOBS + CYS + rest
