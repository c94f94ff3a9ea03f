"""The tiny model's vocabulary, under the names that training uses."""

from oxygen_ros.models.word_tokenizer import (
    BOS_ID,
    EOS_ID,
    FIRST_NUMBER_ID,
    NUM_STATE_BINS,
    PAD_ID,
    build_tokenizer,
    pieces,
    write_tokenizer,
)

__all__ = [
    "BOS_ID",
    "EOS_ID",
    "FIRST_NUMBER_ID",
    "NUM_STATE_BINS",
    "PAD_ID",
    "build_tokenizer",
    "pieces",
    "write_tokenizer",
]
