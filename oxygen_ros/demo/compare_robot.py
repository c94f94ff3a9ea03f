"""The robot of the comparison: a simulated world that lives at 30 Hz on the steady clock, on its own thread.

It plays the first rows of each chunk and then takes the next one; when that is late it holds, and time
goes on. What it sees is rendered every tick, whatever the model does with it.
"""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np

from oxygen_ros.clock import Clock
from oxygen_ros.errors import RunnerError
from oxygen_ros.sim.cameras import BASE_CAMERA, WRIST_CAMERA, Cameras
from oxygen_ros.sim.episodes import MAX_TICKS, is_over, task_of
from oxygen_ros.sim.expert import ACTION_DIM
from oxygen_ros.sim.scene import CONTROL_HZ
from oxygen_ros.sim.world import Tabletop, random_layout
from oxygen_ros.types import FloatArray, Observation

TICK_NS = 1_000_000_000 // CONTROL_HZ
IMAGE_SIZE = 64
BEGINS_WITHIN_S = 60.0


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

    The world's thread owns world and pictures; these methods are for one other thread.
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
        self._execute = execute
        self._max_ticks = max_ticks
        self._clock = clock
        self._lock = threading.Lock()
        self._chunk: FloatArray | None = None
        self._next: FloatArray | None = None
        self._row = 0
        self._view: Observation | None = None
        self._num_views = 0
        self._ended = threading.Event()
        self._orders: queue.Queue[tuple[int, Future[None]] | None] = queue.Queue()
        self._fault: Exception | None = None
        self.episode = Episode(-1)
        ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="world", daemon=True)
        self._thread.start()
        ready.result()

    def begin(self, seed: int) -> None:
        """Begin the episode of ``seed``; returns when its first picture is there."""
        begun: Future[None] = Future()
        self._orders.put((seed, begun))
        begun.result(BEGINS_WITHIN_S)

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
        """The newest observation; its stamp is steady time."""
        with self._lock:
            assert self._view is not None
            return self._view

    def give(self, actions: FloatArray) -> None:
        """The next chunk [horizon, 7]; it takes over when the one that is played is used up."""
        with self._lock:
            self._next = actions

    def close(self) -> None:
        """End the world."""
        self._ended.set()
        self._orders.put(None)
        self._thread.join(2.0)

    # the world's thread -----------------------------------------------------------------------------

    def _run(self, ready: Future[None]) -> None:
        try:
            world = Tabletop()
            cameras = Cameras(world, max_width=IMAGE_SIZE, max_height=IMAGE_SIZE)
        except Exception as error:
            ready.set_exception(error)
            return
        ready.set_result(None)
        with cameras:
            while (order := self._orders.get()) is not None:
                # The thread's boundary: a fault is told to whoever asks next.
                try:
                    self._live(world, cameras, *order)
                except Exception as error:
                    self._fault = error
                self._ended.set()

    def _live(self, world: Tabletop, cameras: Cameras, seed: int, begun: Future[None]) -> None:
        task, clock = task_of(seed), self._clock
        world.reset(random_layout(np.random.default_rng(seed)))
        episode = self.episode = Episode(seed)
        self._chunk = self._next = None
        self._ended.clear()
        self._look(world, cameras, task.instruction)
        begun.set_result(None)
        begin_ns = due_ns = clock.now_ns()
        while not self._ended.is_set():
            due_ns += TICK_NS
            clock.sleep_until_ns(due_ns)
            behind = (clock.now_ns() - due_ns) // TICK_NS
            episode.late_ticks += behind
            due_ns += behind * TICK_NS
            action = self._action()
            world.step(_still(world) if action is None else action)
            episode.ticks += 1
            episode.played += action is not None
            self._look(world, cameras, task.instruction)
            truth = world.truth()
            if is_over(truth, task) or episode.ticks >= self._max_ticks:
                episode.is_success = truth.is_done(task)
                break
        episode.seconds = (clock.now_ns() - begin_ns) / 1e9

    def _action(self) -> FloatArray | None:
        """The next action, or None to hold."""
        with self._lock:
            if self._chunk is None or self._row >= self._execute:
                self._chunk, self._next, self._row = self._next, None, 0
            if self._chunk is None:
                return None
            self._row += 1
            action: FloatArray = self._chunk[self._row - 1]
            return action

    def _look(self, world: Tabletop, cameras: Cameras, instruction: str) -> None:
        """Cameras upside down, as LIBERO's are."""
        base, wrist = (
            np.ascontiguousarray(cameras.render(name, IMAGE_SIZE, IMAGE_SIZE)[::-1, ::-1])
            for name in (BASE_CAMERA, WRIST_CAMERA)
        )
        self._num_views += 1
        images = {"base": base, "left_wrist": wrist}
        view = Observation(self._num_views, self._clock.now_ns(), images, world.state(), instruction)
        with self._lock:
            self._view = view


def _still(world: Tabletop) -> FloatArray:
    """The hand stays where it is."""
    action = np.zeros(ACTION_DIM, np.float32)
    action[6] = 1.0 if world.truth().is_closing else -1.0
    return action
