"""compare_golden on recorded LeRobot runs: whole folders hold, changed ones fail and say where."""

import shutil

import numpy as np
import pytest
from broken_checkpoints import WEIGHTS, edit_json, edit_tensors
from lerobot_cases import FLOAT32_CASES, INPUTS_OF, LEROBOT

from oxygen_ros.tools.compare_golden import compare, main

TOLERANCE = 1e-4
SCHEDULES = ("LINEAR", "EXP", "ONES", "ZEROS")
STAGES = {
    "prompt", "tokens", "img_masks", "prefix_embs", "prefix_hidden", "prefix_k_1", "prefix_v_1", "x_t_steps",
    "lm_logits_last_valid", "v_t_steps", "actions_padded", "actions_post", "select_action_post_seed123",
    *(f"rtc_{what}_{name}_d4_h10" for what in ("weights", "actions") for name in SCHEDULES),
}  # fmt: skip


def copy_folder(case, target):
    shutil.copytree(LEROBOT / case, target, dirs_exist_ok=True)
    for frame in ("frame0", "frame1") if case in INPUTS_OF else ():
        for path in (LEROBOT / INPUTS_OF[case] / frame).iterdir():
            if not (target / frame / path.name).exists():
                shutil.copyfile(path, target / frame / path.name)
    return target


def edit_arrays(path, **changes):
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    np.savez(
        path, **{name: changes[name](value) if name in changes else value for name, value in arrays.items()}
    )


@pytest.mark.parametrize("case", FLOAT32_CASES)
def test_recorded_lerobot_run_holds_from_raw_pictures_to_commands(case):
    report = compare(LEROBOT / case, TOLERANCE)
    assert [str(comparison) for comparison in report.comparisons if not comparison.holds] == []
    assert all(comparison.tolerance <= TOLERANCE for comparison in report.comparisons)
    for frame in ("frame0", "frame1"):
        assert {f"{frame}/{stage}" for stage in STAGES} <= {
            comparison.name for comparison in report.comparisons
        }
    legacy = [comparison.name for comparison in report.comparisons if "legacy" in comparison.name]
    assert bool(legacy) == case.startswith("pi05")


@pytest.mark.parametrize("case", FLOAT32_CASES)
def test_b54_action_parity_in_float32(case):
    report = compare(LEROBOT / case, TOLERANCE)
    actions = [comparison for comparison in report.comparisons if "actions_" in comparison.name]
    assert len(actions) >= 6
    assert max(comparison.difference for comparison in actions) <= 1e-5


def test_b54_action_parity_in_bfloat16(tmp_path):
    report = compare(copy_folder("pi05_libero_bf16_seed0", tmp_path), TOLERANCE)
    assert [str(comparison) for comparison in report.comparisons if not comparison.holds] == []
    assert any("bfloat16" in note for note in report.notes)
    actions = [comparison for comparison in report.comparisons if "actions_" in comparison.name]
    assert max(comparison.difference for comparison in actions) <= 0.03


def test_main_exit_code_tells_whether_it_holds(tmp_path, capsys):
    folder = copy_folder("pi0_droid_seed0", tmp_path)
    shutil.rmtree(folder / "frame1")
    assert main([str(folder)]) == 0
    edit_arrays(folder / "frame0" / "stages.npz", actions_post=lambda value: value + 2e-4)
    assert main([str(folder)]) == 1
    assert "FAIL frame0/actions_post" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "change", "name"),
    [
        ("inputs.npz", {"observation.state": lambda value: value + np.float32(0.5)}, "frame0/prompt"),
        (
            "stages.npz",
            {"state_after_4_NormalizerProcessorStep": lambda value: value * np.float32(1.001)},
            "frame0/state_after_4_NormalizerProcessorStep",
        ),
        ("inputs.npz", {"observation.images.image2": lambda value: value[::-1]}, "frame0/image1"),
        ("stages.npz", {"prefix_k_0": lambda value: value * 1.01}, "frame0/prefix_k_0"),
        ("stages.npz", {"v_t_steps": lambda value: value + 1e-3}, "frame0/v_t_steps"),
        (
            "stages.npz",
            {"rtc_weights_EXP_d4_h10": lambda value: value * 1.001},
            "frame0/rtc_weights_EXP_d4_h10",
        ),
        (
            "stages.npz",
            {"rtc_prev_chunk_left_over": lambda value: value[1:]},
            "frame0/rtc_actions_LINEAR_d4_h10",
        ),
        ("images_model.npz", {"image0": lambda value: value + np.float32(1e-4)}, "frame0/image0"),
    ],
)
def test_changed_record_fails_where_it_was_changed(tmp_path, file, change, name):
    folder = copy_folder("pi05_libero_seed0", tmp_path)
    shutil.rmtree(folder / "frame1")
    edit_arrays(folder / "frame0" / file, **change)
    report = compare(folder, TOLERANCE)
    assert name in {comparison.name for comparison in report.comparisons if not comparison.holds}


def test_changed_weights_fail(tmp_path):
    folder = copy_folder("pi05_aloha_seed1", tmp_path)
    shutil.rmtree(folder / "frame1")
    name = "model.action_out_proj.bias"
    edit_tensors(
        folder / "checkpoint" / WEIGHTS, lambda tensors: tensors.update({name: tensors[name] + 0.01})
    )
    failed = {
        comparison.name for comparison in compare(folder, TOLERANCE).comparisons if not comparison.holds
    }
    assert "frame0/actions_post" in failed
    assert "frame0/prefix_hidden" not in failed


def test_folder_with_fewer_stages_compares_what_there_is(tmp_path):
    folder = copy_folder("pi0_droid_seed0", tmp_path)
    shutil.rmtree(folder / "frame1")
    (folder / "manifest.json").unlink()
    (folder / "frame0" / "images_model.npz").unlink()
    path = folder / "frame0" / "stages.npz"
    with np.load(path) as archive:
        kept = {name: archive[name] for name in ("noise", "actions_post", "tokens", "token_mask")}
    np.savez(path, **kept)
    report = compare(folder, TOLERANCE)
    assert report.holds
    names = {comparison.name for comparison in report.comparisons}
    assert names >= {"frame0/tokens", "frame0/actions_post"}


def test_guided_run_that_is_not_known_is_named_and_left_out(tmp_path):
    folder = copy_folder("pi05_libero_seed0", tmp_path)
    shutil.rmtree(folder / "frame1")
    path = folder / "frame0" / "stages.npz"
    with np.load(path) as archive:
        arrays = dict(archive)
    arrays["rtc_actions_TRAINED_d4_h10"] = arrays.pop("rtc_actions_EXP_d4_h10")
    np.savez(path, **arrays)
    report = compare(folder, TOLERANCE)
    assert report.holds
    (note,) = [note for note in report.notes if "guided" in note]
    assert note.endswith(": rtc_actions_TRAINED_d4_h10")


@pytest.mark.parametrize(
    ("break_it", "word"),
    [
        (lambda folder: (folder / "frame0" / "inputs.npz").unlink(), "lacks observation.state"),
        (lambda folder: (folder / "frame0" / "stages.npz").write_bytes(b"PK"), "cannot read"),
        (lambda folder: (folder / "frame0" / "text.json").write_text("{"), "cannot read"),
        (lambda folder: (folder / "checkpoint" / "config.json").unlink(), "checkpoint"),
        (lambda folder: shutil.rmtree(folder / "tiny_tokenizer"), "tokenizer"),
        (
            lambda folder: edit_json(
                folder / "checkpoint" / "config.json", lambda c: c.update(chunk_size=None)
            ),
            "chunk_size",
        ),
    ],
)
def test_folder_that_cannot_be_used_gives_exit_code_2(tmp_path, capsys, break_it, word):
    folder = copy_folder("pi0_droid_seed0", tmp_path)
    break_it(folder)
    assert main([str(folder)]) == 2
    assert word in capsys.readouterr().err


def test_checkpoint_without_frames_says_that_nothing_is_recorded(capsys):
    assert main([str(LEROBOT / "main_format_pi05_libero_seed0")]) == 2
    assert "no frame folders" in capsys.readouterr().err
