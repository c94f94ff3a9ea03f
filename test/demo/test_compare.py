"""The comparison: a robot that holds when it gets nothing, equal texts of all ways, and honest words."""

import json
from dataclasses import replace

import numpy as np
import pytest
from run_factory import S

from oxygen_ros.clock import SimClock
from oxygen_ros.demo.compare_figures import Figures, gains, table
from oxygen_ros.demo.compare_robot import Episode, LiveRobot
from oxygen_ros.errors import ConfigError

torch = pytest.importorskip("torch")

from oxygen_ros.demo import compare as comparison  # noqa: E402
from oxygen_ros.demo.compare_texts import Demand  # noqa: E402
from oxygen_ros.demo.compare_ways import Parts, oxygen_engine  # noqa: E402
from oxygen_ros.training.checkpoint import write_checkpoint  # noqa: E402
from oxygen_ros.training.dims import Dims  # noqa: E402
from oxygen_ros.training.pi05 import TinyPi05  # noqa: E402
from oxygen_ros.training.product import ProductPolicy  # noqa: E402
from oxygen_ros.training.vocabulary import pieces  # noqa: E402

TICK_NS = S // 30


def robot_of(execute, max_ticks, clock):
    try:
        return LiveRobot(execute, clock, max_ticks)
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """Random weights: nothing is learned, and greedy texts are long."""
    folder = tmp_path_factory.mktemp("checkpoint")
    torch.manual_seed(0)
    write_checkpoint(folder, TinyPi05(Dims(vocab_size=len(pieces()))), {})
    return folder


def figures(played, on_time, latency_ms, text_ms, seconds=10.0, is_success=True):
    episode = Episode(1, is_success, ticks=300, played=played, seconds=seconds)
    made = Figures([episode], windows=100, on_time=on_time, chunks=100)
    made.action_latencies_ms, made.text_latencies_ms = [latency_ms] * 100, [text_ms] * 20
    return made.summary()


def test_robot_without_chunks_holds_and_time_goes_on():
    robot = robot_of(3, 40, SimClock())
    robot.begin(1_000_000)
    assert robot.join(60)
    robot.close()
    assert (robot.episode.ticks, robot.episode.played) == (40, 0)


def test_robot_plays_the_first_rows_of_a_chunk_then_holds():
    clock = SimClock()
    robot = robot_of(3, 200, clock)
    robot.begin(1_000_000)
    robot.give(np.zeros((10, 7), np.float32))
    assert robot.join(60)
    robot.close()
    assert (robot.episode.ticks, robot.episode.played) == (200, 3)
    assert robot.episode.seconds == pytest.approx(200 * TICK_NS / S)


def test_ways_write_the_same_texts_of_the_same_observation(checkpoint):
    robot = robot_of(2, 5, SimClock())
    policy = ProductPolicy(checkpoint, decode_steps=1)
    clock = SimClock()
    parts = Parts(policy.runner, policy.tokenizer, policy.processor, clock)
    ways = comparison.make_ways(parts, oxygen_engine(parts), 2)
    robot.begin(1_000_001)
    view = robot.take()
    robot.close()
    written, chunks = {}, {}
    for name, way in ways.items():
        demand = Demand(7, clock.now_ns())
        requests = demand.due(clock.now_ns(), Figures())
        assert len(requests) == len(comparison.STREAMS)
        ended = []
        for number in range(1, 20):
            observation = replace(view, observation_id=number) if number > 1 else view
            give = chunks.setdefault(name, []).append
            ended += way.cycle(clock.now_ns(), lambda o=observation: o, give, requests if number == 1 else [])
            if len(ended) == len(requests):
                break
        written[name] = {text.request_id: (text.text, text.reason) for text in ended}
        way.forget()
    assert len(written["oxygen"]) == len(comparison.STREAMS)
    assert all(text for text, _ in written["oxygen"].values())
    assert written["isolated"] == written["shared"] == written["oxygen"]
    assert all(np.array_equal(chunks[name][0], chunks["oxygen"][0]) for name in ways)


def test_compare_runs_all_ways_and_writes_the_table(checkpoint, tmp_path):
    robot_of(1, 1, SimClock()).close()
    lines = []
    code = comparison.compare(checkpoint, [1_000_000], tmp_path, max_ticks=45, say=lines.append)
    content = json.loads((tmp_path / "compare.json").read_text())
    assert list(content["ways"]) == ["isolated", "shared", "oxygen"]
    assert content["texts_that_differ"] == 0
    assert code == (0 if content["texts_compared"] else 1)
    assert bool(content["in_words"]) is bool(content["texts_compared"])
    for way in content["ways"].values():
        assert way["episodes"] == 1
        assert way["windows"] >= 1
        assert way["texts_asked"] >= len(comparison.STREAMS)
    assert any("missed deadlines" in line for line in lines)


def test_compare_tells_no_ratio_when_texts_differ(checkpoint, tmp_path, monkeypatch):
    monkeypatch.setattr(comparison, "check_texts", lambda *_: ([("shared", "I hold.", "I held.")], 4))
    robot_of(1, 1, SimClock()).close()
    lines = []
    code = comparison.compare(checkpoint, [1_000_000], tmp_path, max_ticks=5, say=lines.append)
    assert code == comparison.UNEQUAL
    assert not any("oxygen against" in line for line in lines)
    assert lines[-2:] == [comparison.NO_RATIO, f"written: {tmp_path / 'compare.json'}"]


@pytest.mark.parametrize(("cost_ms", "ticks"), [(10.0, 1), (30.0, 2), (60.0, 3), (900.0, 10)])
def test_window_holds_a_cycle_with_room(cost_ms, ticks):
    assert comparison.window_ticks(round(cost_ms * 1e6), 10) == ticks


def test_gains_are_told_with_what_they_cost():
    ways = {"isolated": figures(150, 40, 200.0, 300.0, 12.0), "oxygen": figures(298, 100, 50.0, 600.0, 10.0)}
    (sentence,) = gains(ways)
    gain, _, price = sentence.partition("It pays with")
    assert "control rate" in gain
    assert "0 % of the deadlines missed instead of 60 %" in gain
    assert "text latency p50" in price


def test_gains_where_there_are_none_say_so():
    ways = {"isolated": figures(298, 100, 50.0, 300.0), "oxygen": figures(297, 100, 50.5, 301.0)}
    assert gains(ways) == ["oxygen against isolated: on this machine, in this run, there is no gain."]


def test_table_shows_each_way_in_a_column_and_nothing_measured_as_a_dash():
    shown = table({"isolated": figures(150, 40, 200.0, 300.0), "oxygen": Figures().summary()}).splitlines()
    assert shown[0].split() == ["isolated", "oxygen"]
    assert shown[1].split()[-2:] == ["15.0", "-"]
    assert len({len(line) for line in shown}) == 1


def test_gains_tell_when_no_text_was_written():
    silent = {**figures(298, 100, 50.0, 300.0), "texts_per_s": 0.0}
    ways = {"isolated": figures(150, 40, 200.0, 300.0), "oxygen": silent}
    assert "texts per second 0 instead of 2.00" in gains(ways)[0]
