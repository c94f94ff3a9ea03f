"""Rules, baselines, exit codes, many bags, the program itself."""

from __future__ import annotations

import copy
import io
import json
from pathlib import Path

import pytest
from bag_factory import ROBOT, cut, job, make_bag, replay

from oxygen_ros.clock import SimClock
from oxygen_ros.errors import ConfigError
from oxygen_ros.replay.batch import find_bags, folders_of, run_jobs, worst_code
from oxygen_ros.replay.progress_bar import ProgressBar
from oxygen_ros.replay.report.measures import value_of
from oxygen_ros.replay.verdict.baseline import changes, regressions
from oxygen_ros.replay.verdict.rules import broken_rules, parse_rule
from oxygen_ros.tools.replay import main

MEASURES = {
    "misses": 2,
    "mae": {"all": 0.3, "joints": {"left_arm_1": 0.1, "left_arm_2": 0.2, "gripper": 0.6}},
    "max_error": {"all": 1.0, "joints": {"left_arm_1": 0.5, "left_arm_2": 1.0, "gripper": None}},
    "latency_ms": {"p50": 70.0, "p95": 90.0},
    "refusals": {"all": 3, "out_of_order": 3},
    "decode": {"tokens_per_s": 40.0, "share": 0.5},
    "texts": {"all": 4, "completion": 1.0},
}
EXPERTS = {"left_arm_1": "body", "left_arm_2": "body", "gripper": "tool"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("misses", 2),
        ("mae", 0.3),
        ("mae.gripper", 0.6),
        ("mae.arm", 0.15),
        ("mae.body", 0.15),
        ("max_error.left", 1.0),
        ("max_error.gripper", None),
        ("latency_ms.p95", 90.0),
        ("refusals", 3),
        ("refusals.out_of_order", 3),
        ("refusals.nan_state", 0),
        ("decode.share", 0.5),
    ],
)
def test_measure_is_found_by_name(name, value):
    assert value_of(MEASURES, EXPERTS, name) == (None if value is None else pytest.approx(value))


@pytest.mark.parametrize("name", ["mea", "mae.leg", "latency_ms.p12", "misses.all", "decode.tokens"])
def test_measure_that_does_not_exist_is_refused(name):
    with pytest.raises(ConfigError) as caught:
        value_of(MEASURES, EXPERTS, name)
    assert caught.value.code == "measure"


@pytest.mark.parametrize(
    ("rule", "is_broken"),
    [
        ("mae.arm>0.02", True),
        ("mae.arm > 0.2", False),
        ("misses>0", True),
        ("misses>=3", False),
        ("decode.tokens_per_s<20", False),
        ("texts.completion!=1", False),
        ("max_error.gripper>0.1", True),  # no figure: a rule that cannot be checked has not been kept
        ("text_changed", False),
    ],
)
def test_rule_is_broken_when_it_holds(rule, is_broken):
    assert bool(broken_rules([parse_rule(rule)], MEASURES, EXPERTS, {})) is is_broken


@pytest.mark.parametrize("text", ["mae", "mae>", "mae>>1", ">1", "mae>one", "text_chnaged"])
def test_rule_that_is_none_is_refused(text):
    with pytest.raises(ConfigError) as caught:
        parse_rule(text)
    assert caught.value.code == "rule"


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("mae", "all"), 0.4, "mae was 0.3 and is 0.4"),
        (("mae", "joints", "gripper"), 0.7, "mae.gripper was 0.6 and is 0.7"),
        (("misses",), 3, "misses was 2 and is 3"),
        (("refusals", "all"), 4, "refusals was 3 and is 4"),
        (("decode", "tokens_per_s"), 30.0, "decode.tokens_per_s was 40 and is 30"),
        (("texts", "completion"), 0.5, "texts.completion was 1 and is 0.5"),
    ],
)
def test_regression_is_named_and_its_opposite_is_none(path, value, named):
    worse = copy.deepcopy(MEASURES)
    inside = worse
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    assert named in regressions(worse, MEASURES, {})
    assert regressions(MEASURES, worse, {}) == []


def test_tolerance_allows_as_much_as_it_says():
    worse = copy.deepcopy(MEASURES)
    worse["misses"] = 4
    assert regressions(worse, MEASURES, {"misses": 2}) == []
    assert regressions(worse, MEASURES, {"misses": 1}) == ["misses was 2 and is 4"]


def test_changed_text_is_shown_with_what_it_was():
    text = {"request_id": "ask-1", "text": "a cup", "reason": "stop", "observation_id": 3}
    before = {
        "fingerprints": {"actions": "1", "inputs": "1", "texts": "1"},
        "texts": [text],
        "measures": MEASURES,
    }
    after = {
        "fingerprints": {"actions": "1", "inputs": "1", "texts": "2"},
        "texts": [{**text, "text": "a bowl"}],
        "measures": MEASURES,
    }
    assert changes(after, before, {}) == {"text_changed": "text of ask-1 was 'a cup' and is 'a bowl'"}


@pytest.fixture(scope="module")
def bags(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bags")
    make_bag(folder, "one", seconds=1.0)
    make_bag(folder, "two", seconds=1.0, seed=1, storage="sqlite3")
    cut(make_bag(folder, "three", seconds=1.0, width=160, height=120), 0.6)
    return folder


def arguments(*words):
    settings = {name: json.dumps(value) for name, value in ROBOT.items()}
    return [
        *map(str, words),
        "--no-pictures",
        *(f"--set={name}={value}" for name, value in settings.items()),
    ]


def test_program_compares_with_a_baseline_and_sees_one_broken_on_purpose(bags, tmp_path, capsys):
    out, base = tmp_path / "run", tmp_path / "base"
    assert main(arguments(bags / "one", "--out", base)) == 0
    assert main(arguments(bags / "one", "--out", out, "--baseline", base)) == 0
    report = json.loads((base / "report.json").read_text())
    report["measures"]["mae"]["all"] = report["measures"]["mae"]["all"] / 2
    (base / "report.json").write_text(json.dumps(report))
    assert main(arguments(bags / "one", "--out", out, "--baseline", base)) == 1
    assert "regressed: mae was" in capsys.readouterr().err
    assert main(arguments(bags / "one", "--out", out, "--baseline", base, "--fail-on", "text_changed")) == 0
    allowed = ("--tolerance", "mae=1")
    assert main(arguments(bags / "one", "--out", out, "--baseline", base, *allowed)) == 0
    slower = ("--set", "text.tasks.subtask.prompt=What now?")
    assert main(arguments(bags / "one", "--out", out, "--baseline", base, *allowed, *slower)) in (0, 1)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--fail-on", "misses>0,mae>10"), 0, ""),
        (("--fail-on", "mae>0"), 1, "broken: mae>0: it is"),
        (("--fail-on", "misses>0", "--fail-on", "latency_ms.p50>=70"), 1, "latency_ms.p50>=70: it is 70"),
        (("--fail-on", "nonsense"), 2, "is no rule"),
        (("--fail-on", "legs>1"), 2, "there is no measure legs"),
        (("--fail-on", "text_changed"), 2, "--baseline DIR"),
        (("--baseline", "/nowhere"), 2, "no report of a replay"),
        (("--set", "model.horizn=3"), 2, "model.horizon"),
        (("--costs", "/nowhere.json"), 2, "gives no costs"),
        (("--costs", "recorded"), 2, "no cycle reports"),
        (("--start", "99"), 2, "the bag has"),
        (("--start", "-1"), 2, "start is -1 s"),
        (("--duration", "nan"), 2, "duration is nan s"),
        (("--duration", "inf"), 2, "duration is inf s"),
        (("--commands", "/arm/commands"), 2, "no topic /arm/commands"),
    ],
)
def test_program_gives_the_exit_code_of_its_help(bags, tmp_path, capsys, words, code, said):
    assert main(arguments(bags / "one", "--out", tmp_path, *words)) == code
    assert said in capsys.readouterr().err


def test_program_refuses_a_bag_that_is_not_there(tmp_path, capsys):
    assert main(arguments(tmp_path / "no", "--out", tmp_path / "out")) == 2
    assert "there is no" in capsys.readouterr().err


def test_many_bags_give_one_table_whatever_the_number_of_workers(bags, tmp_path, capsys):
    tables = []
    for workers in (1, 2):
        out = tmp_path / str(workers)
        assert main(arguments(bags, "--out", out, "--workers", workers)) == 3
        tables.append((out / "summary.txt").read_text())
        capsys.readouterr()
    assert tables[0] == tables[1]
    assert [line.split()[:2] for line in tables[0].splitlines()[1:]] == [
        ["one", "0"],
        ["three", "3"],
        ["two", "0"],
    ]
    for name in ("one", "two", "three"):
        files = [(tmp_path / str(n) / name / "report.json").read_bytes() for n in (1, 2)]
        assert files[0] == files[1]


def test_interrupted_batch_stops_before_the_next_bag(bags, tmp_path):
    seen = []
    jobs = [job(bags / name, tmp_path / name) for name in ("one", "two")]
    for _, report in run_jobs(jobs, 1, lambda: bool(seen)):
        seen.append(report["complete"])
    assert seen == [True]


def test_bags_are_found_in_folders_and_reports_do_not_collide(bags, tmp_path):
    found = find_bags([str(bags), str(bags / "one")])
    assert [path.name for path in found] == ["one", "three", "two"]
    twice = [bags / "one", bags / "one" / "one.mcap", bags / "two"]
    assert [f.name for f in folders_of(twice, tmp_path)] == ["one_1", "one_2", "two"]


def test_bag_named_as_the_number_of_another_one_keeps_its_folder(tmp_path):
    """Its report was written over by that of the other one."""
    bags = [Path(name) for name in ("x/run", "y/run", "run_1", "run_2")]
    names = [folder.name for folder in folders_of(bags, tmp_path)]
    assert names == ["run_3", "run_4", "run_1", "run_2"]


def test_measure_that_is_lost_is_a_regression():
    """It counted as 0: nothing is better than no error."""
    after = json.loads(json.dumps(MEASURES))
    after["mae"] = {"all": None, "joints": dict.fromkeys(MEASURES["mae"]["joints"])}
    worse = regressions(after, MEASURES, {})
    assert f"mae was {MEASURES['mae']['all']:g} and has no value" in worse


def test_tolerance_for_a_measure_that_is_not_there_is_refused():
    with pytest.raises(ConfigError, match="no measure mea is compared") as caught:
        regressions(MEASURES, MEASURES, {"mea": 0.1})
    assert "mae" in caught.value.suggestion
    assert regressions(MEASURES, MEASURES, {"refusals.out_of_order": 5.0, "mae": 0.1}) == []


def test_worst_code_speaks_for_all():
    assert [worst_code(codes) for codes in ([0, 3], [3, 1], [1, 2, 0], [0, 0], [])] == [3, 1, 2, 0, 2]


def test_progress_bar_says_how_long_it_takes():
    clock, stream = SimClock(), io.StringIO()
    bar = ProgressBar(stream, clock, "kitchen")
    clock.advance_ns(10 * 10**9)
    bar.show(0.25)
    assert stream.getvalue() == "kitchen [########......................]  25% 10 s, 30 s left\n"
    bar.show(0.26)
    assert stream.getvalue().count("\n") == 1


def test_report_of_an_earlier_run_is_replaced_as_a_whole(bags, tmp_path):
    replay(bags / "one", tmp_path, clock="realtime", duration_s=0.3)
    assert (tmp_path / "costs.json").exists()
    replay(tmp_path / "nothing", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.json", "report.md"]
