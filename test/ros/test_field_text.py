"""Field cases of text, with real messages on real topics: questions, sentences, cancel, limits."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from ros_bench import bench
from std_msgs.msg import String

from oxygen_ros.msg import TextDelta, TextRequest
from oxygen_ros.ros import qos
from oxygen_ros.srv import CancelText

# Only what is asked for: no task writes by itself.
QUIET = {"text.tasks.subtask.every_cycles": 0, "text.tasks.memory.every_cycles": 0}


def _script(text: str, **more) -> dict:
    """Every task writes ``text``."""
    return {**QUIET, "runner.fake.script": [text], **more}


def _deltas(b, request_id: str) -> list[TextDelta]:
    return [d for d in b.got("text_stream") if d.request_id == request_id]


def _final(b, request_id: str) -> TextDelta:
    return b.until(
        lambda: next((d for d in _deltas(b, request_id) if d.is_final), None), f"final of {request_id}"
    )


def _start(b):
    brain = b.brain()
    b.until(b.acted, "an action")
    b.until(lambda: b.probe.senders["ask"].get_subscription_count(), "the ask topic")
    return brain


def test_question_as_a_message_and_as_plain_words_is_answered():
    with bench(**_script("A red cup.")) as b:
        _start(b)
        b.probe.send("ask", TextRequest(request_id="mine", prompt=""))
        final = _final(b, "mine")
        assert (final.task, final.kind, final.finish_reason) == (
            "ask",
            TextDelta.KIND_ASK,
            TextDelta.FINISH_STOP,
        )
        assert "".join(d.text for d in _deltas(b, "mine")) == "A red cup."
        assert final.header.stamp.sec > 0
        b.probe.send("ask_text", String(data="What do you see?"))
        b.until(lambda: len(b.got("text")) >= 2, "both complete texts")
        assert b.got("text")[0].data == "A red cup."
        assert b.got("text")[1].data.startswith("Frame ")


def test_instruction_is_obeyed_within_a_cycle():
    with bench() as b:
        _start(b)
        b.probe.send("instruction", String(data="bow to the visitor"))
        b.until(lambda: b.got("action_chunk")[-1].instruction == "bow to the visitor", "a chunk for it")
        first = next(i for i, c in enumerate(b.got("action_chunk")) if c.instruction == "bow to the visitor")
        assert {c.instruction for c in b.got("action_chunk")[:first]} == {"wave"}


def test_instruction_of_a_volatile_publisher_is_heard_too():
    with bench(instruction=None) as b:
        b.brain()
        b.until(lambda: "waiting: instruction" in b.reasons(), "it waits")
        b.probe.add_sender("plain", String, "oxygen_node/instruction", qos.newest(10))
        b.until(lambda: b.probe.senders["plain"].get_subscription_count(), "the topic")
        b.probe.send("plain", String(data="wave"))
        b.until(b.acted, "an action")
        b.probe.send("plain", String(data="  "))
        b.until(lambda: b.got("cycle_report")[-1].reason == "waiting: instruction", "an empty one stops")


def test_b62_text_without_end_stops_at_its_limit_and_says_so():
    with bench(**_script("word " * 200, text__loop_guard=False), text__tasks__ask__max_tokens=12) as b:
        _start(b)
        b.probe.send("ask", TextRequest(request_id="long"))
        final = _final(b, "long")
        assert (final.finish_reason, final.num_tokens) == (TextDelta.FINISH_LENGTH, 12)


@pytest.mark.parametrize("text", ["größer: 好的。🤖👩‍👩‍👧", "한국어 문장. Ende."])
def test_b63_b64_characters_arrive_whole_and_deltas_join_to_the_text(text):
    with bench(
        **_script(text), text__max_tokens=120, text__tasks__ask__max_tokens=100, kv__row_capacity=200
    ) as b:
        _start(b)
        b.probe.send("ask", TextRequest(request_id="q"))
        _final(b, "q")
        deltas = _deltas(b, "q")
        assert "".join(d.text for d in deltas) == text
        assert not any("\ufffd" in d.text for d in deltas)
        b.until(lambda: b.got("text"), "the complete text")
        assert b.got("text")[0].data == text


def test_b65_sentences_are_spoken_whole_and_in_order():
    text = "Dr. Li has 3.5 cups. Shall I go? 好的。马上来！"
    with bench(
        **_script(text), text__max_tokens=100, text__tasks__ask__max_tokens=90, kv__row_capacity=200
    ) as b:
        b.probe.hear(String, "oxygen_node/text/ask/sentence", qos.stream(50), "own")
        _start(b)
        b.probe.send("ask", TextRequest(request_id="q"))
        wanted = ["Dr. Li has 3.5 cups.", "Shall I go?", "好的。", "马上来！"]
        b.until(lambda: len(b.got("own")) >= 4, "four sentences")
        assert [m.data for m in b.got("text_sentence")] == wanted
        assert [m.data for m in b.got("own")] == wanted


SLOW = {"runner.fake.decode_step_ms": 40.0, "kv.num_rows": 1}


def test_b66_cancel_ends_a_text_with_one_final_message_and_the_next_begins():
    with bench(**_script("one two three four five six seven eight nine ten", **SLOW)) as b:
        _start(b)
        b.probe.send("ask", TextRequest(request_id="first"))
        b.until(lambda: len(_deltas(b, "first")) >= 2, "some of the first text")
        b.probe.send("ask", TextRequest(request_id="second"))
        answer = b.call(CancelText, "oxygen_node/cancel_text", CancelText.Request(request_id="first"))
        assert (answer.success, answer.num_cancelled) == (True, 1)
        final = _final(b, "first")
        assert final.finish_reason == TextDelta.FINISH_CANCELLED
        seen = len(_deltas(b, "first"))
        b.until(lambda: len(_deltas(b, "second")) >= 2, "the second text")
        assert len(_deltas(b, "first")) == seen
        assert [d.is_final for d in _deltas(b, "first")].count(True) == 1
        assert not any("ten" in m.data for m in b.got("text")), "a cancelled text is not complete"
        acted = len(b.acted())
        b.until(lambda: len(b.acted()) > acted, "acting goes on")


def test_b66_cancel_of_an_unknown_id_changes_nothing():
    with bench(**_script("Yes.")) as b:
        _start(b)
        answer = b.call(CancelText, "oxygen_node/cancel_text", CancelText.Request(request_id="nobody"))
        assert (answer.success, answer.num_cancelled) == (False, 0)


def test_voice_command_silences_all_texts_where_it_is_switched_on():
    with bench(**_script("one two three four five six seven", **SLOW), topics__voice_command="voice") as b:
        b.probe.add_sender("voice", String, "voice", qos.stream(10))
        _start(b)
        b.probe.send("ask", TextRequest(request_id="q"))
        b.until(lambda: _deltas(b, "q"), "some text")
        b.probe.send("voice", String(data="Stop!"))
        assert _final(b, "q").finish_reason == TextDelta.FINISH_CANCELLED


REFUSED = {
    "unknown_task": {"task": "memry"},
    "not_a_number": {"temperature": float("nan")},
    "negative": {"max_age_s": -1.0},
    "max_tokens": {"max_tokens": 100_000},
    "too_long": {"prompt": "x" * 5000},
    "long_id": {"request_id": "i" * 500},
}


@pytest.mark.parametrize("code", REFUSED)
def test_question_that_cannot_be_answered_gets_its_one_final_message(code):
    with bench(**_script("Yes.")) as b:
        brain = _start(b)
        b.probe.send("ask", TextRequest(**{"request_id": "odd", **REFUSED[code]}))
        request_id = REFUSED[code].get("request_id", "odd")[:200]
        final = _final(b, request_id)
        assert final.finish_reason == TextDelta.FINISH_REFUSED
        assert code in final.detail
        assert (final.observation_id, final.seq, final.text) == (0, 0, "")
        counts = {**brain.refusals.counts(), **brain._parts.brain.engine.refusals()}
        assert counts[f"text_{code}"] == 1
        b.probe.send("ask", TextRequest(request_id="fine"))
        assert _final(b, "fine").finish_reason == TextDelta.FINISH_STOP


def test_id_that_is_alive_is_refused_without_ending_the_first():
    with bench(**_script("one two three four five", **SLOW)) as b:
        brain = _start(b)
        b.probe.send("ask", TextRequest(request_id="q"))
        b.until(lambda: _deltas(b, "q"), "some text")
        b.probe.send("ask", TextRequest(request_id="q"))
        b.probe.send("ask", TextRequest(request_id="q", task="nonsense"))
        assert _final(b, "q").finish_reason == TextDelta.FINISH_STOP
        assert [d.seq for d in _deltas(b, "q")] == list(range(len(_deltas(b, "q"))))
        assert [d.is_final for d in _deltas(b, "q")].count(True) == 1
        assert brain._parts.brain.engine.refusals()["text_duplicate_id"] == 1


def test_flood_of_questions_is_limited_and_each_is_answered():
    with bench(**_script("Yes."), text__max_calls_per_s=5.0) as b:
        brain = _start(b)
        for number in range(40):
            b.probe.send("ask", TextRequest(request_id=f"q{number}"))
        finals = {f"q{n}": _final(b, f"q{n}").finish_reason for n in range(40)}
        assert TextDelta.FINISH_REFUSED in finals.values()
        assert TextDelta.FINISH_STOP in finals.values()
        assert brain.refusals.counts()["text_too_many_calls"] > 0
        assert brain.state == "active"


def test_text_switched_off_refuses_and_acting_goes_on():
    with bench(text__enabled=False) as b:
        _start(b)
        b.probe.send("ask", TextRequest(request_id="q"))
        assert "text_off" in _final(b, "q").detail
        seen = len(b.acted())
        b.until(lambda: len(b.acted()) > seen + 2, "actions")
        assert not b.got("text")
