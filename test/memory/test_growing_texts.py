from dataclasses import replace

from oxygen_ros.memory.growing_texts import MAX_GROWING, GrowingTexts
from oxygen_ros.types import FinishReason, TextDelta, TextKind

PIECE = TextDelta(
    request_id="a",
    task="ask",
    kind=TextKind.ASK,
    observation_id=3,
    stamp_ns=30,
    seq=0,
    text="The ",
    num_tokens=1,
)


def piece(seq, text="", reason=None, request_id="a"):
    return replace(PIECE, seq=seq, text=text, finish_reason=reason, request_id=request_id)


def test_text_in_pieces_among_others_becomes_one_line():
    growing = GrowingTexts()
    assert growing.add(piece(0, "The "), 1) is None
    growing.add(piece(0, "Noise", request_id="b"), 2)
    growing.add(piece(1, "杯子 "), 3)
    line = growing.add(piece(2, "is red.", FinishReason.STOP), 4)
    assert (line.text, line.is_whole) == ("The 杯子 is red.", True)
    assert (line.stamp_ns, line.received_ns, line.task, line.kind) == (30, 4, "ask", TextKind.ASK)
    assert (line.request_id, line.finish_reason) == ("a", FinishReason.STOP)
    assert len(growing) == 1


def test_text_joined_in_the_middle_or_with_a_gap_is_not_whole():
    growing = GrowingTexts()
    assert not growing.add(piece(4, "cup.", FinishReason.STOP), 1).is_whole
    growing.add(piece(0, "The "), 1)
    assert not growing.add(piece(2, "cup.", FinishReason.LENGTH), 1).is_whole


def test_id_given_again_by_a_brain_that_starts_anew_begins_anew():
    growing = GrowingTexts()
    growing.add(piece(0, "lost with the brain"), 1)
    growing.add(piece(0, "The "), 2)
    line = growing.add(piece(1, "end.", FinishReason.STOP), 3)
    assert (line.text, line.is_whole) == ("The end.", True)


def test_texts_that_never_end_are_bounded():
    growing = GrowingTexts()
    for number in range(3 * MAX_GROWING):
        growing.add(piece(0, "x", request_id=f"r{number}"), number)
    assert len(growing) == MAX_GROWING
