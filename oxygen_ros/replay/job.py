"""What one replay is: one bag, one output folder, plain values. Pure and picklable: a process can do it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

CLOCKS = ("deterministic", "realtime")
TIMES = ("log", "header")


@dataclass(frozen=True)
class Job:
    """One bag to be replayed.

    Attributes:
        bag: path of the bag.
        out: folder of the report; made if it is not there.
        preset, device, params_file, checkpoint: as for the node; empty: what the bag says.
        settings: further parameters by name.
        clock: "deterministic" simulates time, "realtime" measures this machine.
        costs: "auto", "config" (runner.fake.*), "recorded", or a costs.json of an earlier run.
        time: which time orders the messages, "log" or "header".
        start_s, duration_s: part of the bag; 0 duration: to its end.
        namespace: of the nodes whose topics are meant; empty: found by their names.
        commands: topic of the recorded commands; empty: found.
        cameras: put the used pictures into run.mcap too.
        pictures: draw pictures.
        baseline: folder of an earlier report; empty: none.
        fail_on: rules whose breaking fails the run.
        tolerances: by measure, how much worse than the baseline it may be.
    """

    bag: str
    out: str
    preset: str = ""
    device: str = ""
    params_file: str = ""
    checkpoint: str = ""
    settings: tuple[tuple[str, Any], ...] = ()
    clock: str = "deterministic"
    costs: str = "auto"
    time: str = "log"
    start_s: float = 0.0
    duration_s: float = 0.0
    namespace: str = ""
    commands: str = ""
    cameras: bool = False
    pictures: bool = True
    baseline: str = ""
    fail_on: tuple[str, ...] = ()
    tolerances: tuple[tuple[str, float], ...] = ()
