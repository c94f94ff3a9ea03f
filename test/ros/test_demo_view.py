"""What the demonstration shows: a panel of one height, lines elsewhere, and whether a run was good enough."""

import io
import re

import pytest

pytest.importorskip("rclpy", reason="a part of the demonstration, which needs ROS")

from oxygen_ros.ros.demo_terminal import DemoTerminal, is_live
from oxygen_ros.ros.demo_view import EXACT, FALSE, DemoView, Rate, S, ShownText


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def view():
    return DemoView("the weights in somewhere", 30.0, 266_666_667, 60.0)


def run_for(view, seconds, *, cycles_hz, actions_hz):
    """A run that begins at 10 s, and the time of its end."""
    view.begin_ns = 10 * S
    for rate, hz in ((view.cycles, cycles_hz), (view.actions, actions_hz)):
        for number in range(round(seconds * hz) + 1):
            rate.note(view.begin_ns + round(number * S / hz))
    return view.begin_ns + seconds * S


def test_rate_counts_the_last_seconds_only():
    rate = Rate(window_ns=2 * S)
    assert rate.hz(S) == 0
    for number in range(101):
        rate.note(S + number * S // 10)
    assert rate.hz(11 * S) == pytest.approx(10, rel=0.05)
    assert rate.hz(14 * S) == 0


def test_panel_keeps_its_height_whatever_is_written(view):
    heights = {len(view.panel(0))}
    for number in range(20):
        view.growing[f"next-{number}"] = ShownText("next", text="Next I")
        heights.add(len(view.panel(S)))
        view.end_text(ShownText("ask", "Where?", "Here.", EXACT), number)
        heights.add(len(view.panel(S)))
    assert len(heights) == 1
    assert any(line.strip() == "✓ ask     [Where?] Here." for line in view.panel(S))


def test_text_that_never_began_is_counted_and_not_shown(view):
    view.end_text(ShownText("memory", note="replaced by memory-4"), 0)
    assert (view.num_unwritten, list(view.ended), list(view.events)) == (1, [], [])


def test_full_speed_is_no_trouble_and_a_slow_cycle_is_named(view):
    end_ns = run_for(view, 8, cycles_hz=3.75, actions_hz=30)
    assert view.trouble(end_ns) == ""
    view.cycles, view.actions = Rate(), Rate()
    slow_ns = run_for(view, 8, cycles_hz=2, actions_hz=30)
    assert "2.0 of 3.7 cycles and 30 of 30 actions" in view.trouble(slow_ns)
    assert "busy" in view.panel(slow_ns)[-1]
    assert view.trouble(view.begin_ns + S) == "", "it has only begun"


def test_terminal_gets_a_panel_drawn_over_itself_with_coloured_marks(view, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("NO_COLOR", raising=False)
    view.end_text(ShownText("memory", text="I hold it. " * 20, mark=FALSE), 0)
    out = Terminal()
    terminal = DemoTerminal(view, is_plain=False, out=out)
    assert terminal.is_live
    terminal.draw(S)
    first = out.getvalue()
    terminal.draw(2 * S)
    assert out.getvalue()[len(first) :].startswith(f"\x1b[{first.count(chr(10))}A")
    assert f"\x1b[31m{FALSE}\x1b[0m" in first
    lines = [line.split("\x1b[2K")[1] for line in first.split("\n")[:-1]]
    assert max(len(re.sub(r"\x1b\[\d+m", "", line)) for line in lines) == 59


@pytest.mark.parametrize(
    ("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb"), ("TERM", "")], ids=lambda v: v or "none"
)
def test_no_colour_or_a_dumb_terminal_gets_plain_lines(view, monkeypatch, variable, value):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert is_live(Terminal(), is_plain=False)
    assert not is_live(Terminal(), is_plain=True)
    assert not is_live(io.StringIO(), is_plain=False)
    monkeypatch.setenv(variable, value)
    out = Terminal()
    terminal = DemoTerminal(view, is_plain=False, out=out)
    end_ns = run_for(view, 8, cycles_hz=2, actions_hz=12)
    view.end_text(ShownText("next", text="Next I rest.", mark=EXACT), end_ns)
    terminal.draw(end_ns)
    terminal.draw(end_ns)
    event, figures = out.getvalue().splitlines()
    assert event.split() == ["8.0", "s", "✓", "next", "Next", "I", "rest."]
    assert "actions/s" in figures
    assert "the CPU is busy" in figures
    assert "\x1b" not in out.getvalue()


@pytest.mark.parametrize(
    ("successes", "texts", "claims", "false_claims", "faults"),
    [
        (1, 9, 0, 0, 0),
        (1, 90, 40, 2, 0),
        (1, 90, 39, 2, 1),
        (0, 90, 40, 0, 1),
        (0, 1, 1, 1, 2),
        (1, 0, 0, 0, 1),
    ],
)
def test_run_is_good_with_one_success_and_one_false_claim_in_twenty(
    view, successes, texts, claims, false_claims, faults
):
    view.num_successes, view.tally.texts = successes, texts
    view.tally.claims, view.tally.false_claims = claims, false_claims
    assert len(view.shortcomings()) == faults
