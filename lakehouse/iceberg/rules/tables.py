"""Rules on many rows at once: no single row can be refused for them."""

from lakehouse.iceberg.rules.rule import OnFailure, Rule, made


def unique(*columns: str, on_failure: OnFailure = "block", **options: object) -> Rule:
    """Say that no two rows have the same values in these columns; a row with a NULL among them counts as itself."""
    return made("unique", columns, f"{', '.join(columns)} is unique", on_failure, options, unique_on=columns)
