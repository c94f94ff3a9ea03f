"""The doctor: what it prints, what it refuses, and its exit code, on recorded and on broken checkpoints."""

import json

import pytest
import torch
from broken_checkpoints import BREAKS, copy_case, edit_json, write_openpi_statistics
from lerobot_cases import ALL_CASES, checkpoint_folder, tokenizer_folder

from oxygen_ros.tools.doctor import main
from oxygen_ros.tools.examination.findings import Diagnosis, Level, Section
from oxygen_ros.tools.examination.host import examine_buffers
from oxygen_ros.tools.make_tiny_checkpoint import write_checkpoint

MAIN_FORMAT = "main_format_pi05_libero_seed0"
PRESETS = {"libero": "libero", "droid": "droid", "aloha": "aloha"}


def arguments(case, folder=None):
    """The command line for a recorded case, or for a copy of it in ``folder``."""
    preset = next(name for name in PRESETS if name in case)
    words = [str(folder or checkpoint_folder(case)), "--preset", preset, "--set", "model.horizon=50"]
    if case != MAIN_FORMAT:
        words += ["--tokenizer", str(tokenizer_folder(case))]
    return words


def examine(capsys, words):
    """Exit code and the JSON that was printed."""
    code = main([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def findings(report, title=None):
    return [
        finding
        for section in report["sections"]
        if title is None or section["title"] == title
        for finding in section["findings"]
    ]


def texts(report, title):
    return [finding["text"] for finding in findings(report, title)]


@pytest.mark.parametrize("case", [*ALL_CASES, MAIN_FORMAT])
def test_recorded_checkpoint_is_explained(capsys, case):
    code, report = examine(capsys, arguments(case))
    assert code == 1
    assert report["verdict"] == "warning"
    said = texts(report, "checkpoint")
    assert any(text.startswith("dialect lerobot_0_5_plus: a relative-actions step") for text in said)
    assert any("50 actions, 32 wide" in text for text in said)
    assert any("weights take" in text for text in texts(report, "memory"))
    assert any("KV memory" in text for text in texts(report, "memory"))
    assert [finding for finding in findings(report) if finding["level"] == "refusal"] == []


@pytest.mark.parametrize("case", [*ALL_CASES, MAIN_FORMAT])
@pytest.mark.parametrize("kind", BREAKS)
def test_broken_copy_is_refused_with_exit_code_2(capsys, tmp_path, case, kind):
    break_it, code, word = BREAKS[kind]
    folder = copy_case(case, tmp_path)
    break_it(folder)
    exit_code, report = examine(capsys, arguments(case, folder))
    if case == "pi05_libero_bf16_seed0" and code == "dialect_ambiguous":
        assert exit_code == 1  # its dtypes show the dialect
        return
    assert exit_code == 2
    (refusal,) = (finding for finding in findings(report) if finding["level"] == "refusal")
    assert refusal["code"] == code
    assert word in refusal["text"]
    assert refusal["suggestion"]


def test_first_prompt_is_given_as_text_and_ids(capsys):
    code, report = examine(capsys, [*arguments("pi05_libero_seed0"), "--set", "instruction=open_the drawer"])
    assert code == 1
    values = {
        key: value for finding in findings(report, "first prompt") for key, value in finding["values"].items()
    }
    assert values["text"].startswith("Task: open the drawer, State: 128 128 128 128 128 128 128 ")
    assert values["token_ids"][0] == 2
    assert len(values["state"]) == 8


def test_b57_camera_map_is_echoed(capsys):
    _, report = examine(capsys, arguments("pi05_libero_seed0"))
    pairs = [
        (f["values"]["slot"], f["values"]["role"]) for f in findings(report, "camera slots") if f["values"]
    ]
    assert pairs == [
        ("observation.images.image", "base"),
        ("observation.images.image2", "left_wrist"),
        ("observation.images.empty_camera_0", None),
    ]


def test_joint_that_never_moved_is_named(capsys):
    _, report = examine(capsys, arguments("pi05_libero_seed0"))
    (warning,) = (finding for finding in findings(report, "joints") if finding["code"] == "degenerate_range")
    assert "gripper_finger_2" in warning["text"]
    assert warning["values"]["index"] == 7


def test_relative_commands_are_told_with_their_exceptions(capsys):
    _, report = examine(capsys, arguments("pi05_aloha_seed1"))
    assert any("except left_left_finger, right_left_finger" in text for text in texts(report, "joints"))
    assert any("adapt_to_pi is not applied" in text for text in texts(report, "checkpoint"))


def test_command_range_in_degrees_is_warned_about(capsys, tmp_path):
    folder = tmp_path / "tiny"
    write_checkpoint(folder, "libero")
    edit_json(
        write_openpi_statistics(folder, 8, 7, asset_id="libero"),
        lambda doc: doc["norm_stats"]["actions"].update(q01=[-1.0] * 6 + [-90.0], q99=[1.0] * 6 + [90.0]),
    )
    _, report = examine(capsys, [str(folder), "--preset", "libero"])
    (warning,) = (finding for finding in findings(report, "joints") if finding["code"] == "command_range")
    assert warning["text"].startswith("command gripper: the checkpoint's range -90.000 .. 90.000 leaves")


@pytest.mark.parametrize("preset", ["libero", "droid", "aloha"])
def test_tiny_checkpoint_runs_one_cycle(capsys, tmp_path, preset):
    write_checkpoint(tmp_path / "tiny", preset)
    words = [str(tmp_path / "tiny"), "--preset", preset, "--run", "--set", "runner.warm_up_runs=1"]
    code, report = examine(capsys, words)
    assert code == 1
    said = findings(report, "trial run on grey pictures")
    assert "prefill of" in said[0]["text"]
    tasks = [finding["values"]["task"] for finding in said if "task" in finding["values"]]
    assert tasks == ["ask", "subtask", "memory"]


def test_b49_trial_run_that_could_not_be_compiled_says_so(capsys, tmp_path, monkeypatch):
    def first_call(*args):
        raise RuntimeError("ptxas fatal : Value 'sm_110a' is not defined")

    monkeypatch.setattr(torch, "compile", lambda *args, **kwargs: first_call)
    write_checkpoint(tmp_path / "tiny", "libero")
    settings = ("runner.warm_up_runs=1", "runner.kind=compiled", "runner.allow_eager=true")
    words = [str(tmp_path / "tiny"), "--preset", "libero", "--run"]
    _, report = examine(capsys, [*words, *(word for given in settings for word in ("--set", given))])
    (said,) = (finding for finding in findings(report) if finding["code"] == "not_as_asked")
    assert said["level"] == "warning"
    assert said["text"].startswith("the model runs eager, since compiling failed: RuntimeError: ptxas fatal")


def test_text_that_is_off_is_said(capsys):
    _, report = examine(capsys, [*arguments("pi05_libero_seed0"), "--set", "text.enabled=false"])
    assert texts(report, "text tasks") == ["text is off (text.enabled: false)"]


def test_text_tasks_come_with_the_honest_word(capsys):
    _, report = examine(capsys, arguments("pi05_libero_seed0"))
    said = texts(report, "text tasks")
    assert any(text.startswith("subtask: every 3 cycles, prompt 'Subtask: ' (2 tokens)") for text in said)
    assert "text.enabled: false switches text off" in said[-1]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], "no_checkpoint"),
        (["/nowhere"], "checkpoint_missing"),
        (["--set", "model.horizon"], "assignment"),
        (["--set", "modle.horizon=50"], "unknown_parameter"),
        (["--preset", "libreo"], "unknown_preset"),
    ],
)
def test_command_line_that_cannot_be_used_is_refused(capsys, words, code):
    preset = [] if "--preset" in words else ["--preset", "libero"]
    exit_code, report = examine(capsys, [*words, *preset])
    assert exit_code == 2
    assert code in {finding["code"] for finding in findings(report) if finding["level"] == "refusal"}


def test_horizon_of_the_preset_is_not_the_checkpoints(capsys):
    words = [word for word in arguments("pi05_libero_seed0") if word != "model.horizon=50"]
    words.remove("--set")
    code, report = examine(capsys, words)
    assert code == 2
    (refusal,) = (finding for finding in findings(report) if finding["level"] == "refusal")
    assert (refusal["code"], refusal["suggestion"]) == ("horizon", "set model.horizon to 50")


def test_kv_memory_above_its_limit_is_refused_with_numbers(capsys):
    words = [
        *arguments("pi05_libero_seed0"),
        "--set",
        "kv.memory_limit_mb=1.0",
        "--set",
        "kv.num_prefixes=16",
    ]
    code, report = examine(capsys, words)
    assert code == 2
    assert any("memory_limit_mb allows 1 MiB" in text for text in texts(report, "memory"))


def test_text_for_people_ends_with_the_verdict(capsys):
    assert main(arguments("pi05_libero_seed0")) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("verdict: warnings (0 refusals, ")
    assert any(line.startswith("  warn ") for line in lines)


@pytest.mark.parametrize(
    ("levels", "code"),
    [([], 0), ([Level.OK], 0), ([Level.OK, Level.WARNING], 1), ([Level.REFUSAL, Level.OK], 2)],
)
def test_exit_code_is_the_worst_finding(levels, code):
    section = Section("x")
    add = {Level.OK: section.fact, Level.WARNING: section.warn, Level.REFUSAL: section.refuse}
    for level in levels:
        add[level]("said")
    diagnosis = Diagnosis([section, Section("empty")])
    assert (int(diagnosis.level), diagnosis.to_json()["exit_code"]) == (code, code)


def sysctl(root, **values):
    for name, value in values.items():
        path = root / "net" / "core" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    return root


@pytest.mark.parametrize("size", [921_600, 2_000_000, 300_000])
def test_b11_small_kernel_buffer_and_raw_pictures_warn_with_the_sysctl_names(tmp_path, size):
    section = examine_buffers({"/front/image_raw": size}, sysctl(tmp_path, rmem_max=212_992))
    assert section.level is Level.WARNING
    warning = section.findings[-1]
    assert f"/front/image_raw ({size} bytes)" in warning.text
    for name in ("net.core.rmem_max=", "net.ipv4.ipfrag_high_thresh", "net.ipv4.ipfrag_time"):
        assert name in warning.suggestion


@pytest.mark.parametrize(("rmem", "size"), [(212_992, 200_000), (26_214_400, 921_600), (212_992, 0)])
def test_b11_buffer_that_suffices_is_a_fact(tmp_path, rmem, size):
    assert examine_buffers({"/a": size}, sysctl(tmp_path, rmem_max=rmem)).level is Level.OK


def test_b11_unknown_buffer_is_a_fact(tmp_path):
    assert examine_buffers({"/a": 10**7}, tmp_path).level is Level.OK
