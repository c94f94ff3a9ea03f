"""Engine files that were built elsewhere: what they were built for and what is here, in one message."""

import json

import pytest

from oxygen_ros.errors import CheckpointError
from oxygen_ros.models.engine_file import Platform, built_for, refuse_engine, this_platform
from oxygen_ros.models.pi05.checkpoint_open import open_checkpoint


def engine(folder, name="model.engine", sidecar=None):
    path = folder / name
    path.write_bytes(b"ftrt")
    if sidecar is not None:
        path.with_name(path.name + ".json").write_text(json.dumps(sidecar))
    return path


@pytest.mark.parametrize(
    ("sm", "trt", "have"), [(89, "10.7", Platform(110, "10.13.3")), (110, 10.7, Platform(87, "8.6"))]
)
def test_b48_engine_built_elsewhere_says_built_for_and_have(tmp_path, sm, trt, have):
    error = refuse_engine(engine(tmp_path, sidecar={"sm": sm, "trt": trt}), have)
    assert f"for sm {sm}, TensorRT {trt}" in error.message
    assert f"this machine has sm {have.sm}, TensorRT {have.trt}" in error.message
    assert "PyTorch runs it" in error.suggestion


def test_b48_engine_in_place_of_a_checkpoint_fails_by_default(tmp_path):
    path = engine(tmp_path, sidecar={"sm": 89, "trt": "10.7"})
    with pytest.raises(
        CheckpointError, match=r"built engine, for sm 89, TensorRT 10\.7; this machine has"
    ) as caught:
        open_checkpoint(path)
    assert caught.value.code == "checkpoint_engine"
    assert this_platform().in_words() in caught.value.message


def test_engine_without_sidecar_says_so(tmp_path):
    path = engine(tmp_path, "model.plan")
    assert built_for(path) is None
    assert "no sidecar says what for" in refuse_engine(path, Platform(None, None)).message
    assert "no CUDA device, no TensorRT" in refuse_engine(path, Platform(None, None)).message


@pytest.mark.parametrize(
    "sidecar", [{"sm": "89", "trt": "10.7"}, {"trt": "10.7"}, {"sm": 89}, {"sm": 89, "trt": 10}]
)
def test_sidecar_that_is_malformed_is_refused(tmp_path, sidecar):
    with pytest.raises(CheckpointError, match=r"model\.engine\.json"):
        built_for(engine(tmp_path, sidecar=sidecar))
