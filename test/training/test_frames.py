"""Training frames: repeatable, with clean labels, and batches made from them."""

import numpy as np
import pytest
import torch

from oxygen_ros.sim import grammar
from oxygen_ros.sim.expert import plan
from oxygen_ros.sim.truth import ALL_TASKS
from oxygen_ros.training.batches import IGNORE, BatchMaker
from oxygen_ros.training.frames import HORIZON, load_frames, pack_truth, unpack_truth
from oxygen_ros.training.generate import generate
from oxygen_ros.training.vocabulary import EOS_ID, PAD_ID


@pytest.fixture(scope="module")
def frames():
    return generate(seed=5, num_frames=60)


def test_generate_with_equal_seeds_gives_equal_frames(frames):
    again = generate(seed=5, num_frames=60)
    for name, value in vars(frames).items():
        np.testing.assert_array_equal(value, getattr(again, name), err_msg=name)


def test_generate_labels_every_frame_with_what_the_expert_plans(frames):
    for row in range(0, len(frames), 7):
        truth, task = unpack_truth(frames.truth[row]), ALL_TASKS[frames.task[row]]
        np.testing.assert_allclose(frames.plan[row], plan(truth, task, HORIZON), atol=2e-2)


def test_generate_has_failures_and_recoveries_in_it(frames):
    truths = [unpack_truth(row) for row in frames.truth]
    assert any(truth.held is None and truth.opening < 0.02 for truth in truths), "a fist closed on nothing"
    assert any(truth.held is not None for truth in truths)


def test_cells_point_at_the_patch_that_shows_the_cube(frames):
    """A held-free red cube is the reddest thing, so the reddest patch is the labelled one, mostly."""
    is_seen = frames.cells[:, 0, 0] >= 0
    reds = frames.images[is_seen, 0].astype(int)
    redness = ((reds[..., 0] > 150) & (reds[..., 1:] < 60).all(-1)).reshape(-1, 4, 16, 4, 16).sum((2, 4))
    is_visible = redness.reshape(len(reds), -1).max(1) >= 12
    hits = redness.reshape(len(reds), -1).argmax(1) == frames.cells[is_seen, 0, 0]
    assert is_visible.sum() > 10
    assert hits[is_visible].mean() > 0.8


def test_save_and_load_give_back_every_row(frames, tmp_path):
    frames.save(tmp_path / "some.npz")
    again = load_frames(tmp_path / "some.npz")
    for name, value in vars(frames).items():
        np.testing.assert_array_equal(value, getattr(again, name), err_msg=name)


def test_unpack_truth_undoes_pack_truth(frames):
    truth = unpack_truth(frames.truth[3])
    np.testing.assert_allclose(pack_truth(truth), frames.truth[3])


def test_make_blind_batch_hides_the_state_and_nothing_else(frames):
    rows = np.arange(8)
    seeing = BatchMaker(8, blind_share=0.0).make(frames, rows, 0, np.random.default_rng(0))
    blind = BatchMaker(8, blind_share=1.0).make(frames, rows, 0, np.random.default_rng(0))
    is_hidden = blind.prefix_ids == PAD_ID
    assert (is_hidden.sum(1) == 8).all()
    assert torch.equal(blind.prefix_ids[~is_hidden], seeing.prefix_ids[~is_hidden])


def test_make_batch_has_true_texts_as_targets(frames):
    maker = BatchMaker(8, blind_share=0.5)
    rows = np.arange(20)
    batch = maker.make(frames, rows, 20, np.random.default_rng(1))
    for row in range(20):
        truth, task = unpack_truth(frames.truth[row]), ALL_TASKS[frames.task[row]]
        wanted = batch.text_targets[row][batch.text_targets[row] != IGNORE].tolist()
        true = {grammar.memory_sentence(truth, task), grammar.next_sentence(truth, task)}
        true |= {grammar.UNKNOWN_ANSWER, *(grammar.answer(q, truth) for q in grammar.questions())}
        assert wanted[-1] == EOS_ID
        assert maker.prompter.decode(wanted) in true
