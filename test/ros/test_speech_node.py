"""The speech node on real topics, with commands that write files instead of sound."""

from __future__ import annotations

import shutil
import signal
import sys

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from consumer_bench import add_senders, consumer, delta, until_connected
from node_process import NodeProcess
from ros_bench import Bench, bench
from std_msgs.msg import Bool, Empty, String

from oxygen_ros.errors import ConfigError
from oxygen_ros.msg import TextDelta, TextRequest
from oxygen_ros.ros import qos
from oxygen_ros.ros.diagnostics import ERROR, OK
from oxygen_ros.ros.speech_node import SpeechNode
from oxygen_ros.srv import CancelText

APPEND = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read())"
TALK_ON = APPEND + "; import time; time.sleep(600)"
END_WITHIN_S = 3.0


def command(code, out):
    return [sys.executable, "-c", code, str(out)]


@pytest.fixture
def b():
    with bench() as made:
        made.feed = None
        made.probe.hear(Bool, "speech_node/is_speaking", qos.latched())
        yield made


def say(b: Bench, *sentences: str) -> None:
    for sentence in sentences:
        b.probe.send("sentence", String(data=sentence))


def lines(out):
    return out.read_text().splitlines() if out.exists() else []


def speaking(b: Bench) -> bool | None:
    return b.got("is_speaking")[-1].data if b.got("is_speaking") else None


def health(b: Bench, key: str) -> str:
    line = b.health("speech_node: speech")
    return next((pair.value for pair in line.values if pair.key == key), "") if line else ""


def test_sentences_are_said_in_order_and_the_topic_tells_when(b, tmp_path):
    out = tmp_path / "said"
    with consumer(b, SpeechNode, command=command(APPEND, out)):
        say(b, "The cup is red.", "杯子是红色的。", "Bye.")
        b.until(lambda: lines(out) == ["The cup is red.", "杯子是红色的。", "Bye."], "three sentences")
        b.until(lambda: speaking(b) is False, "end of speech")
        assert any(message.data for message in b.got("is_speaking"))
        b.until(lambda: health(b, "said") == "3", "health")


def test_cancelled_text_falls_silent_and_its_queue_is_dropped(b, tmp_path):
    out = tmp_path / "said"
    with consumer(b, SpeechNode, command=command(TALK_ON, out)):
        b.probe.send("delta", delta("long", 0, "I begin. I go on. And"))
        b.probe.send("delta", delta("other", 0, "All is well. "))
        say(b, "I begin.", "I go on.", "All is well.")
        b.until(lambda: lines(out) == ["I begin."], "the first sentence")
        b.until(lambda: health(b, "waiting") == "2", "two wait, while the command does not end")
        b.probe.send("delta", delta("long", 1, "", TextDelta.FINISH_CANCELLED))
        b.until(lambda: lines(out) == ["I begin.", "All is well."], "the other text")


def test_cancel_ahead_of_the_pieces_of_a_whole_cycle_is_heard(b, tmp_path):
    with consumer(b, SpeechNode, command=command(TALK_ON, tmp_path / "said")):
        b.probe.send("delta", delta("long", 0, "I begin. And"))
        say(b, "I begin.")
        b.until(lambda: speaking(b), "speech")
        b.probe.send("delta", delta("long", 1, "", TextDelta.FINISH_CANCELLED))
        for seq in range(1500):
            b.probe.send("delta", delta("other", seq, "On. "))
        b.until(lambda: speaking(b) is False, "silence")


def test_stop_topic_silences_and_empties_the_queue(b, tmp_path):
    out = tmp_path / "said"
    with consumer(b, SpeechNode, command=command(TALK_ON, out)):
        say(b, "I begin.", "I go on.")
        b.until(lambda: lines(out) == ["I begin."] and speaking(b), "speech")
        b.probe.send("silence", Empty())
        b.until(lambda: speaking(b) is False, "silence")
        say(b, "New.")
        b.until(lambda: lines(out) == ["I begin.", "New."], "speech again")


def test_end_in_the_middle_of_a_sentence_opens_the_microphone(b, tmp_path):
    out = tmp_path / "said"
    with consumer(b, SpeechNode, command=command(TALK_ON, out)):
        say(b, "I begin.")
        b.until(lambda: speaking(b), "speech")
    b.until(lambda: speaking(b) is False, "the end of speech")


def test_dead_command_is_reported_and_recovers(b, tmp_path):
    tts = tmp_path / "tts"
    with consumer(b, SpeechNode, command=[str(tts)]):
        say(b, "One.")
        b.until(lambda: (h := b.health("speech_node: speech")) and h.level == ERROR, "error")
        assert str(tts) in b.health("speech_node: speech").message
        tts.write_text("#!/bin/sh\ncat > " + str(tmp_path / "said") + "\n")
        tts.chmod(0o755)
        say(b, "Two.")
        b.until(lambda: lines(tmp_path / "said") == ["Two."], "speech")
        b.until(lambda: b.health("speech_node: speech").level == OK, "recovered")


def test_damaged_pieces_are_counted_and_speech_goes_on(b, tmp_path):
    out = tmp_path / "said"
    with consumer(b, SpeechNode, command=command(APPEND, out)):
        b.probe.send("delta", TextDelta(request_id="x", finish_reason=99, is_final=True))
        b.probe.send("delta", TextDelta(request_id="", text="nobody's"))
        say(b, "Still here.")
        b.until(lambda: lines(out) == ["Still here."], "speech")
        b.until(lambda: health(b, "refused_malformed_delta") == "2", "two refused")


def test_brain_speaks_and_its_cancel_service_silences(b, tmp_path):
    """A text is slow enough to be still written when its first sentence is said."""
    out = tmp_path / "said"
    with consumer(b, SpeechNode, command=command(TALK_ON, out)):
        brain = b.brain(**{"runner.fake.decode_step_ms": 100.0, "text.task_names": ["ask"]})
        b.feed = b.probe.feed
        b.until_state(brain, "active")
        b.probe.send("ask", TextRequest(request_id="q", prompt="What do you see?"))
        b.until(lambda: speaking(b), "a sentence of the brain")
        first = [message.data for message in b.got("text_sentence")]
        assert b.call(CancelText, "oxygen_node/cancel_text", CancelText.Request(request_id="q")).success
        b.until(lambda: speaking(b) is False, "silence")
        assert set(lines(out)) <= set(first)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"max_waiting": 0}, "out_of_range"),
        ({"comand": ["x"]}, "unknown_parameter"),
        ({"max_age_s": "x"}, "wrong_type"),
    ],
)
def test_wrong_parameter_is_refused_by_name(b, given, code):
    with pytest.raises(ConfigError) as refusal, consumer(b, SpeechNode, **given):
        pass
    assert refusal.value.code == code
    assert next(iter(given)) in str(refusal.value)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_process_ends_in_time_without_traceback_while_it_speaks(b, tmp_path, number):
    out = tmp_path / "said"
    node = NodeProcess("speech_node", b.namespace, {"command": command(TALK_ON, out)})
    try:
        add_senders(b)
        until_connected(b, "sentence")
        say(b, "I begin.")
        b.until(lambda: lines(out), "speech")
        code, seconds = node.end(number)
        assert (code, "Traceback" in node.output) == (0, False), node.output
        assert seconds < END_WITHIN_S
    finally:
        node.close()


def test_process_with_a_wrong_parameter_says_so_and_ends():
    node = NodeProcess("speech_node", "/wrong", {"max_waiting": -1})
    try:
        assert node.process.wait(60) == 2
        assert "max_waiting" in node.output
        assert "Traceback" not in node.output
    finally:
        node.close()


def test_process_with_a_topic_that_is_no_name_says_so_and_ends():
    node = NodeProcess("speech_node", "/wrong", {"text_stream": "no name"})
    try:
        assert node.process.wait(60) == 2
        assert "no name" in node.output
        assert "Traceback" not in node.output
    finally:
        node.close()


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
def test_espeak_speaks_into_a_file(b, tmp_path):
    out = tmp_path / "said.wav"
    with consumer(b, SpeechNode, command=["espeak-ng", "--stdin", "-w", str(out)]):
        say(b, "The red cup is in the bowl.")
        b.until(lambda: health(b, "said") == "1", "speech")
        assert out.stat().st_size > 10_000
        assert b.health("speech_node: speech").level == OK
