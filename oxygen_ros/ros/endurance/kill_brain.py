"""Kills the brain again and again at random moments: the player must hold, and nothing may jump.

After each kill the player may go on for at most one chunk and then holds, silent. At the restart no joint may
go further from one command to the next than its limit, and none beyond its range. Exit code 0 if all is as it
must be, 1 if not, 2 if the run could not be made.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import deque
from collections.abc import Sequence
from random import Random

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import JointState

from oxygen_ros.config import OxygenConfig
from oxygen_ros.errors import OxygenError
from oxygen_ros.msg import PlayerState
from oxygen_ros.ros import qos
from oxygen_ros.ros.endurance.stage import Stage
from oxygen_ros.ros.simulated_robot import SimulatedRobot
from oxygen_ros.runtime.limits import CommandArray, JointLimits
from oxygen_ros.runtime.stamps import from_time

START_WITHIN_S = 120.0
HOLD_PATIENCE_S = 120.0
MIN_PLAY_S, MAX_PLAY_S = 0.3, 2.5
SILENCE_S = 0.3
MAX_STEP = 0.02
"""Of every joint: so small that the limit is at work all the time."""
ROUNDING = 1e-6
MAX_UNHEARD = 8
EARLY = 0.5
"""Of a period: a command may come so much late before the one in between counts as not heard."""


class CommandWatch(Node):
    """Every command against the limits, and what the player says it does."""

    def __init__(self, config: OxygenConfig, namespace: str) -> None:
        super().__init__("command_watch", namespace=namespace)
        self.state = PlayerState()
        self.states: deque[tuple[int, PlayerState]] = deque(maxlen=2000)  # with ROS time of the tick
        self.num_commands = 0
        self.largest_step = 0.0
        self.largest_share = 0.0
        self.faults: list[str] = []
        self._names = config.robot.command_joint_names
        self._limits = JointLimits.of(config)
        self.num_unheard = 0
        self._dt_ns = config.cycle.action_dt_ns
        self._previous: CommandArray | None = None
        self._previous_ns = 0
        self.create_subscription(JointState, "action_player/joint_command", self._on_command, qos.newest(500))
        self.create_subscription(PlayerState, "action_player/state", self._on_state, qos.newest(500))

    @property
    def is_playing(self) -> bool:
        """True while actions go out."""
        return int(self.state.mode) == PlayerState.MODE_PLAYING

    def has_held_since(self, ros_ns: int) -> bool:
        """True once the player has held after a moment of ROS time."""
        is_holding = int(self.state.mode) == PlayerState.MODE_HOLDING
        return is_holding and from_time(self.state.header.stamp) > ros_ns

    def after(self, ros_ns: int) -> tuple[int, float]:
        """Actions that were played after a moment of ROS time, and milliseconds from there to the hold.

        By the stamps of the player: messages may come late here.
        """
        states = list(self.states)
        before = max((s.actions_played for ns, s in states if ns <= ros_ns), default=0)
        holds = [ns for ns, s in states if ns > ros_ns and s.mode == PlayerState.MODE_HOLDING]
        return int(states[-1][1].actions_played - before), (min(holds) - ros_ns) / 1e6

    def now_ns(self) -> int:
        """ROS time."""
        return int(self.get_clock().now().nanoseconds)

    def _on_state(self, message: PlayerState) -> None:
        self.state = message
        self.states.append((from_time(message.header.stamp), message))

    def _on_command(self, message: JointState) -> None:
        """Compare with the command before; where a few were not heard, as many steps are allowed.

        A longer silence is a hold: after it one step is allowed.
        """
        values = np.array(message.position)
        stamp_ns = from_time(message.header.stamp)
        num_steps = max(1, math.ceil((stamp_ns - self._previous_ns) / self._dt_ns - EARLY))
        if num_steps > MAX_UNHEARD + 1:
            num_steps = 1
        self._previous_ns = stamp_ns
        self.num_commands += 1
        limits = self._limits
        beyond = (values > limits.upper + ROUNDING) | (values < limits.lower - ROUNDING)
        if not np.isfinite(values).all() or beyond.any():
            self._tell("beyond its range", beyond | ~np.isfinite(values), values)
        if self._previous is not None:
            steps = np.where(limits.is_position, np.abs(values - self._previous), 0.0)
            self.largest_step = max(self.largest_step, float(steps.max()))
            allowed = limits.max_step * num_steps
            self.num_unheard += num_steps - 1
            is_limited = np.isfinite(allowed)
            share = (steps[is_limited] / allowed[is_limited]).max(initial=0.0)
            self.largest_share = max(self.largest_share, float(share))
            if (jumps := steps > allowed + ROUNDING).any():
                self._tell("jumps", jumps, steps)
        self._previous = values

    def _tell(self, what: str, where: NDArray[np.bool_], values: CommandArray) -> None:
        joints = ", ".join(f"{self._names[i]} {values[i]:.4f}" for i in np.flatnonzero(where))
        self.faults.append(f"command {self.num_commands} {what}: {joints}")


class KillRun:
    """One run of many lives."""

    def __init__(self, options: argparse.Namespace, stage: Stage) -> None:
        self.stage = stage
        self.watch: CommandWatch = stage.add(CommandWatch(stage.config, stage.namespace))
        stage.add(
            SimulatedRobot(
                stage.config, namespace=stage.namespace, camera_hz=10.0, joint_hz=30.0, width=64, height=48
            )
        )
        self.faults = self.watch.faults
        self._rng = Random(options.seed)
        self._actions_after: list[int] = []
        self._holds_after_ms: list[float] = []

    def run(self, num_kills: int) -> None:
        """Kill ``num_kills`` times; the brain lives at the end."""
        stage, watch = self.stage, self.watch
        stage.spin()
        stage.run("action_player")
        stage.run("oxygen_node")
        for number in range(1, num_kills + 1):
            stage.until(lambda: watch.is_playing, f"playing before kill {number}", START_WITHIN_S)
            stage.wait(self._rng.uniform(MIN_PLAY_S, MAX_PLAY_S))
            self._kill(number)
            stage.run("oxygen_node")
        stage.until(lambda: watch.is_playing, "playing after the last kill", START_WITHIN_S)

    def report(self) -> None:
        """Print what was measured, and note the faults of the logs."""
        watch, config = self.watch, self.stage.config
        after, holds = self._actions_after, self._holds_after_ms
        period_ms = 1000 / config.cycle.action_rate_hz
        if not after:
            return
        print(f"kills:    {len(after)}; one chunk is {config.model.horizon} actions of {period_ms:.1f} ms")
        print(f"player:   at most {max(after)} actions after a kill (mean {np.mean(after):.1f}), then a hold")
        print(f"hold:     after {np.median(holds):.0f} ms in the middle, {max(holds):.0f} ms at most")
        played = watch.state.actions_played
        print(f"commands: {watch.num_commands} heard, {watch.num_unheard} not; {played} actions played")
        share = f"{watch.largest_share:.1%} of its limit"
        cut = watch.state.steps_clamped
        print(f"step:     largest {watch.largest_step:.4f}, {share} at most; {cut} targets cut to a limit")
        for program in self.stage.programs.values():
            self.faults += [f"{program.name}: {line}" for line in program.faults()[:3]]

    def _kill(self, number: int) -> None:
        stage, watch = self.stage, self.watch
        stage.programs.pop("oxygen_node").kill()
        killed_ns = watch.now_ns()
        stage.until(lambda: watch.has_held_since(killed_ns), f"hold after kill {number}", HOLD_PATIENCE_S)
        num_actions, hold_ms = watch.after(killed_ns)
        self._actions_after.append(num_actions)
        self._holds_after_ms.append(hold_ms)
        if self._actions_after[-1] > stage.config.model.horizon:
            self.faults.append(f"kill {number}: {self._actions_after[-1]} actions after it")
        stage.wait(SILENCE_S)  # the hold itself arrives
        before = watch.num_commands
        stage.wait(SILENCE_S)
        if watch.num_commands > before:
            self.faults.append(f"kill {number}: {watch.num_commands - before} commands while it holds")


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Flags."""
    parser = argparse.ArgumentParser(prog="kill_brain", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=3, help="how often (default: 3)")
    parser.add_argument("--preset", default="humanoid", help="robot preset with limits (default: humanoid)")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line. The model is a stand-in with set costs: a restart takes seconds."""
    options = options_of(arguments)
    overrides: dict[str, object] = {
        "runner.kind": "fake",
        "enable_control": True,
        "instruction": "wave to the visitor",
        "safety.max_step": MAX_STEP,
        "player.output": "joint_state",  # with stamps: they tell which commands were not heard
    }
    stage = Stage(overrides, options.preset, "kill_brain")
    try:
        run = KillRun(options, stage)
        try:
            run.run(options.times)
        finally:
            run.report()
        codes = stage.end_programs(["oxygen_node", "action_player"])
    except (OxygenError, TimeoutError) as fault:
        print(fault, file=sys.stderr)
        return 2
    finally:
        stage.close()
    run.faults += [f"{name} ended with {code}" for name, code in codes.items() if code != 0]
    for line in run.faults:
        print(f"FAULT:    {line}")
    print("good" if not run.faults else f"{len(run.faults)} faults")
    return int(bool(run.faults))


if __name__ == "__main__":
    sys.exit(main())
