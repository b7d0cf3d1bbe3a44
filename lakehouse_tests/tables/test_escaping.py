"""Names that others chose: what cannot be seen in them is shown, and a shell gets them as they
are.
"""

import subprocess

import pytest

from lakehouse.tables.quoting import quoted, shell_word, shown, visible

NAMES = [
    "a.csv",
    "a b.csv",
    "it's",
    "a\x1b[2Jb",
    "\ufeffid",
    "a\nb",
    "$(id)",
    "ä\u202eb",
    "\\x41\t",
    "-rf",
]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_that_is_shown_steers_a_terminal(name: str) -> None:
    for text in (quoted(name), shown(name), shell_word(name), visible(name)):
        assert text.isprintable()


@pytest.mark.parametrize("name", [*filter(str.isprintable, NAMES)])
def test_a_shell_gets_a_printable_name_as_it_is(name: str) -> None:
    printed = subprocess.run(
        ["bash", "-c", f"printf %s {shell_word('>' + name)}"], capture_output=True, check=True
    )
    assert printed.stdout.decode() == ">" + name


def test_a_plain_name_of_a_file_stays_as_it_is_and_that_of_a_column_is_quoted() -> None:
    assert [shown("2026/a-1_b.csv.gz"), shown("früh.csv"), shown(""), shown("a b")] == [
        "2026/a-1_b.csv.gz",
        "früh.csv",
        "''",
        "'a b'",
    ]
    assert [quoted("id"), quoted(" fruit"), quoted("x" * 61)] == [
        "'id'",
        "' fruit'",
        f"'{'x' * 60}'…",
    ]


def test_what_can_be_seen_stays_as_it_is_and_the_rest_is_what_spark_reads_in_a_literal() -> (
    None
):
    assert visible("früh – 'a' \\n") == "früh – 'a' \\n"
    assert visible("a\n\x1b[2J\udcff\U000e0001") == "a\\n\\u001b[2J\\udcff\\U000e0001"
