"""Whole sentences out of streamed text, for speech. Rules and word lists only; no language is asked for."""

from __future__ import annotations

_ENDS_SPACED = ".!?…؟۔।"  # a space follows them between sentences
_ENDS_CLOSE = "。！？｡．"  # nothing need follow them
_ENDS = frozenset(_ENDS_SPACED + _ENDS_CLOSE)
_CLOSERS = frozenset("\"'”’»)]}）】」』〉》")

# fmt: off
_ABBREVIATIONS = frozenset((
    "dr", "mr", "mrs", "ms", "prof", "st", "rev", "hon", "gen", "col", "capt", "lt", "sgt", "vs", "cf",
    "approx", "ca", "z.b", "d.h", "u.a", "bzw", "ggf", "inkl", "evtl", "hr", "fr", "mme", "mlle", "sra",
))
# fmt: on
_BEFORE_NUMBERS = frozenset(("no", "nos", "nr", "fig", "eq", "vol", "p", "pp", "abb"))
_FIRST_CJK = "\u3000"


class SentenceSplitter:
    """Sentences of one text, in order; joined, they are the text but for the white space between them."""

    def __init__(self) -> None:
        self._held = ""
        self._num_judged = 0  # characters of it in which no sentence ends, whatever follows

    def add(self, text: str) -> list[str]:
        """Sentences that ``text`` closes. What may still go on is held back."""
        self._held += text
        closed: list[str] = []
        while True:
            end, self._num_judged = _first_end(self._held, self._num_judged)
            if end is None:
                return closed
            closed.append(self._held[:end].strip())
            self._held = self._held[end:]

    def flush(self) -> list[str]:
        """The last sentence, closed or not, when the text has ended."""
        last, self._held, self._num_judged = self._held.strip(), "", 0
        return [last] if last else []


def _first_end(text: str, begin: int) -> tuple[int | None, int]:
    """Length of the first sentence, None when none is certain to be closed; and where to look on from.

    No sentence ends before ``begin``: a long text that comes piece by piece is looked at once.
    """
    index = begin
    while index < len(text):
        if text[index] not in _ENDS:
            index += 1
            continue
        marks_end = index
        while marks_end < len(text) and text[marks_end] in _ENDS:
            marks_end += 1
        end = marks_end
        while end < len(text) and text[end] in _CLOSERS:
            end += 1
        rest = text[end:].lstrip()
        if not rest:
            return None, index  # more marks or closers may follow, or what follows tells
        if _is_end(text[:index], text[index:marks_end], text[marks_end:end], text[end], rest[0]):
            return end, 0
        index = end
    return None, index


def _is_end(before: str, marks: str, closers: str, following: str, next_shown: str) -> bool:
    """Decides by what stands before the marks, the character right after them and the next one shown."""
    if not any(char.isalnum() for char in before):
        return False  # "... well" or "?!" alone is no sentence
    if marks[-1] in _ENDS_CLOSE:
        return True
    if not following.isspace():
        return following >= _FIRST_CJK  # "3.5", "e.g", "example.org" go on; "OK!好" does not
    if next_shown.islower() and (closers or marks[-1] in ".…"):
        return False  # 'etc. and', '"Go!" he said', 'well... yes'
    return marks != "." or not _is_abbreviation(before, next_shown)


def _is_abbreviation(before: str, next_shown: str) -> bool:
    """True if a single full stop after ``before`` belongs to its last word."""
    words = before.split()
    word = words[-1].lstrip("\"'“‘«([{（「『")
    if len(words) == 1 and word.isdigit():
        return True  # "1. Take the cup"
    is_initial = len(word) == 1 and word.isupper() and word != "I"
    is_dotted = len(word) >= 3 and all(len(part) == 1 for part in word.split(".")) and "." in word
    if word.lower() in _BEFORE_NUMBERS:
        return next_shown.isdigit()
    return is_initial or is_dotted or word.lower() in _ABBREVIATIONS
