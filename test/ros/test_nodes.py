"""Both nodes in one process: life cycle, topics, bad configuration, failures."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.parameter import Parameter
from ros_bench import JOINTS, SMALL, bench
from std_msgs.msg import Empty

from oxygen_ros.msg import CycleReport, PlayerState, TextDelta, TextRequest


def change(bench_, node: str, transition: int):
    request = ChangeState.Request(transition=Transition(id=transition))
    return bench_.call(ChangeState, f"{node}/change_state", request).success


def test_autostart_acts_and_every_topic_carries_stamps_and_ids():
    with bench(text__tasks__subtask__every_cycles=1) as b:
        b.brain()
        b.player()
        for topic in ("action_chunk", "text", "text_sentence", "text_stream", "cycle_report", "diagnostics"):
            b.until(lambda topic=topic: len(b.got(topic)) >= 2, topic)
        for topic in ("joint_trajectory", "joint_command", "state"):
            b.until(lambda topic=topic: len(b.got(topic)) >= 5, topic)
        chunks = [c for c in b.got("action_chunk") if c.horizon]
        assert [c.chunk_id for c in chunks] == list(
            range(chunks[0].chunk_id, chunks[0].chunk_id + len(chunks))
        )
        assert all(c.joint_names == list(JOINTS) for c in chunks)
        assert all(c.header.stamp.sec > 0 for c in chunks)
        assert all(np.isfinite(c.actions).all() for c in chunks)
        assert (chunks[0].horizon, chunks[0].action_dim, chunks[0].execute_horizon) == (16, 3, 4)
        deltas = b.got("text_stream")
        assert all(d.header.stamp.sec > 0 for d in deltas if d.num_tokens)
        for request_id in {d.request_id for d in deltas}:
            own = [d for d in deltas if d.request_id == request_id]
            assert [d.seq for d in own] == list(range(len(own)))
            assert sum(d.is_final for d in own) <= 1
        assert any(s.mode == PlayerState.MODE_PLAYING for s in b.got("state"))
        assert all(len(m.data) == 3 for m in b.got("joint_command"))


def test_dry_run_sends_nothing_to_the_robot():
    with bench(enable_control=False) as b:
        b.brain()
        player = b.player()
        b.until(lambda: b.got("state") and b.got("state")[-1].actions_played > 5, "virtual playing")
        assert not b.got("joint_command")
        assert not b.got("joint_trajectory")
        assert not b.got("state")[-1].control_enabled
        assert player.count_publishers(f"{b.namespace}/action_player/joint_command") == 0


BRAIN_ONLY = "no room in memory"
BAD = {
    "unknown parameter": ({"cycle.action_rate": 5.0}, "cycle.action_rate_hz"),
    "wrong type": ({"cycle.action_rate_hz": "fast"}, "cycle.action_rate_hz"),
    "out of range": ({"cycle.action_rate_hz": -3.0}, "cycle.action_rate_hz"),
    "unknown preset": ({"preset": "librao"}, "libero"),
    "unknown device": ({"device": "cpuu"}, "cpu"),
    "missing params file": ({"params_file": "/nowhere/x.yaml"}, "/nowhere/x.yaml"),
    "no camera": ({"robot.camera_roles": [""]}, "robot.camera_roles"),
    "no joint": ({"robot.joint_names": [""]}, "robot.joint_names"),
    BRAIN_ONLY: (
        {"kv.memory_limit_mb": 1.0, "runner.fake.prefix_tokens": 8000},
        "kv.memory_limit_mb",
    ),
}


@pytest.mark.parametrize(
    ("node", "case"),
    [
        (n, c)
        for n in ("oxygen_node", "action_player")
        for c in BAD
        if (n, c) != ("action_player", BRAIN_ONLY)
    ],
)
def test_bad_configuration_fails_by_name_and_can_be_mended(node, case):
    overrides, named = BAD[case]
    with bench() as b:
        made = (b.brain if node == "oxygen_node" else b.player)(**overrides)
        health = b.until(
            lambda: (h := b.health(f"{node}: state")) and h.level == b"\x02" and h, "an ERROR in diagnostics"
        )
        assert named in health.message
        assert made.state == "unconfigured"
        assert not change(b, node, Transition.TRANSITION_CONFIGURE)
        assert made.state == "unconfigured"
        good = {**SMALL, "preset": "", "device": "", "params_file": "", "kv.memory_limit_mb": 100.0}
        for name in overrides:
            assert made.set_parameters([Parameter(name, value=good.get(name))])[0].successful
        assert change(b, node, Transition.TRANSITION_CONFIGURE), made._failure
        assert change(b, node, Transition.TRANSITION_ACTIVATE)
        assert made.state == "active"


def test_life_cycle_goes_round_and_acts_each_time():
    with bench() as b:
        brain = b.brain()
        b.until_state(brain, "active")
        for _ in range(2):
            b.until(lambda: b.got("action_chunk") and b.got("action_chunk")[-1].horizon, "a chunk")
            assert change(b, "oxygen_node", Transition.TRANSITION_DEACTIVATE)
            b.until(lambda: b.got("action_chunk")[-1].horizon == 0, "withdrawn")
            assert change(b, "oxygen_node", Transition.TRANSITION_CLEANUP)
            assert brain.state == "unconfigured"
            b.got("action_chunk").clear()
            b.spin_s(0.5)
            assert not b.got("action_chunk")
            assert change(b, "oxygen_node", Transition.TRANSITION_CONFIGURE)
            assert change(b, "oxygen_node", Transition.TRANSITION_ACTIVATE)


def test_transition_that_is_not_possible_is_refused_and_answered():
    with bench(autostart=False) as b:
        brain = b.brain()
        b.spin_s(0.3)
        assert not change(b, "oxygen_node", Transition.TRANSITION_ACTIVATE)
        assert brain.state == "unconfigured"
        assert change(b, "oxygen_node", Transition.TRANSITION_CONFIGURE)
        assert brain.state == "inactive"


def test_deactivation_ends_texts_once_and_reports_them_cancelled():
    with bench(runner__fake__decode_step_ms=60.0) as b:
        b.brain()
        b.until(lambda: b.got("text_stream"), "a text")
        change(b, "oxygen_node", Transition.TRANSITION_DEACTIVATE)
        b.until(lambda: all(_finals(b).values()), "finals")
        assert set(_finals(b).values()) == {1}
        assert any(d.finish_reason == TextDelta.FINISH_CANCELLED for d in b.got("text_stream"))


def _finals(b) -> dict[str, int]:
    deltas = b.got("text_stream")
    return {d.request_id: sum(e.is_final for e in deltas if e.request_id == d.request_id) for d in deltas}


def test_question_to_an_inactive_brain_gets_its_final_message():
    with bench() as b:
        brain = b.brain()
        b.until_state(brain, "active")
        assert change(b, "oxygen_node", Transition.TRANSITION_DEACTIVATE)
        b.until(lambda: b.probe.senders["ask"].get_subscription_count(), "the ask topic")
        b.probe.send("ask", TextRequest(request_id="q"))
        b.until(lambda: _finals(b).get("q"), "a final message")
        final = next(d for d in b.got("text_stream") if d.request_id == "q")
        assert (final.finish_reason, brain.state) == (TextDelta.FINISH_REFUSED, "inactive")
        assert "not_active" in final.detail


def test_texts_end_also_when_the_last_cycle_outlasts_the_deactivation():
    with bench(runner__fake__act_ms=2500.0) as b:
        brain = b.brain()
        b.until_state(brain, "active")
        b.until(lambda: b.probe.senders["ask"].get_subscription_count(), "the ask topic")
        b.probe.send("ask", TextRequest(request_id="q"))
        seen = len(b.acted())
        b.until(lambda: len(b.acted()) > seen + 1, "two cycles")
        assert change(b, "oxygen_node", Transition.TRANSITION_DEACTIVATE)
        b.until(lambda: _finals(b).get("q") == 1, "its end")


def test_b25_one_failed_cycle_holds_and_the_next_acts():
    with bench() as b:
        brain = b.brain()
        b.player()
        b.until(lambda: b.got("joint_command"), "commands")
        brain._parts.brain.model.runner.fail_next("sample_actions")
        failed = b.until(
            lambda: [r for r in b.got("cycle_report") if r.status == CycleReport.STATUS_FAILED],
            "a failed report",
        )
        assert "made to fail" in failed[0].reason
        index = b.got("cycle_report").index(failed[0])
        b.until(lambda: b.got("cycle_report")[index + 1 :], "the next report")
        assert b.got("cycle_report")[index + 1].status == CycleReport.STATUS_ACTED
        assert brain.state == "active"


def test_b25_model_that_keeps_failing_ends_in_hold_silence_and_error_then_can_be_recovered():
    with bench(player__mode="receding") as b:
        brain = b.brain()
        player = b.player()
        b.until(lambda: len(b.got("joint_command")) > 5, "commands")
        for _ in range(3):
            brain._parts.brain.model.runner.fail_next("prefill")
        b.until_state(brain, "unconfigured")
        b.until(lambda: (h := b.health("oxygen_node: state")) and h.level == b"\x02", "ERROR")
        assert "made to fail" in b.health("oxygen_node: state").message
        b.until(lambda: b.got("state")[-1].mode == PlayerState.MODE_HOLDING, "player holds")
        commands = b.got("joint_command")
        assert commands[-1].data == commands[-2].data, "the last command repeats the one before: a hold"
        before = len(commands)
        b.spin_s(0.5)
        assert len(commands) == before, "then silence"
        assert player.state == "active"
        assert change(b, "oxygen_node", Transition.TRANSITION_CONFIGURE)
        assert change(b, "oxygen_node", Transition.TRANSITION_ACTIVATE)
        b.until(lambda: len(commands) > before + 3, "commands again")


def test_stop_topic_is_latched_until_reset():
    from std_msgs.msg import Empty

    with bench() as b:
        b.brain()
        b.player()
        b.until(lambda: len(b.got("joint_command")) > 3, "commands")
        b.probe.send("stop", Empty())
        b.until(lambda: b.got("state")[-1].mode == PlayerState.MODE_STOPPED, "stopped")
        b.spin_s(0.2)
        before = len(b.got("joint_command"))
        b.spin_s(0.5)
        assert len(b.got("joint_command")) == before
        assert b.trigger("action_player/reset").success
        b.until(lambda: len(b.got("joint_command")) > before + 3, "commands after the reset")


def test_stop_that_is_repeated_is_said_once(capfd):
    with bench() as b:
        b.feed = None
        player = b.player()
        b.until_state(player, "active")
        for _ in range(5):
            b.probe.send("stop", Empty())
            b.spin_s(0.05)
        b.until(lambda: b.got("state") and b.got("state")[-1].mode == PlayerState.MODE_STOPPED, "stopped")
        assert capfd.readouterr().err.count("stop: holding until the reset service is called") == 1


@pytest.mark.parametrize("raw", [b"\x00\x01\x00\x00\xff\xff\xff\x7f", b"\xff" * 40])
def test_bytes_that_are_no_joint_state_end_neither_node(raw):
    with bench() as b:
        nodes = b.brain(), b.player()
        b.until(b.acted, "an action")
        for _ in range(5):
            b.probe.senders["joints"].publish(raw)
            b.spin_s(0.05)
        before = len(b.acted())
        b.until(lambda: len(b.acted()) > before + 2, "actions go on")
        assert [node.state for node in nodes] == ["active", "active"]
