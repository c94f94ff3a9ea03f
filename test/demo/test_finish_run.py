"""Run folders: what a bag holds is told, judged and drawn; what it lacks is said, and nothing breaks."""

import itertools
import json
from collections import Counter

import pytest
from PIL import Image
from run_factory import CYCLE_TICKS, S, make_run

from oxygen_ros.demo.finish import RunFacts, finish_run
from oxygen_ros.demo.movie import MAX_BYTES
from oxygen_ros.demo.recording import read_run
from oxygen_ros.demo.verdict import Mark, judge

LIE = "So far I have put the blue cube on the plate. I hold nothing and the task is done."
VAGUE = "So far all is well."


def wrong_at_times(right, index):
    """Memory texts: a lie, something vague, and what is right; the others are right."""
    return {0: LIE, 3: VAGUE}.get(index % 12, right)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run"), ticks=260, write=wrong_at_times)


@pytest.fixture(scope="module")
def summary(run):
    return finish_run(run, RunFacts(driver="the scripted expert of a test", threads=1))


def test_finish_run_of_a_whole_run_writes_all_files_and_misses_nothing(run, summary):
    assert summary.missing == ()
    assert {file.name for file in summary.files} == {"demo.gif", "timeline.png", "summary.json", "summary.md"}
    assert all(file.stat().st_size for file in summary.files)
    assert json.loads((run / "summary.json").read_text()) == summary.content
    page = (run / "summary.md").read_text()
    assert "the scripted expert of a test" in page
    assert "demo.gif" in page
    assert LIE in page


def test_finish_run_counts_episodes_by_how_they_ended(summary):
    episodes = summary.content["episodes"]
    each = [(e["task"], e["success"], e["whole"]) for e in episodes["each"]]
    assert each[:2] == [
        ("put the red cube in the bowl", True, True),
        ("put the red cube on the plate", True, True),
    ]
    assert summary.num_successes == summary.num_episodes == sum(whole for _, _, whole in each)


def test_finish_run_judges_each_text_at_its_birth(run, summary):
    recording = read_run(run / "run.mcap")
    complete = [text for text in recording.texts if text.is_complete]
    marks = judge(recording).marks
    for text in complete:
        wanted = {LIE: Mark.FALSE, VAGUE: Mark.INEXACT}.get(text.text, Mark.TRUE)
        assert marks[text.request_id] is wanted, text.name
    counted = Counter(marks.values())
    truth = summary.content["truth_of_texts"]["all"]
    assert counted[Mark.FALSE] == summary.num_false_claims == truth["false_claims"] > 0
    assert truth["exact_match"] == pytest.approx(counted[Mark.TRUE] / len(complete), abs=1e-4)
    assert 0 < truth["stale_share"] < 1


def test_finish_run_measures_control_from_commands_and_reports(summary):
    control = summary.content["control"]
    assert control["control_rate_hz"] == 30.0
    assert control["deadline_misses"] == 1
    assert control["action_latency_ms"]["p50"] == 20.0
    assert control["cycles"] == -(-260 // CYCLE_TICKS)


def test_read_run_numbers_texts_of_each_task_by_birth(run):
    texts = read_run(run / "run.mcap").texts
    assert [text.name for text in texts[:4]] == ["memory#1", "ask#1", "next#1", "memory#2"]
    assert all(a.born_ns <= b.born_ns for a, b in itertools.pairwise(texts))


def test_movie_plays_at_the_speed_of_the_run_and_stays_small(run, summary):
    with Image.open(run / "demo.gif") as movie:
        gaps = []
        for index in range(movie.n_frames):
            movie.seek(index)
            gaps.append(movie.info["duration"])
    recording = read_run(run / "run.mcap")
    seconds = (recording.show[-1][0] - recording.show[0][0]) / S
    assert sum(gaps[:-1]) / 1000 == pytest.approx(seconds, abs=0.3)
    assert (run / "demo.gif").stat().st_size <= MAX_BYTES


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ({"show": None}, "show view"),
        ({"has_truth": False}, "truth"),
        ({"has_texts": False}, "texts"),
        ({"cut_bytes": 4000}, "cut off"),
    ],
)
def test_finish_run_of_a_poor_bag_is_valid_and_says_what_is_missing(tmp_path, plan, words):
    summary = finish_run(make_run(tmp_path / "run", ticks=60, **plan))
    assert any(words in sentence for sentence in summary.missing)
    content = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert words in " ".join(content["missing"])
    assert (tmp_path / "run" / "timeline.png").exists()
    assert (tmp_path / "run" / "demo.gif").exists() is ("show" not in plan)


def test_finish_run_without_a_bag_is_valid_and_says_so(tmp_path):
    summary = finish_run(tmp_path)
    assert "nothing was recorded" in summary.missing[0]
    assert summary.num_episodes == 0
    assert "nothing was recorded" in (tmp_path / "summary.md").read_text()


def test_finish_run_of_a_file_that_is_no_bag_is_valid_and_says_so(tmp_path):
    (tmp_path / "run.mcap").write_bytes(b"not a bag at all")
    assert "neither MCAP nor sqlite3" in finish_run(tmp_path).missing[0]


def test_judge_of_an_answer_without_its_question_leaves_it_unjudged(tmp_path):
    recording = read_run(make_run(tmp_path / "run", ticks=60) / "run.mcap")
    asked = sum(text.kind == "ask" and text.is_complete for text in recording.texts)
    recording.prompts.clear()
    assert judge(recording).num_unjudged == asked > 0
    assert judge(recording, {"ask": "Where is the red cube?"}).num_unjudged == 0
    assert judge(recording, {"ask": "Why is the red cube?"}).num_unjudged == asked, "no answer known"
