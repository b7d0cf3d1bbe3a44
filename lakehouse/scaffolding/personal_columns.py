"""The columns with data of people, recognized by their names and values.

The words are in the languages of most files of Europe and the Americas, without the marks of
their letters. German and its neighbours join words: `Kundennummer` is one.
"""

from collections.abc import Iterable, Mapping

from lakehouse.scaffolding.key_columns import is_key_name
from lakehouse.scaffolding.sampled_column import ColumnProfile, word_set

_PERSONAL_WORDS = """
    email mail phone mobile telephone fax address street iban bic ssn passport birthday birthdate
    dob firstname lastname surname forename fullname nickname username taxid
    vorname nachname familienname strasse hausnummer hausnr adresse anschrift telefon handy mobil
    geburtsdatum geburtstag kontonummer kontoinhaber ansprechpartner steuernummer
    prenom rue courriel naissance domicile
    apellido apellidos direccion domicilio calle telefono movil correo nacimiento nif
    sobrenome apelido endereco morada rua telefone celular nascimento cpf
    cognome indirizzo cellulare nascita codicefiscale
    voornaam achternaam adres straat huisnummer telefoon geboortedatum bsn
    imie nazwisko ulica pesel urodzenia
    fornamn efternamn fornavn efternavn etternavn adress gata gade personnummer fodelsedatum cpr
"""
_PERSONAL = word_set(_PERSONAL_WORDS)
_PERSONAL_ALONE = frozenset({("dni",), ("str",), ("geb",)})
"""Words with another meaning next to other words, as days in Polish."""
_PERSONAL_ENDINGS = (
    *("adresse", "anschrift", "strasse", "telefon", "telefonnummer", "telefonnr"),
    *("mobilnummer", "rufnummer", "faxnummer", "vorname", "nachname", "emailadresse"),
)
"""German words with these endings identify people, such as `Lieferadresse`."""
_PERSONAL_PAIRS = (
    *("first name", "last name", "full name", "given name", "family name", "middle name"),
    *("user name", "date birth", "birth date", "place birth", "date naissance", "e mail"),
    "codice fiscale",
)
_NAMES = word_set("name names nom nombre nome naam namn navn")
_HUMAN_WORDS = """
    customer customers cust client user users person member patient employee guest buyer
    passenger student subscriber
    kunde kunden kd mitarbeiter mitglied mitglieds benutzer nutzer schueler patienten
    utilisateur employe salarie adherent usager eleve
    cliente usuario empleado paciente funcionario utente dipendente paziente
    klant gebruiker medewerker klient pracownik kund bruger
"""
_HUMANS = word_set(_HUMAN_WORDS)
_ROLE_WORDS = """
    contact account recipient owner tenant seller agent manager driver rider player athlete author
    teacher doctor nurse applicant candidate donor fahrer spieler autor lehrer arzt
"""
_PERSONS = _HUMANS | word_set(_ROLE_WORDS)
_JOINED_ENDINGS = ("id", "no", "nr", "number", "nummer", "code", "key", "kennung", *_NAMES)
"""Endings of words such as `Kundennummer` and `customerid`."""


def personal_columns(columns: Mapping[str, ColumnProfile]) -> dict[str, str]:
    """Return the names of columns that can identify a person directly, with the reason."""
    reasons = {name: _why_personal(column) for name, column in columns.items()}
    has_keys = any(is_key_name(name) and is_person_key(c) for name, c in columns.items())
    if has_keys or any(reasons.values()):
        for name, column in columns.items():
            reasons[name] = reasons[name] or _why_personal_next_to_others(column)
    return {name: reason for name, reason in reasons.items() if reason}


def _why_personal(column: ColumnProfile) -> str:
    """Return why a column can identify a person; empty if nothing shows it."""
    if column.has_parts:
        return ""
    if column.is_mostly("email"):
        return "e-mail addresses"
    if column.is_mostly("phone"):
        return "looks like phone numbers"
    if _is_named_personal(column.words):
        return "named as what identifies a person"
    if column.count_like("email") or column.count_like("phone") > 0:
        return "e-mail addresses or phone numbers among its values"
    words = _known_words(column.words)
    if words & _PERSONS and (words & _NAMES or column.is_mostly("full_name")):
        return "looks like names of people"
    return ""


def _why_personal_next_to_others(column: ColumnProfile) -> str:
    """Return why a column can identify a person if others of its file do."""
    has_text = 2 * column.matching_rows(r".*\pL.*") > column.filled_rows
    if column.has_parts or not has_text or len(column.words) != 1:
        return ""
    if _known_words(column.words) & _NAMES:
        return "a name, next to columns about people"
    return "named as a person, next to columns about people" if _is_person(column) else ""


def has_full_names(column: ColumnProfile) -> bool:
    """Whether a column is named as a name, and has values such as `Ada Lovelace`, as cities and
    companies can have too.
    """
    return bool(_known_words(column.words) & _NAMES) and column.is_mostly("full_name")


def is_person_key(column: ColumnProfile) -> bool:
    """Whether a column is named as the key of a person, such as `customer_id`, or as a person."""
    if column.has_parts:
        return False
    if is_key_name(column.name):
        return bool(_known_words(column.words) & _PERSONS)
    # A digit, or a boolean, is a flag.
    is_flag = column.all_match("[0-9]|(?i:true|false|yes|no|t|f|y|n)")
    return _is_person(column) and not is_flag


def _is_person(column: ColumnProfile) -> bool:
    return len(column.words) == 1 and column.words[0] in _HUMANS


def _known_words(words: Iterable[str]) -> set[str]:
    """Return words, and both parts of joined words."""
    known = set(words)
    for word in words:
        for ending in _JOINED_ENDINGS:
            stem = word.removesuffix(ending)
            if stem != word and stem in _HUMANS:
                known |= {stem, ending}
    return known


def _is_named_personal(words: tuple[str, ...]) -> bool:
    has_pair = any(set(pair.split()) <= set(words) for pair in _PERSONAL_PAIRS)
    has_ending = any(word.endswith(_PERSONAL_ENDINGS) for word in words)
    is_known = not _PERSONAL.isdisjoint(words) or words in _PERSONAL_ALONE
    return is_known or has_pair or has_ending
