"""Configuration: frozen dataclasses that declare every parameter once, and one loader for all sources.

``load_config(preset="libero", device="cpu").config.cycle.period_ns``. No ROS, no torch.
"""

from oxygen_ros.config.camera import CameraConfig, QosConfig
from oxygen_ros.config.checks import check
from oxygen_ros.config.cycle import CycleConfig
from oxygen_ros.config.joint import GripperConfig, JointConfig, JointTopicConfig
from oxygen_ros.config.kv import KVConfig
from oxygen_ros.config.loader import LoadedConfig, load_config, load_layers
from oxygen_ros.config.merge import Layer
from oxygen_ros.config.model import ModelConfig
from oxygen_ros.config.player import PlayerConfig
from oxygen_ros.config.robot import RobotConfig
from oxygen_ros.config.root import OxygenConfig
from oxygen_ros.config.runner import FakeConfig, RunnerConfig
from oxygen_ros.config.safety import SafetyConfig
from oxygen_ros.config.search import default_config_dirs
from oxygen_ros.config.sync import SyncConfig
from oxygen_ros.config.text import ASK_TASK, TextConfig, TextTaskConfig
from oxygen_ros.config.topics import TopicsConfig

__all__ = [
    "ASK_TASK",
    "CameraConfig",
    "CycleConfig",
    "FakeConfig",
    "GripperConfig",
    "JointConfig",
    "JointTopicConfig",
    "KVConfig",
    "Layer",
    "LoadedConfig",
    "ModelConfig",
    "OxygenConfig",
    "PlayerConfig",
    "QosConfig",
    "RobotConfig",
    "RunnerConfig",
    "SafetyConfig",
    "SyncConfig",
    "TextConfig",
    "TextTaskConfig",
    "TopicsConfig",
    "check",
    "default_config_dirs",
    "load_config",
    "load_layers",
]
