"""Headers of safetensors files: whole, sharded, and broken in every way that a copy breaks."""

import json
import struct

import numpy as np
import pytest
from broken_checkpoints import WEIGHTS, copy_case
from lerobot_cases import ALL_CASES, LEROBOT, checkpoint_folder
from safetensors.numpy import save_file

from oxygen_ros.errors import CheckpointError
from oxygen_ros.models.tensor_files import INDEX, list_tensors, read_header


def write(path, header, data=b""):
    head = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + data)
    return path


@pytest.mark.parametrize("case", ALL_CASES)
def test_header_of_recorded_checkpoint_equals_its_manifest(case):
    manifest = json.loads((LEROBOT / case / "manifest.json").read_text())
    found = list_tensors(checkpoint_folder(case))
    assert {name: [list(t.shape), t.dtype] for name, t in found.items()} == manifest["stored_keys"]


def test_sharded_checkpoint_gives_the_same_tensors(tmp_path):
    rng = np.random.default_rng(0)
    tensors = {f"t{i}": rng.normal(size=(i + 1, 3)).astype(np.float32) for i in range(5)}
    save_file(dict(list(tensors.items())[:2]), tmp_path / "model-00001-of-00002.safetensors")
    save_file(dict(list(tensors.items())[2:]), tmp_path / "model-00002-of-00002.safetensors")
    weight_map = {
        name: f"model-0000{1 if i < 2 else 2}-of-00002.safetensors" for i, name in enumerate(tensors)
    }
    (tmp_path / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    found = list_tensors(tmp_path)
    assert {name: item.shape for name, item in found.items()} == {n: t.shape for n, t in tensors.items()}
    assert {item.path.name for item in found.values()} == set(weight_map.values())


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda m: m.clear(), "names no tensors"),
        (lambda m: m.pop("t1"), "disagree about 1 tensor(s): t1"),
        (lambda m: m.update(extra="model-00001-of-00001.safetensors"), "disagree about 1 tensor(s): extra"),
        (lambda m: m.update(t0="model-00009-of-00001.safetensors"), "which is not in"),
        (lambda m: m.update(t0="../model.safetensors"), "which is not in"),
    ],
)
def test_shards_and_index_that_disagree_are_refused(tmp_path, change, word):
    tensors = {"t0": np.zeros(3, np.float32), "t1": np.zeros(3, np.float32)}
    save_file(tensors, tmp_path / "model-00001-of-00001.safetensors")
    weight_map = dict.fromkeys(tensors, "model-00001-of-00001.safetensors")
    change(weight_map)
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(CheckpointError) as caught:
        list_tensors(tmp_path)
    assert word in caught.value.message


@pytest.mark.parametrize("lost", [1, 1000, 700_000])
def test_truncated_file_is_refused_with_sizes(tmp_path, lost):
    folder = copy_case("pi05_libero_seed0", tmp_path)
    path = folder / WEIGHTS
    raw = path.read_bytes()
    path.write_bytes(raw[:-lost])
    with pytest.raises(CheckpointError) as caught:
        list_tensors(folder)
    assert caught.value.code == "weights_broken"
    assert f"{len(raw) - lost} bytes" in caught.value.message
    assert "cut off" in caught.value.message or "header" in caught.value.message


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "no safetensors header"),
        (b"\x01\x02", "no safetensors header"),
        (b"\xff" * 64, "no safetensors header"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 7\n", "Git LFS pointer"),
        (struct.pack("<Q", 4) + b"nope", "no JSON"),
        (struct.pack("<Q", 2) + b"[]", "no JSON object"),
        (struct.pack("<Q", 2) + b"{}" + b"x", "1 bytes after"),
    ],
)
def test_file_that_is_no_safetensors_is_refused(tmp_path, content, word):
    path = tmp_path / WEIGHTS
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=word):
        read_header(path)


@pytest.mark.parametrize(
    ("entry", "word"),
    [
        ({"dtype": "F32", "shape": [2]}, "malformed"),
        ("F32", "malformed"),
        ({"dtype": "F33", "shape": [2], "data_offsets": [0, 8]}, "malformed"),
        ({"dtype": "F32", "shape": ["2"], "data_offsets": [0, 8]}, "malformed"),
        ({"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}, "malformed"),
        ({"dtype": "F32", "shape": [2], "data_offsets": [0]}, "malformed"),
        ({"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}, "takes 8 bytes"),
        ({"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}, "does not follow"),
    ],
)
def test_header_entry_that_cannot_be_is_refused(tmp_path, entry, word):
    with pytest.raises(CheckpointError, match=word):
        read_header(write(tmp_path / WEIGHTS, {"t": entry}, b"\0" * 8))


def test_overlapping_tensors_are_refused(tmp_path):
    entry = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    with pytest.raises(CheckpointError, match="does not follow"):
        read_header(write(tmp_path / WEIGHTS, {"a": entry, "b": entry}, b"\0" * 8))


def test_directory_without_weights_names_what_was_looked_for(tmp_path):
    with pytest.raises(CheckpointError, match=rf"{WEIGHTS} and {INDEX}"):
        list_tensors(tmp_path)
