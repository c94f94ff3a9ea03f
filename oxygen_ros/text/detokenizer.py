"""Tokens to text as they come, never a part of a character. Knows nothing of requests or stop strings."""

from __future__ import annotations

from oxygen_ros.models.protocol import Tokenizer
from oxygen_ros.text.cleaner import REPLACEMENT


class IncrementalDetokenizer:
    """What it has handed out, joined, is the beginning of the text of all its tokens.

    Only a window of tokens is decoded again: those not shown in full, after those shown just before as
    context, since many tokenizers write the space between two words only when both are there.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._context: list[int] = []
        self._context_text = ""
        self._pending: list[int] = []
        self._num_sent = 0  # characters of the pending tokens' text that were handed out

    def add(self, token_id: int) -> str:
        """Text that is certain now. Bytes of a character that is not complete yet are held back."""
        self._pending.append(token_id)
        text = self._pending_text()
        certain = text.rstrip(REPLACEMENT)
        new = certain[self._num_sent :]
        if len(certain) == len(text) and text:
            self._context, self._pending, self._num_sent = self._pending, [], 0
            self._context_text = self._tokenizer.decode(self._context)
        else:
            self._num_sent = max(self._num_sent, len(certain))
        return new

    def flush(self) -> str:
        """The rest, at the end of a text: U+FFFD for each cut character."""
        rest = self._pending_text()[self._num_sent :]
        self._num_sent += len(rest)
        return rest

    def _pending_text(self) -> str:
        if not self._pending:
            return ""
        whole = self._tokenizer.decode(self._context + self._pending)
        if whole.startswith(self._context_text):
            return whole[len(self._context_text) :]
        # A stray byte right after whole ones spoils the decoder's view of them; they were shown already.
        return self._tokenizer.decode(self._pending)
