"""Many messages as one say how many, where and of what, what is alike in one line; recoveries
alone are good news.
"""

from dataclasses import replace

from lakehouse.monitoring.alert_summary import summarize
from lakehouse.orchestration.alert import Alert
from lakehouse_tests.monitoring.breaks import at, firing, plan


def alerts(number: int, **parts) -> list[Alert]:
    keyed = [
        (f"{parts.get('kind', 'check')} {parts.get('table', 'silver.fruits')} {n}", n)
        for n in range(number)
    ]
    facts = tuple(
        firing(0, key=key, **{name: _nth(part, n) for name, part in parts.items()})
        for key, n in keyed
    )
    return plan({}, 0, *facts).alerts


def _nth(part, number: int):
    return part[number] if isinstance(part, list) else part


def test_checks_of_a_table_are_one_line_with_their_numbers() -> None:
    checks = alerts(21, severity="warn", brief="144 of 6,280 rows")
    found = summarize(
        [*checks, *alerts(1, table="gold.days", kind="blocked", title="gold.days is blocked")],
        at(1),
    )

    assert found.title == "22 alerts at once: 22 firing, in silver.fruits, gold.days"
    assert found.lines == (
        "Errors among it: 1",
        "- gold.days is blocked",
        "- silver.fruits: 21 checks warn, 144 of 6,280 rows",
        "Next: lakehouse alerts --open",
    )


def test_what_failed_of_one_cause_is_one_line_with_the_cause_and_the_tables() -> None:
    tables = [f"silver.t{number}" for number in range(12)]
    found = summarize(
        alerts(12, kind="failed", table=tables, brief="SetupError: The disk is full."), at(1)
    )

    assert (
        found.title
        == "12 alerts at once: 12 firing, in silver.t0, silver.t1, silver.t2 and 9 more"
    )
    assert (
        found.lines[1]
        == "- 12 runs failed: SetupError: The disk is full. (silver.t0, silver.t1, silver.t2"
        " and 9 more)"
    )


def test_tables_that_are_held_back_and_late_are_one_line_each_with_what_is_of_each() -> None:
    tables = [f"silver.t{number}" for number in range(12)]
    rules = [f"rule not_null_{number}" for number in range(12)]
    ages = [f"{number}.0 hours old" for number in range(12)]
    held = alerts(12, kind="blocked", table=tables, brief=rules)
    late = alerts(5, kind="overdue", table=tables, brief=ages)
    found = summarize([*held, *late], at(1))

    assert found.lines[1:3] == (
        (
            "- 12 tables are blocked: silver.t0 (rule not_null_0), silver.t1 (rule"
            " not_null_1), silver.t2 (rule not_null_2) and 9 more"
        ),
        (
            "- 5 deliveries and tables are overdue: silver.t0 (0.0 hours old), silver.t1 (1.0"
            " hours old), silver.t2 (2.0 hours old) and 2 more"
        ),
    )
    over = summarize([replace(one, saying="recovered") for one in held], at(1))
    assert (
        over.lines[0]
        == "- Resolved: 12 tables are blocked: silver.t0, silver.t1, silver.t2 and 9 more"
    )


def test_what_the_title_says_is_not_said_twice() -> None:
    one = alerts(
        1, kind="blocked", title="gold.days is blocked: rule r refused it", brief="rule r"
    )
    assert summarize(one, at(1)).lines[1] == "- gold.days is blocked: rule r refused it"


def test_recoveries_alone_are_good_news() -> None:
    over = [
        replace(one, saying="recovered", title=f"Resolved: {one.title}") for one in alerts(12)
    ]
    found = summarize(over, at(1))

    assert found.title == "Resolved: 12 incidents, in silver.fruits"
    assert found.saying == "recovered"
    assert found.lines == (
        "- Resolved: silver.fruits: 12 checks failed",
        "Next: lakehouse alerts",
    )


def test_what_is_over_stands_last() -> None:
    over = [
        replace(one, saying="recovered", title=f"Resolved: {one.title}")
        for one in alerts(3, table="gold.days")
    ]
    found = summarize([*over, *alerts(9, severity="warn")], at(1))

    assert found.title == "12 alerts at once: 9 firing, 3 resolved, in gold.days, silver.fruits"
    assert [line[:24] for line in found.lines[1:3]] == [
        "- silver.fruits: 9 check",
        "- Resolved: gold.days: 3",
    ]


def test_five_hundred_at_once_show_errors_first_and_no_more_than_ten_lines() -> None:
    tables = [f"silver.t{number}" for number in range(499)]
    many = [
        *alerts(499, severity="warn", table=tables),
        *alerts(1, table="gold.days", title="gold.days broke"),
    ]
    found = summarize(many, at(1))

    assert found.severity == "error"
    assert found.lines[:2] == ("Errors among it: 1", "- gold.days broke")
    assert "and 490 more like these." in found.lines


def test_a_summary_of_the_same_has_the_same_id() -> None:
    some = alerts(3)

    assert summarize(some, at(1)).alert_id == summarize(some[::-1], at(2)).alert_id
