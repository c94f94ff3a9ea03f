"""The whole configuration: every parameter of the two nodes, in sections."""

from __future__ import annotations

from dataclasses import dataclass, field

from oxygen_ros.config.cycle import CycleConfig
from oxygen_ros.config.field import parameter
from oxygen_ros.config.kv import KVConfig
from oxygen_ros.config.model import ModelConfig
from oxygen_ros.config.player import PlayerConfig
from oxygen_ros.config.robot import RobotConfig
from oxygen_ros.config.runner import RunnerConfig
from oxygen_ros.config.safety import SafetyConfig
from oxygen_ros.config.text import TextConfig
from oxygen_ros.config.topics import TopicsConfig


@dataclass(frozen=True)
class OxygenConfig:
    """All settings, checked and never changed afterwards. Made by ``load_config``."""

    preset: str = parameter(
        "", help="Robot preset: a name from config/presets or the path of a YAML file. Empty: none."
    )
    device: str = parameter(
        "", help="Device profile: a name from config/devices or the path of a YAML file. Empty: none."
    )
    params_file: str = parameter(
        "", help="YAML file with parameters, over preset and device, below launch arguments. Empty: none."
    )
    autostart: bool = parameter(True, read_only=True, help="Configure and activate by itself at start.")
    enable_control: bool = parameter(
        False, help="False is a dry run: everything runs, nothing is sent to the robot."
    )
    instruction: str = parameter(
        "", help="What the robot is to do until another instruction comes. Empty: it waits for one."
    )
    record: bool = parameter(False, help="Records inputs and outputs to a bag in record_dir.")
    record_dir: str = parameter("runs", help="Folder for records.")
    model: ModelConfig = field(default_factory=ModelConfig)
    runner: RunnerConfig = field(default_factory=RunnerConfig)
    kv: KVConfig = field(default_factory=KVConfig)
    cycle: CycleConfig = field(default_factory=CycleConfig)
    text: TextConfig = field(default_factory=TextConfig)
    robot: RobotConfig = field(default_factory=RobotConfig)
    player: PlayerConfig = field(default_factory=PlayerConfig)
    safety: SafetyConfig = field(default_factory=SafetyConfig)
    topics: TopicsConfig = field(default_factory=TopicsConfig)
