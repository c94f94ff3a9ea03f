"""What of a model's text people and ROS strings may get. Works character by character, as text comes."""

from __future__ import annotations

import unicodedata

REPLACEMENT = "\ufffd"

_SPACES = frozenset("\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\u2028\u2029")
_REMOVED = frozenset(
    REPLACEMENT  # stands for bytes that are no character
    + "\ufeff\ufff9\ufffa\ufffb"  # byte order mark, interlinear annotation
    + "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # order of display
)


def clean(text: str) -> str:
    """``text`` for people: each line break or tab becomes one space; what shows nothing is left out.

    Left out: other control characters, U+FFFD, lone surrogates, code points that are no characters and
    marks that change the order of display. Joiners stay: emoji and several scripts need them.
    ``clean(a + b) == clean(a) + clean(b)`` for all cuts.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(" " if char in _SPACES else char for char in text if char in _SPACES or _is_shown(char))


def _is_shown(char: str) -> bool:
    if char in _REMOVED or unicodedata.category(char) in ("Cc", "Cs"):
        return False
    code = ord(char)
    return not (0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE)
