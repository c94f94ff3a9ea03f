import random
from itertools import pairwise

import pytest

from oxygen_ros.text.sentences import SentenceSplitter

CASES = {
    "Dr. Li has 3.5 cups. Shall I go? 好的。马上来！": [
        "Dr. Li has 3.5 cups.",
        "Shall I go?",
        "好的。",
        "马上来！",
    ],
    "One. Two! Three? Four": ["One.", "Two!", "Three?", "Four"],
    "Well... I see. Wait... yes.": ["Well...", "I see.", "Wait... yes."],
    "Hm… gut. Ja… Nein.": ["Hm… gut.", "Ja…", "Nein."],
    'She said "Go!" and left. "Stop." Done.': ['She said "Go!" and left.', '"Stop."', "Done."],
    "他说：“好的。”然后走了。": ["他说：“好的。”", "然后走了。"],
    "What?! No. 5 is here. No. I go.": ["What?!", "No. 5 is here.", "No.", "I go."],
    "See e.g. the cup, i.e. the U.S. one. J. Smith came. So did I. Bye.": [
        "See e.g. the cup, i.e. the U.S. one.",
        "J. Smith came.",
        "So did I.",
        "Bye.",
    ],
    "1. Take the cup. 2. Pour. I have 3. Fine.": ["1. Take the cup.", "2. Pour.", "I have 3.", "Fine."],
    "Visit example.org or v1.2.3 now. Done.": ["Visit example.org or v1.2.3 now.", "Done."],
    "... Yes. OK!好的": ["... Yes.", "OK!", "好的"],
    "It is etc. and so on. I ate etc. The end.": ["It is etc. and so on.", "I ate etc.", "The end."],
    "नमस्ते। क्या हाल है؟ fine": ["नमस्ते।", "क्या हाल है؟", "fine"],
    "": [],
    "   ": [],
    "no end": ["no end"],
}


@pytest.mark.parametrize("text", CASES)
def test_sentences_do_not_depend_on_where_the_text_is_cut(text):
    rng = random.Random(text)
    for cuts in ([], sorted(rng.choices(range(len(text) + 1), k=3)), range(len(text))):
        splitter = SentenceSplitter()
        pieces = [text[a:b] for a, b in pairwise([0, *cuts, len(text)])]
        sentences = [sentence for piece in pieces for sentence in splitter.add(piece)]
        assert sentences + splitter.flush() == CASES[text]


def test_sentence_is_given_out_as_soon_as_the_next_one_begins():
    splitter = SentenceSplitter()
    assert splitter.add("I see a cup. ") == []  # "a.m. and" would go on: what follows must be seen
    assert splitter.add("I") == ["I see a cup."]
    assert splitter.add(" go! 好") == ["I go!"]
    assert splitter.flush() == ["好"]
    assert splitter.flush() == []


@pytest.mark.parametrize("seed", range(50))
def test_sentences_joined_are_the_text_but_for_white_space(seed):
    rng = random.Random(seed)
    alphabet = [
        "a",
        "B",
        "7",
        ". ",
        "! ",
        "?",
        "...",
        "。",
        '"',
        ")",
        " ",
        "Dr. ",
        "e.g. ",
        "好",
        "🙂",
        "…",
        "\n",
    ]
    text = "".join(rng.choices(alphabet, k=60))
    splitter = SentenceSplitter()
    sentences = [sentence for char in text for sentence in splitter.add(char)] + splitter.flush()
    assert all(sentence == sentence.strip() != "" for sentence in sentences)
    assert "".join("".join(sentences).split()) == "".join(text.split())


def test_long_text_without_an_end_is_looked_at_once():
    """Each piece read anew from the beginning, this would take a minute."""
    splitter, word = SentenceSplitter(), "3.5 and "
    assert [closed for _ in range(10_000) for closed in splitter.add(word)] == []
    assert splitter.add("end. A") == [word * 10_000 + "end."]
    assert splitter.flush() == ["A"]
