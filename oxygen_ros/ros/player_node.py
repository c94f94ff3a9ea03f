"""The hand: plays action chunks at the action rate, within limits, and holds when none are left.

A process of its own, so that nothing the brain does can delay a command. A thread ticks, the executor takes
chunks, stop and reset; one lock between them.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.publisher import Publisher
from sensor_msgs.msg import JointState
from std_msgs.msg import Empty
from std_srvs.srv import Trigger

from oxygen_ros.config import OxygenConfig, QosConfig
from oxygen_ros.errors import ContractError
from oxygen_ros.msg import ActionChunk as ActionChunkMessage
from oxygen_ros.msg import PlayerState
from oxygen_ros.ros import qos
from oxygen_ros.ros.command_outlet import CommandOutlet
from oxygen_ros.ros.conversions import fill_player_state, from_chunk_message
from oxygen_ros.ros.diagnostics import ERROR, OK, WARN, status
from oxygen_ros.ros.managed_node import ManagedNode
from oxygen_ros.ros.node_clock import NodeClock
from oxygen_ros.ros.polled_joints import PolledJoints
from oxygen_ros.ros.ticker import Ticker
from oxygen_ros.runtime.playback import Mode, PlayerSettings, PlayerStatus
from oxygen_ros.runtime.player import ChunkPlayer

TELL_AFTER_NS = 250_000_000
"""The state is told again after so long, also when nothing changes: the brain counts on it."""
LOOK_EVERY_NS = 200_000_000
"""While actions go out, only a stop asks where the joints are, and it looks itself. Between, a look of half a
millisecond is to tell whether positions are fresh."""


@dataclass(frozen=True)
class Parts:
    """What configure makes."""

    config: OxygenConfig
    player: ChunkPlayer
    commands: CommandOutlet
    state: Publisher
    joints: PolledJoints


class ActionPlayer(ManagedNode):
    """Sends one action per tick while active and fed."""

    def __init__(self, name: str = "action_player", **kwargs: Any) -> None:
        """See ``ManagedNode``."""
        self._parts: Parts | None = None
        self._ticker: Ticker | None = None
        self._lock = threading.RLock()
        self._is_stopped = False
        self._told: PlayerStatus | None = None
        self._message = PlayerState()
        self._told_ns = self._looked_ns = 0
        super().__init__(name, **kwargs)

    def set_up(self, config: OxygenConfig, prepared: Any) -> None:
        """Make the player and its topics."""
        player = ChunkPlayer(
            PlayerSettings.of(config), NodeClock(self, self.steady), self.now_ns, self.refusals
        )
        if self._is_stopped:
            player.stop("stop topic")
        topics = config.topics
        depth = 2 * len(config.model.experts)
        self.create_subscription(ActionChunkMessage, topics.player_chunk, self._on_chunk, qos.newest(depth))
        # Two, so that a stop is heard from any publisher. Hearing one twice does no harm.
        quiet = SubscriptionEventCallbacks(incompatible_qos=lambda _: None)
        for profile in (qos.newest(), qos.sensor(QosConfig())):
            self.create_subscription(Empty, topics.stop, self._on_stop, profile, event_callbacks=quiet)
        self.create_service(Trigger, topics.reset, self._on_reset)
        self._parts = Parts(
            config=config,
            player=player,
            commands=CommandOutlet(self, config, player),
            state=self.create_lifecycle_publisher(PlayerState, topics.player_state, qos.newest(10)),
            joints=PolledJoints(self, config.robot, self._on_joints),
        )
        if not config.enable_control:
            self.get_logger().warning("Dry run: nothing goes to the robot (enable_control is false).")

    def start(self) -> None:
        """Begin to tick."""
        parts = self._must_have_parts()
        self._told = None
        self._ticker = Ticker(self, parts.config.cycle.action_dt_ns, self._on_tick)

    def stop(self, reason: str) -> None:
        """Hold, and tick no more."""
        if self._ticker is None:
            return
        self._ticker.end()
        self._ticker = None
        self._rest(reason)

    def tear_down(self) -> None:
        """Let go of the player. That it was stopped outlives it."""
        if self._parts is not None:
            self._is_stopped = self._parts.player.status().mode is Mode.STOPPED
        self._parts = None

    def on_clock_jump(self, description: str) -> None:
        """Chunks of another time are not played."""
        if self._parts is None:
            return
        if self.is_active:
            self._rest(description)
            return
        with self._lock:
            self._parts.player.rest(description)

    def diagnose(self) -> list[DiagnosticStatus]:
        """What the player does, once configured."""
        if self._parts is None:
            return []
        player = self._parts.player
        now = player.status()
        is_lost = player.is_brain_silent and now.mode in (Mode.PLAYING, Mode.HOLDING)
        if is_lost and self.is_active:
            level, message = ERROR, f"no chunk for more than {player.settings.brain_timeout_ns / 1e9:g} s"
        else:
            level, message = OK if now.mode is Mode.PLAYING else WARN, now.reason or "playing"
        values = {
            "mode": now.mode.name.lower(),
            "control_enabled": self._parts.commands.is_enabled,
            "chunk_id": now.chunk_id,
            "actions_played": now.actions_played,
            "ticks_missed": now.ticks_missed,
            "steps_clamped": now.steps_clamped,
            "delay_actions": player.delay.num_actions,
        }
        values |= {f"refused_{kind}": count for kind, count in sorted(self.refusals.counts().items())}
        name = self.get_fully_qualified_name().strip("/")
        return [status(f"{name}: player", level, message, values)]

    def _on_tick(self) -> None:
        with self._lock:
            parts = self._must_have_parts()
            self._look(parts)
            if (sent := parts.player.tick()) is not None:
                parts.commands.send(sent)
            now = parts.player.status()
            if now != self._told or self.steady.now_ns() - self._told_ns >= TELL_AFTER_NS:
                self._tell(now)

    def _look(self, parts: Parts) -> None:
        now_ns = self.steady.now_ns()
        if parts.player.is_playing and now_ns - self._looked_ns < LOOK_EVERY_NS:
            return
        self._looked_ns = now_ns
        parts.joints.poll()

    def _on_chunk(self, message: ActionChunkMessage) -> None:
        if not self.is_active:
            return
        try:
            chunk = from_chunk_message(message)
            with self._lock:
                self._must_have_parts().player.offer(chunk)
        except ContractError as error:
            self.refusals.add(error.code, "chunk", f"chunk {message.chunk_id}: {error.message}")

    def _on_joints(self, source: str, message: JointState) -> None:
        parts = self._must_have_parts()
        joint_topic = parts.config.robot.joint_topics[source]
        prefix = joint_topic.name_prefix
        names = [prefix + name for name in message.name] if prefix else message.name
        if not parts.player.put_measured(names, message.position):
            detail = f"{len(names)} names but {len(message.position)} positions"
            self.refusals.add("bad_joints", joint_topic.topic, detail)

    def _on_stop(self, _: Empty) -> None:
        with self._lock:
            parts = self._must_have_parts()
            parts.joints.poll()
            is_new = parts.player.stop("stop topic")
            if not self.is_active:
                parts.player.rest("stop topic")  # nothing ticks: the hold would go out much later
        if is_new:
            self.get_logger().error("stop: holding until the reset service is called")
            self.publish_diagnostics()

    def _on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        with self._lock:
            self._must_have_parts().player.reset()
        response.success, response.message = True, "waiting for a chunk"
        return response

    def _rest(self, reason: str) -> None:
        with self._lock:
            parts = self._must_have_parts()
            if (hold := parts.player.rest(reason)) is not None:
                parts.commands.send(hold)
            self._tell(parts.player.status())

    def _tell(self, now: PlayerStatus) -> None:
        self._told, self._told_ns = now, self.steady.now_ns()
        parts = self._must_have_parts()
        fill_player_state(self._message, now, parts.commands.is_enabled, self.now_ns())
        parts.state.publish(self._message)

    def _must_have_parts(self) -> Parts:
        assert self._parts is not None
        return self._parts
