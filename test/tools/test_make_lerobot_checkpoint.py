"""Random checkpoints in LeRobot's layout: every preset opens, is explained, and the real size is right."""

import json

import pytest
from safetensors.numpy import load_file

from oxygen_ros.config import load_config
from oxygen_ros.models.pi05.checkpoint_open import open_checkpoint
from oxygen_ros.tools import make_lerobot_checkpoint
from oxygen_ros.tools.doctor import main as doctor
from oxygen_ros.tools.make_lerobot_checkpoint import main
from oxygen_ros.tools.measure_load import main as measure_load

PRESETS = ("libero", "droid", "aloha", "humanoid")


@pytest.mark.parametrize("preset", PRESETS)
def test_tiny_checkpoint_fits_its_preset(tmp_path, capsys, preset):
    folder = tmp_path / preset
    assert main([str(folder), "--preset", preset]) == 0
    capsys.readouterr()
    assert doctor([str(folder), "--preset", preset, "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    said = [finding for section in report["sections"] for finding in section["findings"]]
    assert [finding["text"] for finding in said if finding["level"] == "refusal"] == []
    robot = load_config(preset=preset).config.robot
    found = open_checkpoint(folder)
    assert (found.state.num_dims, found.action.num_dims) == (robot.state_dim, robot.action_dim)
    assert len(found.cameras) == len(robot.camera_roles)


def test_bfloat16_checkpoint_has_the_dtypes_of_lerobot(tmp_path):
    assert main([str(tmp_path / "c"), "--dtype", "bfloat16"]) == 0
    found = open_checkpoint(tmp_path / "c")
    dtypes = {
        tensor.dtype for name, tensor in found.tensors.items() if "vision_tower" in name or "norm" in name
    }
    assert dtypes == {"F32"}
    assert {t.dtype for name, t in found.tensors.items() if "self_attn" in name and "vision" not in name} == {
        "BF16"
    }


def test_same_seed_same_weights(tmp_path):
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        assert main([str(tmp_path / name), "--seed", seed]) == 0
    a, b, c = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert a == b
    assert a != c
    assert load_file(tmp_path / "a" / "policy_preprocessor_step_3_normalizer_processor.safetensors")


def test_real_size_has_the_known_numbers_of_parameters():
    shapes = make_lerobot_checkpoint.stored_shapes(make_lerobot_checkpoint.model_config(10, is_full=True))
    count = sum(make_lerobot_checkpoint.num_elements(shape) for shape in shapes.values())
    head = 257152 * 2048
    assert round((count - head) / 1e9, 3) == 3.617
    assert len(shapes) == 813


def test_folder_that_is_not_empty_is_left_alone(tmp_path, capsys):
    (tmp_path / "mine").write_text("x")
    assert main([str(tmp_path)]) == 2
    assert "not an empty folder" in capsys.readouterr().err


def test_measure_load_prints_what_it_took(tmp_path, capsys):
    main([str(tmp_path / "c")])
    assert measure_load([str(tmp_path / "c"), "--dtype", "float32"]) in (0, 1)
    assert "ratio" in capsys.readouterr().out
    assert measure_load([str(tmp_path / "absent")]) == 2
