"""Loading: tensor by tensor within a memory limit, estimates, refusals, and heads that are tied or not."""

import dataclasses
import json
import logging
import struct
import subprocess
import sys

import numpy as np
import pytest
import torch
from broken_checkpoints import WEIGHTS, copy_case, edit_tensors
from lerobot_cases import checkpoint_folder
from safetensors.torch import load_file, save_file

from oxygen_ros.errors import CheckpointError
from oxygen_ros.models import file_source
from oxygen_ros.models.file_source import FileSource
from oxygen_ros.models.pi05 import loading
from oxygen_ros.models.pi05.checkpoint_open import open_checkpoint
from oxygen_ros.models.pi05.config import DtypePolicy
from oxygen_ros.models.pi05.loading import MemoryEstimate, dtype_policy, estimate, load_model
from oxygen_ros.models.tensor_files import list_tensors

CPU = torch.device("cpu")
LIBERO = "pi05_libero_seed0"
EMBEDDING = "model.paligemma_with_expert.paligemma.model.language_model.embed_tokens.weight"
LM_HEAD = "model.paligemma_with_expert.paligemma.lm_head.weight"

LOAD_WITHIN_LIMIT = """
import resource, sys, torch
from oxygen_ros.models.file_source import FileSource
from oxygen_ros.models.tensor_files import list_tensors
from pathlib import Path
tensors = list_tensors(Path(sys.argv[1]))
size = sum(tensor.num_bytes for tensor in tensors.values())
now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + int(float(sys.argv[2]) * size),) * 2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
source = FileSource(tensors)
held = [source.load(name) for name in tensors]
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((after - before) * 1024 / size, float(sum(tensor[-1, -1] for tensor in held)))
"""


def write_dummy(folder, num_tensors, rows):
    """A checkpoint of ``num_tensors`` [rows, 1024] float32 tensors in two files, sparse on disk."""
    weight_map = {}
    for shard in range(2):
        names = [f"t{i}" for i in range(num_tensors) if i % 2 == shard]
        size = rows * 1024 * 4
        header = {
            name: {"dtype": "F32", "shape": [rows, 1024], "data_offsets": [i * size, (i + 1) * size]}
            for i, name in enumerate(names)
        }
        head = json.dumps(header).encode()
        file = f"model-0000{shard + 1}-of-00002.safetensors"
        with (folder / file).open("wb") as stream:
            stream.write(struct.pack("<Q", len(head)) + head)
            start = stream.tell()
            for index in range(len(names)):
                stream.seek(start + (index + 1) * size - 4)
                stream.write(struct.pack("<f", 1.0))
        weight_map |= dict.fromkeys(names, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


def test_b50_400_mb_load_within_1_6_times_their_size(tmp_path):
    write_dummy(tmp_path, num_tensors=20, rows=5000)
    command = [sys.executable, "-c", LOAD_WITHIN_LIMIT, str(tmp_path), "1.6"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-1000:]
    peak, total = map(float, done.stdout.split())
    assert total == 20.0
    assert peak < 1.15


def test_b50_estimate_is_said_before_the_load(caplog):
    checkpoint = open_checkpoint(checkpoint_folder(LIBERO))
    with caplog.at_level(logging.INFO):
        load_model(checkpoint, torch.float32, CPU)
    assert any("weights take 1 MB, free memory is" in record.message for record in caplog.records)


def test_b50_too_little_memory_is_refused_with_numbers(monkeypatch):
    checkpoint = open_checkpoint(checkpoint_folder(LIBERO))
    monkeypatch.setattr(loading, "free_bytes", lambda device: 800_000)
    with pytest.raises(
        CheckpointError, match=r"weights take 1 MB, free memory is 1 MB; loading wants 1\.3 times"
    ):
        load_model(checkpoint, torch.float32, CPU)
    monkeypatch.setattr(loading, "free_bytes", lambda device: 1_000_000)
    load_model(checkpoint, torch.float32, CPU)


def test_estimate_unknown_free_memory_is_no_refusal():
    assert MemoryEstimate(10, None).fits
    assert MemoryEstimate(10, 13).fits
    assert not MemoryEstimate(10, 12).fits


def test_estimate_counts_bytes_in_the_dtypes_of_the_parts():
    checkpoint = open_checkpoint(checkpoint_folder("pi05_libero_bf16_seed0"))
    policy = dtype_policy(checkpoint, torch.bfloat16)
    assert policy == DtypePolicy(torch.bfloat16, torch.float32, torch.float32)
    # The file itself is stored in just these dtypes.
    assert estimate(checkpoint, policy, CPU).weights_bytes == checkpoint.num_bytes


@pytest.mark.parametrize("window", [1, 4096, 10**9])
def test_file_source_gives_the_stored_values_whatever_the_window(monkeypatch, window):
    monkeypatch.setattr(file_source, "WINDOW_BYTES", max(window, 512))
    folder = checkpoint_folder("pi05_libero_bf16_seed0")
    source, wanted = FileSource(list_tensors(folder)), load_file(folder / WEIGHTS)
    assert source.shapes() == {name: tuple(tensor.shape) for name, tensor in wanted.items()}
    for name, tensor in list(wanted.items())[::9]:
        found = source.load(name)
        assert found.dtype == tensor.dtype
        assert torch.equal(found, tensor)


def test_file_source_scalar_and_empty_tensors(tmp_path):
    tensors = {"scalar": torch.tensor(2.5), "empty": torch.zeros(0, 3), "one": torch.ones(1)}
    save_file(tensors, tmp_path / WEIGHTS)
    source = FileSource(list_tensors(tmp_path))
    for name, tensor in tensors.items():
        assert torch.equal(source.load(name), tensor)


def test_file_that_became_shorter_is_refused(tmp_path):
    folder = copy_case(LIBERO, tmp_path)
    source = FileSource(list_tensors(folder))
    raw = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(raw[:5000])
    with pytest.raises(CheckpointError, match="became shorter"):
        source.load(EMBEDDING)


def test_file_that_is_replaced_after_the_load_changes_nothing(tmp_path):
    folder = copy_case(LIBERO, tmp_path)
    found = FileSource(list_tensors(folder)).load(EMBEDDING)
    before = found.clone()
    path = folder / WEIGHTS
    path.write_bytes(b"\0" * path.stat().st_size)
    assert torch.equal(found, before)


def test_head_that_differs_is_kept_and_said(caplog):
    with caplog.at_level(logging.INFO):
        load_model(open_checkpoint(checkpoint_folder(LIBERO)), torch.float32, CPU)
    assert any("head differs from the embedding" in record.message for record in caplog.records)


def test_head_that_equals_the_embedding_is_kept_once(tmp_path, caplog):
    folder = copy_case(LIBERO, tmp_path)
    edit_tensors(folder / WEIGHTS, lambda tensors: tensors.update({LM_HEAD: tensors[EMBEDDING].copy()}))
    checkpoint = open_checkpoint(folder)
    with caplog.at_level(logging.INFO):
        model = load_model(checkpoint, torch.float32, CPU)
    assert any("equals the embedding" in record.message for record in caplog.records)
    without = dataclasses.replace(
        checkpoint, tensors={n: t for n, t in checkpoint.tensors.items() if "lm_head" not in n}
    )
    hidden = torch.from_numpy(np.random.default_rng(0).normal(size=(1, 32)).astype(np.float32))
    assert torch.equal(model.logits(hidden), load_model(without, torch.float32, CPU).logits(hidden))


def as_pt(folder, wrap=lambda state: state):
    """The same weights in a .pt file alone."""
    state = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    torch.save(wrap(state), folder / "model.pt")
    return folder


@pytest.mark.parametrize("wrapper", [None, "state_dict", "model"])
def test_pt_file_gives_the_same_model(tmp_path, wrapper):
    folder = as_pt(copy_case(LIBERO, tmp_path), (lambda state: {wrapper: state}) if wrapper else dict)
    opened, known = open_checkpoint(folder), open_checkpoint(checkpoint_folder(LIBERO))
    assert opened.tensors.keys() == known.tensors.keys()
    hidden = torch.from_numpy(np.random.default_rng(0).normal(size=(1, 32)).astype(np.float32))
    models = [load_model(checkpoint, torch.float32, CPU) for checkpoint in (opened, known)]
    assert torch.equal(models[0].logits(hidden), models[1].logits(hidden))


class RunsCode:
    """What a hostile pickle holds."""

    def __reduce__(self):
        return (print, ("this must never be printed",))


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ({"a": RunsCode()}, "cannot be read as plain weights"),
        ([torch.zeros(2)], "holds a list"),
        ({}, "want tensors by name"),
        ({"a": torch.zeros(2), "epoch": 3}, "holds more than tensors: epoch"),
        ({"a": torch.zeros(2, dtype=torch.complex64)}, "unknown dtype"),
    ],
)
def test_pt_file_that_is_no_plain_weights_is_refused(tmp_path, capsys, content, word):
    folder = copy_case(LIBERO, tmp_path)
    (folder / WEIGHTS).unlink()
    torch.save(content, folder / "model.pt")
    with pytest.raises(CheckpointError, match=word):
        open_checkpoint(folder)
    assert "must never" not in capsys.readouterr().out


def test_pt_file_that_is_cut_off_is_refused(tmp_path):
    folder = as_pt(copy_case(LIBERO, tmp_path))
    raw = (folder / "model.pt").read_bytes()
    (folder / "model.pt").write_bytes(raw[:-2000])
    with pytest.raises(CheckpointError, match=r"model\.pt cannot be read"):
        open_checkpoint(folder)
