"""Normalising and relative actions: recorded stages, every mode there and back, degenerate joints."""

import numpy as np
import pytest
from lerobot_cases import FLOAT32_CASES, FRAMES, Frame, checkpoint_folder, config_json
from safetensors.numpy import load_file

from oxygen_ros.errors import CheckpointError
from oxygen_ros.models.pi05.dialect import LEROBOT_0_5_PLUS, OPENPI
from oxygen_ros.models.pi05.normalise import DEGENERATE_BOUND, make_normaliser
from oxygen_ros.models.pi05.relative import relative_by_counts, relative_by_names
from oxygen_ros.models.pi05.statistics import FeatureStatistics, NormMode

DISAGREEING = {
    "q01": [-1.0, 0.0], "q99": [3.0, 10.0], "mean": [0.5, 2.0], "std": [2.0, 4.0],
    "min": [-2.0, -1.0], "max": [4.0, 20.0], "q10": [0.0, 1.0], "q90": [2.0, 9.0],
}  # fmt: skip


def statistics(feature="observation.state", **values):
    return FeatureStatistics(feature, "here", {name: np.array(vector) for name, vector in values.items()})


def recorded_statistics(case, feature):
    (path,) = checkpoint_folder(case).glob("policy_preprocessor*normalizer*.safetensors")
    own = {
        key.removeprefix(f"{feature}."): value
        for key, value in load_file(path).items()
        if key.startswith(feature)
    }
    return FeatureStatistics(feature, str(path), own)


def recorded_mode(case, kind):
    return NormMode(config_json(case)["normalization_mapping"][kind])


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("case", FLOAT32_CASES)
def test_normalise_recorded_state_equal(case, frame):
    recorded = Frame(case, frame)
    state = recorded.inputs()["observation.state"]
    stages = recorded.stages()
    (key,) = (name for name in stages if name.endswith("_NormalizerProcessorStep"))
    found = make_normaliser(
        recorded_statistics(case, "observation.state"),
        recorded_mode(case, "STATE"),
        state.size,
        LEROBOT_0_5_PLUS,
    ).normalise(state)
    wanted = stages[key][0]
    bounded = np.abs(wanted) > 1e6  # the joint that never moved
    assert bounded.sum() == (1 if "libero" in case else 0)
    np.testing.assert_array_equal(found[~bounded], wanted[~bounded])
    np.testing.assert_allclose(
        found / np.maximum(1, np.abs(found)), wanted / np.maximum(1, np.abs(wanted)), atol=1e-5
    )


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("case", FLOAT32_CASES)
def test_unnormalise_recorded_actions_equal(case, frame):
    recorded = Frame(case, frame)
    stages, config = recorded.stages(), config_json(case)
    width = config["output_features"]["action"]["shape"][0]
    actions = make_normaliser(
        recorded_statistics(case, "action"), recorded_mode(case, "ACTION"), width, LEROBOT_0_5_PLUS
    ).unnormalise(stages["actions_padded"][0])[:, :width]
    if config["use_relative_actions"]:
        relative = relative_by_names(
            config["action_feature_names"], config["relative_exclude_joints"], width, width
        )
        actions = relative.to_absolute(actions, recorded.inputs()["observation.state"])
    np.testing.assert_allclose(actions, stages["actions_post"][0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("dialect", [OPENPI, LEROBOT_0_5_PLUS], ids=lambda dialect: dialect.name)
def test_b53_quantile_mode_uses_quantiles(dialect):
    normaliser = make_normaliser(statistics(**DISAGREEING), NormMode.QUANTILES, 2, dialect)
    np.testing.assert_allclose(normaliser.normalise(np.array([-1.0, 0.0], np.float32)), [-1, -1], atol=1e-5)
    np.testing.assert_allclose(normaliser.normalise(np.array([3.0, 10.0], np.float32)), [1, 1], atol=1e-5)


@pytest.mark.parametrize("dialect", [OPENPI, LEROBOT_0_5_PLUS], ids=lambda dialect: dialect.name)
def test_b53_mean_std_mode_uses_mean_and_std(dialect):
    normaliser = make_normaliser(statistics(**DISAGREEING), NormMode.MEAN_STD, 2, dialect)
    np.testing.assert_allclose(normaliser.normalise(np.array([0.5, 2.0], np.float32)), [0, 0], atol=1e-6)
    np.testing.assert_allclose(normaliser.normalise(np.array([2.5, 6.0], np.float32)), [1, 1], atol=1e-5)


@pytest.mark.parametrize("dialect", [OPENPI, LEROBOT_0_5_PLUS], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("mode", NormMode)
def test_every_mode_round_trip_is_identity(mode, dialect):
    normaliser = make_normaliser(statistics(**DISAGREEING), mode, 2, dialect)
    values = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32) * 5
    np.testing.assert_allclose(normaliser.unnormalise(normaliser.normalise(values)), values, atol=2e-6)


def test_openpi_adds_its_epsilon_both_ways():
    quantiles = make_normaliser(statistics(q01=[0.0], q99=[1e-3]), NormMode.QUANTILES, 1, OPENPI)
    assert quantiles.normalise(np.array([1e-3])) == pytest.approx(1e-3 / (1e-3 + 1e-6) * 2 - 1, rel=1e-12)
    assert quantiles.unnormalise(np.array([1.0])) == pytest.approx(1e-3 + 1e-6, rel=1e-12)
    scores = make_normaliser(statistics(mean=[0.0], std=[1e-3]), NormMode.MEAN_STD, 1, OPENPI)
    assert scores.normalise(np.array([1e-3])) == pytest.approx(1e-3 / (1e-3 + 1e-6), rel=1e-12)
    assert scores.unnormalise(np.array([1.0])) == pytest.approx(1e-3 + 1e-6, rel=1e-12)


def test_unnormalise_past_the_statistics_passes_through():
    normaliser = make_normaliser(statistics(**DISAGREEING), NormMode.QUANTILES, 2, OPENPI)
    padded = np.array([[0.0, 0.0, 0.25, -7.0]], np.float32)
    np.testing.assert_allclose(normaliser.unnormalise(padded), [[1.0, 5.0, 0.25, -7.0]], atol=1e-5)
    assert padded[0, 0] == 0.0


@pytest.mark.parametrize("dialect", [OPENPI, LEROBOT_0_5_PLUS], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(
    ("mode", "values"),
    [
        (NormMode.QUANTILES, {"q01": [0.5, 0.0], "q99": [0.5, 1.0]}),
        (NormMode.QUANTILES, {"q01": [0.5, 0.0], "q99": [0.50001, 1.0]}),
        (NormMode.MIN_MAX, {"min": [0.5, 0.0], "max": [0.5, 1.0]}),
        (NormMode.MEAN_STD, {"mean": [0.5, 0.0], "std": [0.0, 1.0]}),
        (NormMode.MEAN_STD, {"mean": [0.5, 0.0], "std": [1e-7, 1.0]}),
    ],
)
def test_joint_that_never_moved_is_bounded_and_named(mode, values, dialect):
    normaliser = make_normaliser(statistics(**values), mode, 2, dialect)
    assert normaliser.degenerate == (0,)
    far = normaliser.normalise(np.array([[0.9, 30.0], [0.1, -30.0]], np.float32))
    np.testing.assert_array_equal(far[:, 0], [DEGENERATE_BOUND, -DEGENERATE_BOUND])
    assert np.abs(far[:, 1]).min() > DEGENERATE_BOUND
    back = normaliser.unnormalise(np.array([[DEGENERATE_BOUND, 0.0]], np.float32))
    assert back[0, 0] == pytest.approx(0.5, abs=2e-4)


@pytest.mark.parametrize(
    ("values", "mode", "code", "word"),
    [
        ({"mean": [0.0, 0.0], "std": [1.0, 1.0]}, NormMode.QUANTILES, "statistics_missing", "q01 and q99"),
        ({"q01": [0.0, 0.0]}, NormMode.QUANTILES, "statistics_missing", "q99"),
        (
            {"q01": [0.0, 2.0], "q99": [1.0, 1.0]},
            NormMode.QUANTILES,
            "statistics_reversed",
            "dimension 1: q01 2",
        ),
        ({"min": [0.0, 2.0], "max": [1.0, 1.0]}, NormMode.MIN_MAX, "statistics_reversed", "min 2"),
        ({"mean": [0.0, 0.0], "std": [1.0, -1.0]}, NormMode.MEAN_STD, "statistics_reversed", "std -1"),
        ({"mean": [0.0, np.nan], "std": [1.0, 1.0]}, NormMode.MEAN_STD, "statistics_not_finite", "mean"),
        ({"mean": [0.0, 0.0], "std": [1.0, np.inf]}, NormMode.MEAN_STD, "statistics_not_finite", "std"),
        ({"mean": [0.0], "std": [1.0]}, NormMode.MEAN_STD, "statistics_shape", "want [2]"),
        ({"mean": [[0.0, 1.0]], "std": [[1.0, 1.0]]}, NormMode.MEAN_STD, "statistics_shape", "want [2]"),
    ],
)
def test_statistics_that_cannot_be_are_refused_by_name(values, mode, code, word):
    with pytest.raises(CheckpointError) as caught:
        make_normaliser(statistics(**values), mode, 2, LEROBOT_0_5_PLUS)
    assert caught.value.code == code
    assert word in caught.value.message
    assert "observation.state" in caught.value.message
    assert "here" in caught.value.message


def test_relative_names_hold_excluded_token_case_ignored():
    relative = relative_by_names(["J0", "Left_GRIPPER.pos", "j2"], ["gripper"], 4, 4)
    assert relative.mask.tolist() == [True, False, True, True]


def test_relative_without_names_makes_grippers_relative_too():
    assert relative_by_names(None, ["gripper"], 3, 3).mask.all()


def test_relative_counts_as_openpi_writes_them():
    assert relative_by_counts((6, -1, 6, -1), 14, 14).mask.tolist() == ([True] * 6 + [False]) * 2
    assert relative_by_counts((2,), 4, 4).mask.tolist() == [True, True, False, False]


def test_relative_there_and_back_uses_one_state_for_the_whole_chunk():
    relative = relative_by_counts((1, -1), 2, 3)
    state = np.array([10.0, 20.0, 30.0], np.float32)
    actions = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    absolute = relative.to_absolute(actions, state)
    np.testing.assert_array_equal(absolute, [[11.0, 2.0], [13.0, 4.0]])
    np.testing.assert_array_equal(relative.to_relative(absolute, state), actions)


def test_relative_dimension_without_state_is_refused():
    with pytest.raises(CheckpointError, match="dimension 2 is relative"):
        relative_by_names(None, [], 3, 2)
