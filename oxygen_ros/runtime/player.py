"""Plays action chunks one action per tick: takes over, limits, holds, stops. No ROS, no torch.

The clock of a hand-over is the count of actions played. All methods are called from one thread.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from oxygen_ros.clock import Clock
from oxygen_ros.runtime.blending import Blend, PlacedChunk, place
from oxygen_ros.runtime.chunk_check import chunk_problem
from oxygen_ros.runtime.delay import DelayEstimate
from oxygen_ros.runtime.limits import CommandArray
from oxygen_ros.runtime.pacing import Pacer
from oxygen_ros.runtime.playback import Command, Hold, Mode, PlayerSettings, PlayerStatus
from oxygen_ros.runtime.pose import Pose
from oxygen_ros.runtime.refusals import Refusals
from oxygen_ros.types import ActionChunk

REMEMBERED_ACTIONS = 4096
WAITING = "waiting: chunk"
USED_UP = "chunk used up"


class ChunkPlayer:
    """Sends no action twice and leaves none out at a seam; sends nothing after its last chunk but a hold."""

    def __init__(
        self, settings: PlayerSettings, clock: Clock, ros_now_ns: Callable[[], int], refusals: Refusals
    ) -> None:
        """Start idle, with nothing played; ``ros_now_ns`` gives 0 while ROS time is not known."""
        self.settings = settings
        self.delay = DelayEstimate(settings.delay_window)
        self._clock = clock
        self._ros_now_ns = ros_now_ns
        self._refusals = refusals
        self._pacer = Pacer(settings.dt_ns)
        self._pose = Pose(settings.joint_names, settings.limits.is_position, clock)
        self._blends: dict[str, Blend] = {}
        self._played_at_ns: deque[int] = deque(maxlen=REMEMBERED_ACTIONS)
        self._mode, self._reason = Mode.IDLE, WAITING
        self._newest_id = self._newest_stamp_ns = 0
        self._chunk_ns = clock.now_ns()
        self._not_before_ns = 0
        self._current_id = self._next_index = 0
        self._holds_left = 0
        self._actions_played = self._ticks_missed = self._steps_clamped = 0

    # inputs -----------------------------------------------------------------------------------------

    def offer(self, chunk: ActionChunk) -> bool:
        """Take over ``chunk``, or refuse and count it. A chunk without rows withdraws. True if taken."""
        if self._mode is Mode.STOPPED:
            return False
        if len(chunk.actions) == 0:
            self._withdraw(chunk.expert)
            return True
        start = self._start_of(chunk)
        if (problem := self._problem(chunk, start)) is not None:
            self._refusals.add(problem[0], "chunk", f"chunk {chunk.chunk_id}: {problem[1]}")
            return False
        if chunk.chunk_id <= self._newest_id:
            self._blends.clear()  # another brain, whose numbers start anew
        self._newest_id, self._newest_stamp_ns = chunk.chunk_id, chunk.stamp_ns
        self._chunk_ns = self._clock.now_ns()
        if self._mode is Mode.PLAYING:
            self.delay.observe(self._actions_played - start)
        if chunk.expert not in self._blends:  # what has been played to its end is of no use any more
            number = self._actions_played
            self._blends = {name: blend for name, blend in self._blends.items() if blend.newest(number)}
        blend = self._blends.setdefault(chunk.expert, Blend(self.settings.max_chunks, self.settings.decay))
        blend.add(place(chunk, start, self.settings.joint_names))
        return True

    def put_measured(self, names: Sequence[str], positions: Sequence[float]) -> bool:
        """Take note of where the robot is. False if there is not one position for each name."""
        return self._pose.put_measured(names, positions)

    def stop(self, reason: str) -> bool:
        """Hold where the robot is from the next tick on, and take nothing until ``reset``.

        Once is enough: a stop that is repeated must not let down an arm that sinks. False then.
        """
        if self._mode is Mode.STOPPED:
            return False
        has_played = self._pose.commanded is not None
        self._pose.commanded = self._pose.standstill(prefer_measured=True) if has_played else None
        self._stand(Mode.STOPPED, reason, self.settings.hold_repeats if has_played else 0)
        return True

    def reset(self) -> None:
        """Leave the stopped state. Chunks whose observation was taken before now are not taken any more.

        In the middle of a chunk it holds first: a velocity would be kept for ever.
        """
        self._not_before_ns = self._ros_now_ns()
        if self._holds_left == 0:
            self._pose.commanded = None
        self._stand(Mode.IDLE, WAITING, self._holds_left)

    def rest(self, reason: str) -> Hold | None:
        """Forget all chunks: deactivation, shutdown, a clock that jumped. Gives the hold that is due now."""
        has_played = self._pose.commanded is not None
        is_due, self._holds_left = has_played and self._holds_left > 0, 0  # once held, it is silent
        self._played_at_ns.clear()
        self._pacer.reset()
        self._newest_stamp_ns = 0
        self._not_before_ns = min(self._not_before_ns, self._ros_now_ns())  # time may have been set back
        if self._mode is not Mode.STOPPED:
            self._stand(Mode.HOLDING if has_played else Mode.IDLE, reason, 0)
        return Hold(self._pose.standstill(prefer_measured=False), reason) if is_due else None

    # output -----------------------------------------------------------------------------------------

    def tick(self) -> Command | Hold | None:
        """What to send now: an action, a hold, or nothing."""
        missed = self._pacer.tick(self._clock.now_ns())
        if missed is None:
            return None
        if self._mode is Mode.STOPPED:
            return self._hold()
        if (due := self._due(self._actions_played)) is None:
            return self._starve()
        if self._mode is Mode.PLAYING:
            self._ticks_missed += missed
            waited_ns = missed * self.settings.dt_ns
        else:
            waited_ns = self._clock.now_ns() - self._chunk_ns
        if waited_ns > self.settings.max_chunk_age_ns + self.settings.dt_ns:
            return self._drop_stale(waited_ns)
        if self._mode is not Mode.PLAYING and (unknown := self._pose.unmeasured(self.settings.state_names)):
            self._reason = f"waiting: joints {', '.join(unknown)}"
            return self._hold()
        return self._play(*due)

    def rows_ahead(self, num_rows: int) -> CommandArray:
        """The next actions within all limits, float64 [n, num_joints] with n <= ``num_rows``.

        For outputs that take whole trajectories, right after ``tick`` gave a command: row 0 is that command.
        """
        rows = [self._pose.standstill(prefer_measured=False)]
        for number in range(self._actions_played, self._actions_played + num_rows - 1):
            if (due := self._due(number)) is None:
                break
            rows.append(self.settings.limits.cut(due[0], rows[-1])[0])
        return np.array(rows, dtype=np.float64)

    def status(self) -> PlayerStatus:
        """What the player does, and its counts."""
        return PlayerStatus(
            mode=self._mode,
            chunk_id=self._current_id,
            next_index=self._next_index,
            actions_played=self._actions_played,
            ticks_missed=self._ticks_missed,
            steps_clamped=self._steps_clamped,
            reason=self._reason,
        )

    @property
    def is_playing(self) -> bool:
        """True while an action goes out at each tick."""
        return self._mode is Mode.PLAYING

    @property
    def is_brain_silent(self) -> bool:
        """True when no chunk has come for longer than the brain may take."""
        return self._clock.now_ns() - self._chunk_ns > self.settings.brain_timeout_ns

    # inside -----------------------------------------------------------------------------------------

    def _problem(self, chunk: ActionChunk, start: int) -> tuple[str, str] | None:
        """Why ``chunk`` must not be taken, as (kind, detail)."""
        if (problem := chunk_problem(chunk, self.settings.joint_names, self.settings.dt_ns)) is not None:
            return problem
        now_ns = self._ros_now_ns()
        age_ns = max(now_ns - chunk.stamp_ns if now_ns else 0, chunk.latency_ns)
        if age_ns > self.settings.max_chunk_age_ns:
            return "stale_chunk", f"its observation is {age_ns / 1e9:.2f} s old"
        if chunk.stamp_ns < self._not_before_ns:
            return "stale_chunk", "its observation was taken before the reset"
        is_older = chunk.chunk_id <= self._newest_id and chunk.stamp_ns <= self._newest_stamp_ns
        if is_older:
            return "repeated_chunk", f"chunk {self._newest_id} was taken before"
        if self._actions_played - start >= len(chunk.actions):
            return "late_chunk", "all of its actions were due before it came"
        return None

    def _start_of(self, chunk: ActionChunk) -> int:
        """Count of actions played when the chunk's observation was taken.

        The brain says it; where it has not heard the player, the stamps tell.
        """
        if 0 < chunk.actions_played <= self._actions_played:
            return chunk.actions_played
        since = len(self._played_at_ns) - bisect_left(self._played_at_ns, chunk.stamp_ns)
        return self._actions_played - since

    def _due(self, number: int) -> tuple[CommandArray, PlacedChunk] | None:
        """Targets for action ``number``, NaN where no expert has one, and their newest chunk; or None."""
        targets, newest = None, None
        for blend in self._blends.values():
            if (placed := blend.newest(number)) is None:
                continue
            row = blend.action(number)
            targets = row if targets is None else np.where(np.isnan(row), targets, row)
            if newest is None or placed.chunk.chunk_id > newest.chunk.chunk_id:
                newest = placed
        return None if targets is None or newest is None else (targets, newest)

    def _play(self, targets: CommandArray, placed: PlacedChunk) -> Command:
        starts = self._mode is not Mode.PLAYING
        values, num_cut = self.settings.limits.cut(targets, self._pose.before_step(starts))
        self._pose.commanded = values
        self._steps_clamped += num_cut
        index = self._actions_played - placed.start
        takes_over = starts or placed.chunk.chunk_id != self._current_id
        self._current_id, self._next_index = placed.chunk.chunk_id, index + 1
        self._actions_played += 1
        self._played_at_ns.append(self._ros_now_ns())
        self._mode, self._reason = Mode.PLAYING, ""
        self._holds_left = self.settings.hold_repeats
        return Command(values, placed.chunk.chunk_id, index, takes_over)

    def _starve(self) -> Hold | None:
        """Nothing to play: hold, and count the tick if an action was due."""
        if self._mode is Mode.PLAYING:
            self._mode, self._reason = Mode.HOLDING, USED_UP
        if self._mode is Mode.HOLDING and self._reason == USED_UP and not self.is_brain_silent:
            self._ticks_missed += 1
        return self._hold()

    def _drop_stale(self, waited_ns: int) -> Hold | None:
        """No chunk is begun, or gone on with, when joints or ticks come back after too long."""
        self._refusals.add("stale_chunk", "chunk", f"nothing of it was played for {waited_ns / 1e9:.2f} s")
        self._withdraw("")
        self._reason = WAITING
        return self._hold()

    def _hold(self) -> Hold | None:
        if self._holds_left <= 0:
            return None
        self._holds_left -= 1
        values = self._pose.standstill(prefer_measured=False)
        self._pose.commanded = values
        return Hold(values, self._reason)

    def _withdraw(self, expert: str) -> None:
        for name in [expert] if expert else list(self._blends):
            self._blends.pop(name, None)
        if not self._blends and self._mode is Mode.PLAYING:
            self._mode, self._reason = Mode.HOLDING, "withdrawn"

    def _stand(self, mode: Mode, reason: str, num_holds: int) -> None:
        self._blends.clear()
        self._mode, self._reason, self._holds_left = mode, reason, num_holds
