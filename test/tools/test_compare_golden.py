"""The comparison tool: it computes everything anew, fails when it must, and refuses what it cannot use."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from oxygen_ros.tools.compare_golden import main

GOLDEN = Path(__file__).parents[1] / "resources" / "golden" / "pi05"


@pytest.fixture
def folder(tmp_path):
    """A copy of a recorded folder with text, to be spoilt."""
    return Path(shutil.copytree(GOLDEN / "oxygen_seed1", tmp_path / "folder"))


def edit(path, change):
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)


def test_compare_golden_recorded_folder_exits_zero_and_prints_tensors_and_tokens(folder, capsys):
    assert main([str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "prefix_hidden" in printed
    assert "text 1: [354, 142, 257" in printed
    assert "0 beyond their tolerance" in printed


@pytest.mark.parametrize(
    "name",
    [
        "paligemma_with_expert.paligemma.model.vision_tower.vision_model.encoder.layers.1.mlp.fc2.bias",
        "paligemma_with_expert.paligemma.model.language_model.layers.2.self_attn.v_proj.weight",
        "paligemma_with_expert.paligemma.model.language_model.layers.0.input_layernorm.weight",
        "paligemma_with_expert.paligemma.model.language_model.norm.weight",
        "paligemma_with_expert.gemma_expert.model.layers.1.post_attention_layernorm.dense.bias",
        "time_mlp_out.bias",
        "action_out_proj.weight",
    ],
)
def test_compare_golden_one_changed_weight_exits_one(folder, name, capsys):
    def change(tensors):
        tensors[name][0] += 0.05

    edit(folder / "model.safetensors", change)
    assert main([str(folder)]) == 1
    assert "FAIL" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["image.base_0_rgb", "noise", "tokens"])
def test_compare_golden_one_changed_input_exits_one(folder, name):
    def change(tensors):
        tensors[name][0, 0] += 1 if name == "tokens" else 0.1

    edit(folder / "inputs.safetensors", change)
    assert main([str(folder)]) == 1


def test_compare_golden_picture_that_is_not_its_pixels_exits_one(folder, capsys):
    edit(folder / "inputs.safetensors", lambda t: t["image_u8.base_0_rgb"][0, 0, 0].sub_(9))
    assert main([str(folder)]) == 1
    assert "FAIL image_u8.base_0_rgb" in capsys.readouterr().out


def test_compare_golden_changed_mask_is_another_prefix_and_exits_one(folder):
    edit(folder / "inputs.safetensors", lambda t: t["image_mask.right_wrist_0_rgb"].fill_(True))
    assert main([str(folder)]) == 1


def test_compare_golden_recorded_nan_exits_one(folder):
    edit(folder / "outputs.safetensors", lambda t: t["actions_10"].fill_(torch.nan))
    assert main([str(folder)]) == 1


@pytest.mark.parametrize("part", [slice(0, 8), slice(68, 70)], ids=["prefix", "written"])
def test_compare_golden_changed_cache_of_a_text_exits_one(folder, part, capsys):
    edit(folder / "outputs.safetensors", lambda t: t["text.correct_seed.cache_k.1"][0, 0, part].add_(0.01))
    assert main([str(folder)]) == 1
    assert "FAIL text.correct_seed.cache_k.1" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", ["actions_10", "prefix_hidden", "prefix_k.0", "prefix_att_2d", "text.correct_seed.next_logprobs"]
)
def test_compare_golden_output_of_another_shape_exits_one(folder, name):
    def change(tensors):
        tensors[name] = tensors[name][..., :5].contiguous()

    edit(folder / "outputs.safetensors", change)
    assert main([str(folder)]) == 1


@pytest.mark.parametrize(
    "dropped",
    [
        "text.correct_seed.tokens",
        "text.correct_seed.logprobs",
        "eos.correct_seed.tokens",
        "cb.correct_seed.tokens",
        "cb.correct_seed.frame_tokens",
        "euler_times",
    ],
)
def test_compare_golden_without_one_output_compares_all_others(folder, dropped, capsys):
    edit(folder / "outputs.safetensors", lambda t: t.pop(dropped))
    assert main([str(folder)]) == 0
    printed = capsys.readouterr().out
    assert f" {dropped} " not in printed
    assert "not compared" not in printed
    edit(folder / "outputs.safetensors", lambda t: t["eos.correct_seed.output_tokens"][2].add_(1))
    assert main([str(folder)]) == 1


def test_compare_golden_other_attention_mode_exits_one(folder):
    config = json.loads((folder / "config.json").read_text())
    config["prefix_text_attention"] = "bidirectional"
    (folder / "config.json").write_text(json.dumps(config))
    assert main([str(folder)]) == 1


def test_compare_golden_without_text_outputs_compares_the_rest(folder, capsys):
    def change(tensors):
        for name in [n for n in tensors if n.startswith(("text.", "eos.", "cb.", "seed_"))]:
            del tensors[name]

    edit(folder / "outputs.safetensors", change)
    assert main([str(folder)]) == 0
    assert "text" not in capsys.readouterr().out


def drop_file(folder):
    (folder / "inputs.safetensors").unlink()


def cut_weights(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])


def break_json(folder):
    (folder / "config.json").write_text("{")


def drop_width(folder):
    config = json.loads((folder / "config.json").read_text())
    del config["vlm"]["width"]
    (folder / "config.json").write_text(json.dumps(config))


def drop_weight(folder):
    edit(folder / "model.safetensors", lambda t: t.pop("time_mlp_in.bias"))


def drop_input(folder):
    edit(folder / "inputs.safetensors", lambda t: t.pop("noise"))


def big_token(folder):
    edit(folder / "inputs.safetensors", lambda t: t["tokens"].fill_(512))


def spoil_end_token(folder):
    edit(
        folder / "outputs.safetensors",
        lambda t: t.update({"eos.correct_seed.eos_id": torch.zeros(0, dtype=torch.int64)}),
    )


def list_in_json(folder):
    (folder / "config.json").write_text("[]")


def cut_outputs(folder):
    path = folder / "outputs.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def empty_prompt(folder):
    edit(folder / "inputs.safetensors", lambda t: t["token_mask"].fill_(False))


def no_outputs(folder):
    edit(folder / "outputs.safetensors", dict.clear)


@pytest.mark.parametrize(
    "spoil",
    [
        drop_file,
        cut_weights,
        break_json,
        drop_width,
        drop_weight,
        drop_input,
        big_token,
        empty_prompt,
        no_outputs,
        spoil_end_token,
        list_in_json,
        cut_outputs,
    ],
)
def test_compare_golden_unusable_folder_exits_two_and_says_why(folder, spoil, capsys):
    spoil(folder)
    assert main([str(folder)]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("[")
    assert captured.out == ""


def test_compare_golden_missing_folder_exits_two(tmp_path, capsys):
    assert main([str(tmp_path / "nothing")]) == 2
    assert "is not a folder" in capsys.readouterr().err
