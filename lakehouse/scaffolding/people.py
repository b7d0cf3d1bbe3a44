"""Which columns look as if they tell of people: by their names, and by what stands in them.

Words are in the languages of most files of Europe and the Americas, without the marks of their
letters. German and its neighbours join words: `Kundennummer` is one.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from lakehouse.scaffolding.column_profile import ColumnProfile
from lakehouse.scaffolding.uniqueness import is_key_name
from lakehouse.scaffolding.words import words_of

AmongPeople = Literal["", "their data", "their keys"]
_FEWEST_DIGITS = 2
"""Numbers of one digit tell whether somebody is one, and not who."""
_PERSONAL = frozenset(
    {"email", "mail", "phone", "mobile", "telephone", "fax", "address", "street", "iban", "bic"}
    | {"ssn", "passport", "birthday", "birthdate", "dob", "firstname", "lastname", "surname"}
    | {"forename", "fullname", "nickname", "username", "taxid"}
    # German
    | {"vorname", "nachname", "familienname", "strasse", "hausnummer", "hausnr"}
    | {"adresse", "anschrift", "telefon", "handy", "mobil", "geburtsdatum", "geburtstag"}
    | {"kontonummer", "kontoinhaber", "ansprechpartner", "steuernummer"}
    # French
    | {"prenom", "rue", "courriel", "naissance", "domicile"}
    # Spanish and Portuguese
    | {
        "apellido",
        "apellidos",
        "direccion",
        "domicilio",
        "calle",
        "telefono",
        "movil",
        "correo",
    }
    | {"nacimiento", "nif", "sobrenome", "apelido", "endereco", "morada", "rua"}
    | {"telefone", "celular", "nascimento", "cpf"}
    # Italian
    | {"cognome", "indirizzo", "cellulare", "nascita", "codicefiscale"}
    # Dutch
    | {"voornaam", "achternaam", "adres", "straat", "huisnummer", "telefoon", "geboortedatum"}
    | {"bsn"}
    # Polish
    | {"imie", "nazwisko", "ulica", "pesel", "urodzenia"}
    # Swedish, Danish and Norwegian
    | {"fornamn", "efternamn", "fornavn", "efternavn", "etternavn", "adress", "gata", "gade"}
    | {"personnummer", "fodelsedatum", "cpr"}
)
_PERSONAL_ALONE = frozenset({("dni",), ("str",), ("geb",)})
"""What means another thing beside other words, as days in Polish."""
_PERSONAL_ENDINGS = (
    *("adresse", "anschrift", "strasse", "telefon", "telefonnummer", "telefonnr"),
    *("mobilnummer", "rufnummer", "faxnummer", "vorname", "nachname", "emailadresse"),
)
"""What German words end in that identify people, such as `Lieferadresse`."""
_PERSONAL_PAIRS = frozenset(
    {
        ("first", "name"),
        ("last", "name"),
        ("full", "name"),
        ("given", "name"),
        ("family", "name"),
    }
    | {
        ("middle", "name"),
        ("date", "birth"),
        ("birth", "date"),
        ("e", "mail"),
        ("user", "name"),
    }
    | {("codice", "fiscale"), ("date", "naissance"), ("place", "birth")}
)
_NAMES = frozenset({"name", "names", "nom", "nombre", "nome", "naam", "namn", "navn"})
_HUMANS = frozenset(
    {"customer", "client", "user", "person", "member", "patient", "employee"}
    | {"guest", "buyer", "passenger", "student", "subscriber"}
    # German, French, Spanish, Portuguese, Italian, Dutch, Polish, Swedish and Danish
    | {"kunde", "mitarbeiter", "patient", "mitglied", "benutzer", "nutzer", "schueler"}
    | {"utilisateur", "employe", "salarie", "adherent", "usager", "eleve"}
    | {"cliente", "usuario", "empleado", "paciente", "funcionario", "utente", "dipendente"}
    | {"paziente", "klant", "gebruiker", "medewerker", "klient", "pracownik", "kund", "bruger"}
)
_PERSONS = (
    _HUMANS
    | {"contact", "account", "recipient", "owner", "tenant", "seller", "agent", "manager"}
    | {"driver", "rider", "player", "athlete", "author", "teacher", "doctor", "nurse"}
    | {"applicant", "candidate", "donor", "fahrer", "spieler", "autor", "lehrer", "arzt"}
)
_ALIASES = {
    "cust": "customer",
    "customers": "customer",
    "users": "user",
    "kd": "kunde",
    "kunden": "kunde",
    "patienten": "patient",
}
_JOINED_STEMS = (
    *("mitarbeiter", "benutzer", "nutzer", "klant", "kunde"),
    *("customer", "client", "user", "employee", "member", "patient", "student"),
)
_JOINED = {stem: stem for stem in _JOINED_STEMS} | {
    "kd": "kunde",
    "kunden": "kunde",
    "patienten": "patient",
    "mitglieds": "mitglied",
}
"""What words begin with that are joined to those of a person, such as `Kundennummer` and
`customerid`, and whom they speak of.
"""
_JOINED_RESTS = ("id", "no", "nr", "number", "nummer", "code", "key", "kennung", *_NAMES)


def why_personal(column: ColumnProfile, *, among_people: AmongPeople = "") -> str:
    """Say why a column may identify people directly; empty where nothing tells that it does.

    :param among_people: what other columns beside it tell of people: `their data` or `their
        keys`. One that is called a name and no more is most likely theirs then.
    """
    if column.has_parts:
        return ""
    words = words_of(column.name)
    if column.looks_like("email"):
        return "e-mail addresses"
    if column.looks_like("phone"):
        return "looks like phone numbers"
    if _is_named_personal(words):
        return "named as what identifies a person"
    if column.looks["email"] or column.looks["phone"]:
        return "e-mail addresses or phone numbers among its values"
    of_person = not _PERSONS.isdisjoint(_whole(words))
    has_name = not _NAMES.isdisjoint(_whole(words))
    if of_person and (has_name or column.looks_like("full_name")):
        return "looks like names of people"
    return _why_theirs(column, among_people) if among_people and len(words) == 1 else ""


def _why_theirs(column: ColumnProfile, among_people: AmongPeople) -> str:
    """Say why a column of one word is of the people that others beside it tell of."""
    words = words_of(column.name)
    if 2 * column.forms["text"] <= column.filled_rows:
        return ""
    is_theirs = among_people == "their data" or column.looks_like("full_name")
    if is_theirs and not _NAMES.isdisjoint(words):
        return "a name, beside others that tell of people"
    if _is_person_alone(words):
        return "named as a person, beside others that tell of people"
    return ""


def has_full_names(column: ColumnProfile) -> bool:
    """Whether a column is called a name, and has values such as `Ada Lovelace`, as cities and
    firms have too.
    """
    is_name = not _NAMES.isdisjoint(_whole(words_of(column.name)))
    return is_name and column.looks_like("full_name")


def stands_for_person(column: ColumnProfile) -> bool:
    """Whether a column is named as the key of a person is, such as `customer_id`, or as a person
    and no more.
    """
    if column.has_parts:
        return False
    words = words_of(column.name)
    if is_key_name(column.name):
        return not _PERSONS.isdisjoint(_whole(words))
    is_flag = column.only({"boolean"}) or (
        column.only({"whole"}) and column.numbers.whole_digits < _FEWEST_DIGITS
    )
    return _is_person_alone(words) and not is_flag


def _is_person_alone(words: Sequence[str]) -> bool:
    return len(words) == 1 and _ALIASES.get(words[0], words[0]) in _HUMANS


def _whole(words: Iterable[str]) -> set[str]:
    """Return words as they are known here; of those that are joined, both."""
    known: set[str] = set()
    for word in words:
        known.add(_ALIASES.get(word, word))
        for begin, person in _JOINED.items():
            rest = word.removeprefix(begin)
            if rest != word and rest in _JOINED_RESTS:
                known |= {person, rest}
    return known


def _is_named_personal(words: tuple[str, ...]) -> bool:
    is_known = not _PERSONAL.isdisjoint(words) or words in _PERSONAL_ALONE
    return is_known or _has_pair(words) or _has_ending(words)


def _has_ending(words: Iterable[str]) -> bool:
    return any(word.endswith(_PERSONAL_ENDINGS) for word in words)


def _has_pair(words: tuple[str, ...]) -> bool:
    return any(pair[0] in words and pair[1] in words for pair in _PERSONAL_PAIRS)
