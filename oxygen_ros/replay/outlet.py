"""Where everything goes that a replayed brain gives: the player, run.mcap, the figures."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path
from typing import IO

from oxygen_ros.clock import Clock
from oxygen_ros.config import OxygenConfig
from oxygen_ros.replay.bag.message_types import MessageTypes
from oxygen_ros.replay.bag.writer import BagWriter
from oxygen_ros.replay.figures import Figures
from oxygen_ros.replay.messages import MessageMaker
from oxygen_ros.runtime.player import ChunkPlayer
from oxygen_ros.runtime.text_release import TextRelease
from oxygen_ros.types import ActionChunk, CycleReport, Observation, TextDelta

CHUNK, DELTA = "/oxygen_node/action_chunk", "/oxygen_node/text_stream"
TEXT, SENTENCE = "/oxygen_node/text", "/oxygen_node/text_sentence"
REPORT, PLAYER, COMMAND = "/oxygen_node/cycle_report", "/action_player/state", "/action_player/joint_command"
CYCLE_COLUMNS = (
    "cycle_id",
    "start_ns",
    "observation_id",
    "stamp_ns",
    "status",
    "reason",
    "inputs",
    "action_latency_ns",
    "slack_ns",
    "decode_steps",
    "decode_steps_possible",
    "text_tokens",
)


class Outlet:
    """ActionSink, TextSink and ReportSink in one. Times in run.mcap are bag time."""

    def __init__(
        self,
        folder: Path,
        config: OxygenConfig,
        types: MessageTypes,
        clock: Clock,
        player: ChunkPlayer,
        figures: Figures,
        custom: dict[str, str],
    ) -> None:
        """Open run.mcap and cycles.csv in ``folder``, in place of earlier ones."""
        self._folder = folder
        self._clock = clock
        self._player = player
        self._figures = figures
        self._make = MessageMaker(types)
        self._names = config.robot.command_joint_names
        self._release = TextRelease()
        self._writer = BagWriter(folder / "run.partial", types, custom=custom)
        self._writer.add_topic(TEXT, "std_msgs/msg/String", latched=True)
        self._csv: IO[str] = (folder / "cycles.csv").open("w", encoding="utf-8", newline="")
        self._rows = csv.writer(self._csv, lineterminator="\n")
        self._rows.writerow(CYCLE_COLUMNS)
        self._barred_id = 0
        self.cycle_id = 0
        self.cycle_start_ns = 0
        self.inputs = ""
        self.actions_played = 0

    def begin_cycle(self, cycle_id: int, start_ns: int) -> None:
        """A cycle begins."""
        self.cycle_id, self.cycle_start_ns, self.inputs = cycle_id, start_ns, ""

    def bar(self, observation_id: int) -> None:
        """Let no action of this observation or an earlier one out any more, as the live outlet does."""
        self._barred_id = observation_id

    def publish_action(self, chunk: ActionChunk) -> None:
        """Give a chunk to the player."""
        if len(chunk.actions) and chunk.observation_id <= self._barred_id:
            return
        self._writer.write(CHUNK, self._make.chunk(chunk), self._clock.now_ns())
        self._player.offer(dataclasses.replace(chunk, actions_played=self.actions_played))
        self._figures.add_chunk(chunk)

    def publish_text(self, delta: TextDelta) -> None:
        """Send a piece of text, and what it sets free."""
        now_ns = self._clock.now_ns()
        self._writer.write(DELTA, self._make.delta(delta), now_ns)
        released = self._release.add(delta)
        for sentence in released.sentences:
            self._writer.write(SENTENCE, self._make.text(sentence), now_ns)
        if released.complete:
            self._writer.write(TEXT, self._make.text(released.complete), now_ns)
        self._figures.texts.add(now_ns, self.cycle_id, delta)

    def publish_report(self, report: CycleReport) -> None:
        """Take the report of a cycle."""
        now_ns = self._clock.now_ns()
        self._writer.write(REPORT, self._make.report(report, now_ns), now_ns)
        self._figures.cycles.add(self.cycle_start_ns, report, self.inputs)
        values = {
            **{name: getattr(report, name) for name in CYCLE_COLUMNS if hasattr(report, name)},
            "start_ns": self.cycle_start_ns,
            "status": report.status.name.lower(),
            "inputs": self.inputs,
        }
        self._rows.writerow([values[name] for name in CYCLE_COLUMNS])

    def publish_command(self) -> None:
        """Let the player tick once."""
        sent = self._player.tick()
        now_ns = self._clock.now_ns()
        if sent is not None:
            self._writer.write(COMMAND, self._make.joints(self._names, sent.values, now_ns), now_ns)
        self._figures.add_sent(now_ns, sent)

    def publish_player(self) -> None:
        """Write down what the player does."""
        now_ns = self._clock.now_ns()
        self._writer.write(PLAYER, self._make.player(self._player.status(), now_ns), now_ns)

    def publish_pictures(self, observation: Observation) -> None:
        """Write down the pictures of an observation as JPEG. Needs OpenCV."""
        import cv2

        for role, image in observation.images.items():
            _, encoded = cv2.imencode(".jpg", image[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, 80])
            message = self._make.compressed(encoded.tobytes(), observation.stamp_ns, role)
            self._writer.write(f"/replay/camera/{role}", message, self._clock.now_ns())

    def close(self) -> None:
        """Finish the files."""
        self._csv.close()
        self._writer.close()
        partial = self._folder / "run.partial"
        (partial / "run.partial.mcap").replace(self._folder / "run.mcap")
        (partial / "metadata.yaml").unlink()
        partial.rmdir()
