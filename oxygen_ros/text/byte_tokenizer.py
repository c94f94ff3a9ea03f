"""A real, tiny tokenizer: one token per UTF-8 byte. For bring-up and tests; needs no file."""

from __future__ import annotations

from collections.abc import Sequence

PAD_ID = 0
END_ID = 1
BEGIN_ID = 2
_FIRST_BYTE = 3
_FIRST_UNUSED = _FIRST_BYTE + 256


class ByteTokenizer:
    """Ids: 0 padding, 1 end, 2 begin, then 256 bytes, then unused ids up to ``vocab_size``."""

    end_ids = frozenset({END_ID})

    def __init__(self, vocab_size: int = 320) -> None:
        if vocab_size < _FIRST_UNUSED:
            raise ValueError(f"256 bytes and 3 control tokens need {_FIRST_UNUSED} ids, got {vocab_size}")
        self.vocab_size = vocab_size

    def encode(self, text: str) -> list[int]:
        """One id per byte of ``text``."""
        return [_FIRST_BYTE + byte for byte in text.encode()]

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of the bytes; other ids give nothing; a cut character gives U+FFFD."""
        spoken = bytes(i - _FIRST_BYTE for i in token_ids if _FIRST_BYTE <= i < _FIRST_UNUSED)
        return spoken.decode(errors="replace")

    def is_special(self, token_id: int) -> bool:
        """True for every id that is not a byte."""
        return not _FIRST_BYTE <= token_id < _FIRST_UNUSED
