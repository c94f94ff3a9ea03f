"""The closed grammar of the robot's sentences: written from what is so, and read back into claims.

The three text tasks are "memory" (what has been done), "next" (the sub-task) and "ask" (a question).
Every sentence is a pure function of truth and task, so a text is judged at the stamp it was born at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from oxygen_ros.sim.expert import Phase, decide
from oxygen_ros.sim.truth import COLOURS, PREPOSITIONS, TARGETS, Task, Truth, Vector

MEMORY_PROMPT = "Memory:"
NEXT_PROMPT = "Next:"
UNKNOWN_ANSWER = "I do not know that."
GRID_CM = 5
"""Places are told on a grid of this many centimetres."""


def place_of(target: int) -> str:
    """The container as a place, "in the bowl" or "on the plate"."""
    return f"{PREPOSITIONS[TARGETS[target]]} the {TARGETS[target]}"


def memory_sentence(truth: Truth, task: Task) -> str:
    """What has been done so far."""
    asked, place = f"the {COLOURS[task.colour]} cube", place_of(task.target)
    if truth.held == task.colour:
        return f"So far I have picked up {asked}. I hold it now and it is not yet {place}."
    if truth.held is not None:
        return f"So far I have picked up the {COLOURS[truth.held]} cube. I hold it now but I need {asked}."
    if truth.is_done(task):
        return f"So far I have put {asked} {place}. I hold nothing and the task is done."
    return nothing_done(asked, place)


def nothing_done(asked: str, place: str) -> str:
    """The memory of a task that has not begun; ``asked`` as "the red cube", ``place`` as "in the bowl"."""
    return f"So far I have done nothing. I hold nothing and {asked} is not yet {place}."


def next_sentence(truth: Truth, task: Task) -> str:
    """The sub-task at hand."""
    asked, place = f"the {COLOURS[task.colour]} cube", place_of(task.target)
    phase = decide(truth, task).phase
    if phase is Phase.PUT_BACK:
        return "Next I put the wrong cube back on the table and let it go."
    return {
        Phase.REACH: f"Next I move my open hand to {asked} to pick it up.",
        Phase.GRASP: f"Next I close my hand and take {asked} from the table.",
        Phase.REOPEN: f"Next I open my hand again and move it to {asked}.",
        Phase.LIFT: f"Next I lift {asked} up and bring it to the {TARGETS[task.target]}.",
        Phase.CARRY: f"Next I bring {asked} over to the {TARGETS[task.target]}.",
        Phase.LOWER: f"Next I lower {asked} and let it go {place}.",
        Phase.RELEASE: f"Next I open my hand and let {asked} go {place}.",
        Phase.DONE: "Next I move my hand up and rest because the task is done.",
    }[phase]


def place_words(planar: Vector) -> str:
    """A place on the table in words, on the grid."""
    ahead = round(float(planar[0]) * 100 / GRID_CM) * GRID_CM
    left = round(float(planar[1]) * 100 / GRID_CM) * GRID_CM
    if left == 0:
        return f"{ahead} cm ahead and in the middle"
    return f"{ahead} cm ahead and {abs(left)} cm to the {'left' if left > 0 else 'right'}"


def questions() -> tuple[str, ...]:
    """Every question that the grammar knows."""
    where = [f"Where is the {colour} cube?" for colour in COLOURS]
    where += [f"Where is the {target}?" for target in TARGETS]
    inside = [f"Is the {colour} cube {place_of(t)}?" for colour in COLOURS for t in range(len(TARGETS))]
    return (*where, "What do you hold?", *inside)


def answer(question: str, truth: Truth) -> str:
    """The true answer to ``question``; UNKNOWN_ANSWER for what the grammar does not know."""
    asked = " ".join(question.strip().split())
    if asked == "What do you hold?":
        return "I hold nothing." if truth.held is None else f"I hold the {COLOURS[truth.held]} cube."
    for index, name in enumerate(TARGETS):
        if asked == f"Where is the {name}?":
            return f"The {name} is about {place_words(truth.containers[index])}."
    for cube, colour in enumerate(COLOURS):
        if asked == f"Where is the {colour} cube?":
            return _where_cube(cube, truth)
        for target in range(len(TARGETS)):
            if asked == f"Is the {colour} cube {place_of(target)}?":
                head = "Yes, the" if truth.container_of(cube) == target else "No, the"
                negation = "" if head.startswith("Yes") else "not "
                return f"{head} {colour} cube is {negation}{place_of(target)}."
    return UNKNOWN_ANSWER


def _where_cube(cube: int, truth: Truth) -> str:
    name = f"The {COLOURS[cube]} cube"
    if truth.held == cube:
        return f"{name} is in my hand."
    inside = truth.container_of(cube)
    if inside is not None:
        return f"{name} is {place_of(inside)}."
    return f"{name} is on the table, about {place_words(truth.cubes[cube])}."


@dataclass(frozen=True)
class Claims:
    """What a text says of the world.

    Attributes:
        held: colours of cubes said to be in the hand.
        placed: (colour, target) pairs said to be placed.
        denies_held: True when it says that the hand is empty.
        place_cm: (ahead, left) said of an object, in centimetres.
    """

    held: frozenset[int]
    placed: frozenset[tuple[int, int]]
    denies_held: bool
    place_cm: tuple[int, int] | None

    @property
    def is_claim(self) -> bool:
        """True when the text says that something is held or placed."""
        return bool(self.held or self.placed)

    def is_true(self, truth: Truth) -> bool:
        """True when everything that is said to be held or placed is so."""
        held_is_so = all(cube == truth.held for cube in self.held)
        return held_is_so and all(truth.container_of(cube) == target for cube, target in self.placed)


_COLOUR = "|".join(COLOURS)
_PLACE = r"(in the bowl|on the plate|in the plate|on the bowl)"
_HELD = (
    rf"picked up the ({_COLOUR}) cube\. I hold it now",
    rf"I hold the ({_COLOUR}) cube",
    rf"[Tt]he ({_COLOUR}) cube is in my hand",
)
_PLACED = (rf"I have put the ({_COLOUR}) cube {_PLACE}", rf"[Tt]he ({_COLOUR}) cube is {_PLACE}")
_AT = re.compile(r"about (\d+) cm ahead and (?:in the middle|(\d+) cm to the (left|right))")


def read_claims(text: str) -> Claims:
    """What ``text`` says. Words outside the grammar say nothing."""
    held = {COLOURS.index(m.group(1)) for pattern in _HELD for m in re.finditer(pattern, text)}
    placed = {
        (COLOURS.index(m.group(1)), next(i for i, target in enumerate(TARGETS) if target in m.group(2)))
        for pattern in _PLACED
        for m in re.finditer(pattern, text)
    }
    at = _AT.search(text)
    place = None
    if at is not None:
        side = int(at.group(2) or 0)
        place = (int(at.group(1)), side if at.group(3) == "left" else -side)
    return Claims(frozenset(held), frozenset(placed), "I hold nothing" in text, place)
