"""B63 and B64 at the level of one text; the engine's part is in test/field."""

import random

import pytest

from oxygen_ros.text.byte_tokenizer import END_ID, ByteTokenizer
from oxygen_ros.text.cleaner import clean
from oxygen_ros.text.detokenizer import IncrementalDetokenizer

ALPHABETS = {
    "latin": "abc ÄÖß.,é",
    "korean": "안녕하세요 로봇",
    "chinese": "你好，机器人。马上来！",
    "emoji": ["👍🏽", "👩‍🚀", "🇩🇪", "🙂", "❤️", "a", " "],
}


class PieceTokenizer:
    """A vocabulary of byte strings, cut anywhere in a text: pieces may split characters."""

    def __init__(self, pieces):
        self.pieces = pieces
        self.vocab_size = len(pieces)

    def decode(self, token_ids):
        return b"".join(self.pieces[i] for i in token_ids).decode(errors="replace")

    def is_special(self, token_id):
        return False


class SpacedTokenizer:
    """Words that carry their space in front; the first of any decoded run loses it, as in SentencePiece.

    Bytes stand for themselves, and one stray byte spoils a whole run of them, as in byte-fallback decoders.
    """

    def __init__(self, pieces):
        self.pieces = pieces
        self.vocab_size = len(pieces)

    def decode(self, token_ids):
        text, run = "", b""
        for piece in [*(self.pieces[i] for i in token_ids), ""]:
            if isinstance(piece, bytes):
                run += piece
                continue
            if run:
                try:
                    text += run.decode()
                except UnicodeDecodeError:
                    text += "\ufffd" * len(run)
                run = b""
            text += piece
        return text.removeprefix(" ")


def stream(tokenizer, token_ids):
    detokenizer = IncrementalDetokenizer(tokenizer)
    return [detokenizer.add(token_id) for token_id in token_ids], detokenizer.flush()


def random_pieces(text, rng):
    data = text.encode()
    cuts = sorted(rng.sample(range(1, len(data)), k=min(len(data) - 1, len(data) // 2)))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


@pytest.mark.parametrize("seed", range(200))
def test_pieces_join_to_the_text_and_never_split_a_character(seed):
    rng = random.Random(seed)
    text = "".join(rng.choice(ALPHABETS[rng.choice(list(ALPHABETS))]) for _ in range(rng.randint(2, 40)))
    pieces = random_pieces(text, rng)
    shown, rest = stream(PieceTokenizer(pieces), range(len(pieces)))
    assert "".join(shown) + rest == text
    assert all("\ufffd" not in piece for piece in shown)
    assert rest == ""


@pytest.mark.parametrize("seed", range(100))
def test_spaces_between_words_survive_a_tokenizer_that_strips_the_first(seed):
    rng = random.Random(seed)
    emoji = [bytes([byte]) for byte in "🙂中".encode()]
    pieces = [" Move", " to", "the", " ", "  ", ",", *emoji]
    token_ids = []
    while len(token_ids) < 20:
        token_ids += rng.choice(([rng.randrange(6)], list(range(6, 10)), list(range(10, 13))))
    tokenizer = SpacedTokenizer(pieces)
    shown, rest = stream(tokenizer, token_ids)
    assert "".join(shown) + rest == tokenizer.decode(token_ids)
    assert "\ufffd" not in "".join(shown) + rest


def test_character_is_shown_with_its_last_byte_and_not_before():
    tokenizer = ByteTokenizer()
    shown, rest = stream(tokenizer, tokenizer.encode("a🙂b"))
    assert shown == ["a", "", "", "", "🙂", "b"]
    assert rest == ""


def test_cut_character_at_the_end_is_flushed_as_what_the_cleaner_removes():
    tokenizer = ByteTokenizer()
    shown, rest = stream(tokenizer, tokenizer.encode("a🙂")[:-1])
    assert "".join(shown) == "a"
    assert clean(rest) == ""


def test_stray_byte_does_not_repeat_or_take_back_what_was_shown():
    pieces = [*(bytes([byte]) for byte in "中".encode()), b"\xe4", " x"]
    shown, rest = stream(SpacedTokenizer(pieces), range(len(pieces)))
    assert clean("".join(shown) + rest) == "中 x"


@pytest.mark.parametrize("seed", range(50))
def test_random_bytes_never_fail_and_give_no_replacement_after_cleaning(seed):
    rng = random.Random(seed)
    tokenizer = ByteTokenizer()
    token_ids = [3 + rng.randrange(256) for _ in range(60)]
    shown, rest = stream(tokenizer, token_ids)
    assert clean("".join(shown) + rest) == clean(tokenizer.decode(token_ids))


def test_byte_tokenizer_returns_every_text_and_names_its_special_ids():
    tokenizer = ByteTokenizer()
    text = "Grüße 你好 🙂\n"
    token_ids = tokenizer.encode(text)
    assert tokenizer.decode([2, *token_ids, END_ID, 319]) == text
    assert [tokenizer.is_special(i) for i in (0, 1, 2, 3, 258, 259, 319)] == [True] * 3 + [False] * 2 + [
        True
    ] * 2
    with pytest.raises(ValueError, match="259"):
        ByteTokenizer(258)
