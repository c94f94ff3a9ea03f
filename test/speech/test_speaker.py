from dataclasses import replace

import pytest

from oxygen_ros.clock import SimClock
from oxygen_ros.runtime.refusals import Refusals
from oxygen_ros.speech.owners import MAX_OPEN
from oxygen_ros.speech.settings import SpeechSettings
from oxygen_ros.speech.speaker import Speaker
from oxygen_ros.types import FinishReason, TextDelta, TextKind

PIECE = TextDelta(
    request_id="a", task="ask", kind=TextKind.ASK, observation_id=1, stamp_ns=1, seq=0, text="", num_tokens=1
)
S = 1_000_000_000


class ScriptedVoice:
    """Says until it is told that it has finished."""

    def __init__(self):
        self.begun = []
        self.failure = ""
        self.busy = False
        self.fails = ""
        self.num_silenced = 0

    def begin(self, text):
        self.begun.append(text)
        self.failure = self.fails
        self.busy = not self.fails

    def is_busy(self):
        return self.busy

    def silence(self):
        self.num_silenced += 1
        self.busy = False


class Room:
    def __init__(self, **settings):
        self.clock = SimClock()
        self.voice = ScriptedVoice()
        self.refusals = Refusals(self.clock, lambda _: None)
        self.speaker = Speaker(self.voice, SpeechSettings(**settings), self.clock, self.refusals)

    def say(self, *sentences):
        for sentence in sentences:
            self.speaker.say(sentence)
        self.speaker.step()

    def hear(self, request_id, seq, text, reason=None):
        self.speaker.hear(replace(PIECE, request_id=request_id, seq=seq, text=text, finish_reason=reason))

    def finish(self):
        self.voice.busy = False
        self.speaker.step()

    @property
    def begun(self):
        return self.voice.begun


def test_sentences_are_said_one_after_another_in_order():
    room = Room()
    room.say("One.", "Two.", "Three.")
    assert (room.begun, room.speaker.num_waiting) == (["One."], 2)
    room.finish()
    assert room.begun == ["One.", "Two."]
    room.finish()
    room.finish()
    assert room.begun == ["One.", "Two.", "Three."]
    assert (room.speaker.num_said, room.speaker.is_speaking) == (3, False)


def test_full_queue_lets_the_oldest_waiting_sentence_go():
    room = Room(max_waiting=2)
    room.say("One.")
    room.say("Two.", "Three.", "Four.")
    room.finish()
    room.finish()
    assert room.begun == ["One.", "Three.", "Four."]
    assert room.refusals.counts() == {"speech_queue_full": 1}


def test_sentence_that_waited_too_long_is_not_said():
    room = Room(max_age_s=5.0)
    room.say("One.", "Old news.")
    room.clock.advance_ns(6 * S)
    room.say("Fresh.")
    room.finish()
    assert room.begun == ["One.", "Fresh."]
    assert room.refusals.counts() == {"speech_too_old": 1}


def test_stop_ends_what_is_said_and_forgets_what_waits():
    room = Room()
    room.say("One.", "Two.")
    room.speaker.stop()
    assert room.voice.num_silenced == 1
    room.speaker.step()
    assert (room.begun, room.speaker.num_said, room.speaker.failure) == (["One."], 0, "")
    room.say("After.")
    assert room.begun == ["One.", "After."]


@pytest.mark.parametrize("stream_first", [True, False])
def test_cancelled_text_falls_silent_and_others_go_on(stream_first):
    """Both orders, since sentences and pieces come by different topics."""
    room = Room()
    steps = [
        lambda: room.hear("a", 0, "I go there. And then I come back. And"),
        lambda: room.say("I go there.", "And then I come back."),
    ]
    for step in steps if stream_first else reversed(steps):
        step()
    room.hear("b", 0, "All is well. ")
    room.say("All is well.")
    room.hear("a", 1, "", FinishReason.CANCELLED)
    assert room.voice.num_silenced == 1
    room.speaker.step()
    assert room.begun == ["I go there.", "All is well."]


def test_sentence_that_comes_after_its_cancel_is_not_said():
    room = Room()
    room.hear("a", 0, "I go there. And")
    room.hear("a", 1, "", FinishReason.CANCELLED)
    room.say("I go there.")
    assert room.begun == []
    room.say("I go there.")
    assert room.begun == ["I go there."], "an equal sentence of somebody else"


def test_equal_sentences_of_two_texts_are_told_apart():
    room = Room()
    room.hear("a", 0, "Yes. No")
    room.hear("b", 0, "Yes. No")
    room.say("Wait.", "Yes.", "Yes.")
    room.hear("b", 1, "", FinishReason.CANCELLED)
    assert room.speaker.num_waiting == 1
    room.hear("a", 1, "", FinishReason.CANCELLED)
    assert room.speaker.num_waiting == 0
    assert room.voice.num_silenced == 0


@pytest.mark.parametrize("reason", [FinishReason.STOP, FinishReason.SUPERSEDED, FinishReason.EXPIRED])
def test_text_that_ends_otherwise_is_said_to_its_end(reason):
    room = Room()
    room.hear("a", 0, "I go there. ")
    room.say("I go there.", "Bye.")
    room.hear("a", 1, "", reason)
    room.finish()
    assert room.begun == ["I go there.", "Bye."]


def test_failed_voice_is_reported_and_forgotten_once_it_speaks_again():
    room = Room()
    room.voice.fails = "espeak-ng ended with code 1: no audio"
    room.say("One.")
    assert room.speaker.failure == room.voice.fails
    assert room.refusals.counts() == {"speech_failed": 1}
    room.voice.fails = ""
    room.say("Two.")
    room.finish()
    assert (room.begun, room.speaker.failure, room.speaker.num_said) == (["One.", "Two."], "", 1)


def test_voice_that_never_ends_is_ended_and_the_next_sentence_said():
    room = Room(max_utterance_s=3.0)
    room.say("One.", "Two.")
    room.clock.advance_ns(4 * S)
    room.speaker.step()
    assert room.voice.num_silenced == 1
    room.speaker.step()
    assert room.begun == ["One.", "Two."]
    assert "more than 3 s" in room.speaker.failure


def test_control_characters_and_empty_sentences_never_reach_the_voice():
    room = Room()
    room.say("", " \n", "\x00\x07", "One\x1b two.\n")
    assert room.begun == ["One two."]


def test_texts_that_never_end_and_sentences_without_an_owner_are_bounded():
    room = Room(max_waiting=4)
    for number in range(3 * MAX_OPEN):
        room.hear(f"r{number}", 0, f"Sentence {number} is here. And")
        room.say(f"Nobody wrote {number}.")
    owners = room.speaker._owners
    assert max(map(len, (owners._splitters, owners._expected, owners._unknown))) == MAX_OPEN
