import random
import sys
import unicodedata

import pytest

from oxygen_ros.text.cleaner import clean


def test_line_breaks_and_tabs_become_spaces():
    assert clean("a\tb\nc\r\nd\u2028e") == "a b c  d e"


def test_what_shows_nothing_or_turns_the_text_around_is_left_out():
    assert clean("a\0b\x1b[31mc\x7f\ufffdd\ud800e\ufeff\u202ef\uffff\U0001fffe\x85") == "ab[31mcdef "


def test_scripts_and_emoji_with_joiners_stay_whole():
    text = "Grüße 你好 한국어 العربية नमस्ते 👩‍🚀👍🏽🇩🇪 می‌روم e\u0301 ½ €"
    assert clean(text) == text


@pytest.mark.parametrize("seed", range(20))
def test_cleaning_does_not_depend_on_cuts_and_leaves_valid_text(seed):
    rng = random.Random(seed)
    text = "".join(
        chr(rng.choice((rng.randrange(0x250), rng.randrange(sys.maxunicode + 1)))) for _ in range(80)
    )
    cut = rng.randrange(len(text))
    cleaned = clean(text)
    assert cleaned == clean(text[:cut]) + clean(text[cut:]) == clean(cleaned)
    cleaned.encode()
    assert not {unicodedata.category(char) for char in cleaned} & {"Cc", "Cs"}
    assert "\ufffd" not in cleaned
