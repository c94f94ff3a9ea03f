"""The processor: from raw pictures and joints to model inputs and back, and what it refuses by name.

Size: one short test per stage, on the same recorded cases.
"""

import numpy as np
import pytest
from broken_checkpoints import copy_case, copy_openpi, edit_json, write_openpi_statistics
from lerobot_cases import (
    FLOAT32_CASES,
    FRAMES,
    Frame,
    camera_keys,
    checkpoint_folder,
    config_json,
    tokenizer_folder,
)

from oxygen_ros.config import load_config
from oxygen_ros.errors import CheckpointError, ConfigError, ContractError
from oxygen_ros.models.pi05.checkpoint_open import OpenOptions, open_checkpoint
from oxygen_ros.models.pi05.processor import Pi05Processor
from oxygen_ros.models.pi05.prompt import BelowRange
from oxygen_ros.models.tokenizers import open_tokenizer
from oxygen_ros.robots.transform import RobotTransform, make_transform
from oxygen_ros.types import Observation

TOKENIZER = open_tokenizer(tokenizer_folder("pi05_libero_seed0"))
IDENTITY = RobotTransform((), ())


def robot_for(case, **changes):
    """A robot whose cameras and joints are those of a recorded case."""
    features = config_json(case)
    keys = camera_keys(case)
    roles = [key.rpartition(".")[2] for key in keys]
    values = {
        "name": case,
        "camera_roles": roles,
        "cameras": {role: {"topic": role, "feature": key} for role, key in zip(roles, keys, strict=True)},
        "joint_names": [
            f"joint_{i}" for i in range(features["input_features"]["observation.state"]["shape"][0])
        ],
        "command_joint_names": [
            f"command_{i}" for i in range(features["output_features"]["action"]["shape"][0])
        ],
    }
    return load_config(overrides={"robot": {**values, **changes}}).config.robot


def processor_for(case, numbers=IDENTITY, **changes):
    return Pi05Processor(
        open_checkpoint(checkpoint_folder(case)), TOKENIZER, robot_for(case, **changes), numbers
    )


def observation_of(case, frame):
    recorded = Frame(case, frame)
    inputs = recorded.inputs()
    images = {key.rpartition(".")[2]: inputs[key] for key in camera_keys(case)}
    return Observation(7, 0, images, inputs["observation.state"], recorded.text()["task"])


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("case", FLOAT32_CASES)
def test_prepare_recorded_frames_gives_the_recorded_inputs(case, frame):
    recorded = Frame(case, frame)
    inputs = processor_for(case).prepare(observation_of(case, frame))
    assert inputs.observation_id == 7
    assert inputs.token_ids.tolist() == recorded.text()["token_ids"]
    wanted = recorded.images()
    assert len(inputs.images) == len(camera_keys(case))
    for index, picture in enumerate(inputs.images):
        np.testing.assert_allclose(picture, wanted[f"image{index}"][0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("case", FLOAT32_CASES)
def test_finish_recorded_frames_gives_the_recorded_commands(case, frame):
    stages = Frame(case, frame).stages()
    found = processor_for(case).finish("default", stages["actions_padded"][0], observation_of(case, frame))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, stages["actions_post"][0], rtol=0, atol=1e-5)


def test_pi0_state_is_normalised_and_padded():
    case = "pi0_droid_seed0"
    state = processor_for(case).prepare(observation_of(case, "frame0")).state
    stages = Frame(case, "frame0").stages()
    np.testing.assert_array_equal(state[:8], stages["state_after_7_NormalizerProcessorStep"][0])
    assert state.shape == (32,)
    assert not state[8:].any()
    assert (
        processor_for("pi05_libero_seed0").prepare(observation_of("pi05_libero_seed0", "frame0")).state
        is None
    )


def test_actions_given_out_are_not_a_view_of_what_came_in():
    case = "pi05_aloha_seed1"
    actions = Frame(case, "frame0").stages()["actions_padded"][0].copy()
    before = actions.copy()
    found = processor_for(case).finish("default", actions, observation_of(case, "frame0"))
    found[:] = 0
    np.testing.assert_array_equal(actions, before)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_state_that_is_not_finite_names_its_joint(value):
    case = "pi05_libero_seed0"
    observation = observation_of(case, "frame0")
    state = observation.state.copy()
    state[3] = value
    with pytest.raises(ContractError, match="joint_3") as caught:
        processor_for(case).prepare(Observation(1, 0, observation.images, state, "go"))
    assert caught.value.code == "state_not_finite"


@pytest.mark.parametrize("shape", [(7,), (9,), (1, 8), ()])
def test_state_of_another_shape_is_refused(shape):
    case = "pi05_libero_seed0"
    observation = observation_of(case, "frame0")
    with pytest.raises(ContractError, match=r"want \[8\]"):
        processor_for(case).prepare(Observation(1, 0, observation.images, np.zeros(shape, np.float32), "go"))


def test_camera_that_must_be_there_is_named_when_it_is_not():
    case = "pi05_libero_seed0"
    observation = observation_of(case, "frame0")
    one = {"image": observation.images["image"]}
    with pytest.raises(ContractError, match="no picture of image2; there is image"):
        processor_for(case).prepare(Observation(1, 0, one, observation.state, "go"))


def test_camera_that_may_be_absent_leaves_the_others_in_their_slots():
    case = "pi05_aloha_seed1"
    names = ["cam_high", "cam_left_wrist", "cam_right_wrist"]
    cameras = {
        name: {"topic": name, "feature": f"observation.images.{name}", "required": name == "cam_high"}
        for name in names
    }
    processor = processor_for(case, cameras=cameras)
    observation = observation_of(case, "frame0")
    two = {name: observation.images[name] for name in names if name != "cam_left_wrist"}
    inputs = processor.prepare(Observation(1, 0, two, observation.state, "go"))
    wanted = Frame(case, "frame0").images()
    np.testing.assert_allclose(inputs.images[0], wanted["image0"][0], atol=1e-5)
    np.testing.assert_allclose(inputs.images[1], wanted["image2"][0], atol=1e-5)
    assert processor.counts["camera_absent"] == 1
    assert [slot.index for slot in processor.slots] == [0, 1, 2]


def test_slots_follow_the_checkpoint_whatever_order_the_robot_has():
    case = "pi05_aloha_seed1"
    roles = ["cam_right_wrist", "cam_high", "cam_left_wrist"]
    inputs = processor_for(case, camera_roles=roles).prepare(observation_of(case, "frame0"))
    np.testing.assert_allclose(inputs.images[0], Frame(case, "frame0").images()["image0"][0], atol=1e-5)


def test_empty_camera_is_never_fed():
    processor = processor_for("pi05_libero_seed0")
    assert [slot.role for slot in processor.slots] == ["image", "image2", None]
    assert len(processor.prepare(observation_of("pi05_libero_seed0", "frame0")).images) == 2


def test_b57_camera_that_the_model_does_not_want_lists_all_three():
    with pytest.raises(ConfigError) as caught:
        processor_for(
            "pi05_libero_seed0",
            camera_roles=["front", "image2"],
            cameras={"front": {"topic": "a"}, "image2": {"topic": "b"}},
        )
    message = caught.value.message
    assert "the model wants observation.images.image, observation.images.image2" in message
    assert "given: front, image2" in message
    assert "fit no slot: front" in message
    assert "without a camera: observation.images.image" in message


def test_b57_swapped_names_give_the_map_that_was_asked_for():
    cameras = {
        "base": {"topic": "a", "feature": "observation.images.image2"},
        "wrist": {"topic": "b", "feature": "observation.images.image"},
    }
    processor = processor_for("pi05_libero_seed0", camera_roles=["base", "wrist"], cameras=cameras)
    assert [(slot.name, slot.role) for slot in processor.slots[:2]] == [
        ("observation.images.image", "wrist"),
        ("observation.images.image2", "base"),
    ]


def test_camera_found_by_slot_or_role_without_the_long_name():
    cameras = {"image": {"topic": "a"}, "wrist": {"topic": "b", "slot": "image2"}}
    processor = processor_for("pi05_libero_seed0", camera_roles=["image", "wrist"], cameras=cameras)
    assert [slot.role for slot in processor.slots] == ["image", "wrist", None]


def test_renamed_camera_of_the_data_set_is_found(tmp_path):
    case = "pi05_libero_seed0"
    folder = copy_case(case, tmp_path)
    renames = {"observation.images.front": "observation.images.image"}
    edit_json(
        folder / "policy_preprocessor.json", lambda doc: doc["steps"][0]["config"].update(rename_map=renames)
    )
    robot = robot_for(
        case,
        camera_roles=["front", "image2"],
        cameras={"front": {"topic": "a", "feature": "observation.images.front"}, "image2": {"topic": "b"}},
    )
    processor = Pi05Processor(open_checkpoint(folder), TOKENIZER, robot, IDENTITY)
    assert [slot.role for slot in processor.slots] == ["front", "image2", None]


def test_two_cameras_for_one_slot_are_refused():
    cameras = {
        "a": {"topic": "a", "feature": "observation.images.image"},
        "b": {"topic": "b", "slot": "image"},
    }
    with pytest.raises(ConfigError, match="both fill the slot"):
        processor_for("pi05_libero_seed0", camera_roles=["a", "b"], cameras=cameras)


@pytest.mark.parametrize("parameter", ["joint_names", "command_joint_names"])
def test_joint_count_that_is_not_the_checkpoints_is_refused(parameter):
    with pytest.raises(ConfigError, match=f"robot.{parameter} names 3 joints"):
        processor_for("pi05_libero_seed0", **{parameter: ["a", "b", "c"]})


def test_tokenizer_of_a_larger_vocabulary_is_refused(tmp_path):
    folder = copy_openpi(tmp_path)
    robot = load_config(preset="libero").config.robot
    with pytest.raises(ConfigError, match="973 entries, the model 512"):
        Pi05Processor(open_checkpoint(folder), TOKENIZER, robot, IDENTITY)


def test_counts_tell_what_was_clipped_and_cut():
    case = "pi05_libero_seed0"
    processor = processor_for(case)
    processor.prepare(observation_of(case, "frame0"))
    assert processor.counts["prompt_truncated"] == 0
    before = processor.counts["state_clipped"]
    observation = observation_of(case, "frame1")
    long = Observation(2, 0, observation.images, observation.state, "cup " * 1500)
    inputs = processor.prepare(long)
    assert processor.counts["prompt_truncated"] == 1
    assert processor.counts["state_clipped"] == before + 3  # 5, -5, and the joint that never moved
    assert len(inputs.token_ids) <= 200
    assert processor.prompt(long).text.endswith(", State: 255 -1 133 232 231 174 153 255;\nAction: ")


def test_below_range_can_be_clipped():
    case = "pi05_libero_seed0"
    processor = Pi05Processor(
        open_checkpoint(checkpoint_folder(case)), TOKENIZER, robot_for(case), IDENTITY, BelowRange.CLIP
    )
    assert "State: 255 0 133" in processor.prompt(observation_of(case, "frame1")).text


class TestOpenpi:
    """openpi directories: statistics fit the robot, relative actions and maps come from the preset."""

    def processor(self, folder, robot, options):
        checkpoint = open_checkpoint(folder, options)
        numbers = make_transform(robot, adapt_to_pi=robot.adapt_to_pi)
        return Pi05Processor(checkpoint, SmallVocabulary(), robot, numbers)

    def observation(self, robot, state):
        images = {role: np.full((48, 64, 3), 90, np.uint8) for role in robot.camera_roles}
        return Observation(1, 0, images, np.asarray(state, np.float32), "Fold the_towel")

    def test_libero_prompt_without_state(self, tmp_path):
        copy_openpi(tmp_path)
        robot = load_config(preset="libero").config.robot
        processor = self.processor(tmp_path, robot, OpenOptions(openpi_prompt="task_only"))
        observation = self.observation(robot, np.zeros(8))
        assert processor.prompt(observation).text == "Fold the towel\n"
        inputs = processor.prepare(observation)
        assert len(inputs.images) == 2
        assert inputs.images.shape[1:] == (3, 56, 56)
        assert [slot.role for slot in processor.slots] == ["base", "left_wrist", None]
        assert processor.slots[0].is_upside_down

    def test_aloha_actions_add_the_models_state_and_go_back_to_robot_units(self, tmp_path):
        copy_openpi(tmp_path, 14, 14)
        robot = load_config(preset="aloha").config.robot
        processor = self.processor(tmp_path, robot, OpenOptions())
        numbers = make_transform(robot, adapt_to_pi=True)
        state = np.full(14, 0.3)
        state[[6, 13]] = 0.03
        actions = np.random.default_rng(0).normal(size=(10, 32)).astype(np.float32)
        found = processor.finish("default", actions, self.observation(robot, state))
        plain = (actions[:, :14].astype(float) + 1) / 2 * (3 + 1e-6) - 1
        joints = [index for index in range(14) if index not in (6, 13)]
        plain[:, joints] += numbers.state_to_model(state)[joints]
        np.testing.assert_allclose(found, numbers.commands_to_robot(plain), atol=1e-5)

    def test_statistics_padded_with_zeros_fit(self, tmp_path):
        folder = copy_openpi(tmp_path, 8, 7)
        edit_json(
            write_openpi_statistics(folder, 8, 7),
            lambda doc: [
                doc["norm_stats"][name].update(
                    {k: v + [0.0] * (32 - len(v)) for k, v in doc["norm_stats"][name].items()}
                )
                for name in ("state", "actions")
            ],
        )
        processor = self.processor(folder, load_config(preset="libero").config.robot, OpenOptions())
        assert processor.state_normaliser.num_dims == 8

    @pytest.mark.parametrize(("state_dim", "action_dim"), [(14, 14), (8, 14), (4, 7)])
    def test_statistics_of_another_robot_are_refused(self, tmp_path, state_dim, action_dim):
        folder = copy_openpi(tmp_path, state_dim, action_dim)
        with pytest.raises(CheckpointError) as caught:
            self.processor(folder, load_config(preset="libero").config.robot, OpenOptions())
        assert caught.value.code == "statistics_robot"
        assert str(max(state_dim, action_dim) if state_dim != 4 else 4) in caught.value.message

    def test_camera_that_fits_no_slot_is_refused(self, tmp_path):
        folder = copy_openpi(tmp_path)
        cameras = {"base": {"slot": "front"}}
        robot = load_config(preset="libero", overrides={"robot": {"cameras": cameras}}).config.robot
        with pytest.raises(ConfigError, match="fit no slot: base; slots without a camera: base_0_rgb"):
            self.processor(folder, robot, OpenOptions())


class SmallVocabulary:
    """A tokenizer that fits the recorded openpi model of 512 entries: one id per character."""

    vocab_size = 512
    begin_id = 2
    end_ids = frozenset({1})

    def encode(self, text):
        return [3 + ord(character) % 500 for character in text]

    def decode(self, token_ids):
        return "".join(chr(token_id - 3) for token_id in token_ids)

    def is_special(self, token_id):
        return token_id < 3
