"""Names of the topics and services. All are relative and can be remapped as well."""

from __future__ import annotations

from dataclasses import dataclass

from oxygen_ros.config.field import parameter


@dataclass(frozen=True)
class TopicsConfig:
    """``~`` stands for the node: oxygen_node for the brain, action_player for the player."""

    instruction: str = parameter("~/instruction", help="Brain, in: what the robot is to do (String).")
    ask: str = parameter("~/ask", help="Brain, in: a question (TextRequest).")
    ask_text: str = parameter("~/ask_text", help="Brain, in: a question in plain words (String).")
    voice_command: str = parameter("", help="Brain, in: spoken words that end texts (String). Empty: off.")
    cancel_text: str = parameter("~/cancel_text", help="Brain, service: end one text or all.")
    action_chunk: str = parameter("~/action_chunk", help="Brain, out: action chunks.")
    joint_trajectory: str = parameter("~/joint_trajectory", help="Brain, out: chunks as JointTrajectory.")
    text: str = parameter("~/text", help="Brain, out: complete texts; each task also below it.")
    text_sentence: str = parameter("~/text_sentence", help="Brain, out: whole sentences as they close.")
    text_stream: str = parameter("~/text_stream", help="Brain, out: text as it grows (TextDelta).")
    cycle_report: str = parameter("~/cycle_report", help="Brain, out: one report per cycle.")
    diagnostics: str = parameter("/diagnostics", read_only=True, help="Both, out: health at 1 Hz.")
    player_chunk: str = parameter("oxygen_node/action_chunk", help="Player, in: the brain's chunks.")
    joint_command: str = parameter("~/joint_command", help="Player, out: commands to the robot.")
    player_state: str = parameter("~/state", help="Player, out: what it plays (PlayerState).")
    player_feedback: str = parameter(
        "action_player/state", help="Brain, in: the player's state; delays are counted in its played actions."
    )
    stop: str = parameter("~/stop", help="Player, in: stop at once and stay stopped.")
    reset: str = parameter("~/reset", help="Player, service: leave the stopped state.")
