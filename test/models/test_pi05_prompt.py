"""Action prompts: exact against the recorded ones, state numbers, and shortening of the task text only."""

import numpy as np
import pytest
from lerobot_cases import FRAMES, PI05_CASES, Frame, tokenizer_folder

from oxygen_ros.errors import ContractError
from oxygen_ros.models.pi05.dialect import LEROBOT_0_4, LEROBOT_0_5_PLUS, OPENPI
from oxygen_ros.models.pi05.prompt import BelowRange, PromptStyle, PromptWriter, clean, state_bins
from oxygen_ros.models.tokenizers import open_tokenizer

STATE_STYLE = PromptStyle.TASK_STATE_ACTION


@pytest.fixture(scope="module")
def tokenizer():
    return open_tokenizer(tokenizer_folder("pi05_libero_seed0"))


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("case", PI05_CASES)
def test_prompt_recorded_frames_text_and_ids_equal(tokenizer, case, frame):
    recorded = Frame(case, frame)
    text, state = recorded.text(), recorded.stages()["state_after_4_NormalizerProcessorStep"][0]
    prompt = PromptWriter(tokenizer, LEROBOT_0_5_PLUS, STATE_STYLE, 200).write(text["task"], state)
    assert prompt.text == text["prompt"][0]
    assert prompt.token_ids.tolist() == text["token_ids"]
    assert not prompt.is_truncated


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("case", PI05_CASES)
def test_prompt_older_dialect_pads_state_to_32(tokenizer, case, frame):
    recorded = Frame(case, frame)
    legacy, state = recorded.legacy_text(), recorded.stages()["state_after_4_NormalizerProcessorStep"][0]
    prompt = PromptWriter(tokenizer, LEROBOT_0_4, STATE_STYLE, 200).write(recorded.text()["task"], state)
    assert prompt.text == legacy["prompt"]
    assert prompt.token_ids.tolist() == legacy["token_ids"]


@pytest.mark.parametrize("frame", FRAMES)
def test_prompt_pi0_recorded_frames_text_and_ids_equal(tokenizer, frame):
    text = Frame("pi0_droid_seed0", frame).text()
    prompt = PromptWriter(tokenizer, LEROBOT_0_5_PLUS, PromptStyle.TASK_ONLY, 48).write(
        text["task"], np.zeros(8)
    )
    assert prompt.text == text["prompt"][0]
    assert prompt.token_ids.tolist() == text["token_ids"]


def test_prompt_openpi_without_state_is_cleaned_text_and_newline(tokenizer):
    writer = PromptWriter(tokenizer, OPENPI, PromptStyle.TASK_ONLY, 200)
    prompt = writer.write("  put_the bowl\non the plate \n", np.zeros(8))
    assert prompt.text == "put the bowl on the plate\n"
    assert prompt.token_ids.tolist() == [
        2,
        *tokenizer.encode("put the bowl on the plate"),
        *tokenizer.encode("\n"),
    ]


def test_prompt_subtask_style_is_small_and_bare(tokenizer):
    writer = PromptWriter(tokenizer, OPENPI, PromptStyle.TASK_SUBTASK, 100)
    assert writer.write(" Pick up the RED_cup. ", np.zeros(8)).text == "Task: pick up the red cup. Subtask: "


def test_clean_keeps_case_and_inner_spaces():
    assert clean("  Open_the\nTop  drawer ") == "Open the Top  drawer"


def test_state_bins_edges_as_recorded():
    state = np.array([-1.0, -1.0 + 1 / 128, -0.001, 0.0, 0.9999, 1.0, 1.0001])
    bins, num_clipped = state_bins(state, BelowRange.AS_TRAINED)
    assert bins.tolist() == [0, 1, 127, 128, 255, 255, 255]
    assert num_clipped == 1


def test_b20_state_not_finite_raises_value_error():
    for value in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="index 1") as caught:
            state_bins(np.array([0.0, value, 7.0]), BelowRange.CLIP)
        assert isinstance(caught.value, ContractError)


def test_b20_out_of_range_clipped_to_0_and_255_and_counted():
    bins, num_clipped = state_bins(np.array([-1.5, 7.0]), BelowRange.CLIP)
    assert bins.tolist() == [0, 255]
    assert num_clipped == 2


def test_b20_below_range_as_trained_is_minus_one_and_counted(tokenizer):
    """The recorded prompts hold a literal -1 there: the checkpoint has seen it, so it is the default."""
    prompt = PromptWriter(tokenizer, LEROBOT_0_5_PLUS, STATE_STYLE, 200).write("go", np.array([-1.5, 7.0]))
    assert prompt.text == "Task: go, State: -1 255;\nAction: "
    assert prompt.num_clipped == 2
    clipping = PromptWriter(tokenizer, LEROBOT_0_5_PLUS, STATE_STYLE, 200, BelowRange.CLIP)
    assert clipping.write("go", np.array([-1.5, 7.0])).text == "Task: go, State: 0 255;\nAction: "


@pytest.mark.parametrize("word", ["cup ", "cup_", "机器人", "x"])
def test_b56_long_instruction_loses_task_text_only(tokenizer, word):
    state = np.linspace(-1, 1, 14)
    task = (word * 5000)[:5000]
    prompt = PromptWriter(tokenizer, OPENPI, STATE_STYLE, 200).write(task, state)
    numbers = " ".join(map(str, state_bins(state, BelowRange.AS_TRAINED)[0]))
    assert prompt.is_truncated
    assert prompt.text.endswith(f", State: {numbers};\nAction: ")
    assert prompt.text.startswith("Task: " + clean(word)[:1])
    kept = prompt.text[len("Task: ") : prompt.text.index(", State")]
    assert clean(task).startswith(kept)
    assert 190 <= len(prompt.token_ids) <= 200
    assert prompt.token_ids.tolist() == [2, *tokenizer.encode(prompt.text)]


def test_b56_state_is_not_padded_before_tokenising(tokenizer):
    prompt = PromptWriter(tokenizer, OPENPI, STATE_STYLE, 200).write("pick up cube", np.zeros(8))
    assert prompt.text == "Task: pick up cube, State: 128 128 128 128 128 128 128 128;\nAction: "


@pytest.mark.parametrize("dialect", [OPENPI, LEROBOT_0_5_PLUS], ids=lambda dialect: dialect.name)
def test_b56_long_instruction_without_state_keeps_its_newline(tokenizer, dialect):
    prompt = PromptWriter(tokenizer, dialect, PromptStyle.TASK_ONLY, 48).write("cup " * 400, np.zeros(8))
    assert prompt.is_truncated
    assert set(prompt.text.split()) == {"cup"}
    assert prompt.text.endswith("cup\n")
    assert prompt.token_ids.tolist()[-1:] == tokenizer.encode("\n")
    assert len(prompt.token_ids) <= 48


def test_b56_limit_below_the_state_is_refused_with_numbers(tokenizer):
    writer = PromptWriter(tokenizer, OPENPI, STATE_STYLE, 16)
    with pytest.raises(ContractError, match="the limit is 16"):
        writer.write("pick up cube", np.zeros(32))


def test_prompt_exactly_at_the_limit_is_whole(tokenizer):
    state = np.zeros(8)
    whole = PromptWriter(tokenizer, OPENPI, STATE_STYLE, 500).write("put the cup down", state)
    size = len(whole.token_ids)
    at_limit = PromptWriter(tokenizer, OPENPI, STATE_STYLE, size).write("put the cup down", state)
    assert (at_limit.text, at_limit.is_truncated) == (whole.text, False)
    below = PromptWriter(tokenizer, OPENPI, STATE_STYLE, size - 1).write("put the cup down", state)
    assert below.is_truncated
