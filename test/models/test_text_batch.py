import numpy as np
import pytest
import torch

from oxygen_ros.models.text_batch import TextPlanner, TextSegment

CPU = torch.device("cpu")


def planner(heads_per_kv=2):
    return TextPlanner(heads_per_kv, torch.float32, CPU)


def single(row, slot, prefix_tokens=5, start=0):
    return TextSegment(row, slot, prefix_tokens, prefix_tokens + start, start, 1)


def seen(bias):
    """Keys that a query sees, by query."""
    return [np.flatnonzero(line.numpy() == 0).tolist() for line in bias.flatten(0, -2)]


def test_single_tokens_share_one_group_over_the_slots_and_rows_in_use():
    batch = planner().plan([single(4, 3, 7, 2), single(1, 2, 5, 0), single(2, 3, 7, 4)])
    (group,) = batch.groups
    assert batch.rows.tolist() == [4, 1, 2]
    assert batch.suffix_index.tolist() == [2, 0, 4]
    assert batch.positions.tolist() == [9, 5, 11]
    assert batch.last.tolist() == [0, 1, 2]
    assert (group.prefix.start, group.prefix.end, group.prefix.depth, group.prefix.length) == (2, 4, 2, 7)
    assert group.prefix.cells.tolist() == [1, 0, 0, 2]
    assert group.prefix.cell_of.tolist() == [2, 0, 3]
    assert seen(group.prefix_bias) == [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5, 6]]
    assert (group.suffix.start, group.suffix.end, group.suffix.depth, group.suffix.length) == (1, 5, 1, 5)
    assert [seen(group.suffix_bias)[lane] for lane in (3, 0, 1)] == [[0, 1, 2], [0], [0, 1, 2, 3, 4]]


def test_suffix_prompt_is_a_group_of_its_own_and_causal_for_all_its_heads():
    prompt = TextSegment(row=0, prefix_slot=1, prefix_tokens=4, position=4, suffix_start=0, num_new=3)
    batch = planner(heads_per_kv=2).plan([single(1, 0), prompt])
    _, group = batch.groups
    assert (group.start, group.end) == (1, 4)
    assert batch.positions.tolist() == [5, 4, 5, 6]
    assert batch.last.tolist() == [0, 3]
    assert seen(group.suffix_bias) == [[0], [0], [0, 1], [0, 1], [0, 1, 2], [0, 1, 2]]


def test_plan_of_the_last_composition_is_kept_while_rows_grow():
    plans = planner()
    first = plans.plan([single(0, 0), single(1, 0)])
    second = plans.plan([single(0, 0, start=1), single(1, 0, start=1)])
    assert second.groups[0].prefix is first.groups[0].prefix
    assert second.groups[0].suffix.length == 2
    third = plans.plan([single(0, 0, start=2), single(1, 1, start=2)])
    assert third.groups[0].prefix is not first.groups[0].prefix
    assert third.groups[0].prefix.end == 2


def test_longer_segments_before_single_ones_are_a_mistake():
    with pytest.raises(ValueError, match="come first"):
        planner().plan([TextSegment(0, 0, 4, 4, 0, 3), single(1, 0)])
