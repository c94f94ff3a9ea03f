"""Says sentences in order, one at a time, and falls silent at once when asked to. Nothing here waits.

``step`` is to be called often; it looks whether the voice has finished and begins the next sentence.
"""

from __future__ import annotations

from collections import deque

from oxygen_ros.clock import Clock
from oxygen_ros.runtime.refusals import Refusals
from oxygen_ros.speech.owners import Owners, Utterance
from oxygen_ros.speech.settings import SpeechSettings
from oxygen_ros.speech.voice import Voice
from oxygen_ros.text.cleaner import clean
from oxygen_ros.types import TextDelta

FAILED = "speech_failed"


class Speaker:
    """At most ``max_waiting`` sentences wait; what is too many, too old or cancelled is not said."""

    def __init__(self, voice: Voice, settings: SpeechSettings, clock: Clock, refusals: Refusals) -> None:
        self.num_said = 0
        self.failure = ""
        self._voice = voice
        self._settings = settings
        self._clock = clock
        self._refusals = refusals
        self._owners = Owners(clock)
        self._waiting: deque[Utterance] = deque()
        self._current: Utterance | None = None
        self._is_silenced = False
        self._until_ns = 0

    @property
    def is_speaking(self) -> bool:
        """True while a sentence is being said."""
        return self._current is not None

    @property
    def num_waiting(self) -> int:
        """Sentences that wait to be said."""
        return len(self._waiting)

    def say(self, sentence: str) -> None:
        """Put ``sentence`` at the end of the queue. The oldest goes if that is full."""
        utterance = self._owners.add_sentence(sentence)
        if utterance.is_cancelled or not clean(sentence).strip():
            return
        if len(self._waiting) >= self._settings.max_waiting:
            lost = self._waiting.popleft()
            self._refusals.add("speech_queue_full", "queue", f"not said: {lost.text[:60]!r}")
        self._waiting.append(utterance)

    def hear(self, delta: TextDelta) -> None:
        """Take note of a piece of text: once its request is cancelled, none of its sentences is said."""
        cancelled = self._owners.add_delta(delta)
        if cancelled is None:
            return
        self._waiting = deque(waiting for waiting in self._waiting if waiting.request_id != cancelled)
        if self._current is not None and self._current.request_id == cancelled:
            self._silence()

    def stop(self) -> None:
        """Fall silent and forget all that waits."""
        self._waiting.clear()
        self._silence()

    def step(self) -> None:
        """See what has become of the sentence under way; begin the next one."""
        if self._current is not None and self._is_done():
            self._current = None
        while self._current is None and self._waiting:
            self._begin(self._waiting.popleft())

    def _silence(self) -> None:
        if self._current is not None:
            self._is_silenced = True
            self._voice.silence()

    def _is_done(self) -> bool:
        if self._voice.is_busy():
            if self._clock.now_ns() > self._until_ns and not self._is_silenced:
                limit_s = self._settings.max_utterance_s
                self._note_failure(f"the command took more than {limit_s:g} s and was ended")
                self._silence()
            return False
        if self._voice.failure:
            self._note_failure(self._voice.failure)
        elif not self._is_silenced:
            self.num_said += 1
            self.failure = ""
        return True

    def _begin(self, utterance: Utterance) -> None:
        now_ns = self._clock.now_ns()
        if now_ns - utterance.came_ns > self._settings.max_age_ns:
            self._refusals.add("speech_too_old", "queue", f"not said: {utterance.text[:60]!r}")
            return
        self._is_silenced = False
        self._until_ns = now_ns + self._settings.max_utterance_ns
        self._current = utterance
        self._voice.begin(clean(utterance.text).strip())
        if self._is_done():
            self._current = None

    def _note_failure(self, text: str) -> None:
        self.failure = text
        self._refusals.add(FAILED, "command", text)
