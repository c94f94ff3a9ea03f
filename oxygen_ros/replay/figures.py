"""All figures of one replay, collected while it runs."""

from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np

from oxygen_ros.config import OxygenConfig
from oxygen_ros.replay.measures.cycles import CycleFigures
from oxygen_ros.replay.measures.errors import ActionErrors
from oxygen_ros.replay.measures.reference import Reference
from oxygen_ros.replay.measures.seams import SeamJumps
from oxygen_ros.replay.measures.texts import Texts
from oxygen_ros.runtime.playback import Command, Hold
from oxygen_ros.types import ActionChunk

MAX_NOTES = 100


class Figures:
    """Holds the collectors; what it holds is bounded, however long the bag."""

    def __init__(self, config: OxygenConfig, reference: Reference | None) -> None:
        names = config.robot.command_joint_names
        self.cycles = CycleFigures()
        self.errors = ActionErrors(names, reference)
        self.seams = SeamJumps(len(names))
        self.texts = Texts()
        self.actions = hashlib.blake2b(digest_size=16)
        self.num_chunks = 0
        self.num_commands = 0
        self.num_holds = 0
        self.undecodable: Counter[str] = Counter()
        self.chunks_by_joint: dict[str, str] = {}
        self.log: list[tuple[int, str]] = []
        self.num_log = 0

    def add_chunk(self, chunk: ActionChunk) -> None:
        """Take in what the brain gave."""
        if not len(chunk.actions):
            return
        self.num_chunks += 1
        self.chunks_by_joint.update(dict.fromkeys(chunk.joint_names, chunk.expert))
        self.actions.update(f"{chunk.observation_id} {chunk.expert}".encode())
        self.actions.update(np.ascontiguousarray(chunk.actions).data)
        self.errors.add(chunk)

    def add_sent(self, now_ns: int, sent: Command | Hold | None) -> None:
        """Take in what the player sent at one tick."""
        if isinstance(sent, Command):
            self.num_commands += 1
            self.seams.add(now_ns, sent)
        else:
            self.num_holds += isinstance(sent, Hold)
            self.seams.interrupt()

    def say(self, now_ns: int, text: str) -> None:
        """Take a line of the log; past ``MAX_NOTES`` they are only counted."""
        self.num_log += 1
        if len(self.log) < MAX_NOTES:
            self.log.append((now_ns, text))
