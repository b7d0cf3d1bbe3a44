"""Each snippet that no longer works is run as written, and what works is run too."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse.cli.tables.sql import split
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.spark.spark_session import open_session
from lakehouse_tests.docs.markdown import ROOT, Block, Section, sections

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = ROOT / "docs" / "iceberg-on-aws-snippets.md"
SECTIONS = [section for section in sections(PAGE) if section.level == 3]
ROLES = {"as-written", "fails", "but", "works"}
NOT_RUN = "Not run by the test: "


@pytest.mark.long
@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.title)
def test_a_snippet_does_what_the_page_says(section, spark, settings, request):
    on_s3 = any("on-s3" in block.words for block in section.blocks)
    given = request.getfixturevalue("aws_settings") if on_s3 else settings
    session = open_session(given, Catalog.of(given))
    _make_table(session)
    names = {"spark": session, "home": given.home, "warehouse": given.warehouse}
    failure: BaseException | None = None
    for block in section.blocks:
        role = _role(block)
        if role == "as-written":
            failure = None if NOT_RUN in section.text else _attempt(block, session, names)
        elif role == "fails":
            assert failure is not None, "it works as written"
            assert block.text.strip() in str(failure)
        else:
            assert role == "works" or failure is None, failure
            _run(block, session, names)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.title)
def test_a_section_shows_a_snippet_and_what_comes_of_it(section: Section) -> None:
    roles = [_role(block) for block in section.blocks]
    assert roles[0] == "as-written"
    assert roles.count("fails") + roles.count("but") == (0 if NOT_RUN in section.text else 1)


def _role(block: Block) -> str:
    (role,) = ROLES.intersection(block.words)
    return role


def _make_table(session: "SparkSession") -> None:
    session.sql("CREATE NAMESPACE IF NOT EXISTS snippets")
    (made,) = (block for block in sections(PAGE)[0].blocks if "table" in block.words)
    _run(made, session, {})


def _attempt(
    block: Block, session: "SparkSession", names: dict[str, Any]
) -> BaseException | None:
    try:
        _run(block, session, names)
    except Exception as error:
        return error
    return None


def _run(block: Block, session: "SparkSession", names: dict[str, Any]) -> None:
    runners: dict[str, Callable[[], None]] = {
        "sql": lambda: _run_sql(block.text, session),
        "python": lambda: exec(compile(block.text, f"{PAGE.name}:{block.line}", "exec"), names),
        "text": lambda: None,
    }
    runners[block.language]()


def _run_sql(text: str, session: "SparkSession") -> None:
    for statement in split(text):
        session.sql(statement).collect()
