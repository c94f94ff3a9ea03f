"""Opening checkpoints: the recorded ones as they lie on disk, every dialect sign, every refusal by name.

Size: one short test per refusal, on the same broken copies.
"""

import json
import shutil

import numpy as np
import pytest
import torch
from broken_checkpoints import (
    BREAKS,
    POSTPROCESSOR,
    PREPROCESSOR,
    WEIGHTS,
    copy_case,
    copy_openpi,
    edit_json,
    edit_tensors,
    rename_tensors,
    statistics_file,
    step_of,
    write_openpi_statistics,
)
from lerobot_cases import ALL_CASES, LEROBOT, checkpoint_folder
from safetensors.numpy import load_file, save_file

from oxygen_ros.errors import CheckpointError, ConfigError
from oxygen_ros.models.flow_matching import TimeGrid
from oxygen_ros.models.pi05.checkpoint import Origin
from oxygen_ros.models.pi05.checkpoint_open import OpenOptions, open_checkpoint
from oxygen_ros.models.pi05.config import AttentionMode
from oxygen_ros.models.pi05.prompt import PromptStyle
from oxygen_ros.models.pi05.statistics import NormMode

MAIN_FORMAT = "main_format_pi05_libero_seed0"
LIBERO = "pi05_libero_seed0"


def make_ambiguous(folder):
    BREAKS["LeRobot 0.4 or 0.5.0"][0](folder)
    return folder


@pytest.mark.parametrize("case", [*ALL_CASES, MAIN_FORMAT])
def test_recorded_checkpoint_opens_as_it_lies_on_disk(case):
    found = open_checkpoint(checkpoint_folder(case))
    assert found.origin is Origin.LEROBOT
    assert found.family == case.removeprefix("main_format_").split("_")[0]
    assert (found.dialect.name, found.config.time_grid) == ("lerobot_0_5_plus", TimeGrid.EXACT)
    assert "relative-actions step" in found.dialect_reason
    assert (found.config.experts[0].horizon, found.config.experts[0].action_dim) == (50, 32)
    assert (found.config.vlm.width, found.config.vlm.depth, found.config.vlm.num_heads) == (32, 2, 8)
    assert found.config.vision.image_size == 224
    assert not any("gemma_expert.lm_head" in name for name in found.tensors)
    assert any("heads" in warning for warning in found.warnings)


def test_recorded_checkpoint_facts_of_aloha():
    found = open_checkpoint(checkpoint_folder("pi05_aloha_seed1"))
    assert [slot.name.rpartition(".")[2] for slot in found.cameras] == [
        "cam_high", "cam_left_wrist", "cam_right_wrist",
    ]  # fmt: skip
    assert (found.state.mode, found.action.mode, found.action.num_dims) == (
        NormMode.MEAN_STD,
        NormMode.MEAN_STD,
        14,
    )
    assert found.relative is not None
    assert found.relative.excluded == ("gripper",)


def test_recorded_checkpoint_facts_of_pi0():
    found = open_checkpoint(checkpoint_folder("pi0_droid_seed0"))
    assert (found.prompt_style, found.config.max_token_len) == (PromptStyle.TASK_ONLY, 48)
    assert found.config.experts[0].state_dim == 32
    assert [slot.is_empty for slot in found.cameras] == [False, False, True]


def test_newest_format_brings_its_tokenizer():
    assert (
        open_checkpoint(checkpoint_folder(MAIN_FORMAT)).tokenizer_path
        == checkpoint_folder(MAIN_FORMAT) / "tokenizer"
    )
    assert open_checkpoint(checkpoint_folder(LIBERO)).tokenizer_path is None


def test_bfloat16_checkpoint_rounds_rotary_frequencies():
    assert (
        open_checkpoint(checkpoint_folder("pi05_libero_bf16_seed0")).config.rope_frequency_dtype
        is torch.bfloat16
    )
    assert open_checkpoint(checkpoint_folder(LIBERO)).config.rope_frequency_dtype is torch.float32


def test_names_without_prefix_open_alike(tmp_path):
    folder = copy_case(LIBERO, tmp_path)
    rename_tensors(folder / WEIGHTS, lambda name: name.removeprefix("model."))
    found = open_checkpoint(folder)
    assert found.tensors.keys() == open_checkpoint(checkpoint_folder(LIBERO)).tensors.keys()
    assert found.origin is Origin.LEROBOT


@pytest.mark.parametrize("kept", ["embed_tokens", "lm_head"])
def test_tied_embedding_opens_under_either_name(tmp_path, kept):
    folder = copy_case(LIBERO, tmp_path)
    dropped = {"embed_tokens": "paligemma.lm_head.weight", "lm_head": "embed_tokens.weight"}[kept]
    rename_tensors(folder / WEIGHTS, lambda name: None if name.endswith(dropped) else name)
    assert len(open_checkpoint(folder).tensors) == 91


def test_sharded_checkpoint_opens_alike(tmp_path):
    folder = copy_case(LIBERO, tmp_path)
    tensors = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    names = sorted(tensors)
    weight_map = {}
    for index, part in enumerate((names[:40], names[40:]), start=1):
        file = f"model-0000{index}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, folder / file)
        weight_map |= dict.fromkeys(part, file)
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    found = open_checkpoint(folder)
    assert found.tensors.keys() == open_checkpoint(checkpoint_folder(LIBERO)).tensors.keys()


def test_state_file_is_found_by_its_name_in_the_json(tmp_path):
    folder = copy_case(LIBERO, tmp_path)
    statistics_file(folder).rename(folder / "anything.safetensors")
    edit_json(
        folder / PREPROCESSOR,
        lambda doc: step_of(doc, "normalizer_processor").update(state_file="anything.safetensors"),
    )
    assert open_checkpoint(folder).state.statistics.source.endswith("anything.safetensors")


def test_legacy_names_of_a_pi05_file_are_mapped(tmp_path):
    folder = copy_case(LIBERO, tmp_path)
    rename_tensors(folder / WEIGHTS, lambda name: name.replace("time_mlp_", "action_time_mlp_"))
    found = open_checkpoint(folder)
    assert "time_mlp_in.weight" in found.tensors
    assert any("older names were mapped" in decision for decision in found.decisions)


def test_pi05_file_with_leftovers_of_pi0_ignores_them(tmp_path):
    folder = copy_case(LIBERO, tmp_path)

    def add(tensors):
        tensors["model.state_proj.weight"] = np.zeros((24, 32), np.float32)
        tensors["model.paligemma_with_expert.gemma_expert.model.norm.weight"] = np.zeros(24, np.float32)

    edit_tensors(folder / WEIGHTS, add)
    found = open_checkpoint(folder)
    assert found.family == "pi05"
    assert any("state_proj.weight" in decision for decision in found.decisions)


def test_b55_pi05_head_with_plain_norms_names_the_transformers_patch(tmp_path):
    folder = copy_case(LIBERO, tmp_path)

    def plain(name):
        return None if name.endswith("dense.bias") else name.replace(".dense.weight", ".weight")

    rename_tensors(folder / WEIGHTS, plain)
    with pytest.raises(CheckpointError, match=r"transformers 4\.53\.2") as caught:
        open_checkpoint(folder)
    assert caught.value.code == "tensor_layout"


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("model.language_model.", "language_model.model.", "transformers 4.53.2"),
        ("model.vision_tower.", "vision_tower.", "transformers 4.53.2"),
        ("model.paligemma_with_expert.", "_orig_mod.paligemma_with_expert.", "compiled"),
        ("model.paligemma_with_expert.", "module.paligemma_with_expert.", "parallel wrapper"),
        ("model.paligemma_with_expert.", "base_model.model.paligemma_with_expert.", "PEFT"),
    ],
)
def test_b55_known_foreign_names_are_explained_without_a_dump(tmp_path, old, new, word):
    folder = copy_case(LIBERO, tmp_path)
    rename_tensors(folder / WEIGHTS, lambda name: name.replace(old, new))
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(folder)
    assert caught.value.code == "tensor_layout"
    assert word in str(caught.value)
    assert len(str(caught.value)) < 400


def test_newest_fields_at_rest_are_tolerated(tmp_path):
    folder = copy_case(MAIN_FORMAT, tmp_path)
    edit_json(folder / "config.json", lambda config: config.update(some_future_switch=False, some_list=[]))
    assert open_checkpoint(folder).family == "pi05"


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("rtc_training_max_delay", 4, "unknown_field"),
        ("use_proprioceptive_memory", True, "checkpoint_memory"),
        ("n_obs_steps", 2, "json_value"),
        ("use_peft", True, "checkpoint_adapter"),
        ("proj_width", 1024, "checkpoint_old_pi0"),
        ("image_resolution", [224, 256], "json_value"),
        ("image_resolution", [448, 448], "image_size"),
        ("max_action_dim", 24, "action_width"),
        ("type", "pi0", "processor_step"),
    ],
)
def test_config_that_asks_for_what_is_not_done_is_refused(tmp_path, key, value, code):
    folder = copy_case(MAIN_FORMAT, tmp_path)
    edit_json(folder / "config.json", lambda config: config.update({key: value}))
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(folder)
    assert caught.value.code == code


@pytest.mark.parametrize("kind", BREAKS)
@pytest.mark.parametrize("case", [*ALL_CASES, MAIN_FORMAT])
def test_broken_copy_is_refused_by_name(tmp_path, case, kind):
    break_it, code, word = BREAKS[kind]
    folder = copy_case(case, tmp_path)
    break_it(folder)
    if case == "pi05_libero_bf16_seed0" and code == "dialect_ambiguous":
        assert "float32 beside bfloat16" in open_checkpoint(folder).dialect_reason
        return
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(folder)
    assert caught.value.code == code
    assert word in caught.value.message
    assert caught.value.suggestion


def test_b54_missing_and_extra_tensors_list_the_first_ten(tmp_path):
    folder = copy_case(LIBERO, tmp_path)
    rename_tensors(folder / WEIGHTS, lambda name: name.replace("vision_model.encoder", "vision_model.other"))
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(folder)
    assert caught.value.code == "tensor_names"
    assert "32 tensors missing" in caught.value.message or "tensor" in caught.value.message
    assert caught.value.message.count("vision_model") <= 21


def test_b54_tensor_cast_to_float16_is_pointed_out(tmp_path):
    folder = copy_case(LIBERO, tmp_path)
    name = "model.paligemma_with_expert.paligemma.model.language_model.layers.1.mlp.up_proj.weight"
    edit_tensors(folder / WEIGHTS, lambda tensors: tensors.update({name: tensors[name].astype(np.float16)}))
    (warning,) = (text for text in open_checkpoint(folder).warnings if "float16" in text)
    assert "layers.1.mlp.up_proj.weight (F16)" in warning
    assert "1 of 92" in warning


def test_tensor_of_integers_is_refused(tmp_path):
    folder = copy_case(LIBERO, tmp_path)
    edit_tensors(
        folder / WEIGHTS,
        lambda tensors: tensors.update({"model.time_mlp_in.bias": np.zeros(24, np.int8)}),
    )
    with pytest.raises(CheckpointError, match=r"time_mlp_in\.bias \(I8\)"):
        open_checkpoint(folder)


@pytest.mark.parametrize(("vision", "wanted"), [("bfloat16", "lerobot_0_4"), ("float32", "lerobot_0_5_plus")])
def test_dialect_without_a_sign_in_json_shows_in_dtypes(tmp_path, vision, wanted):
    from safetensors.torch import load_file as load_torch
    from safetensors.torch import save_file as save_torch

    folder = make_ambiguous(copy_case("pi05_libero_bf16_seed0", tmp_path))
    tensors = load_torch(folder / WEIGHTS)
    cast = {
        name: tensor.to(getattr(torch, vision)) if "encoder.layers" in name else tensor
        for name, tensor in tensors.items()
    }
    save_torch(cast, folder / WEIGHTS)
    found = open_checkpoint(folder)
    assert found.dialect.name == wanted
    assert "vision tower" in found.dialect_reason


@pytest.mark.parametrize("dialect", ["openpi", "lerobot_0_4", "lerobot_0_5_plus"])
def test_dialect_can_be_set(tmp_path, dialect):
    folder = make_ambiguous(copy_case(LIBERO, tmp_path))
    found = open_checkpoint(folder, OpenOptions(dialect=dialect))
    assert (found.dialect.name, found.dialect_reason) == (dialect, "set by model.dialect")


def test_dialect_that_is_not_known_is_refused():
    with pytest.raises(ConfigError, match="auto, openpi, lerobot_0_4, lerobot_0_5_plus"):
        open_checkpoint(checkpoint_folder(LIBERO), OpenOptions(dialect="lerobot"))


def test_horizon_that_is_not_the_checkpoints_is_refused():
    with pytest.raises(ConfigError, match="chunks have 50"):
        open_checkpoint(checkpoint_folder(LIBERO), OpenOptions(horizon=10))


def test_prompt_limit_is_the_smaller_of_both():
    assert (
        open_checkpoint(checkpoint_folder(LIBERO), OpenOptions(max_prompt_tokens=100)).config.max_token_len
        == 100
    )
    pi0 = open_checkpoint(checkpoint_folder("pi0_droid_seed0"), OpenOptions(max_prompt_tokens=100))
    assert pi0.config.max_token_len == 48


def test_pipelines_that_disagree_about_relative_actions_are_refused(tmp_path):
    folder = copy_case("pi05_aloha_seed1", tmp_path)
    edit_json(
        folder / POSTPROCESSOR,
        lambda doc: step_of(doc, "absolute_actions_processor")["config"].update(enabled=False),
    )
    with pytest.raises(CheckpointError, match="disagree about relative actions"):
        open_checkpoint(folder)


def test_relative_actions_without_names_are_warned_about(tmp_path):
    folder = copy_case("pi05_aloha_seed1", tmp_path)
    edit_json(
        folder / PREPROCESSOR,
        lambda doc: step_of(doc, "relative_actions_processor")["config"].update(action_names=None),
    )
    assert any("grippers too" in warning for warning in open_checkpoint(folder).warnings)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda doc: doc["steps"].append({"registry_name": "my_step", "config": {}}), "processor_step"),
        (lambda doc: doc["steps"].reverse(), "processor_order"),
        (lambda doc: doc["steps"].append(doc["steps"][3]), "processor_step"),
        (lambda doc: step_of(doc, "normalizer_processor")["config"]["norm_map"].pop("STATE"), "norm_mode"),
        (
            lambda doc: step_of(doc, "normalizer_processor")["config"]["norm_map"].update(STATE="Q"),
            "json_value",
        ),
        (
            lambda doc: step_of(doc, "normalizer_processor")["config"]["norm_map"].update(VISUAL="MEAN_STD"),
            "json_value",
        ),
        (lambda doc: step_of(doc, "normalizer_processor").pop("state_file"), "statistics_missing"),
        (
            lambda doc: step_of(doc, "normalizer_processor").update(state_file="../x.safetensors"),
            "statistics_missing",
        ),
        (lambda doc: doc.update(steps={}), "json_value"),
        (lambda doc: step_of(doc, "tokenizer_processor")["config"].update(padding_side="left"), "json_value"),
    ],
)
def test_preprocessor_that_is_not_the_known_one_is_refused(tmp_path, change, code):
    folder = copy_case(LIBERO, tmp_path)
    edit_json(folder / PREPROCESSOR, change)
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(folder)
    assert caught.value.code == code


def leaves(value, path=()):
    """Paths to every value of a JSON document."""
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        yield (*path, key)
        yield from leaves(child, (*path, key))


@pytest.mark.parametrize("name", ["config.json", PREPROCESSOR, POSTPROCESSOR])
def test_any_value_anywhere_is_read_or_refused_by_name(tmp_path, name):
    folder = copy_case("pi05_aloha_seed1", tmp_path)
    whole = (folder / name).read_text()
    places = list(leaves(json.loads(whole)))
    rng = np.random.default_rng(0)
    strange = [None, True, -1, 1.5, "", [], {}, [1, 2], {"a": 1}, 10**30, float("inf"), "224"]
    refused = 0
    for index in range(80):
        document = json.loads(whole)
        *above, last = places[rng.integers(len(places))]
        target = document
        for key in above:
            target = target[key]
        target[last] = strange[index % len(strange)]
        (folder / name).write_text(json.dumps(document))
        try:
            open_checkpoint(folder)
        except CheckpointError:
            refused += 1
    assert 5 < refused < 80


def test_openpi_directory_opens_with_its_assets(tmp_path):
    found = open_checkpoint(copy_openpi(tmp_path))
    assert (found.origin, found.dialect.name) == (Origin.OPENPI, "openpi")
    assert found.config.time_grid is TimeGrid.ACCUMULATED
    assert found.config.vision.num_heads == 4
    assert (found.state.mode, found.prompt_style) == (NormMode.QUANTILES, PromptStyle.TASK_STATE_ACTION)
    assert [slot.name for slot in found.cameras] == ["base_0_rgb", "left_wrist_0_rgb", "right_wrist_0_rgb"]
    assert found.config.attention is AttentionMode.BIDIRECTIONAL


def test_openpi_directory_without_config_takes_sizes_from_shapes(tmp_path):
    folder = copy_openpi(tmp_path)
    stated = open_checkpoint(folder).config
    (folder / "config.json").unlink()
    found = open_checkpoint(folder, OpenOptions(horizon=10, num_vision_heads=4, max_prompt_tokens=20)).config
    assert (found.vlm, found.vision, found.experts, found.vocab_size) == (
        stated.vlm, stated.vision, stated.experts, stated.vocab_size,
    )  # fmt: skip


def test_openpi_directory_that_does_not_say_its_horizon_asks_for_it(tmp_path):
    folder = copy_openpi(tmp_path)
    (folder / "config.json").unlink()
    with pytest.raises(ConfigError, match=r"set model\.horizon"):
        open_checkpoint(folder)


def test_openpi_options_choose_prompt_and_attention(tmp_path):
    options = OpenOptions(openpi_prompt="task_only", attention="causal_text")
    found = open_checkpoint(copy_openpi(tmp_path), options)
    assert (found.prompt_style, found.config.attention) == (PromptStyle.TASK_ONLY, AttentionMode.CAUSAL_TEXT)


def test_b52_checkpoint_without_statistics_names_the_path(tmp_path):
    folder = copy_openpi(tmp_path)
    shutil.rmtree(folder / "assets")
    with pytest.raises(CheckpointError, match=r"assets.*norm_stats\.json") as caught:
        open_checkpoint(folder)
    assert caught.value.code == "statistics_missing"


def test_b52_empty_statistics_wrong_asset_and_several_robots_each_say_so(tmp_path):
    folder = copy_openpi(tmp_path)
    path = write_openpi_statistics(folder, 8, 7)
    codes = {}
    with pytest.raises(CheckpointError, match=r"asset id 'trossen'.*there is robot") as caught:
        open_checkpoint(folder, OpenOptions(asset_id="trossen"))
    codes["wrong"] = caught.value.code
    path.write_text(json.dumps({"norm_stats": {}}))
    with pytest.raises(CheckpointError, match="no statistics at all") as caught:
        open_checkpoint(folder)
    codes["empty"] = caught.value.code
    write_openpi_statistics(folder, 8, 7)
    write_openpi_statistics(folder, 14, 14, asset_id="trossen/aloha")
    with pytest.raises(CheckpointError, match="2 robots: robot, trossen/aloha") as caught:
        open_checkpoint(folder)
    codes["ambiguous"] = caught.value.code
    assert len(set(codes.values())) == 3
    assert (
        open_checkpoint(folder, OpenOptions(asset_id="trossen/aloha")).state.statistics.values["mean"].size
        == 14
    )


def test_b52_statistics_of_one_feature_only_are_refused(tmp_path):
    folder = copy_openpi(tmp_path)
    edit_json(write_openpi_statistics(folder, 8, 7), lambda doc: doc["norm_stats"].pop("actions"))
    with pytest.raises(CheckpointError, match="no statistics for 'actions'"):
        open_checkpoint(folder)


def test_jax_checkpoint_is_refused_with_the_way_to_convert(tmp_path):
    (tmp_path / "params").mkdir()
    (tmp_path / "params" / "_METADATA").write_text("{}")
    with pytest.raises(CheckpointError, match=r"convert_jax_model_to_pytorch\.py") as caught:
        open_checkpoint(tmp_path)
    assert caught.value.code == "checkpoint_jax"


def test_pickled_weights_are_refused(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(CheckpointError, match="can run any code"):
        open_checkpoint(tmp_path)


def test_parent_of_a_checkpoint_is_refused_with_the_right_path(tmp_path):
    copy_case(LIBERO, tmp_path / "checkpoints" / "pretrained_model")
    with pytest.raises(CheckpointError, match="checkpoints/pretrained_model"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("name", "code"), [("model.engine", "checkpoint_engine"), ("model.safetensors", "checkpoint_file")]
)
def test_file_in_place_of_a_directory_is_refused(tmp_path, name, code):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(tmp_path / name)
    assert caught.value.code == code


def test_path_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="does not exist"):
        open_checkpoint(tmp_path / "absent")


def test_weights_with_normalisation_buffers_are_an_old_pi0(tmp_path):
    folder = copy_case("pi0_droid_seed0", tmp_path)
    edit_tensors(
        folder / WEIGHTS,
        lambda tensors: tensors.update(
            {"normalize_inputs.buffer_observation_state.mean": np.zeros(8, np.float32)}
        ),
    )
    with pytest.raises(CheckpointError, match=r"before LeRobot 0\.4"):
        open_checkpoint(folder)


def test_weights_with_lora_matrices_are_refused(tmp_path):
    folder = copy_case(LIBERO, tmp_path)
    edit_tensors(
        folder / WEIGHTS,
        lambda tensors: tensors.update({"model.x.lora_A.weight": np.zeros((2, 2), np.float32)}),
    )
    with pytest.raises(CheckpointError, match="LoRA"):
        open_checkpoint(folder)


def test_config_and_weights_of_different_models_are_refused(tmp_path):
    folder = copy_case("pi0_droid_seed0", tmp_path)
    shutil.copyfile(checkpoint_folder(LIBERO) / WEIGHTS, folder / WEIGHTS)
    with pytest.raises(CheckpointError, match="type 'pi0', the tensors are those of 'pi05'"):
        open_checkpoint(folder)


def test_recorded_cases_are_all_known():
    folders = {path.parent.name for path in LEROBOT.glob("*/checkpoint")}
    assert folders == {*ALL_CASES, MAIN_FORMAT}
