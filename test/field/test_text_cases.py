"""Cases of the field about text that the engine decides, by their ids, on the fake runner."""

import random
from itertools import pairwise

import pytest
from fakes import MS, CycleBench, EngineBench, layout, request, spec

from oxygen_ros.engine.budget import FixedSteps
from oxygen_ros.engine.settings import EngineSettings, TextRules
from oxygen_ros.text.byte_tokenizer import END_ID, ByteTokenizer
from oxygen_ros.text.sentences import SentenceSplitter
from oxygen_ros.types import CycleStatus, FinishReason

ENDLESS = {"Q": [100, 101, 102]}


def fixed(num_steps, **changes):
    return EngineSettings(steps=FixedSteps(num_steps), **changes)


class PieceTokenizer:
    """A vocabulary of byte strings; the last id ends a text. Every text is the tokens 0, 1, 2, ..."""

    def __init__(self, pieces):
        self.pieces = pieces
        self.vocab_size = len(pieces) + 1

    def encode(self, text):
        return list(range(len(self.pieces)))

    def decode(self, token_ids):
        return b"".join(self.pieces[i] for i in token_ids if i < len(self.pieces)).decode(errors="replace")

    def is_special(self, token_id):
        return token_id >= len(self.pieces)


def piece_bench(pieces, **changes):
    """An engine whose model writes ``pieces``, one token each, and the end token, after the bare prefix."""
    tokenizer = PieceTokenizer(pieces)
    model = spec(vocab_size=1000, stop_token_ids=frozenset({len(pieces)}))
    script = {"": [*range(len(pieces)), len(pieces)]}
    return EngineBench(script, tokenizer=tokenizer, model=model, **changes)


def test_b60_first_word_is_there_and_counts_in_the_budget():
    bench = piece_bench([b"Move", b" to", b" the", b" left"], settings=fixed(1))
    bench.engine.submit(request("a", ""))
    texts = ["".join(delta.text for delta in bench.frame()) for _ in range(5)]
    assert texts == ["Move", " to", " the", " left", ""]
    assert bench.reason("a") is FinishReason.STOP
    first = next(row for call in bench.calls for row in call.rows)
    assert (first.tokens_written, first.new_token_ids) == (0, ())  # from the prefix's last position


def test_b61_text_of_unused_tokens_is_an_error_that_no_sentence_comes_of():
    rng = random.Random(0)
    words = ByteTokenizer().encode("ok. no. go. ")
    for special in (2, 259, 319):
        tokens = [special if rng.random() < 0.4 else rng.choice(words) for _ in range(40)]
        tokens[0] = special
        bench = EngineBench({"Q": tokens}, settings=fixed(3))
        bench.engine.submit(request("a", max_tokens=40))
        for _ in range(14):
            bench.frame()
        assert bench.reason("a") is FinishReason.ERROR
        assert bench.text("a") == ""
        assert "known to speak" in bench.detail("a")
        assert "pi05_o2_*" in bench.detail("a")


def test_b61_special_tokens_are_in_no_published_text():
    tokens = [*ByteTokenizer().encode("the cup"), 300, *ByteTokenizer().encode(" is red."), END_ID]
    bench = EngineBench({"Q": tokens})
    bench.engine.submit(request("a"))
    bench.frame()
    assert bench.text("a") == "the cup is red."


def test_b62_text_without_end_stops_at_its_limit_and_acting_goes_on_at_its_rate():
    bench = CycleBench(ENDLESS)
    bench.engine.submit(request("a", max_tokens=32))
    reports = [bench.run() for _ in range(5)]
    final = next(delta for delta in bench.sinks.deltas if delta.is_final)
    assert (final.num_tokens, final.finish_reason) == (32, FinishReason.LENGTH)
    assert [report.memory.rows_used for report in reports] == [1, 1, 0, 0, 0]  # 12 + 12 + 8 tokens
    assert [report.texts_finished for report in reports] == [0, 0, 1, 0, 0]
    assert {report.action_latency_ns for report in reports} == {70 * MS}
    assert all(report.status is CycleStatus.ACTED and not report.is_late for report in reports)


def test_b62_loop_of_tokens_is_broken_off_by_parameter():
    bench = EngineBench(ENDLESS, settings=EngineSettings(rules=TextRules(loop_ngram=4, loop_repeats=3)))
    bench.engine.submit(request("a", max_tokens=90))
    bench.frame()
    assert bench.deltas["a"][-1].num_tokens == 9
    assert (bench.reason("a"), bench.detail("a")) == (FinishReason.LENGTH, "loop: the text repeats itself")


def test_b63_characters_split_over_steps_arrive_whole_beside_another_text():
    script = {"Q": "ok 🙂👍🏽!", "R": "好的，马上来"}
    bench = EngineBench(script, settings=fixed(1))
    for name, prompt in (("emoji", "Q"), ("cjk", "R")):
        bench.engine.submit(request(name, prompt))
    for _ in range(30):
        bench.frame()
    assert (bench.text("emoji"), bench.text("cjk")) == (script["Q"], script["R"])
    pieces = [delta.text for deltas in bench.deltas.values() for delta in deltas]
    assert all(piece and "\ufffd" not in piece for piece in pieces if piece)
    assert "🙂" in pieces
    assert "好" in pieces


def test_b63_half_a_character_at_the_limit_is_dropped():
    bench = EngineBench({"Q": "ab🙂"})
    bench.engine.submit(request("a", max_tokens=5))
    bench.frame()
    assert (bench.text("a"), bench.reason("a")) == ("ab", FinishReason.LENGTH)


ALPHABETS = ("abc ÄÖß.,", "안녕하세요", "你好机器人", ["👍🏽", "👩‍🚀", "🇩🇪", "🙂", "❤️"])


@pytest.mark.parametrize("seed", range(200))
def test_b64_deltas_join_to_the_text(seed):
    rng = random.Random(seed)
    text = "".join(rng.choice(rng.choice(ALPHABETS)) for _ in range(rng.randint(1, 20)))
    data = text.encode()
    cuts = (
        sorted(rng.sample(range(1, len(data)), k=min(len(data) - 1, rng.randint(0, 40)))) if data[1:] else []
    )
    pieces = [data[a:b] for a, b in pairwise([0, *cuts, len(data)])]
    bench = piece_bench(pieces, settings=fixed(rng.randint(1, 7), steps_per_round=rng.randint(1, 4)))
    bench.engine.submit(request("a", "", 60))
    bench.frame()
    while not bench.deltas.get("a") or not bench.deltas["a"][-1].is_final:
        bench.decode()
    assert bench.text("a") == text
    assert bench.reason("a") is FinishReason.STOP
    assert [delta.text for delta in bench.deltas["a"][:-1] if not delta.text] == []


def test_b65_sentences_come_one_by_one_while_the_text_is_written():
    bench = EngineBench({"Q": "Dr. Li has 3.5 cups. Shall I go? 好的。马上来！"}, settings=fixed(4))
    splitter = SentenceSplitter()
    bench.engine.submit(request("a", max_tokens=70))
    by_frame = [[s for delta in bench.frame() for s in splitter.add(delta.text)] for _ in range(20)]
    sentences = [sentence for frame in by_frame for sentence in frame]
    assert sentences == ["Dr. Li has 3.5 cups.", "Shall I go?", "好的。"]
    assert sum(bool(frame) for frame in by_frame) == 3  # each as soon as the next one began
    assert splitter.flush() == ["马上来！"]


def test_b66_cancelled_text_is_silent_at_once_and_the_waiting_one_begins_in_the_next_tick():
    script = {"Q": [*ByteTokenizer().encode("x" * 50), END_ID], "R": "ok"}
    bench = EngineBench(script, settings=fixed(5), memory=layout(num_rows=1))
    bench.engine.submit(request("a", max_tokens=60))
    bench.engine.submit(request("b", "R"))
    bench.frame()
    assert (bench.text("a"), bench.engine.num_waiting) == ("xxxxx", 1)
    assert bench.engine.cancel("a") == 1
    assert bench.engine.cancel("unknown") == 0
    for _ in range(3):
        bench.frame()
    final = bench.deltas["a"][-1]
    assert (final.text, final.finish_reason, final.num_tokens) == ("", FinishReason.CANCELLED, 5)
    assert sum(delta.is_final for delta in bench.deltas["a"]) == 1
    assert (bench.text("b"), bench.deltas["b"][0].observation_id) == ("ok", 2)
