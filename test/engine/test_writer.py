"""One text from tokens to characters, and its own endings. B60 to B64 are in test/field."""

import pytest
from fakes import spec

from oxygen_ros.engine.settings import TextRules
from oxygen_ros.engine.writer import TextWriter
from oxygen_ros.text.byte_tokenizer import BEGIN_ID, END_ID, ByteTokenizer
from oxygen_ros.types import FinishReason, SamplingParams

TOKENIZER = ByteTokenizer()
UNUSED = 300


def write(token_ids, max_tokens=100, stop_strings=(), rules=None):
    """The writer after ``token_ids`` (or a text), and what it gave out after each token."""
    if isinstance(token_ids, str):
        token_ids = TOKENIZER.encode(token_ids)
    sampling = SamplingParams(max_tokens=max_tokens, stop_strings=stop_strings)
    writer = TextWriter(TOKENIZER, spec(), sampling, rules or TextRules())
    shown = []
    for token_id in token_ids:
        ended = writer.add(token_id)
        shown.append(writer.take())
        if ended:
            break
    return writer, shown


def test_end_token_ends_the_text_and_is_no_part_of_it():
    writer, shown = write([*TOKENIZER.encode("left"), END_ID, *TOKENIZER.encode("more")])
    assert "".join(shown) == "left"
    assert (writer.finish_reason, writer.num_tokens, writer.detail) == (FinishReason.STOP, 4, "")


def test_every_stop_token_of_the_model_ends_the_text():
    model = spec(stop_token_ids=frozenset({END_ID, UNUSED}))
    writer = TextWriter(TOKENIZER, model, SamplingParams(), TextRules())
    assert writer.add(UNUSED)
    assert writer.finish_reason is FinishReason.STOP


def test_limit_ends_the_text_at_its_last_token():
    writer, shown = write("abcdef", max_tokens=3)
    assert ("".join(shown), writer.finish_reason, writer.num_tokens) == ("abc", FinishReason.LENGTH, 3)


def test_stop_string_across_tokens_ends_the_text_and_nothing_of_it_is_shown():
    writer, shown = write("go left.;\nAction: 12", stop_strings=(";\nAction",))
    assert "".join(shown) == "go left."
    assert writer.finish_reason is FinishReason.STOP


def test_start_of_a_stop_string_is_shown_when_the_text_ends_without_it():
    assert "".join(write("go;\nAct", max_tokens=7, stop_strings=(";\nAction",))[1]) == "go; Act"


def test_stop_string_is_looked_for_before_line_breaks_become_spaces():
    assert "".join(write("a\nb", stop_strings=("\n",))[1]) == "a"


def test_logits_that_are_not_finite_end_the_text_as_an_error_that_says_so():
    writer, shown = write([*TOKENIZER.encode("le"), None])
    assert "".join(shown) == "le"
    assert (writer.finish_reason, writer.detail[:10]) == (FinishReason.ERROR, "not_finite")


@pytest.mark.parametrize("token_id", [-1, 320])
def test_token_outside_the_vocabulary_ends_the_text_as_an_error(token_id):
    writer, _ = write([token_id])
    assert writer.finish_reason is FinishReason.ERROR
    assert f"token {token_id} outside 0..319" in writer.detail


def test_special_tokens_are_never_shown_and_a_few_do_no_harm():
    token_ids = [BEGIN_ID, *TOKENIZER.encode("to the left"), UNUSED, END_ID]
    writer, shown = write(token_ids)
    assert "".join(shown) == "to the left"
    assert writer.finish_reason is FinishReason.STOP


def test_text_is_held_back_while_special_tokens_make_it_doubtful():
    _, shown = write([BEGIN_ID, *TOKENIZER.encode("abcdefghijk"), UNUSED, *TOKENIZER.encode("lm"), END_ID])
    assert shown == [*[""] * 9, "abcdefghi", "j", "k", "", "", "", "lm"]


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_share_of_special_tokens_is_a_parameter_and_breaks_the_text_off(share):
    token_ids = [UNUSED, 100, UNUSED, 100] * 10  # every other one
    writer, shown = write([*token_ids, END_ID], rules=TextRules(max_special_share=share))
    if share < 0.5:
        assert (writer.finish_reason, writer.num_tokens, "".join(shown)) == (FinishReason.ERROR, 10, "")
        assert writer.detail.startswith("not_text: 5 of 10 tokens are control or unused")
    else:
        assert writer.finish_reason is FinishReason.STOP


def test_short_text_of_special_tokens_alone_is_an_error_and_an_empty_one_is_not():
    assert write([UNUSED, END_ID])[0].finish_reason is FinishReason.ERROR
    assert write([END_ID])[0].finish_reason is FinishReason.STOP
    assert write([UNUSED], max_tokens=1)[0].finish_reason is FinishReason.ERROR


def test_loop_is_broken_off_only_where_asked_for():
    looping = "the cup the cup the cup the cup the cup "
    assert write(looping)[0].finish_reason is None
    writer, shown = write(looping, rules=TextRules(loop_ngram=8, loop_repeats=3))
    assert "".join(shown) == "the cup the cup the cup "
    assert (writer.finish_reason, writer.detail) == (FinishReason.LENGTH, "loop: the text repeats itself")
    assert write(looping, rules=TextRules(loop_ngram=7, loop_repeats=3))[0].finish_reason is None


def test_bytes_of_a_cut_character_are_dropped_at_the_limit():
    writer, shown = write("ab🙂", max_tokens=4)
    assert ("".join(shown), writer.finish_reason) == ("ab", FinishReason.LENGTH)
