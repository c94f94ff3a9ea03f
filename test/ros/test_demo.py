"""The demonstration as a user starts it: what it prints, what it leaves, what its exit code stands for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from oxygen_ros.replay.bag.bag import Bag
from oxygen_ros.ros import demo, demo_nodes, demo_stand_in
from oxygen_ros.sim.truth import ALL_TASKS

ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "FASTRTPS_DEFAULT_PROFILES_FILE"}
DEMO = [sys.executable, "-m", "oxygen_ros.ros.demo", "--plain"]


def _start(*flags: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*DEMO, *flags],
        env=ENVIRONMENT | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _until(demo: subprocess.Popen[str], wanted: dict[str, int]) -> tuple[list[str], str]:
    """Interrupt it when each word has been in so many lines: those lines, and everything it printed."""
    lines: list[str] = []
    assert demo.stdout is not None
    for line in demo.stdout:
        lines.append(line)
        if all(sum(word in line for line in lines) >= count for word, count in wanted.items()):
            demo.send_signal(signal.SIGINT)
            break
    rest, _ = demo.communicate(timeout=120)
    return lines, "".join(lines) + rest


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """Random weights in the sizes of the trained ones."""
    pytest.importorskip("torch")
    pytest.importorskip("mujoco")
    from oxygen_ros.training.checkpoint import write_checkpoint
    from oxygen_ros.training.dims import Dims
    from oxygen_ros.training.pi05 import TinyPi05
    from oxygen_ros.training.vocabulary import pieces

    folder = tmp_path_factory.mktemp("checkpoint")
    write_checkpoint(folder, TinyPi05(Dims(vocab_size=len(pieces()))), {"command": "none: random weights"})
    return folder


def test_tabletop_moves_speaks_and_leaves_a_run_folder_on_interrupt(checkpoint, tmp_path):
    folder = tmp_path / "run"
    words = (
        "--checkpoint",
        str(checkpoint),
        "--record",
        str(folder),
        "--forever",
        "--no-check",
        "--rate",
        "10",
    )
    task = "put the green cube on the plate"
    started = _start(*words, "--task", f" {task.upper()}.", "--say", "Who are you?", "--seed", "7")
    _, output = _until(started, {"actions/s": 1})
    assert started.returncode == 0, output
    assert f"episode 1, seed 7: {task}" in output
    assert "'Who are you?': it answers, and nobody judges it" in output
    assert "Traceback" not in output
    last = output.splitlines()[-6:]
    made = ("run.mcap", "demo.gif", "timeline.png", "summary.json", "summary.md")
    assert [Path(line.strip()).name for line in last[:5]] == list(made)
    assert all((folder / name).stat().st_size for name in (*made, "metadata.yaml", "memory.sqlite3"))
    assert last[-1].startswith("next: ")
    assert {path.stem for path in (folder / "logs").iterdir()} == {
        *("tabletop_node", "oxygen_node", "action_player", "speech_node", "memory_node")
    }
    _check_bag(folder)


def _check_bag(folder: Path) -> None:
    assert not (folder / "run.partial").exists()
    for path in (folder, folder / "run.mcap"):
        with Bag(path) as bag:
            assert not bag.faults
            names = {name: survey.num_messages for name, survey in bag.surveys.items()}
    for name in (
        *("tabletop_node/truth", "tabletop_node/show/compressed", "joint_states"),
        *("camera/agentview/image_raw/compressed", "camera/wrist/image_raw/compressed"),
        *("action_player/joint_command", "action_player/state", "oxygen_node/action_chunk"),
        *(
            "oxygen_node/cycle_report",
            "oxygen_node/text_stream",
            "oxygen_node/instruction",
            "oxygen_node/ask",
        ),
    ):
        assert names.get(f"/oxygen_demo/{name}"), f"{name} is not in {names}"
    assert names["/diagnostics"]


def test_machine_without_gl_says_so_and_the_folder_is_valid(checkpoint, tmp_path):
    folder = tmp_path / "run"
    started = _start("--checkpoint", str(checkpoint), "--record", str(folder), "--headless", MUJOCO_GL="wgl")
    output, _ = started.communicate(timeout=120)
    assert started.returncode == 1
    assert "tabletop_node ended with code 2:" in output
    assert "unset MUJOCO_GL" in output
    assert "Traceback" not in output
    assert all((folder / name).is_file() for name in ("run.mcap", "metadata.yaml", "summary.json"))
    assert "missing: " in output
    assert output.splitlines()[-1].startswith("next: ")


def test_unknown_task_is_refused_with_the_list_and_nothing_starts(tmp_path):
    started = _start("--task", "make coffee", "--record", str(tmp_path / "run"))
    output, _ = started.communicate(timeout=60)
    assert started.returncode == 2
    assert all(task.instruction in output for task in ALL_TASKS)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "flags",
    [
        ("--record", str(Path(__file__).parent)),
        ("--checkpoint", "/no/such/folder"),
        ("--seconds", "-1"),
        ("--seconds", "nan"),
        ("--seed", "-1"),
        ("--rate", "31"),
        ("--foo",),
    ],
    ids=lambda flags: " ".join(flags)[:20],
)
def test_wrong_arguments_are_refused_with_code_2(flags, capsys):
    with pytest.raises(SystemExit) as end:
        demo.options_of(flags)
    assert end.value.code == 2
    assert flags[0] in capsys.readouterr().err


def test_without_a_checkpoint_the_stand_in_runs_and_says_why(monkeypatch, capsys):
    ran = []
    monkeypatch.setattr(demo, "find_checkpoint", lambda: None)
    monkeypatch.setattr(demo.signal, "signal", lambda *_: None)
    monkeypatch.setattr(demo_stand_in, "run_stand_in", lambda *given: ran.append(given) or 0)
    assert demo.main(["--plain", "--seconds", "3"]) == 0
    assert ran[0][:3] == ("humanoid", 3.0, True)
    assert "checkpoints/tabletop" in capsys.readouterr().out


def test_checkpoint_is_found_beside_the_configuration(monkeypatch, tmp_path):
    monkeypatch.setattr(
        demo_nodes, "default_config_dirs", lambda: (tmp_path / "a/config", tmp_path / "b/config")
    )
    assert demo_nodes.find_checkpoint() is None
    folder = tmp_path / "b" / "checkpoints" / "tabletop"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    assert demo_nodes.find_checkpoint() == folder


def test_stand_in_shows_actions_text_and_slack_then_a_table_and_code_0():
    started = _start("--stand-in", "--forever")
    lines, output = _until(started, {"acted": 10, "speech:": 2, "memory:": 2})
    assert started.returncode == 0, output
    assert output.count("stand-in") >= 2, "it says so at its begin and at its end"
    cycles = [line for line in lines if line.startswith("cycle ") and "acted" in line]
    assert all("chunk" in line and "slack" in line and "text" in line for line in cycles)
    assert any("+'" in line or '+"' in line for line in cycles), "text grows"
    for word in ("actions", "sentence", "stream", "report", "diagnostics", "Everything arrived"):
        assert word in output
    for node in ("oxygen_node", "action_player", "speech_node", "memory_node"):
        assert f"{node} exit code" in output
    assert "\x1b[" not in output
    assert "Traceback" not in output


def test_stand_in_that_saw_nothing_says_what_is_missing_and_fails():
    started = _start("--stand-in", "--seconds", "0")
    output, _ = started.communicate(timeout=60)
    assert started.returncode == 1
    assert "Nothing arrived of: actions" in output
    assert "Traceback" not in output


def test_stand_in_of_an_unknown_preset_names_it():
    started = _start("--preset", "librao")
    output, _ = started.communicate(timeout=60)
    assert started.returncode == 2
    assert "librao" in output
    assert "libero" in output
    assert "Traceback" not in output


def test_comparison_gets_checkpoint_seeds_and_a_folder(monkeypatch, tmp_path):
    pytest.importorskip("torch")
    compare = pytest.importorskip("oxygen_ros.demo.compare")
    given = []
    monkeypatch.setattr(demo.signal, "signal", lambda *_: None)
    monkeypatch.setattr(compare, "compare", lambda *words: given.append(words) or 1)
    folder = tmp_path / "run"
    assert (
        demo.main(["--compare", "--checkpoint", str(tmp_path), "--record", str(folder), "--seed", "5"]) == 1
    )
    assert given == [(tmp_path, range(5, 9), folder)]
    assert folder.is_dir()


def test_comparison_without_a_checkpoint_says_so(monkeypatch, capsys):
    monkeypatch.setattr(demo, "find_checkpoint", lambda: None)
    monkeypatch.setattr(demo.signal, "signal", lambda *_: None)
    assert demo.main(["--compare"]) == 2
    assert "checkpoints/tabletop" in capsys.readouterr().err
