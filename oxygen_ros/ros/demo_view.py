"""What the demonstration of the tabletop shows: figures, texts as they grow, the panel. No ROS."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from oxygen_ros.sim.scorer import TextTally

S = 1_000_000_000
SHOWN_ENDED, SHOWN_GROWING = 5, 4
BAR_WIDTH = 30
FULL_SPEED = 0.9
MAX_FALSE_CLAIMS = 0.05
SETTLED_NS = 5 * S
GROWING, EXACT, INEXACT, FALSE, UNJUDGED = "…", "✓", "≈", "✗", " "
LEGEND = f"{EXACT} word for word true when it was born   {INEXACT} not exact   {FALSE} claims what was not so"


class Rate:
    """Events per second over the last few seconds."""

    def __init__(self, window_ns: int = 4 * S) -> None:
        self._window_ns = window_ns
        self._first_ns = 0
        self._at_ns: deque[int] = deque()

    def note(self, now_ns: int) -> None:
        """One event."""
        self._first_ns = self._first_ns or now_ns
        self._at_ns.append(now_ns)
        self._forget(now_ns)

    def hz(self, now_ns: int) -> float:
        """Events per second; 0 before the second one."""
        self._forget(now_ns)
        span_ns = min(self._window_ns, now_ns - self._first_ns)
        return len(self._at_ns) * S / span_ns if len(self._at_ns) > 1 and span_ns > 0 else 0.0

    def _forget(self, now_ns: int) -> None:
        while self._at_ns and self._at_ns[0] <= now_ns - self._window_ns:
            self._at_ns.popleft()


@dataclass
class ShownText:
    """One text as far as it has grown."""

    kind: str
    question: str = ""
    text: str = ""
    mark: str = GROWING
    note: str = ""

    def line(self) -> str:
        """Mark, kind, words."""
        asked = f"[{self.question}] " if self.question else ""
        note = f" ({self.note})" if self.note else ""
        return f"{self.mark} {self.kind:<7} {asked}{self.text}{note}"


@dataclass
class DemoView:
    """Everything that is shown. One thread at a time.

    Attributes:
        driver: what moves the robot.
        action_hz, period_ns: what is wanted.
        limit_s: length of the run; None without end.
        begin_ns: steady time of the first action; 0 before.
    """

    driver: str
    action_hz: float
    period_ns: int
    limit_s: float | None
    begin_ns: int = 0
    task: str = ""
    episode: int = 0
    episode_ticks: int = 0
    state: str = ""
    is_ending: bool = False
    num_ended: int = 0
    num_successes: int = 0
    latency_ms: float = 0.0
    slack_ms: float = 0.0
    decode_steps: int = 0
    rows: int = 0
    waiting: int = 0
    num_late: int = 0
    ticks_missed: int = 0
    note: str = ""
    tally: TextTally = field(default_factory=TextTally)
    actions: Rate = field(default_factory=Rate)
    cycles: Rate = field(default_factory=Rate)
    growing: dict[str, ShownText] = field(default_factory=dict)
    ended: deque[ShownText] = field(default_factory=lambda: deque(maxlen=SHOWN_ENDED))
    num_unwritten: int = 0
    events: deque[str] = field(default_factory=lambda: deque(maxlen=1000))

    def seconds(self, now_ns: int) -> float:
        """Since the first action."""
        return (now_ns - self.begin_ns) / S if self.begin_ns else 0.0

    def end_text(self, text: ShownText, now_ns: int) -> None:
        """A text has ended. One without a word is counted, not shown; nor are those that the end cuts off."""
        if self.is_ending:
            return
        if not text.text and not text.question:
            self.num_unwritten += 1
            return
        self.ended.append(text)
        self.tell(text.line(), now_ns)

    def tell(self, event: str, now_ns: int) -> None:
        """One line for those who read lines."""
        self.events.append(f"{self.seconds(now_ns):6.1f} s  {event}")

    @property
    def cycles_wanted_hz(self) -> float:
        """Cycles per second that keep the robot moving."""
        return S / self.period_ns

    def trouble(self, now_ns: int) -> str:
        """What keeps the machine from full speed; empty when nothing does."""
        if not self.begin_ns or now_ns - self.begin_ns < SETTLED_NS:
            return ""
        cycles, actions = self.cycles.hz(now_ns), self.actions.hz(now_ns)
        if cycles >= FULL_SPEED * self.cycles_wanted_hz and actions >= FULL_SPEED * self.action_hz:
            return ""
        return (
            f"the CPU is busy: {cycles:.1f} of {self.cycles_wanted_hz:.1f} cycles and {actions:.0f} of "
            f"{self.action_hz:.0f} actions a second; the robot holds in between"
        )

    def figures(self, now_ns: int) -> str:
        """One line of what is measured."""
        return (
            f"{self.actions.hz(now_ns):.1f} of {self.action_hz:.0f} actions/s, action after "
            f"{self.latency_ms:.0f} ms, {self.decode_steps} decode steps, {self.rows} rows, slack "
            f"{self.slack_ms:.0f} of {self.period_ns / 1e6:.0f} ms, late cycles {self.num_late}, "
            f"missed ticks {self.ticks_missed}"
        )

    def shortcomings(self) -> list[str]:
        """Why the run was not good enough, one sentence each; empty when it was."""
        rate = self.tally.false_claims / self.tally.claims if self.tally.claims else 0.0
        found = [] if self.num_successes else ["no episode was done"]
        if not self.tally.texts:
            found.append("no text came to its end and could be judged")
        if rate > MAX_FALSE_CLAIMS:
            found.append(f"{100 * rate:.0f} % of its claims to hold or to have placed something are false")
        return found

    def truth(self) -> str:
        """How true the texts were so far."""
        tally = self.tally
        return (
            f"{tally.exact} of {tally.texts} texts exact, "
            f"{tally.false_claims} of {tally.claims} claims of holding or placing false"
        )

    def panel(self, now_ns: int) -> list[str]:
        """The panel, always of the same height."""
        limit = "until Ctrl-C" if self.limit_s is None else f"of {self.limit_s:.0f} s"
        done = f"{self.num_successes} of {self.num_ended} episodes done"
        state = self.state if self.begin_ns else "waits for the brain"
        episode_s = self.episode_ticks / self.action_hz
        grown = [text.line() for text in self.growing.values() if text.text]
        shown = [*(text.line() for text in self.ended), *grown[:SHOWN_GROWING]]
        return [
            f"oxygen_ros tabletop   {self.seconds(now_ns):.0f} s {limit}   driven by {self.driver}",
            "",
            f"  task     {self.task or '-'}   (episode {self.episode}, {episode_s:.1f} s: {state})",
            f"           {done}",
            f"  control  {self.actions.hz(now_ns):.1f} of {self.action_hz:.0f} actions/s   "
            f"{self.cycles.hz(now_ns):.1f} of {self.cycles_wanted_hz:.1f} cycles/s   "
            f"action after {self.latency_ms:.0f} ms   late cycles {self.num_late}   "
            f"missed ticks {self.ticks_missed}",
            f"  slack    {self._bar()} {self.slack_ms:.0f} of {self.period_ns / 1e6:.0f} ms left   "
            f"{self.decode_steps} decode steps   {self.rows} rows   {self.waiting} waiting",
            f"  truth    {self.truth()}",
            "",
            *(f"  {line}" for line in shown),
            *[""] * (SHOWN_ENDED + SHOWN_GROWING - len(shown)),
            f"  {self.trouble(now_ns) or self.note or LEGEND}",
        ]

    def _bar(self) -> str:
        share = min(1.0, max(0.0, self.slack_ms * 1e6 / self.period_ns))
        used = BAR_WIDTH - round(BAR_WIDTH * share)
        return f"[{'#' * used}{'.' * (BAR_WIDTH - used)}]"
