"""What life-cycle transitions, resets and stops must not lose, repeat or let through."""

from __future__ import annotations

import threading

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.parameter import Parameter
from ros_bench import bench
from std_msgs.msg import Empty

from oxygen_ros.config import QosConfig
from oxygen_ros.msg import PlayerState
from oxygen_ros.ros import qos

UP = (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE)
DOWN = (Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_CLEANUP)


def change(b, node: str, *transitions: int) -> None:
    for transition in transitions:
        request = ChangeState.Request(transition=Transition(id=transition))
        assert b.call(ChangeState, f"{node}/change_state", request).success


def test_b28_stop_is_not_undone_by_configuring_anew():
    with bench() as b:
        b.brain()
        player = b.player()
        b.until(lambda: len(b.got("joint_command")) > 3, "commands")
        b.probe.send("stop", Empty())
        b.until(lambda: b.got("state")[-1].mode == PlayerState.MODE_STOPPED, "stopped")
        b.spin_s(0.3)
        before, seen = len(b.got("joint_command")), len(b.acted())
        change(b, "action_player", *DOWN, *UP)
        b.until(lambda: len(b.acted()) > seen + 3, "chunks")
        assert player._parts.player.status().reason == "stop topic"
        assert len(b.got("joint_command")) == before
        assert b.trigger("action_player/reset").success
        b.until(lambda: len(b.got("joint_command")) > before + 3, "commands after the reset")


def test_b28_stop_is_heard_from_a_publisher_that_is_best_effort():
    with bench() as b:
        player = b.player()
        b.feed = b.probe.send_joints
        b.until_state(player, "active")
        b.probe.add_sender("best effort stop", Empty, "action_player/stop", qos.sensor(QosConfig()))

        def send() -> None:
            b.probe.send_joints()
            b.probe.send("best effort stop", Empty())

        b.feed = send
        b.until(lambda: b.got("state") and b.got("state")[-1].mode == PlayerState.MODE_STOPPED, "stopped")


def test_b28_stop_of_an_inactive_player_sends_no_pose_of_then_when_it_is_activated():
    with bench() as b:
        b.brain()
        player = b.player()
        b.until(lambda: len(b.got("joint_command")) > 3, "commands")
        change(b, "action_player", Transition.TRANSITION_DEACTIVATE)
        b.probe.send("stop", Empty())
        stopped = player._parts.player
        b.until(lambda: stopped.status().reason == "stop topic", "stopped")
        b.spin_s(0.3)
        before = len(b.got("joint_command"))
        b.feed = lambda: (b.probe.send_picture(), b.probe.send_joints(positions=(1.0, 1.0, 1.0)))
        change(b, "action_player", Transition.TRANSITION_ACTIVATE)
        told = len(b.got("state"))
        b.until(lambda: len(b.got("state")) > told + 2, "ticks")
        assert b.got("state")[-1].mode == PlayerState.MODE_STOPPED
        assert len(b.got("joint_command")) == before


def test_b22_player_does_not_measure_by_a_message_whose_names_and_positions_do_not_fit():
    with bench() as b:
        player = b.player()
        b.feed = b.probe.send_joints
        b.until_state(player, "active")
        measured = player._parts.player._pose.measured
        b.until(lambda: measured()[0] == pytest.approx(0.1), "measured joints")
        b.feed = lambda: b.probe.send_joints(positions=(7.0, 8.0))
        b.until(lambda: player.refusals.counts().get("bad_joints", 0) > 0, "the count")
        assert not (measured() == 7.0).any()


def test_b34_reset_of_the_brain_holds_a_robot_that_follows_its_trajectories():
    """The joints were forgotten first, so that nobody knew where to hold: it ran to the trajectory's end."""
    with bench(text__tasks__memory__every_cycles=0) as b:
        brain = b.brain()
        b.until(lambda: len(b.got("joint_trajectory")) > 2, "trajectories")
        outlet, sent = brain._parts.actions, []
        plain = outlet._trajectory.publish
        outlet._trajectory.publish = lambda message: (sent.append(message), plain(message))
        brain._begin_anew("reset")
        holds = [message for message in sent if len(message.points) == 1]
        assert len(holds) == 1
        np.testing.assert_allclose(holds[0].points[0].positions, (0.1, 0.2, 0.3))
        num_sent = len(sent)
        brain._begin_anew("reset again")
        assert len(sent) == num_sent, "nothing is out any more"


def test_limits_of_joints_hold_on_the_trajectories_of_the_brain():
    limits = {
        "robot.joints.j1.position_max": 0.12,
        "robot.joints.j2.max_step": 0.001,
        "robot.joints.j3.max_velocity": 0.04,
    }
    with bench(**limits) as b:
        brain = b.brain()
        b.until(lambda: b.got("joint_trajectory"), "a trajectory")
        runner = brain._parts.brain.model.runner
        plain = runner.sample_actions
        runner.sample_actions = lambda *args: plain(*args) + np.float32(1.0)
        seen = len(b.got("joint_trajectory"))
        b.until(lambda: len(b.got("joint_trajectory")) > seen + 3, "trajectories")
        rows = np.array([p.positions for p in b.got("joint_trajectory")[-1].points])
        chunk = [c for c in b.got("action_chunk") if c.horizon][-1]
        assert np.reshape(chunk.actions, (16, 3)).max() > 0.5, "the chunk itself is as the model gave it"
        steps = np.abs(np.diff(np.vstack(((0.1, 0.2, 0.3), rows)), axis=0))
        assert rows[:, 0].max() <= 0.12 + 1e-9
        assert steps[:, 1].max() <= 0.001 + 1e-9
        assert steps[:, 2].max() <= 0.04 * 0.05 + 1e-9
        assert len(rows) == 16


def test_activation_waits_for_the_last_cycle_of_the_activation_before():
    """Two control threads worked on one engine, and an action of the old observation got out."""
    with bench() as b:
        brain = b.brain()
        b.until(lambda: len(b.acted()) > 2, "actions")
        runner = brain._parts.brain.model.runner
        plain, inside, together = runner.sample_actions, [], []
        is_stuck, may_go_on = threading.Event(), threading.Event()

        def stalled(*args):
            inside.append(1)
            together.append(len(inside))
            if not is_stuck.is_set():
                is_stuck.set()
                may_go_on.wait(60.0)
            inside.pop()
            return plain(*args)

        runner.sample_actions = stalled
        b.until(is_stuck.is_set, "a cycle that does not end")
        old_id = brain._parts.mailbox.last_id
        change(b, "oxygen_node", Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_ACTIVATE)
        seen = len(b.got("action_chunk"))
        b.spin_s(1.0)
        assert not [c for c in b.got("action_chunk")[seen:] if c.horizon]
        may_go_on.set()
        b.until(lambda: [c for c in b.got("action_chunk")[seen:] if c.horizon], "actions")
        assert max(together) == 1
        assert min(c.observation_id for c in b.got("action_chunk")[seen:] if c.horizon) > old_id
        assert brain.state == "active"


def test_topic_name_that_ros_does_not_allow_fails_configure_and_can_be_mended():
    """It came out of the wait for the joints, and the node said "loading" for ever."""
    with bench(autostart=False) as b:
        brain = b.brain(**{"robot.joint_topics.joints.topic": "j" * 300})
        request = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_CONFIGURE))
        assert not b.call(ChangeState, "oxygen_node/change_state", request).success
        assert "jjj" in brain._failure
        b.until(lambda: (h := b.health("oxygen_node: state")) and h.message == brain._failure, "told")
        good = Parameter("robot.joint_topics.joints.topic", value="joint_states")
        assert brain.set_parameters([good])[0].successful
        change(b, "oxygen_node", *UP)
        assert brain.state == "active"


def test_parameters_are_fixed_while_the_model_loads():
    """They were taken, shown, and not used."""
    with bench(autostart=False) as b:
        brain = b.brain()
        may_load = threading.Event()
        plain = brain.prepare
        brain.prepare = lambda config: (may_load.wait(60.0), plain(config))[1]
        client = b.probe.create_client(ChangeState, "oxygen_node/change_state")
        b.until(client.service_is_ready, "the service")
        request = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_CONFIGURE))
        answer = client.call_async(request)
        b.until(lambda: brain._loading is not None, "loading")
        refused = brain.set_parameters([Parameter("instruction", value="dance")])[0]
        assert not refused.successful
        assert "while the model loads" in refused.reason
        may_load.set()
        b.until(answer.done, "the answer")
        assert answer.result().success


def test_failure_told_after_deactivation_does_not_end_the_next_activation():
    with bench() as b:
        brain = b.brain()
        b.until_state(brain, "active")
        change(b, "oxygen_node", Transition.TRANSITION_DEACTIVATE)
        brain.fail("3 cycles in a row failed")
        change(b, "oxygen_node", Transition.TRANSITION_ACTIVATE, Transition.TRANSITION_DEACTIVATE)
        assert brain.state == "inactive"


def test_b80_health_goes_to_the_topic_of_the_configuration():
    with bench(topics__diagnostics="health") as b:
        b.probe.hear(DiagnosticArray, "health", qos.stream(50), "own")
        brain, player = b.brain(), b.player()
        for node in (brain, player):
            b.until(
                lambda node=node: any(node.get_name() in s.name for m in b.got("own") for s in m.status),
                node.get_name(),
            )
        assert b.health("state") is None, "nothing of it goes to /diagnostics"
