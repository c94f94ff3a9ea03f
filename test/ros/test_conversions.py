"""Messages and values: nothing is lost on the way there and back, and damaged ones are refused."""

from __future__ import annotations

import sys
import time
import types
from array import array

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import CompressedImage, Image

from oxygen_ros.config.camera import CameraConfig
from oxygen_ros.errors import ContractError
from oxygen_ros.msg import ActionChunk as ActionChunkMessage
from oxygen_ros.msg import TextDelta as TextDeltaMessage
from oxygen_ros.ros import conversions
from oxygen_ros.ros.bridge import bridge_reader
from oxygen_ros.runtime.pictures import MessageReader
from oxygen_ros.types import ActionChunk, CycleReport, CycleStatus, FinishReason, TextDelta, TextKind

MS = 1_000_000


def over_the_wire(message):
    """The message as a subscriber gets it."""
    return deserialize_message(serialize_message(message), type(message))


def chunk(horizon: int = 50, action_dim: int = 14) -> ActionChunk:
    return ActionChunk(
        observation_id=4,
        stamp_ns=1_700_000_000_123_456_789,
        cycle_id=5,
        chunk_id=6,
        expert="left",
        instruction="put the red cube in the bowl",
        joint_names=tuple(f"j{i}" for i in range(action_dim)),
        actions=np.random.default_rng(0).normal(size=(horizon, action_dim)).astype(np.float32),
        dt_ns=20 * MS,
        execute_horizon=10,
        latency_ns=86 * MS,
        actions_played=77,
    )


def test_chunk_comes_back_as_it_was_sent():
    sent = chunk()
    got = conversions.from_chunk_message(over_the_wire(conversions.to_chunk_message(sent)))
    np.testing.assert_array_equal(got.actions, sent.actions)
    for name in sent.__dataclass_fields__:
        if name != "actions":
            assert getattr(got, name) == getattr(sent, name), name


@pytest.mark.parametrize(
    "damage",
    [
        {"horizon": 49},
        {"action_dim": 0},
        {"actions": array("f", [1.0])},
        {"horizon": 2**31, "action_dim": 2**31},
        {"dt_s": 0.0},
        {"dt_s": float("nan")},
    ],
)
def test_chunk_whose_sizes_contradict_each_other_is_refused(damage):
    message = conversions.to_chunk_message(chunk())
    for name, value in damage.items():
        setattr(message, name, value)
    with pytest.raises(ContractError, match="malformed_chunk"):
        conversions.from_chunk_message(message)


def test_chunk_without_rows_withdraws():
    got = conversions.from_chunk_message(ActionChunkMessage())
    assert got.actions.shape == (0, 0)
    assert got.expert == ""


def test_b26_trajectory_starts_now_rises_strictly_and_has_positions_only():
    trajectory = conversions.to_trajectory(("a", "b"), np.arange(20.0).reshape(10, 2), 20 * MS)
    assert conversions.from_time(trajectory.header.stamp) == 0
    times = [p.time_from_start.sec * 10**9 + p.time_from_start.nanosec for p in trajectory.points]
    assert times == [20 * MS * (i + 1) for i in range(10)]
    assert trajectory.joint_names == ["a", "b"]
    for i, point in enumerate(trajectory.points):
        assert list(point.positions) == [2.0 * i, 2.0 * i + 1]
        assert not point.velocities
        assert not point.accelerations
        assert not point.effort


def test_b26_trajectory_stamped_now_ends_at_least_a_period_later():
    now_ns = 1_700_000_000_000_000_000
    trajectory = conversions.to_trajectory(("a",), np.zeros((1, 1)), 20 * MS, now_ns)
    end_ns = conversions.from_time(trajectory.header.stamp) + trajectory.points[-1].time_from_start.nanosec
    assert end_ns >= now_ns + 20 * MS


def test_b09_image_is_filled_many_times_faster_than_by_a_numpy_array():
    picture = np.random.default_rng(0).integers(0, 256, (480, 640, 3), dtype=np.uint8)
    costs = []
    for _ in range(10):
        begin = time.perf_counter()
        message = conversions.to_image(picture, 0)
        costs.append(time.perf_counter() - begin)
    begin = time.perf_counter()
    Image().data = picture.reshape(-1)
    assert min(costs) * 5 < time.perf_counter() - begin
    reader = MessageReader({"front": CameraConfig()})
    np.testing.assert_array_equal(reader.read("front", over_the_wire(message)), picture)


def test_delta_and_report_keep_every_field():
    delta = TextDelta(
        request_id="q1",
        task="ask",
        kind=TextKind.MEMORY,
        observation_id=3,
        stamp_ns=5,
        seq=2,
        text="größer 好 🤖",
        num_tokens=9,
        finish_reason=FinishReason.SUPERSEDED,
        detail="newer",
    )
    message = over_the_wire(conversions.to_delta_message(delta))
    assert (message.text, message.kind, message.seq) == ("größer 好 🤖", TextDeltaMessage.KIND_MEMORY, 2)
    assert message.is_final
    assert message.finish_reason == TextDeltaMessage.FINISH_SUPERSEDED
    report = CycleReport(
        7, status=CycleStatus.HOLDING, reason="stale: camera", slack_ns=-5 * MS, refusals={"b": 2, "a": 1}
    )
    got = over_the_wire(conversions.to_report_message(report, now_ns=9 * 10**9))
    assert (got.cycle_id, got.status, got.reason, got.slack_ms) == (
        7,
        got.STATUS_HOLDING,
        "stale: camera",
        -5.0,
    )
    assert dict(zip(got.refusal_kinds, got.refusal_counts, strict=True)) == {"a": 1, "b": 2}
    assert got.header.stamp.sec == 9


def test_constants_of_messages_equal_our_enums():
    for reason in FinishReason:
        assert getattr(TextDeltaMessage, f"FINISH_{reason.name}") == reason.value
    for kind in TextKind:
        assert getattr(TextDeltaMessage, f"KIND_{kind.name}") == kind.value


def _scene() -> np.ndarray:
    """Left half pure red, right half a smooth ramp, so that JPEG keeps it."""
    picture = np.zeros((64, 96, 3), np.uint8)
    picture[:, :48] = (255, 0, 0)
    picture[:, 48:] = np.linspace(0, 255, 48, dtype=np.uint8)[None, :, None]
    return picture


def _compressed(picture: np.ndarray, suffix: str, picture_format: str) -> CompressedImage:
    cv2 = pytest.importorskip("cv2")
    flags = [
        cv2.IMWRITE_JPEG_QUALITY,
        98,
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR,
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444,
    ]
    ok, encoded = cv2.imencode(suffix, picture[:, :, ::-1], flags if suffix == ".jpg" else [])
    assert ok
    return CompressedImage(format=picture_format, data=array("B", encoded.tobytes()))


@pytest.mark.parametrize("decoder", ["opencv", "pillow"])
def test_b05_red_stays_red_as_rgb_bgr_png_and_jpeg(decoder, monkeypatch):
    scene = _scene()
    jpeg = over_the_wire(_compressed(scene, ".jpg", "rgb8; jpeg compressed bgr8"))
    png = over_the_wire(_compressed(scene, ".png", "bgr8; png compressed bgr8"))
    bgr = conversions.to_image(np.ascontiguousarray(scene[:, :, ::-1]), 0)
    bgr.encoding = "bgr8"
    if decoder == "pillow":
        pytest.importorskip("PIL")
        monkeypatch.setitem(sys.modules, "cv2", None)
    raw = MessageReader({"front": CameraConfig()})
    np.testing.assert_array_equal(raw.read("front", over_the_wire(conversions.to_image(scene, 0))), scene)
    np.testing.assert_array_equal(raw.read("front", over_the_wire(bgr)), scene)
    packed = MessageReader({"front": CameraConfig(type="CompressedImage")})
    np.testing.assert_array_equal(packed.read("front", png), scene)
    assert np.abs(packed.read("front", jpeg).astype(int) - scene).max() <= 6


@pytest.mark.parametrize("decoder", ["opencv", "pillow"])
@pytest.mark.parametrize("suffix", [".jpg", ".png"])
def test_compressed_picture_that_is_cut_short_or_damaged_is_refused(decoder, suffix, monkeypatch):
    whole = bytes(_compressed(_scene(), suffix, "x").data)
    if decoder == "pillow":
        monkeypatch.setitem(sys.modules, "cv2", None)
    packed = MessageReader({"front": CameraConfig(type="CompressedImage")})
    for data in (b"", whole[:10], whole[: len(whole) // 2], whole[:-4] if suffix == ".jpg" else whole[:-8]):
        message = CompressedImage(format="jpeg", data=array("B", data))
        with pytest.raises(ContractError, match="image"):
            packed.read("front", message)
    for head in (whole[:2], b"GIF89a" + whole):
        with pytest.raises(ContractError, match=r"image\.format"):
            packed.check("front", CompressedImage(format="jpeg", data=array("B", head)))


@pytest.mark.parametrize(
    "picture_format", ["16UC1; compressedDepth png", "32FC1; compressedDepth", "mono16; png compressed "]
)
def test_b08_compressed_depth_is_refused_by_name(picture_format):
    packed = MessageReader({"front": CameraConfig(type="CompressedImage")})
    message = CompressedImage(format=picture_format, data=_compressed(_scene(), ".png", "x").data)
    with pytest.raises(ContractError, match=r"image\.depth") as caught:
        packed.check("front", message)
    assert picture_format in str(caught.value)


def test_b08_sixteen_bit_png_is_refused_whatever_its_label_says():
    cv2 = pytest.importorskip("cv2")
    _, encoded = cv2.imencode(".png", np.full((4, 4), 3000, np.uint16))
    message = CompressedImage(format="png", data=array("B", encoded.tobytes()))
    with pytest.raises(ContractError, match=r"image\.depth"):
        MessageReader({"front": CameraConfig(type="CompressedImage")}).check("front", message)


def test_picture_of_absurd_size_is_refused_before_it_is_decoded():
    whole = bytearray(_compressed(_scene(), ".png", "x").data)
    whole[16:24] = (60_000).to_bytes(4, "big") * 2
    with pytest.raises(ContractError, match=r"image\.size.*60000x60000"):
        MessageReader({"f": CameraConfig(type="CompressedImage")}).read(
            "f", CompressedImage(format="png", data=array("B", bytes(whole)))
        )


def test_b04_override_wins_over_the_label():
    data = array("B", [81, 90, 81, 240] * 2)
    message = over_the_wire(Image(height=1, width=4, step=8, encoding="yuv422", data=data))
    trusted = MessageReader({"front": CameraConfig()}).read("front", message)
    override = MessageReader({"front": CameraConfig(encoding_override="yuv422_yuy2")}).read("front", message)
    assert np.abs(override.astype(int) - (255, 0, 0)).max() <= 3
    assert not np.array_equal(trusted, override)


def _stub_bridge(monkeypatch, error: Exception | None) -> None:
    stub = types.ModuleType("cv_bridge")

    class CvBridge:
        def __init__(self):
            if error is not None:
                raise error

        def imgmsg_to_cv2(self, message, desired_encoding):
            if message.encoding != "bayer_rggb8":
                raise TypeError(f"no {message.encoding}")
            return np.full((message.height, message.width, 3), 5, np.uint8)

    stub.CvBridge, stub.CvBridgeError = CvBridge, RuntimeError
    monkeypatch.setitem(sys.modules, "cv_bridge", stub)


@pytest.mark.parametrize("error", [AttributeError("_ARRAY_API not found"), ImportError("numpy.core"), None])
def test_b59_listed_encodings_work_whatever_cv_bridge_does(error, monkeypatch):
    if error is None:
        monkeypatch.setitem(sys.modules, "cv_bridge", None)  # not installed
    else:
        _stub_bridge(monkeypatch, error)
    fallback, why = bridge_reader()
    assert fallback is None
    assert why
    reader = MessageReader({"front": CameraConfig()}, fallback)
    picture = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    np.testing.assert_array_equal(reader.read("front", conversions.to_image(picture, 0)), picture)
    bayer = Image(height=2, width=4, step=4, encoding="bayer_rggb8", data=array("B", bytes(8)))
    with pytest.raises(ContractError, match=r"image\.encoding.*bayer_rggb8.*install cv_bridge"):
        reader.check("front", bayer)


def test_b59_other_encodings_go_to_a_working_cv_bridge(monkeypatch):
    _stub_bridge(monkeypatch, None)
    fallback, _ = bridge_reader()
    reader = MessageReader({"front": CameraConfig()}, fallback)
    bayer = Image(height=2, width=4, step=4, encoding="bayer_rggb8", data=array("B", bytes(8)))
    reader.check("front", bayer)
    assert reader.read("front", bayer).shape == (2, 4, 3)
    other = Image(height=2, width=4, step=4, encoding="nv99", data=array("B", bytes(8)))
    with pytest.raises(ContractError, match=r"cv_bridge cannot read 'nv99'"):
        reader.read("front", other)
    big = Image(height=2, width=4, step=4, encoding="bayer_rggb8", data=array("B", bytes(8)), is_bigendian=1)
    with pytest.raises(ContractError, match="big-endian"):
        reader.read("front", big)
