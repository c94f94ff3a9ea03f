"""A small tokenizer for tiny models: whole words of the closed grammar, state bins, and bytes for the rest.

Written as ``tokenizer.json`` in the form that the large models' files have (a mark for each space, byte
fallback), so the product loads it with its ordinary code.
"""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers

PAD_ID, EOS_ID, BOS_ID, UNKNOWN_ID = 0, 1, 2, 3
_SPACE = "▁"
NUM_STATE_BINS = 256
_STARTS = "Task State Action Memory Next So Where What Is I The Yes No"
_WORDS = (
    "State Action I The Task Where What Is the a put red green blue cube in on bowl plate so far have "
    "done nothing hold it now and is not yet picked up but need task move my open hand to pick close "
    "take from table again lift bring over lower let go wrong back rest because about cm ahead middle "
    "left right do you know that where what"
)
_MARKS = (".", ",", ":", ";", "?", "\n", _SPACE)
FIRST_NUMBER_ID = UNKNOWN_ID + 1 + 256


def pieces() -> list[str]:
    """Every piece, by id."""
    special = ["<pad>", "<eos>", "<bos>", "<unk>"]
    bytes_ = [f"<0x{value:02X}>" for value in range(256)]
    numbers = [f"{_SPACE}{value}" for value in range(NUM_STATE_BINS)] + [f"{_SPACE}-1"]
    words = [f"{_SPACE}{word}" for word in dict.fromkeys(_WORDS.split())]
    return special + bytes_ + numbers + words + _STARTS.split() + list(_MARKS)


def build_tokenizer() -> Tokenizer:
    """The tokenizer, made from nothing but this file."""
    names = pieces()
    is_plain = [index > UNKNOWN_ID + 256 for index in range(len(names))]
    scores = [(name, -1.0 if plain else -100.0) for name, plain in zip(names, is_plain, strict=True)]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=UNKNOWN_ID, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", _SPACE)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.add_special_tokens(["<pad>", "<eos>", "<bos>", "<unk>"])
    return tokenizer


def write_tokenizer(path: Path) -> None:
    """Write ``tokenizer.json``, the same bytes every time."""
    content = json.loads(build_tokenizer().to_str())
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
