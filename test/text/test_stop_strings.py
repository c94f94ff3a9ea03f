import random
from itertools import pairwise

import pytest

from oxygen_ros.text.stop_strings import StopStringFilter


def shown(text, stops, cuts):
    held = StopStringFilter(stops)
    pieces = [held.add(text[a:b]) for a, b in pairwise([0, *cuts, len(text)])]
    return "".join(pieces) + ("" if held.is_stopped else held.flush()), held.is_stopped


def test_stop_string_across_a_seam_ends_the_text_before_it():
    held = StopStringFilter(("\nAction:",))
    assert held.add("go left.;\nAct") == "go left.;"
    assert held.add("ion: 3 4") == ""
    assert held.is_stopped
    assert held.add("more") == ""
    assert held.flush() == ""


def test_start_of_a_stop_string_that_never_comes_is_shown_after_all():
    held = StopStringFilter(("END",))
    assert held.add("the EN") == "the "
    assert held.add("GINE E") == "ENGINE "
    assert held.flush() == "E"
    assert not held.is_stopped


def test_without_stop_strings_nothing_is_held_back():
    held = StopStringFilter(("",))
    assert held.add("abc") == "abc"


@pytest.mark.parametrize("seed", range(100))
def test_what_is_shown_does_not_depend_on_cuts(seed):
    rng = random.Random(seed)
    text = "".join(rng.choices("ab c", k=30))
    stops = tuple("".join(rng.choices("abc", k=rng.randint(1, 4))) for _ in range(rng.randint(1, 3)))
    by_character = shown(text, stops, range(1, len(text)))
    assert shown(text, stops, ()) == by_character
    assert shown(text, stops, sorted(rng.choices(range(len(text)), k=4))) == by_character
    ends = [text.find(stop) + len(stop) for stop in stops if stop in text]
    assert by_character[1] == bool(ends)
    if ends:
        assert any(text[: min(ends)] == by_character[0] + stop for stop in stops)
    else:
        assert by_character[0] == text
