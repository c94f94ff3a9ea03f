"""Field cases of time, life cycle and health: simulated clocks, jumps, late cycles, heartbeat."""

from __future__ import annotations

import contextlib
import signal

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from node_process import END_WITHIN_S, NodeProcess, may_take_s
from ros_bench import SMALL, bench
from rosgraph_msgs.msg import Clock

from oxygen_ros.errors import RunnerError
from oxygen_ros.msg import CycleReport, PlayerState
from oxygen_ros.ros import conversions, qos
from oxygen_ros.ros.brain_node import OxygenNode

MS = 1_000_000
S = 1_000 * MS


class Bag:
    """Publishes /clock and good inputs stamped by it, in steps of 50 ms."""

    def __init__(self, b, start_ns: int) -> None:
        self._b = b
        self.now_ns = start_ns
        b.probe.add_sender("clock", Clock, "/clock", qos.newest(10))

    def __call__(self) -> None:
        self.now_ns += 50 * MS
        self._b.probe.send("clock", Clock(clock=conversions.to_time(self.now_ns)))
        self._b.probe.send_picture(stamp_ns=self.now_ns)
        self._b.probe.send_joints(stamp_ns=self.now_ns)


def test_b68_simulated_time_without_a_clock_is_warned_about_and_ends_well():
    names = ("oxygen_node", "action_player")
    with bench() as b, contextlib.ExitStack() as stack:
        nodes = [NodeProcess(name, b.namespace, {**SMALL, "use_sim_time": True}) for name in names]
        for node in nodes:
            stack.callback(node.close)
        for node in nodes:
            b.until(lambda node=node: "no /clock" in node.output, f"the warning\n{node.output}")
            state = b.until(lambda node=node: b.health(f"{node.name}: state"), "a heartbeat")
            assert state.message == "active", "configure and activate came back"
            assert {v.key: v.value for v in state.values}["ros_time"] == "no /clock"
            code, seconds = node.end(signal.SIGINT)
            assert code == 0
            assert seconds < may_take_s(END_WITHIN_S)
            assert "Traceback" not in node.output


def test_b69_first_clock_makes_nothing_stale_and_misses_nothing():
    with bench(use_sim_time=True) as b:
        b.feed = None
        brain = b.brain()
        b.until_state(brain, "active")
        b.probe.send_picture(stamp_ns=1_700_000_000 * S)
        b.probe.send_joints(stamp_ns=1_700_000_000 * S)
        b.spin_s(0.3)
        b.feed = Bag(b, 1_700_000_000 * S)
        b.until(lambda: len(b.acted()) > 3, "actions")
        assert not any("stale" in reason for reason in b.reasons())
        assert not brain.refusals.counts().get("future_stamp")
        assert b.acted()[0].header.stamp.sec >= 1_700_000_000


def test_b70_clock_that_jumps_back_begins_anew_once_and_acts_again(capfd):
    with bench(use_sim_time=True) as b:
        bag = b.feed = Bag(b, 10 * S)
        b.brain()
        player = b.player()
        b.until(lambda: bag.now_ns > 15 * S and len(b.acted()) > 5, "actions in the first round")
        b.until(lambda: b.got("state")[-1].mode == PlayerState.MODE_PLAYING, "playing")
        seen, first = len(b.acted()), len(b.got("action_chunk"))
        played = player._parts.player.status().actions_played
        jump_s = (bag.now_ns - 10 * S) / S
        bag.now_ns = 10 * S
        b.until(lambda: len(b.acted()) > seen, "an action in the second round")
        withdrawn = [c for c in b.got("action_chunk")[first:] if c.horizon == 0]
        assert withdrawn
        resumed = next(r for r in b.acted()[seen:])
        assert resumed.header.stamp.sec < 15
        b.until(lambda: player._parts.player.status().actions_played > played + 3, "playing again")
        log = capfd.readouterr().err
        said = [
            line
            for line in log.splitlines()
            if f"clock jumped back {jump_s:.1f}" in line and "oxygen_node" in line
        ]
        assert len(said) == 1


def test_b80_late_cycle_is_warned_about_with_its_time(capfd):
    with bench(runner__fake__act_ms=400.0) as b:
        b.brain()
        b.until(lambda: [r for r in b.got("cycle_report") if r.is_late], "a late cycle")
        late = next(r for r in b.got("cycle_report") if r.is_late)
        assert late.slack_ms < 0
        assert late.deadline_misses >= 1
        health = b.until(lambda: (h := b.health("oxygen_node: cycle")) and h.level == b"\x01" and h, "WARN")
        assert int({v.key: v.value for v in health.values}["deadline_misses"]) >= 1
        assert f"ms of {late.period_ms:.0f} ms; longest: act" in capfd.readouterr().err


def test_b80_idle_nodes_give_a_heartbeat_every_second():
    with bench(autostart=False) as b:
        b.feed = None
        b.brain()
        b.player()
        names = ("oxygen_node: state", "action_player: state")

        def beats(name: str) -> int:
            return sum(s.name.endswith(name) for array in b.got("diagnostics") for s in array.status)

        begin_ns = b.steady.now_ns()
        b.until(lambda: all(beats(name) >= 4 for name in names), "heartbeats")
        assert (b.steady.now_ns() - begin_ns) / 1e9 < may_take_s(8.0)


def test_loading_can_be_cancelled_and_done_again():
    with bench(autostart=False) as b:
        brain = b.brain()
        is_slow = [True]
        plain = brain.prepare

        def slow(config):
            while is_slow[0]:
                b.steady.sleep_until_ns(b.steady.now_ns() + 20 * MS)
            return plain(config)

        brain.prepare = slow
        client = b.probe.create_client(ChangeState, "oxygen_node/change_state")
        b.until(client.service_is_ready, "the service")
        configure = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_CONFIGURE))
        answer = client.call_async(configure)
        b.until(
            lambda: (h := b.health("oxygen_node: state")) and h.message == "loading",
            "loading, with a heartbeat",
        )
        assert not answer.done()
        cancel = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_CLEANUP))
        assert b.call(ChangeState, "oxygen_node/change_state", cancel).success
        b.until(answer.done, "the first answer")
        assert not answer.result().success
        assert brain.state == "unconfigured"
        is_slow[0] = False
        assert b.call(ChangeState, "oxygen_node/change_state", configure).success
        assert brain.state == "inactive"


def test_overrun_is_followed_by_no_burst_of_cycles():
    with bench() as b:
        brain = b.brain()
        b.until(lambda: len(b.acted()) > 2, "actions")
        runner = brain._parts.brain.model.runner
        sample, begin = runner.sample_actions, len(b.got("cycle_report"))

        def stalled(*args):
            runner.sample_actions = sample
            b.steady.sleep_until_ns(b.steady.now_ns() + 900 * MS)
            return sample(*args)

        runner.sample_actions = stalled
        b.until(lambda: any(r.act_ms > 800 for r in b.got("cycle_report")), "the stall")
        stall = next(r for r in b.got("cycle_report")[begin:] if r.act_ms > 800)
        b.until(lambda: b.got("cycle_report")[-1].cycle_id >= stall.cycle_id + 4, "cycles after it")
        after = [r for r in b.got("cycle_report") if stall.cycle_id <= r.cycle_id <= stall.cycle_id + 4]
        assert sum(r.status == CycleReport.STATUS_ACTED for r in after) == 5
        stamps = [conversions.from_time(r.header.stamp) for r in after]
        assert (stamps[-1] - stamps[0]) / S > 0.9 + 2 * 0.2 - 0.1, "at most one cycle is made up for"


def test_b49_model_that_fails_in_warm_up_is_one_error_and_nothing_takes_its_place(capfd):
    cause = "prefill: ptxas fatal : Value 'sm_110a' is not defined for option 'gpu-name'"

    class OnThor(OxygenNode):
        def prepare(self, config):
            raise RunnerError("runner_failed", cause)

    with bench() as b:
        brain = b.add(OnThor)
        health = b.until(lambda: (h := b.health("oxygen_node: state")) and h.level == b"\x02" and h, "ERROR")
        assert cause in health.message
        assert brain.state == "unconfigured"
        b.spin_s(0.3)
        assert capfd.readouterr().err.count("sm_110a") == 1
        assert not b.got("action_chunk")
