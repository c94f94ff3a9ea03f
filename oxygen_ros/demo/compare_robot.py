"""The robot of the comparison: a simulated world that lives at 30 Hz on the steady clock, on its own thread.

It plays the first rows of each chunk and then takes the next one; when that is late it holds, and time
goes on. Pictures are rendered when they are asked for, by who asks: a camera would cost the brain nothing,
and between the ways the cost of a cycle's two pictures is the same.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np

from oxygen_ros.clock import Clock
from oxygen_ros.errors import RunnerError
from oxygen_ros.sim.cameras import BASE_CAMERA, WRIST_CAMERA, Cameras
from oxygen_ros.sim.episodes import task_of
from oxygen_ros.sim.expert import ACTION_DIM
from oxygen_ros.sim.rules import MAX_TICKS, is_over
from oxygen_ros.sim.scene import CONTROL_HZ
from oxygen_ros.sim.world import Tabletop, random_layout
from oxygen_ros.types import FloatArray, Observation

TICK_NS = 1_000_000_000 // CONTROL_HZ
IMAGE_SIZE = 64
STOPS_WITHIN_S = 10.0


@dataclass
class Episode:
    """What came of one episode.

    Attributes:
        ticks: control ticks that it lasted.
        played: ticks at which an action of the model was played; at the others the robot held.
        late_ticks: ticks that the world itself was late for, by a whole one or more: the machine is full.
        seconds: steady time from the first picture to the end.
    """

    seed: int
    is_success: bool = False
    ticks: int = 0
    played: int = 0
    late_ticks: int = 0
    seconds: float = 0.0


class LiveRobot:
    """``begin`` an episode, then ``take`` observations and ``give`` chunks until ``is_over``.

    All methods are for the one thread that made it, which also renders; the world is stepped on another.
    """

    def __init__(self, execute: int, clock: Clock, max_ticks: int = MAX_TICKS) -> None:
        """Make the world.

        Args:
            execute: rows of a chunk that are played before the next one.
            clock: steady time.
            max_ticks: control ticks after which an episode is given up.

        Raises:
            ConfigError: if no off-screen GL works.
        """
        self.execute = execute
        self._clock = clock
        self._max_ticks = max_ticks
        self._world = Tabletop()
        self._cameras = Cameras(self._world, max_width=IMAGE_SIZE, max_height=IMAGE_SIZE)
        self._lock = threading.Lock()
        self._chunk: FloatArray | None = None
        self._next: FloatArray | None = None
        self._row = 0
        self._num_views = 0
        self._task = task_of(0)
        self._thread: threading.Thread | None = None
        self._fault: Exception | None = None
        self._ended = threading.Event()
        self._ended.set()
        self.episode = Episode(-1)

    def begin(self, seed: int) -> None:
        """Begin the episode of ``seed``: time runs from now on."""
        self.stop()
        self._task = task_of(seed)
        self._world.reset(random_layout(np.random.default_rng(seed)))
        self._chunk = self._next = None
        self.episode = Episode(seed)
        self._ended.clear()
        self._thread = threading.Thread(target=self._run, name="world", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """True once the episode has ended.

        Raises:
            RunnerError: if the world has failed.
        """
        if self._fault is not None:
            raise RunnerError("world", f"the world has failed: {self._fault}") from self._fault
        return self._ended.is_set()

    def take(self) -> Observation:
        """What is seen now, cameras upside down as LIBERO's are; its stamp is steady time."""
        with self._lock:
            base, wrist = (
                np.ascontiguousarray(self._cameras.render(name, IMAGE_SIZE, IMAGE_SIZE)[::-1, ::-1])
                for name in (BASE_CAMERA, WRIST_CAMERA)
            )
            state, stamp_ns = self._world.state(), self._clock.now_ns()
        self._num_views += 1
        images = {"base": base, "left_wrist": wrist}
        return Observation(self._num_views, stamp_ns, images, state, self._task.instruction)

    def give(self, actions: FloatArray) -> None:
        """The next chunk [horizon, 7]; it takes over when the one that is played is used up."""
        with self._lock:
            self._next = actions

    def join(self, timeout_s: float) -> bool:
        """Wait for the end of the episode; whether it has ended."""
        if self._thread is not None:
            self._thread.join(timeout_s)
        return self._ended.is_set()

    def stop(self) -> None:
        """End the episode at the next tick, and wait for it."""
        self._ended.set()
        self.join(STOPS_WITHIN_S)

    def close(self) -> None:
        """Let go of world and pictures."""
        self.stop()
        self._cameras.close()

    # the world's thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        # The thread's boundary: a fault is told to whoever asks next.
        try:
            self._live()
        except Exception as error:
            self._fault = error
        self._ended.set()

    def _live(self) -> None:
        world, clock, episode = self._world, self._clock, self.episode
        begin_ns = due_ns = clock.now_ns()
        while not self._ended.is_set():
            due_ns += TICK_NS
            clock.sleep_until_ns(due_ns)
            behind = (clock.now_ns() - due_ns) // TICK_NS
            episode.late_ticks += behind
            due_ns += behind * TICK_NS
            with self._lock:
                action = self._action()
                world.step(_still(world) if action is None else action)
                truth = world.truth()
            episode.ticks += 1
            episode.played += action is not None
            if is_over(truth, self._task) or episode.ticks >= self._max_ticks:
                episode.is_success = truth.is_done(self._task)
                break
        episode.seconds = (clock.now_ns() - begin_ns) / 1e9

    def _action(self) -> FloatArray | None:
        """The next action, or None to hold."""
        if self._chunk is None or self._row >= self.execute:
            self._chunk, self._next, self._row = self._next, None, 0
        if self._chunk is None:
            return None
        self._row += 1
        action: FloatArray = self._chunk[self._row - 1]
        return action


def _still(world: Tabletop) -> FloatArray:
    """The hand stays where it is."""
    action = np.zeros(ACTION_DIM, np.float32)
    action[6] = 1.0 if world.truth().is_closing else -1.0
    return action
