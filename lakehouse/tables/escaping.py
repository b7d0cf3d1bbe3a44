"""Safe display of untrusted text, such as file and column names.

Invisible characters are escaped, so that they are visible and cannot control a terminal.
"""

import shlex

_MOST_CHARACTERS = 60
_IN_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_PLAIN_SIGNS = frozenset("._-/+=@")


def quoted(name: str) -> str:
    r"""Return a name in quotes, with leading and trailing spaces: `' fruit'`, `'\ufeffid'`. A
    long name is cut.
    """
    cut = "…" if len(name) > _MOST_CHARACTERS else ""
    return f"{name[:_MOST_CHARACTERS]!r}{cut}"


def shown(name: str) -> str:
    """Return a complete file name; quoted unless it only has letters, digits and a few
    punctuation marks.
    """
    is_plain = bool(name) and all(
        character.isalnum() or character in _PLAIN_SIGNS for character in name
    )
    return name if is_plain else repr(name)


def visible(text: str) -> str:
    r"""Return a text as one line of visible characters: `\n`, and `\u001b` for an escape.

    Spark decodes these sequences in literals, so a query that contains one runs as shown.
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
    r"""Return a name quoted for a shell, for a displayed command: `'a b'`, or `$'\x1b[2J'` for
    an escape.
    """
    if name.isprintable():
        return shlex.quote(name)
    return "$'" + "".join(map(_shell_character, name)) + "'"


def _shell_character(character: str) -> str:
    if character.isprintable() and character not in "\\'":
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))
