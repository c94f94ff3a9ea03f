"""Both nodes as processes of their own: every topic in another process, and an end at any moment.

Size: one test starts the processes once and looks at every topic.
"""

from __future__ import annotations

import contextlib
import itertools
import signal
import statistics

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from node_process import END_WITHIN_S, NodeProcess, may_take_s
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_bench import JOINTS, SMALL, bench
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger

from oxygen_ros.msg import CycleReport, PlayerState
from oxygen_ros.ros import conversions, qos


@contextlib.contextmanager
def processes(b, *names: str, **parameters):
    made = [NodeProcess(name, b.namespace, {**SMALL, **parameters}) for name in names]
    try:
        yield made
    finally:
        for process in made:
            process.close()


def _ns(message) -> int:
    return conversions.from_time(message.header.stamp)


def _check_actions(b) -> None:
    """Ids, stamps and sizes of chunks, reports, trajectories, commands and player states."""
    chunks = [c for c in b.got("action_chunk") if c.horizon]
    reports = b.got("cycle_report")
    by_observation = {r.observation_id: r for r in reports if r.status == CycleReport.STATUS_ACTED}
    assert [c.chunk_id for c in chunks] == sorted({c.chunk_id for c in chunks})
    for chunk in chunks:
        assert chunk.joint_names == list(JOINTS)
        assert len(chunk.actions) == chunk.horizon * chunk.action_dim == 16 * 3
        assert chunk.dt_s == pytest.approx(0.05)
        assert 0 < _ns(chunk) <= b.probe.now_ns()
        if chunk.observation_id in by_observation:
            assert _ns(by_observation[chunk.observation_id]) == _ns(chunk)
    first = reports[0].cycle_id
    assert [r.cycle_id for r in reports] == list(range(first, first + len(reports)))
    assert len(b.got("joint_trajectory")) >= len(chunks) - 1
    assert all(_ns(t) == 0 and len(t.points) == 16 for t in b.got("joint_trajectory"))
    assert all(len(command.data) == 3 for command in b.got("joint_command"))
    played = [s.actions_played for s in b.got("state") if s.mode == PlayerState.MODE_PLAYING]
    assert played == sorted(set(played))


def _check_rates(b) -> None:
    for topic, period_s in (("state", 0.05), ("action_chunk", 0.2)):
        stamps = [_ns(m) / 1e9 for m in b.got(topic) if _ns(m)]
        gaps = [later - earlier for earlier, later in itertools.pairwise(stamps)]
        assert 0.5 * period_s < statistics.median(gaps) < may_take_s(1.5 * period_s), topic


def _check_text(b) -> None:
    deltas = b.got("text_stream")
    observations = {c.observation_id for c in b.got("action_chunk")}
    for request_id in {d.request_id for d in deltas}:
        own = [d for d in deltas if d.request_id == request_id]
        assert [d.seq for d in own] == list(range(own[0].seq, own[0].seq + len(own)))
        assert own[0].observation_id in observations | {0}
        assert [d.is_final for d in own].count(True) <= 1


def test_another_process_receives_every_topic_with_ids_and_stamps_at_its_rate():
    with (
        bench() as b,
        processes(b, "oxygen_node", "action_player", **{"text.tasks.subtask.every_cycles": 2}) as nodes,
    ):
        b.probe.hear(Float64MultiArray, "action_player/joint_command", qos.newest(50))
        b.probe.hear(String, "oxygen_node/text/subtask", qos.latched(), "own text")
        b.probe.hear(String, "oxygen_node/text/subtask/sentence", qos.stream(50), "own sentence")
        b.until(
            lambda: len([s for s in b.got("state") if s.mode == PlayerState.MODE_PLAYING]) >= 40, "playing"
        )
        for topic in ("text", "text_sentence", "own text", "own sentence", "text_stream"):
            b.until(lambda topic=topic: b.got(topic), topic)
        for line in ("oxygen_node: cycle", "oxygen_node: inputs", "action_player: player"):
            b.until(lambda line=line: b.health(line), line)

        _check_actions(b)
        _check_rates(b)
        _check_text(b)
        for node in nodes:
            code, seconds = node.end()
            assert code == 0, node.output
            assert seconds < may_take_s(END_WITHIN_S)
            assert "Traceback" not in node.output


def test_b67_late_subscriber_gets_the_last_text_if_it_asks_for_it():
    with bench() as b, processes(b, "oxygen_node"):
        b.until(lambda: b.got("text"), "a text")
        b.feed = None
        b.until(lambda: b.reasons() & {"stale"} or len(b.got("cycle_report")) > 3, "some cycles")
        volatile = QoSProfile(depth=10, durability=DurabilityPolicy.VOLATILE)
        b.probe.hear(String, "oxygen_node/text/memory", qos.latched(), "latched")
        b.probe.hear(String, "oxygen_node/text/memory", volatile, "volatile")
        assert b.until(lambda: b.got("latched"), "the last text")
        b.spin_s(0.5)
        assert len(b.got("latched")) == 1
        assert not b.got("volatile")


MOMENTS = {
    "importing": lambda b, node: "rclpy" in node.maps,
    "configuring": lambda b, node: "Configuration:" in node.output,
    "configured": lambda b, node: "Warmed up" in node.output or "Dry run" in node.output,
    "waiting": lambda b, node: "waiting: camera" in node.output,
    "at work": lambda b, node: b.got("action_chunk") or b.got("state"),
}


@pytest.mark.parametrize(
    ("name", "moment", "number"),
    [
        *(("oxygen_node", moment, signal.SIGINT) for moment in MOMENTS),
        ("oxygen_node", "configuring", signal.SIGTERM),
        ("oxygen_node", "at work", signal.SIGTERM),
        ("action_player", "importing", signal.SIGINT),
        ("action_player", "configured", signal.SIGTERM),
        ("action_player", "at work", signal.SIGINT),
        ("action_player", "at work", signal.SIGTERM),
    ],
)
def test_b79_signal_at_any_moment_ends_a_node_without_a_traceback(name, moment, number):
    with bench() as b, processes(b, name, enable_control=False) as (node,):
        b.feed = b.probe.feed if moment == "at work" else None
        b.until(
            lambda: MOMENTS[moment](b, node) or node.process.poll() is not None, f"{moment}\n{node.output}"
        )
        code, seconds = node.end(number)
        assert seconds < may_take_s(END_WITHIN_S)
        assert "Traceback" not in node.output
        # Before the node has taken over, the signal ends the process itself: 130 or 143 in a shell.
        assert code == 0 or (moment in ("importing", "configuring") and code == -number), node.output


def test_b78_shutdown_while_a_cycle_runs_holds_and_says_finalized():
    slow = {
        "runner.fake.act_ms": 150.0,
        "text.tasks.subtask.every_cycles": 1,
        "runner.fake.decode_step_ms": 20.0,
    }
    with bench() as b, processes(b, "oxygen_node", **slow) as (node,):
        b.until(lambda: len(b.got("action_chunk")) > 2, "chunks")
        client = b.probe.create_client(Trigger, "oxygen_node/shutdown")
        b.until(client.service_is_ready, "the service")
        future = client.call_async(Trigger.Request())
        b.until(lambda: node.process.poll() is not None, "the end of the process")
        b.until(lambda: b.got("action_chunk")[-1].horizon == 0, "a withdrawal at the end")
        b.until(lambda: (h := b.health("oxygen_node: state")) and h.message == "finalized", "finalized")
        assert node.process.returncode == 0
        assert "Traceback" not in node.output
        assert not future.done() or future.result().success


def test_bad_parameter_leaves_the_process_alive_and_a_signal_ends_it_well():
    with bench() as b, processes(b, "oxygen_node", **{"cycle.action_rate_hz": -1.0}) as (node,):
        b.until(lambda: "cycle.action_rate_hz" in node.output, "the message")
        b.spin_s(0.5)
        assert node.process.poll() is None
        code, _ = node.end(signal.SIGTERM)
        assert code == 0
        assert "Traceback" not in node.output
