"""Steps that find out who is to be erased, and note that they are gone before anything of them
goes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from lakehouse.privacy.audit_chain import AuditedAction
from lakehouse.privacy.delivered_files import find_in_files
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.erased_people import people_in, shared_values
from lakehouse.privacy.erasure import Erasure
from lakehouse.privacy.gone import GonePerson, add_gone
from lakehouse.privacy.hmac_key import hmac_key
from lakehouse.privacy.identity import Identity, Named, find_people
from lakehouse.privacy.sealed_values import SealedValues, seal, unseal
from lakehouse.privacy.unread_tables import unread_tables
from lakehouse.tables.person import folded, person_hmac


def note_request(erasure: Erasure) -> None:
    """Say in the audit table that the request was made; one that is done needs no more."""
    request = erasure.request
    actions = []
    for person in request.people:
        actions.append(
            AuditedAction(
                "requested",
                request.request_id,
                erasure.how.by,
                subject=person.column,
                person=person.hmac,
            )
        )
    erasure.audit_all("requested", actions)
    erasure.note_elsewhere()
    if request.is_final:
        erasure.end()


def identify(erasure: Erasure) -> None:
    """Find out who is meant, once: what leads to them goes with the first rows."""
    settings, request_id = erasure.erasable.settings, erasure.request.request_id
    sealed = unseal(settings, request_id)
    if not sealed.people:
        named = [Named(column, value) for column, value in sealed.named]
        sealed = _found_people(erasure, named)
        seal(settings, request_id, sealed)
    if sealed.people:
        erasure.persons = sealed.people
        return
    erasure.note_places(tuple(unread_tables(erasure.erasable)))
    if erasure.record.unattended:
        # What was not looked through may hold them.
        erasure.is_over = True
        return
    erasure.move("not_found")
    erasure.end()


def _found_people(erasure: Erasure, named: Sequence[Named]) -> SealedValues:
    erasable, persons, unknown = erasure.erasable, [], []
    found = erasure.found or find_people(erasable.engine, erasable.subjects, named)
    for identity in found:
        if identity.is_known or is_delivered(erasable, identity):
            persons.append(identity.person)
        else:
            unknown.append(identity)
    if unknown:
        erasure.audit_all("not_found", list(_not_found(erasure, unknown)))
        erasure.keep(replace(erasure.record, unknown=len(unknown)))
    return SealedValues(tuple((one.column, one.value) for one in named), tuple(persons))


def _not_found(erasure: Erasure, unknown: Sequence[Identity]) -> Iterator[AuditedAction]:
    key = hmac_key(erasure.erasable.settings)
    for identity in unknown:
        subject = identity.person.subject.lower()
        digest = person_hmac(key, subject, identity.normal_id)
        yield AuditedAction(
            "not_found",
            erasure.request.request_id,
            erasure.how.by,
            subject=subject,
            person=digest,
        )


def is_delivered(erasable: Erasable, identity: Identity) -> bool:
    """Whether a delivered file has rows of somebody whom no table has."""
    for feed, holder, persons in erasable.feeds_of([identity.person]):
        people = people_in(holder, persons, frozenset())
        if find_in_files(erasable.store, feed, people, home=erasable.settings.home):
            return True
    return False


def mark_gone(erasure: Erasure) -> None:
    """Put the people on the list of who is gone, before anything of them goes."""
    key = hmac_key(erasure.erasable.settings)
    erased_at = erasure.record.erased_at or datetime.now(UTC)
    erasure.shared = shared_values(erasure.erasable, erasure.persons)
    gone, hmacs, personal = [], [], []
    for person in erasure.persons:
        subject = erasure.erasable.subject_of(person)
        names = {person.subject.lower(), subject.name}
        is_by_id = person.subject.lower() in subject.names
        for value in sorted(person.ids):
            hmacs += [person_hmac(key, name, value) for name in sorted(names)]
            for name in sorted(subject.names if is_by_id else {person.subject.lower()}):
                gone.append(GonePerson(name, person_hmac(key, name, value), erased_at))
        for name, values in person.personal.items():
            own = sorted(map(folded, values - erasure.shared))
            personal += [person_hmac(key, name, value) for value in own if value]
    record = replace(
        erasure.record,
        erased_at=erased_at,
        hmacs=tuple(dict.fromkeys(hmacs)),
        personal_hmacs=tuple(dict.fromkeys(personal)),
    )
    erasure.keep(record)
    add_gone(erasure.erasable.settings, gone)
