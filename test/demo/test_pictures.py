"""What is drawn: the busiest stretch of a run, and captions that grow and can be read."""

from oxygen_ros.demo.captions import STAYS_NS, Caption, Captions
from oxygen_ros.demo.recording import Cycle, Text
from oxygen_ros.demo.timeline import busiest_window
from oxygen_ros.demo.verdict import Mark

MS, S = 1_000_000, 1_000_000_000


def cycle(end_s, tokens):
    return Cycle(round(end_s * S), True, False, 250.0, 1.0, 5.0, 13.0, 1.0, 30.0, 200.0, 20.0, 6, 2, tokens)


def text(name, begin_s, words, reason="stop"):
    pieces = [(round((begin_s + 0.1 * i) * S), f"{word} ") for i, word in enumerate(words.split())]
    return Text(name, "memory", "memory", stamp_ns=round((begin_s - 0.05) * S), pieces=pieces, reason=reason)


def test_busiest_window_begins_with_a_cycle_and_holds_most_tokens():
    cycles = [cycle(0.25 * i, 50 if i in (30, 31) else 1) for i in range(1, 60)]
    begin_ns, end_ns = busiest_window(cycles)
    assert end_ns - begin_ns == 3 * S
    assert begin_ns in {c.begin_ns for c in cycles}
    assert all(begin_ns <= cycles[i - 1].begin_ns < end_ns for i in (30, 31))


def test_busiest_window_of_a_short_run_begins_with_it():
    cycles = [cycle(0.25 * i, i) for i in range(1, 4)]
    assert busiest_window(cycles)[0] == cycles[0].begin_ns


def test_caption_grows_and_gets_its_mark_at_its_end():
    captions = Captions([text("a", 1.0, "I hold nothing.")], {"a": Mark.FALSE})
    assert captions.at(round(0.9 * S)) == []
    assert captions.at(round(1.05 * S)) == [Caption("memory", "I")]
    assert captions.at(round(1.5 * S)) == [Caption("memory", "I hold nothing.", Mark.FALSE, 0.25)]


def test_caption_stays_to_be_read_and_the_newest_follows():
    texts = [text("a", 1.0, "first"), text("b", 1.5, "second"), text("c", 2.1, "third")]
    captions = Captions(texts, {})
    assert captions.at(1 * S + STAYS_NS)[0].text == "first"
    assert captions.at(round(2.2 * S))[0].text == "third"


def test_caption_of_a_text_that_was_broken_off_is_not_shown():
    assert Captions([text("a", 1.0, "half a", "superseded")], {}).at(2 * S) == []


def test_caption_about_what_was_before_the_episode_is_not_shown():
    captions = Captions([text("a", 1.0, "old")], {})
    assert captions.at(2 * S, since_ns=round(1.5 * S)) == []
