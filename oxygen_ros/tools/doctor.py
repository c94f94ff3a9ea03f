"""Examines a checkpoint and a robot preset, and tells what the node would do with them, and why.

Usage: doctor [CHECKPOINT] [--preset P] [--device D] [--params-file F] [--set NAME=VALUE] [--live] [--run]
[--json]. Loads no weights unless --run is given, and no ROS unless --live is. Exit code: 0 ok, 1 warnings,
2 the node would refuse.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import yaml

from oxygen_ros.assembly.pi05 import OpenedPi05, open_pi05
from oxygen_ros.config import LoadedConfig, OxygenConfig, load_config
from oxygen_ros.errors import OxygenError
from oxygen_ros.tools.examination.checkpoint import examine_checkpoint, examine_memory
from oxygen_ros.tools.examination.findings import Diagnosis, Section
from oxygen_ros.tools.examination.host import examine_buffers
from oxygen_ros.tools.examination.robot import examine_cameras, examine_joints, examine_prompt, middle_state
from oxygen_ros.tools.examination.shared_memory import examine_shared_memory
from oxygen_ros.tools.examination.texts import examine_texts
from oxygen_ros.tools.examination.trial import examine_run
from oxygen_ros.types import FloatArray

ASSUMED_PICTURE_BYTES = 640 * 480 * 3
"""Size of a raw picture where nothing tells it: VGA."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Examine; the exit code is described in the module's docstring."""
    options = _parser().parse_args(arguments)
    diagnosis = examine(options)
    if options.json:
        print(json.dumps(diagnosis.to_json(), indent=1))
    else:
        print(diagnosis.to_text())
    return int(diagnosis.level)


def examine(options: argparse.Namespace) -> Diagnosis:
    """All sections that can be made; a refusal leaves out what depends on it."""
    settings = Section("configuration")
    loaded = _load(options, settings)
    if loaded is None:
        return Diagnosis([settings])
    sections, config = [settings], loaded.config
    state, sizes = None, _picture_bytes(config)
    if options.live:
        from oxygen_ros.ros.doctor_graph import examine_graph

        graph, seen = examine_graph(config, options.seconds)
        sections += graph
        sizes |= seen.message_bytes
        state = seen.state
    sections.append(examine_buffers(sizes))
    if options.live:
        sections.append(examine_shared_memory())
    sections += _examine_model(config, state, is_run_wanted=options.run)
    return Diagnosis(sections)


def _examine_model(config: OxygenConfig, state: FloatArray | None, *, is_run_wanted: bool) -> list[Section]:
    opening = Section("checkpoint")
    try:
        opened = open_pi05(config)
    except OxygenError as error:
        opening.refuse_error(error)
        return [opening]
    sections = [examine_checkpoint(opened.checkpoint), examine_memory(opened.checkpoint, config)]
    sections += [examine_cameras(opened, config), examine_joints(opened, config)]
    sections += [examine_prompt(opened, config, state), examine_texts(config, opened.tokenizer)]
    _add_warnings(sections, opened)
    if is_run_wanted and all(section.level < 2 for section in sections):
        sections.append(examine_run(config, middle_state(opened) if state is None else state))
    return sections


def _add_warnings(sections: list[Section], opened: OpenedPi05) -> None:
    """What is odd about the files, but for what another section says dimension by dimension."""
    said = set(opened.processor.warnings())
    for warning in opened.warnings:
        if warning not in said:
            sections[0].warn(warning, "checkpoint")


def _load(options: argparse.Namespace, section: Section) -> LoadedConfig | None:
    """The configuration as the node would have it."""
    try:
        overrides: dict[str, Any] = dict(_assignment(text) for text in options.set)
        if options.checkpoint:
            overrides["model.checkpoint"] = options.checkpoint
        for name in ("tokenizer", "dialect"):
            if getattr(options, name):
                overrides[f"model.{name}"] = getattr(options, name)
        loaded = load_config(
            preset=options.preset,
            device=options.device,
            params_file=options.params_file,
            overrides=overrides,
        )
    except OxygenError as error:
        section.refuse_error(error)
        return None
    robot = loaded.config.robot
    section.fact(
        f"robot {robot.name or 'without a name'}: {len(robot.camera_roles)} cameras, "
        f"{robot.state_dim} joints, {robot.action_dim} commands, transform {robot.transform}",
        robot=robot.name,
    )
    section.fact(loaded.describe())
    for warning in loaded.warnings:
        section.warn(warning, "configuration")
    return loaded


def _assignment(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise OxygenError("assignment", f"--set {text!r} is no NAME=VALUE", "--set model.horizon=50")
    try:
        return name, yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise OxygenError(
            "assignment", f"--set {text!r}: {error}", "quote the value as YAML wants it"
        ) from error


def _picture_bytes(config: OxygenConfig) -> dict[str, int]:
    """Assumed size of one message of every raw camera topic."""
    cameras = config.robot.cameras.values()
    return {camera.topic: ASSUMED_PICTURE_BYTES for camera in cameras if camera.type == "Image"}


def _parser() -> argparse.ArgumentParser:
    summary = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="doctor", description=summary)
    parser.add_argument("checkpoint", nargs="?", default="", help="directory of the checkpoint")
    parser.add_argument("--preset", help="robot preset: a name or the path of a YAML file")
    parser.add_argument("--device", help="device profile: a name or the path of a YAML file")
    parser.add_argument("--params-file", help="parameters of the node")
    parser.add_argument("--tokenizer", default="", help="tokenizer file (.model or tokenizer.json)")
    parser.add_argument("--dialect", default="", help="auto, openpi, lerobot_0_4 or lerobot_0_5_plus")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="any parameter")
    parser.add_argument("--live", action="store_true", help="look at the running ROS graph too")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long --live listens")
    parser.add_argument("--run", action="store_true", help="load the model and run one cycle")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
