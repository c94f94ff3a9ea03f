"""What the endurance scripts count with, and a quick look of those that do not depend on the load."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from random import Random

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from player_factory import MS, NAMES, Stage, no_limits
from sensor_msgs.msg import JointState

from oxygen_ros.errors import ContractError
from oxygen_ros.msg import PlayerState
from oxygen_ros.ros.conversions import from_chunk_message, to_chunk_message, to_time
from oxygen_ros.ros.endurance import damage, damage_messages, kill_brain
from oxygen_ros.ros.endurance.kill_brain import CommandWatch
from oxygen_ros.ros.endurance.memory_curve import MemoryCurve
from oxygen_ros.ros.endurance.text_ledger import TextLedger
from oxygen_ros.types import FinishReason, TextDelta, TextKind

PIECE = TextDelta(
    request_id="a", task="ask", kind=TextKind.ASK, observation_id=1, stamp_ns=1, seq=0, text="x", num_tokens=1
)


def test_ledger_of_good_texts_has_no_faults():
    ledger = TextLedger()
    ledger.add(PIECE)
    ledger.add(replace(PIECE, request_id="b", text="", finish_reason=FinishReason.REFUSED))
    assert ledger.open_ids == ("a",)
    ledger.add(replace(PIECE, seq=1, finish_reason=FinishReason.STOP))
    assert (ledger.faults, ledger.open_ids, ledger.num_with_text) == ([], (), 1)
    assert ledger.num_ended == {"refused": 1, "stop": 1}
    assert ledger.has_ended("a")


@pytest.mark.parametrize(
    ("seqs", "word"), [((0, 2), "where 1 was due"), ((1,), "where 0 was due"), ((0, 0), "where 1 was due")]
)
def test_ledger_finds_gaps_and_repeats(seqs, word):
    ledger = TextLedger()
    for seq in seqs:
        ledger.add(replace(PIECE, seq=seq))
    assert word in ledger.faults[0]


def test_ledger_finds_a_second_end():
    ledger = TextLedger()
    for seq in (0, 1):
        ledger.add(replace(PIECE, seq=seq, finish_reason=FinishReason.STOP))
    assert "after its final one" in ledger.faults[0]


def test_memory_curve_tells_growth_and_slope():
    flat, growing = MemoryCurve(), MemoryCurve()
    for second in range(0, 3600, 60):
        flat.add(second, 100_000_000)
        growing.add(second, 100_000_000 + 1000 * second)
    assert (flat.growth(), flat.slope_mb_per_hour()) == (0.0, pytest.approx(0.0, abs=1e-9))
    assert growing.growth() > 0.03
    assert growing.slope_mb_per_hour() == pytest.approx(3.6, rel=1e-6)


@pytest.mark.parametrize("kind", sorted(damage.CHUNK))
def test_damaged_chunk_is_refused_by_the_player_and_the_good_one_is_not(kind):
    stage, rng = Stage(max_chunk_age_ns=2_000_000_000), Random(kind)
    good = to_chunk_message(stage.chunk(np.linspace(0, 1, 10)))
    for _ in range(30):
        message = to_chunk_message(stage.chunk(np.linspace(0, 1, 10)))
        damage.CHUNK[kind](message, rng)
        try:
            is_taken = stage.player.offer(from_chunk_message(message))
        except ContractError:
            is_taken = False
        assert not is_taken, message
    assert stage.player.offer(from_chunk_message(good))


def command(positions, stamp_ns) -> JointState:
    message = JointState(position=positions)
    message.header.stamp = to_time(stamp_ns)
    return message


class Watch(CommandWatch):
    """The watch without a node: it is handed commands."""

    def __init__(self, limits):
        self._limits, self._names, self._previous = limits, NAMES, None
        self._dt_ns, self._previous_ns, self.num_unheard, self.state = 20 * MS, 0, 0, PlayerState()
        self.num_commands, self.largest_step, self.largest_share, self.faults = 0, 0.0, 0.0, []
        self.states = deque()


def test_command_watch_finds_jumps_and_values_beyond_the_range():
    watch = Watch(no_limits(upper=1.0, max_step=0.1))
    commands = [[0.0, 0.0], [0.1, 0.05], [0.1, 0.3], [0.1, 1.2], [np.nan, 1.2]]
    for number, values in enumerate(commands):
        watch._on_command(command(values, 20 * MS * number))
    assert [fault.partition(":")[0] for fault in watch.faults] == [
        "command 3 jumps",
        "command 4 beyond its range",
        "command 4 jumps",
        "command 5 beyond its range",
    ]
    assert watch.largest_share == pytest.approx(9.0)


def test_command_watch_allows_as_many_steps_as_commands_were_not_heard():
    watch = Watch(no_limits(max_step=0.1))
    for values, at_ms in (([0.0, 0.0], 0), ([0.3, 0.0], 60), ([0.4, 0.0], 88), ([0.65, 0.0], 130)):
        watch._on_command(command(values, at_ms * MS))
    assert [fault.partition(":")[0] for fault in watch.faults] == ["command 4 jumps"]


def test_command_watch_allows_one_step_after_a_hold():
    watch = Watch(no_limits(max_step=0.1))
    for values, at_ms in (([0.0, 0.0], 0), ([0.1, 0.0], 3000), ([0.3, 0.0], 6000)):
        watch._on_command(command(values, at_ms * MS))
    assert [fault.partition(":")[0] for fault in watch.faults] == ["command 3 jumps"]
    assert watch.num_unheard == 0


def test_command_watch_counts_actions_after_a_kill_by_the_stamps_of_the_player():
    watch = Watch(no_limits())
    for at_ms, played, mode in ((0, 10, 1), (20, 11, 1), (40, 12, 1), (60, 13, 1), (80, 13, 2)):
        state = PlayerState(actions_played=played, mode=mode)
        state.header.stamp = to_time(at_ms * MS)
        watch._on_state(state)
    assert watch.has_held_since(25 * MS)
    assert watch.after(25 * MS) == (2, pytest.approx(55.0))


def test_quick_look_at_a_killed_brain_is_good(capfd):
    assert kill_brain.main(["--times", "1"]) == 0, capfd.readouterr()


def test_quick_look_at_damaged_messages_is_good(capfd):
    assert damage_messages.main(["--count", "26"]) == 0, capfd.readouterr()
