"""Builds the brain from a configuration: the only place that names concrete runners and model families."""

from oxygen_ros.assembly.brain import Brain, build_brain

__all__ = ["Brain", "build_brain"]
