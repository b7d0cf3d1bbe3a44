"""Text that others chose, such as the name of a file or of its column, as it is shown to
people.

What cannot be seen is written as an escape, so that it can be, and so that no text steers a
terminal.
"""

import shlex

_MOST_CHARACTERS = 60
_IN_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_PLAIN_SIGNS = frozenset("._-/+=@")


def quoted(name: str) -> str:
    r"""Return a name in quotes, spaces at its ends and all: `' fruit'`, `'\ufeffid'`; a long
    one is cut.
    """
    cut = "…" if len(name) > _MOST_CHARACTERS else ""
    return f"{name[:_MOST_CHARACTERS]!r}{cut}"


def shown(name: str) -> str:
    """Return the name of a file whole: as it is where that is letters, digits and few signs,
    else in quotes.
    """
    is_plain = bool(name) and all(
        character.isalnum() or character in _PLAIN_SIGNS for character in name
    )
    return name if is_plain else repr(name)


def visible(text: str) -> str:
    r"""Return a text as one line in which all can be seen: `\n`, and `\u001b` for an escape.

    Spark reads these in a literal as what they stand for, so that a query with one in it runs
    as it is shown.
    """
    return text if text.isprintable() else "".join(map(_visible_character, text))


def _visible_character(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return _IN_SHORT.get(character) or (
        f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    )


def shell_word(name: str) -> str:
    r"""Return a name as a shell takes it, for a command that is shown: `'a b'`, and
    `$'\x1b[2J'` for an escape.
    """
    if name.isprintable():
        return shlex.quote(name)
    return "$'" + "".join(map(_shell_character, name)) + "'"


def _shell_character(character: str) -> str:
    if character.isprintable() and character not in "\\'":
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))
