"""The tiny tokenizer: whole words for all that the grammar can say, bytes for everything else."""

import pytest
import torch
from test_grammar import SITUATIONS

from oxygen_ros.models.tokenizers import open_tokenizer
from oxygen_ros.sim import grammar
from oxygen_ros.sim.truth import ALL_TASKS
from oxygen_ros.training.dims import Dims
from oxygen_ros.training.pi05 import TinyPi05
from oxygen_ros.training.vocabulary import (
    BOS_ID,
    EOS_ID,
    FIRST_NUMBER_ID,
    PAD_ID,
    build_tokenizer,
    pieces,
    write_tokenizer,
)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    write_tokenizer(path)
    return open_tokenizer(path)


def all_texts():
    texts = {grammar.MEMORY_PROMPT, grammar.NEXT_PROMPT, grammar.UNKNOWN_ANSWER, *grammar.questions()}
    for truth in SITUATIONS:
        texts |= {grammar.answer(question, truth) for question in grammar.questions()}
        for task in ALL_TASKS:
            texts |= {grammar.memory_sentence(truth, task), grammar.next_sentence(truth, task)}
            texts.add(f"Task: {task.instruction}, State: 0 128 255 -1;\nAction: ")
    return sorted(texts)


def test_control_tokens_have_openpi_ids(tokenizer):
    assert (PAD_ID, EOS_ID, BOS_ID) == (0, 1, 2)
    assert pieces()[:3] == ["<pad>", "<eos>", "<bos>"]
    assert tokenizer.begin_id == BOS_ID
    assert tokenizer.end_ids == {EOS_ID}


def test_encode_of_every_text_of_the_grammar_needs_no_bytes_and_comes_back(tokenizer):
    for text in all_texts():
        ids = tokenizer.encode(text)
        assert all(token >= FIRST_NUMBER_ID for token in ids), text
        assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("text", ["zebra", "déjà vu", "  two  spaces", "机器人", "1234567"])
def test_encode_of_strange_text_comes_back_by_bytes(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_state_numbers_are_one_token_each(tokenizer):
    assert [len(tokenizer.encode(f" {number}")) for number in (-1, 0, 9, 10, 99, 100, 255)] == [1] * 7


def test_written_file_is_the_same_every_time(tmp_path):
    for name in ("a.json", "b.json"):
        write_tokenizer(tmp_path / name)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_build_tokenizer_knows_no_id_twice():
    assert build_tokenizer().get_vocab_size() == len(pieces()) == len(set(pieces()))


def test_number_embeddings_of_near_values_are_near():
    embed = TinyPi05(Dims(vocab_size=len(pieces()))).backbone.embed_tokens.weight.detach()
    numbers = embed[FIRST_NUMBER_ID : FIRST_NUMBER_ID + 256]
    near = torch.cosine_similarity(numbers[100], numbers[101], dim=0)
    far = torch.cosine_similarity(numbers[100], numbers[200], dim=0)
    assert near > far + 0.2
