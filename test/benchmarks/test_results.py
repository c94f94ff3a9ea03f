"""Result files, gates, tables and the command itself, on a quick run. Structure and equality, never times."""

import json

import pytest

from benchmarks.__main__ import main
from benchmarks.comparison import moved
from benchmarks.gates import GATES, Gate, judge
from benchmarks.results import read_results, to_plain, write_results
from benchmarks.suite import PARTS
from benchmarks.table import gate_table, report

QUICK = ("workloads", "ablations", "decode", "memory", "operators", "overhead", "roofline", "soak")


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quick")
    arguments = ["--quick", "--no-plots", "--output", str(folder), "--parts", ",".join(QUICK)]
    assert main(arguments) == 0
    return read_results(folder / "tiny-bfloat16.json")


def test_a_quick_run_gives_equal_outputs_and_every_part(quick):
    assert all(check["holds"] for check in quick["equality"].values())
    assert set(QUICK) <= quick.keys()
    assert quick["model"]["parameters"]["total"] == pytest.approx(0.336e6, rel=0.01)
    assert quick["machine"]["num_threads"] == 1


def test_a_quick_run_holds_the_gates_that_count(quick):
    counted = [gate for gate in GATES if "in decode steps" in gate.name or "transfers" in gate.name]
    assert len(counted) == 3
    assert all(verdict.holds for verdict in judge([quick], counted))


def test_the_report_puts_ratios_first_and_names_what_is_counted(quick):
    text = report(quick)
    header = next(line for line in text.splitlines() if "actions/s" in line)
    assert header.split()[:3] == ["against", "cycle", "(processor)"]
    assert "tokens/s" in header
    assert "0 KV-sized allocations" in text


def test_a_gate_takes_the_better_of_two_runs():
    gate = Gate("speed", ">=", 2.0, lambda results: results["speed"])
    (verdict,) = judge([{"speed": 1.5}, {"speed": 2.5}], [gate])
    assert (verdict.value, verdict.holds) == (2.5, True)
    (verdict,) = judge([{"speed": 1.5}, {"speed": 1.9}], [gate])
    assert (verdict.value, verdict.holds) == (1.9, False)


def test_a_gate_without_a_measurement_is_missed():
    verdicts = judge([{}])
    assert len(verdicts) == len(GATES)
    assert not any(verdict.holds for verdict in verdicts)
    assert "MISSED" in gate_table(verdicts)


def test_results_are_read_back_as_written_and_other_schemas_refused(tmp_path, quick):
    write_results(tmp_path / "a.json", quick)
    assert read_results(tmp_path / "a.json") == to_plain(quick)
    (tmp_path / "b.json").write_text(json.dumps({**quick, "schema": 99}))
    with pytest.raises(ValueError, match="schema 99"):
        read_results(tmp_path / "b.json")


def test_compare_lists_what_moved_and_nothing_else(quick):
    changed = json.loads(json.dumps(quick))
    changed["workloads"]["W1"]["executors"]["oxygen"]["cycle"]["p50_ms"] *= 2
    (line,) = moved(quick, changed)
    assert "executors.oxygen.cycle.p50_ms" in line
    assert "+100%" in line
    assert moved(quick, quick) == []


def test_unknown_parts_are_refused_by_name():
    with pytest.raises(SystemExit, match="nonsense"):
        main(["--quick", "--parts", "nonsense"])


def test_every_part_has_a_title_and_a_method():
    from benchmarks.suite import Suite
    from benchmarks.table import TITLES

    assert set(TITLES) == set(PARTS)
    assert all(hasattr(Suite, f"_{part}") for part in PARTS)
