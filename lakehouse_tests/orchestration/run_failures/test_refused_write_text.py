"""What a refusal says: where the rows are kept, and the commands that go on, as they are
run.
"""

from lakehouse.iceberg.values.write_result import Refused
from lakehouse.orchestration.failure_texts import refusal

RUN = "0123abcd-0000-4000-8000-000000000000"


def message(branch: str) -> str:
    return str(refusal(Refused("silver.t", "w", 7, branch=branch), RUN).description)


def test_it_names_the_branch_and_the_commands_with_the_run() -> None:
    text = message("refused_1")
    assert "the refused rows are kept on its branch refused_1 for 7 days." in text
    assert text.endswith(
        "run `lakehouse retry silver.t`; "
        "or publish them all the same with `lakehouse publish silver.t --run 0123abcd --why …`."
    )


def test_where_nothing_was_staged_no_branch_is_named_and_nothing_can_be_published() -> None:
    text = message("")
    assert "branch" not in text
    assert "lakehouse publish" not in text
    assert "nothing was written that could be looked at" in text
