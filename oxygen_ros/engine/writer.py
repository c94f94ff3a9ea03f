"""One text's tokens to what people may see, and when it ends by itself. Knows no slots, rows or time."""

from __future__ import annotations

from oxygen_ros.engine.settings import TextRules
from oxygen_ros.models.protocol import ModelSpec, Tokenizer
from oxygen_ros.text.cleaner import clean
from oxygen_ros.text.detokenizer import IncrementalDetokenizer
from oxygen_ros.text.stop_strings import StopStringFilter
from oxygen_ros.types import FinishReason, SamplingParams

__all__ = ["SILENT_HINT", "TextRules", "TextWriter"]

SILENT_HINT = (
    "the checkpoint may have no trained language head, or the prompt is not in its format; known to speak "
    "are checkpoints trained on text beside actions (pi05_o2_*), published pi0.5 action checkpoints may not"
)


# A share says little of few tokens: before this many, a text is not broken off, only held back.
_MIN_TOKENS_TO_JUDGE = 10


class TextWriter:
    """What ``take`` gives, joined, never holds control or unused tokens nor a part of a character.

    While more than a third of the allowed share is special, nothing new is given out: it may be no text.
    """

    def __init__(
        self, tokenizer: Tokenizer, spec: ModelSpec, sampling: SamplingParams, rules: TextRules
    ) -> None:
        self._tokenizer = tokenizer
        self._spec = spec
        self._max_tokens = sampling.max_tokens
        self._rules = rules
        self._detokenizer = IncrementalDetokenizer(tokenizer)
        self._stops = StopStringFilter(sampling.stop_strings)
        self._token_ids: list[int] = []
        self._num_special = 0
        self._ready: list[str] = []
        self.finish_reason: FinishReason | None = None
        self.detail = ""

    @property
    def num_tokens(self) -> int:
        """Tokens of the text so far; the end token is not one of them."""
        return len(self._token_ids)

    @property
    def token_ids(self) -> tuple[int, ...]:
        """Tokens of the text so far."""
        return tuple(self._token_ids)

    def add(self, token_id: int | None) -> bool:
        """Take in the next token; None stands for logits that were not finite. True when the text ended."""
        if token_id is None:
            return self._end(FinishReason.ERROR, "not_finite: the model's logits were not finite")
        if not 0 <= token_id < self._spec.vocab_size:
            return self._end(FinishReason.ERROR, f"token {token_id} outside 0..{self._spec.vocab_size - 1}")
        if token_id in self._spec.stop_token_ids:
            return self._end(FinishReason.STOP, "")
        self._token_ids.append(token_id)
        if self._tokenizer.is_special(token_id):
            self._num_special += 1
        else:
            self._ready.append(self._stops.add(self._detokenizer.add(token_id)))
        if self._stops.is_stopped:
            return self._end(FinishReason.STOP, "")
        if self.num_tokens >= _MIN_TOKENS_TO_JUDGE and self._is_no_text():
            return self._end(FinishReason.ERROR, "")
        if self._is_loop():
            return self._end(FinishReason.LENGTH, "loop: the text repeats itself")
        if self.num_tokens >= self._max_tokens:
            return self._end(FinishReason.LENGTH, "")
        return False

    def take(self) -> str:
        """Clean text that became certain since the last call."""
        is_doubtful = self.finish_reason is None and self._is_special_above(weight=3)
        if is_doubtful or self.finish_reason is FinishReason.ERROR:
            return ""
        text = clean("".join(self._ready))
        self._ready.clear()
        return text

    def _end(self, reason: FinishReason, detail: str) -> bool:
        if reason is not FinishReason.ERROR and not self._stops.is_stopped:
            self._ready.append(self._stops.add(self._detokenizer.flush()))
            self._ready.append(self._stops.flush())
        if reason is not FinishReason.ERROR and self._is_no_text():
            reason = FinishReason.ERROR
        if reason is FinishReason.ERROR and not detail:
            share = f"{self._num_special} of {self.num_tokens}"
            detail = f"not_text: {share} tokens are control or unused; {SILENT_HINT}"
        self.finish_reason, self.detail = reason, detail
        return True

    def _is_no_text(self) -> bool:
        return self._is_special_above(weight=1)

    def _is_special_above(self, weight: int) -> bool:
        return weight * self._num_special > self._rules.max_special_share * self.num_tokens

    def _is_loop(self) -> bool:
        repeats = self._rules.loop_repeats
        for length in range(1, self._rules.loop_ngram + 1):
            tail = self._token_ids[-length * repeats :]
            if len(tail) == length * repeats and tail == tail[:length] * repeats:
                return True
        return False
