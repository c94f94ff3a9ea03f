"""Field cases of commands: holds, trajectories, stop, reset, and what goes out as joint states."""

from __future__ import annotations

import itertools

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from ros_bench import JOINTS, bench
from std_msgs.msg import Empty, String
from trajectory_msgs.msg import JointTrajectory

from oxygen_ros.msg import PlayerState
from oxygen_ros.ros import conversions, qos
from oxygen_ros.srv import CancelText


def _duration_ns(point) -> int:
    return point.time_from_start.sec * 10**9 + point.time_from_start.nanosec


def test_b25_velocity_robot_gets_zeros_when_the_model_fails():
    with bench(robot__command_kind="velocity") as b:
        brain = b.brain()
        b.player()
        commands = b.until(lambda: len(b.got("joint_command")) > 3 and b.got("joint_command"), "commands")
        for _ in range(3):
            brain._parts.brain.model.runner.fail_next("sample_actions")
        b.until_state(brain, "unconfigured")
        b.until(lambda: list(commands[-1].data) == [0.0] * 3, "zeros")
        before = len(commands)
        b.spin_s(0.5)
        assert len(commands) == before
        assert not b.got("joint_trajectory"), "velocities are no trajectory"


@pytest.mark.parametrize("stamp", ["zero", "now"])
def test_b26_every_trajectory_of_both_nodes_keeps_the_contract(stamp):
    with bench(player__stamp=stamp, player__output="trajectory") as b:
        b.brain()
        b.player()
        b.until(
            lambda: len(b.got("joint_command")) > 4 and len(b.got("joint_trajectory")) > 4, "trajectories"
        )
        for trajectory in (*b.got("joint_command"), *b.got("joint_trajectory")):
            times = [_duration_ns(point) for point in trajectory.points]
            assert times == sorted(set(times))
            assert times[0] > 0
            assert trajectory.joint_names == list(JOINTS)
            assert all(len(p.positions) == 3 and not p.velocities for p in trajectory.points)
            stamp_ns = conversions.from_time(trajectory.header.stamp)
            assert (stamp_ns > 0) is (stamp == "now")
            if stamp == "now":
                assert times[-1] >= 50_000_000


def test_b27_next_trajectory_goes_out_before_the_last_comes_to_rest():
    with bench(player__output="trajectory", player__overlap_steps=4, cycle__execute_horizon=8) as b:
        b.brain()
        sent: list[tuple[int, int]] = []
        node = b.player()

        def note(message) -> None:
            sent.append((node._parts.player.status().actions_played, len(message.points)))

        b.probe.create_subscription(JointTrajectory, "action_player/joint_command", note, qos.newest(50))
        b.until(lambda: len(sent) > 5, "trajectories")
        for (played, num_points), (next_played, _) in itertools.pairwise(sent):
            left = num_points - (next_played - played)
            assert left >= 0.25 * num_points - 1, "counted when heard, at most one action later"


def test_b28_stop_holds_within_a_tick_also_while_text_is_written():
    with bench(runner__fake__decode_step_ms=30.0, text__tasks__memory__every_cycles=1) as b:
        b.brain()
        b.player()
        b.until(lambda: len(b.got("joint_command")) > 3 and b.got("text_stream"), "commands and text")
        b.probe.send("stop", Empty())
        b.until(lambda: b.got("state")[-1].mode == PlayerState.MODE_STOPPED, "stopped")
        stopped = next(s for s in b.got("state") if s.mode == PlayerState.MODE_STOPPED)
        b.spin_s(0.3)
        commands = b.got("joint_command")
        before, played = len(commands), stopped.actions_played
        b.spin_s(0.5)
        assert len(commands) == before
        assert b.got("state")[-1].actions_played == played
        assert b.got("text_stream"), "text is not what the stop topic is for"
        assert b.trigger("action_player/reset").success
        b.until(lambda: len(commands) > before + 3, "commands after the reset")


def test_b28_stop_holds_where_the_joints_have_just_come_to():
    """While actions go out the player looks at positions a few times a second; a stop looks at once."""
    here = (0.4, 0.5, 0.6)
    with bench() as b:
        b.brain()
        b.player()
        b.until(lambda: len(b.got("joint_command")) > 3, "commands")
        b.feed = lambda: b.probe.send_joints(positions=here)
        b.spin_s(0.05)
        b.probe.send("stop", Empty())
        b.until(lambda: b.got("state")[-1].mode == PlayerState.MODE_STOPPED, "stopped")
        b.until(lambda: list(b.got("joint_command")[-1].data) == pytest.approx(here), "the hold there")


def test_b28_flood_of_cancels_is_counted_and_acting_goes_on():
    with bench(text__max_calls_per_s=2.0, runner__fake__decode_step_ms=20.0) as b:
        brain = b.brain()
        b.until(lambda: b.got("text_stream"), "a text")
        client = b.probe.create_client(CancelText, "oxygen_node/cancel_text")
        b.until(client.service_is_ready, "the service")
        answers = []

        def flood() -> None:
            b.probe.feed()
            answers.extend(client.call_async(CancelText.Request()) for _ in range(5))

        b.feed = flood
        b.until(lambda: brain.refusals.counts().get("too_many_calls", 0) > 0, "the counter")
        before = len(b.acted())
        b.until(lambda: len(b.acted()) > before + 3, "acting goes on")
        assert any(a.done() and a.result().success for a in answers)
        assert any(a.done() and a.result().message == "too many calls per second" for a in answers)
        assert brain.state == "active"


def test_b34_reset_of_the_brain_leaves_no_action_of_the_old_task():
    with bench(instruction=None) as b:
        b.brain()
        b.player()
        b.probe.send("instruction", String(data="task A"))
        b.until(
            lambda: len([c for c in b.got("action_chunk") if c.instruction == "task A"]) > 3, "chunks of A"
        )
        b.probe.send("instruction", String(data="task B"))
        assert b.trigger("oxygen_node/reset").success
        chunks = b.got("action_chunk")
        b.until(lambda: any(c.horizon == 0 for c in chunks), "the withdrawal")
        after = max(i for i, c in enumerate(chunks) if c.horizon == 0)
        b.until(lambda: len(chunks) > after + 4, "chunks of B")
        assert {c.instruction for c in chunks[after + 1 :] if c.horizon} <= {"task B"}
        ids = [c.chunk_id for c in chunks if c.horizon]
        assert ids == sorted(set(ids))


def test_b34_deactivate_and_activate_never_repeats_a_number():
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import ChangeState

    def change(transition: int) -> None:
        request = ChangeState.Request(transition=Transition(id=transition))
        assert b.call(ChangeState, "oxygen_node/change_state", request).success

    with bench() as b:
        b.brain()
        b.until(lambda: len(b.got("action_chunk")) > 2, "chunks")
        for _ in range(2):
            change(Transition.TRANSITION_DEACTIVATE)
            change(Transition.TRANSITION_CLEANUP)
            change(Transition.TRANSITION_CONFIGURE)
            change(Transition.TRANSITION_ACTIVATE)
            seen = len(b.acted())
            b.until(lambda seen=seen: len(b.acted()) > seen + 2, "actions")
        for numbers in (
            [c.chunk_id for c in b.got("action_chunk") if c.horizon],
            [r.observation_id for r in b.acted()],
            [r.cycle_id for r in b.got("cycle_report")],
        ):
            assert numbers == sorted(set(numbers))


def test_commands_as_joint_states_carry_names_and_stamps():
    with bench(player__output="joint_state") as b:
        b.brain()
        b.player()
        commands = b.until(lambda: len(b.got("joint_command")) > 3 and b.got("joint_command"), "commands")
        assert all(c.name == list(JOINTS) and len(c.position) == 3 for c in commands)
        assert all(c.header.stamp.sec > 0 for c in commands)
