"""Tokenizers from local files: both kinds, ids of the real Gemma vocabulary, honest refusals."""

import json
from pathlib import Path

import pytest
from gemma_vocabulary import gemma_tokenizer_path

from oxygen_ros.errors import CheckpointError
from oxygen_ros.models.tokenizers import JsonTokenizer, SentencePieceTokenizer, is_gemma, open_tokenizer

LEROBOT = Path(__file__).parents[1] / "resources" / "lerobot"
TINY = LEROBOT / "pi05_libero_seed0" / "tiny_tokenizer"


@pytest.fixture(scope="module")
def gemma():
    return open_tokenizer(gemma_tokenizer_path())


@pytest.fixture(scope="module")
def sentencepiece_model(tmp_path_factory):
    from sentencepiece import SentencePieceTrainer

    folder = tmp_path_factory.mktemp("sentencepiece")
    corpus = folder / "corpus.txt"
    corpus.write_text(
        "pick up the red cup\nopen the top drawer of the cabinet\nfold the towel, State: 0 128\n" * 20
    )
    SentencePieceTrainer.train(
        input=str(corpus), model_prefix=str(folder / "tokenizer"), vocab_size=330, model_type="bpe",
        byte_fallback=True, add_dummy_prefix=False, pad_id=0, eos_id=1, bos_id=2, unk_id=3, pad_piece="<pad>",
        eos_piece="<eos>", bos_piece="<bos>", user_defined_symbols=["<loc0001>"], minloglevel=2,
        remove_extra_whitespaces=False, normalization_rule_name="identity",
    )  # fmt: skip
    return folder / "tokenizer.model"


@pytest.fixture(scope="module", params=["json", "sentencepiece"])
def either(request):
    return open_tokenizer(TINY if request.param == "json" else request.getfixturevalue("sentencepiece_model"))


def test_gemma_vocabulary_recorded_texts_ids_equal(gemma):
    recorded = json.loads((LEROBOT / "gemma_token_ids.json").read_text())
    for case in recorded["cases"]:
        assert [gemma.begin_id, *gemma.encode(case["text"])] == case["ids"], case["text"]
        assert gemma.decode(case["ids"]) == case["text"]


def test_gemma_vocabulary_real_file_recognised(gemma):
    assert gemma.file.known_as == "Gemma tokenizer.json"
    assert is_gemma(gemma)
    assert gemma.end_ids == {1}
    assert gemma.begin_id == 2
    assert gemma.vocab_size == 256000


def test_gemma_vocabulary_html_is_text_but_unused_is_special(gemma):
    assert gemma.is_special(107)  # <end_of_turn>
    assert gemma.is_special(7)  # <unused0>
    assert gemma.is_special(256500)  # PaliGemma's location tokens lie past Gemma's pieces
    assert not gemma.is_special(7071)


def test_recorded_prompts_both_frames_ids_equal():
    for case in ("pi05_libero_seed0", "pi05_aloha_seed1", "pi0_droid_seed0"):
        tokenizer = open_tokenizer(LEROBOT / case / "tiny_tokenizer")
        for frame in ("frame0", "frame1"):
            recorded = json.loads((LEROBOT / case / frame / "text.json").read_text())
            assert [tokenizer.begin_id, *tokenizer.encode(recorded["prompt"][0])] == recorded["token_ids"]


def test_open_tokenizer_either_kind_gives_its_class(sentencepiece_model):
    assert isinstance(open_tokenizer(TINY), JsonTokenizer)
    assert isinstance(open_tokenizer(sentencepiece_model), SentencePieceTokenizer)
    assert isinstance(open_tokenizer(sentencepiece_model.parent), SentencePieceTokenizer)


@pytest.mark.parametrize("text", ["pick up the red cup", "  two spaces", "naïve 🤖 机器人", "a\nb\tc", ""])
def test_either_kind_any_text_round_trip(either, text):
    assert either.decode(either.encode(text)) == text


def test_either_kind_typed_control_name_stays_text(either):
    ids = either.encode("say <eos> and <bos>")
    assert not set(ids) & {0, 1, 2}
    assert either.decode(ids) == "say <eos> and <bos>"


def test_either_kind_control_ids_are_special_and_silent(either):
    assert (either.begin_id, either.end_ids) == (2, {1})
    assert all(either.is_special(token_id) for token_id in (0, 1, 2, 3, -1, either.vocab_size, 10**6))
    ids = either.encode("red")
    assert either.decode([2, *ids, 1, 0, either.vocab_size + 5]) == "red"
    assert not any(either.is_special(token_id) for token_id in ids)


def test_either_kind_cut_character_gives_replacement(either):
    ids = either.encode("🤖")
    assert len(ids) == 4
    assert "\ufffd" in either.decode(ids[:2])


def test_sentencepiece_location_piece_is_special(sentencepiece_model):
    tokenizer = open_tokenizer(sentencepiece_model)
    (token_id,) = tokenizer.encode("<loc0001>")
    assert tokenizer.is_special(token_id)
    assert tokenizer.decode([token_id]) == ""


def test_file_of_unknown_content_is_not_recognised():
    tokenizer = open_tokenizer(TINY)
    assert tokenizer.file.known_as is None
    assert not is_gemma(tokenizer)


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("tokenizer.json", "{}", "tokenizer_broken"),
        ("tokenizer.json", '{"version": "1.0"', "tokenizer_broken"),
        ("tokenizer.model", "version https://git-lfs.github.com/spec/v1\noid sha256:0", "tokenizer_broken"),
        ("tokenizer.model", "", "tokenizer_broken"),
        ("tokenizer.txt", "a", "tokenizer_kind"),
    ],
)
def test_open_tokenizer_broken_file_refused_by_name(tmp_path, name, content, code):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(CheckpointError) as caught:
        open_tokenizer(path)
    assert caught.value.code == code
    assert str(path) in caught.value.message
    assert caught.value.suggestion


def test_open_tokenizer_empty_directory_lists_names(tmp_path):
    with pytest.raises(CheckpointError, match=r"tokenizer\.json, tokenizer\.model"):
        open_tokenizer(tmp_path)
    with pytest.raises(CheckpointError, match="does not exist"):
        open_tokenizer(tmp_path / "tokenizer.model")
