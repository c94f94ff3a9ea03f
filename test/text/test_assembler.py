from oxygen_ros.text.assembler import Assembled, TextAssembler
from oxygen_ros.types import FinishReason, TextDelta, TextKind


def delta(text, reason=None, request_id="a"):
    return TextDelta(request_id, "ask", TextKind.ASK, 1, 1, 0, text, 0, reason)


def test_sentences_come_as_they_close_and_the_last_piece_at_the_end():
    texts = TextAssembler()
    assert texts.add(delta("I see. And")) == Assembled(("I see.",))
    assert texts.add(delta(" other", request_id="b")) == Assembled()
    assert texts.add(delta(" so on", FinishReason.LENGTH)) == Assembled(("And so on",), "I see. And so on")
    assert texts.add(delta("", FinishReason.STOP, "b")) == Assembled(("other",), "other")


def test_text_that_was_broken_off_gives_no_last_sentence_and_no_complete_text():
    for reason in set(FinishReason) - {FinishReason.STOP, FinishReason.LENGTH}:
        texts = TextAssembler()
        texts.add(delta("half a sen"))
        assert texts.add(delta("", reason)) == Assembled()
        assert texts.add(delta("new", FinishReason.STOP)) == Assembled(("new",), "new")
