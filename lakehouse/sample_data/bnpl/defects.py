"""The defects of rows, as texts that replace valid values."""

from collections.abc import Mapping

Texts = tuple[str, ...]
EMPTY: Texts = ("",)

NONE = 0
"""The code of a valid row; defects start at 1."""
DEFECTS: Mapping[str, Mapping[str, Texts]] = {
    "missing transaction_id": {"transaction_id": EMPTY},
    "unreadable transaction_id": {
        "transaction_id": ("TX-17", "unknown", "9223372036854775808")
    },
    "missing customer_id": {"customer_id": EMPTY},
    "unreadable customer_id": {"customer_id": ("guest", "C-88")},
    "missing merchant_id": {"merchant_id": EMPTY},
    "missing amount": {"amount": EMPTY},
    "negative amount": {"amount": ("-25.00", "-0.01")},
    "zero amount": {"amount": ("0.00", "0")},
    "amount with three decimals": {"amount": ("19.999", "100.005", "0.001")},
    "unreadable amount": {"amount": ("twelve", "RM 25.00", "n/a")},
    "too large amount": {"amount": ("123456789.00", "100000000.00")},
    "missing currency": {"currency": EMPTY},
    "unknown currency": {"currency": ("USD", "XXX", "myr")},
    "missing installments": {"installments": EMPTY},
    "unreadable installments": {"installments": ("six", "n/a")},
    "unknown installments": {"installments": ("2", "24", "0")},
    "missing status": {"status": EMPTY},
    "unknown status": {"status": ("SETTLED", "UNKNOWN", "approved")},
    "missing transaction_date": {"transaction_date": EMPTY},
    "unreadable transaction_date": {"transaction_date": ("2025-02-30", "soon", "31/12/2024")},
    "transaction_date in the future": {"transaction_date": ("2999-12-31", "2999-01-01")},
    "transaction_date before 2020": {"transaction_date": ("2019-12-31", "1999-01-01")},
    "missing created_at": {"created_at": EMPTY},
    "unreadable created_at": {"created_at": ("not a time", "2025-02-30T10:00:00+08:00")},
    "amount and status": {"amount": ("-5.00",), "status": ("UNKNOWN",)},
    "currency and installments": {"currency": ("USD",), "installments": ("5",)},
    "transaction_id and amount": {"transaction_id": EMPTY, "amount": ("twelve",)},
    "malformed e-mail": {
        "customer_email": ("nobody", "a b@example.com", "@example.com", "nobody@")
    },
}
CODES: Mapping[str, int] = {name: code for code, name in enumerate(DEFECTS, start=1)}

OF_A_VERSION: tuple[str, ...] = (
    "missing customer_id",
    "negative amount",
    "amount with three decimals",
    "unreadable amount",
    "unknown currency",
    "unknown installments",
    "unknown status",
    "transaction_date in the future",
    "missing merchant_id",
    "amount and status",
)
"""Defects of a version whose transaction and version order remain readable."""
CORRECTED: tuple[str, ...] = (
    *OF_A_VERSION,
    "unreadable created_at",
    "unreadable transaction_date",
)
"""Defects that a newer, valid version corrects."""
