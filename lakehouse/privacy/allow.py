"""Allows new rows of erased people, and records the decision."""

from collections.abc import Sequence
from datetime import UTC, datetime

from lakehouse.errors import UsageError
from lakehouse.privacy.audit_chain import AuditedAction, append_actions
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.folder import hmac_key
from lakehouse.privacy.gone import allow_again, read_gone
from lakehouse.privacy.holders import subject_of
from lakehouse.privacy.identity import Named
from lakehouse.tables.person import Person, person_hmac

_NO_REQUEST = "allow"
"""The request id in the audit table: the decision belongs to no request."""


def allow_people(erasable: Erasable, named: Sequence[Named], *, by: str, why: str) -> None:
    """Allow new rows of erased people.

    :raises UsageError: if a person is not on the suppression list. It contains no value.
    """
    settings, now = erasable.settings, datetime.now(UTC)
    key = hmac_key(settings, is_needed=True)
    for number, one in enumerate(named, start=1):
        subject = subject_of(erasable.subjects, Person(one.column, frozenset()))
        is_id = one.column.lower() in subject.names
        names = sorted(subject.names) if is_id else [one.column.lower()]
        digests = {name: person_hmac(key, name, one.value) for name in names}
        listed = read_gone(settings).erased_at
        actions = [
            AuditedAction("allowed_again", _NO_REQUEST, by, name, digest)
            for name, digest in digests.items()
            if bytes.fromhex(digest) in listed
        ]
        if not actions:
            raise UsageError(
                f"Person {number}, named by {one.column}, is not on the list of erased people;"
                " expected an id as it was erased.",
                next_step="`lakehouse erasures` lists the requests.",
            )
        occasion = f"allow-{now:%Y%m%dT%H%M%S.%f}-{number}"
        append_actions(settings, erasable.engine, erasable.audit, actions, occasion, now=now)
        allow_again(settings, digests.values(), by=by, why=why)
