"""The compiled runner beside its oracle, the eager one; and what is said when compiling fails (B49)."""

import os
import shutil
import sysconfig
import threading
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import tiny_pi05
import torch

from oxygen_ros.errors import RunnerError
from oxygen_ros.models.pi05.expert import denoise_step
from oxygen_ros.models.pi05.model import Pi05Model
from oxygen_ros.models.pi05.random_weights import random_state
from oxygen_ros.models.protocol import Guidance, ModelInputs
from oxygen_ros.models.tensor_source import DictSource
from oxygen_ros.runners.compilations import num_compiled_graphs
from oxygen_ros.runners.compiled import CompiledRunner, decisive_line
from oxygen_ros.runners.eager import EagerRunner

PTXAS = """PTXAS error: Internal Triton PTX codegen error
`ptxas` stderr:
ptxas fatal   : Value 'sm_110a' is not defined for option 'gpu-name'

Repro command: ptxas -lineinfo -v --gpu-name=sm_110a step.ptx -o step.ptx.o
"""
CAUSE = "RuntimeError: ptxas fatal : Value 'sm_110a' is not defined for option 'gpu-name'"
HAS_COMPILER = any(map(shutil.which, ("g++", "clang++"))) and os.path.exists(
    os.path.join(sysconfig.get_paths()["include"], "Python.h")
)
LENGTHS = [(1, 1), (1, 24), (2, 9), (3, 23), (3, 24)]  # pictures and prompt tokens, up to the longest prefix


def runner_on(model, kind=CompiledRunner):
    return kind(model, model.kv_layout(2, 2, 16), row_buckets=(1,), warm_up_runs=1)


def inputs(num_images, num_tokens):
    rng = np.random.default_rng(num_images * 100 + num_tokens)
    pictures = rng.uniform(-1, 1, (num_images, 3, 16, 16)).astype(np.float32)
    return ModelInputs(0, pictures, rng.integers(2, 200, num_tokens))


def chunks(run):
    """Chunks of every expert on prefixes of every length, and a guided one of each."""
    made = []
    for number, size in enumerate(LENGTHS):
        slot = number % 2
        run.prefill(inputs(*size), slot)
        for expert in run.spec.experts:
            shape = (expert.horizon, expert.action_dim)
            guide = Guidance(np.full(shape, 0.3, np.float32), np.ones(shape[0], np.float32), 5.0)
            made += [run.sample_actions(slot, expert.name, 7, guidance) for guidance in (None, guide)]
    return made


def in_a_thread(work):
    """What ``work`` gives in another thread: warm-up and cycles run in two."""
    got = []
    thread = threading.Thread(target=lambda: got.append(work()))
    thread.start()
    thread.join()
    return got[0]


@pytest.mark.skipif(
    not HAS_COMPILER, reason="torch.compile for the CPU needs a C++ compiler and Python's headers"
)
def test_compiled_actions_equal_the_eager_ones_and_no_length_compiles_anew():
    size = replace(tiny_pi05.GEMMA, depth=1)  # one layer and one expert: few kernels to compile
    expert = replace(tiny_pi05.CONFIG.experts[0], size=size)
    settings = replace(tiny_pi05.CONFIG, vlm=size, experts=(expert,))
    model = Pi05Model.from_source(settings, DictSource(random_state(settings, seed=0)), torch.device("cpu"))
    oracle, run = runner_on(model, EagerRunner), runner_on(model)
    before = num_compiled_graphs()
    costs = run.warm_up()
    assert num_compiled_graphs() > before
    assert (costs.backend, costs.fault) == ("denoising step compiled by inductor, the rest eager (plain)", "")
    expected, got = chunks(oracle), in_a_thread(partial(chunks, run))
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5, rtol=0)
    assert run.num_compilations == 0
    assert model.denoise_step is denoise_step  # the oracle's: what was compiled belongs to the runner
    num_tokens = model.num_prefix_tokens(*LENGTHS[-1])
    assert run.memory.prefix_checksums(0, num_tokens) == oracle.memory.prefix_checksums(0, num_tokens)


def test_experts_of_other_horizons_are_compiled_in_warm_up(monkeypatch):
    """The same graphs and guards, run by torch instead of being compiled to code."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    run = runner_on(tiny_pi05.model())
    before = num_compiled_graphs()
    run.warm_up()
    assert num_compiled_graphs() > before
    got = in_a_thread(partial(chunks, run))
    for one, other in zip(got, chunks(runner_on(tiny_pi05.model(), EagerRunner)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5, rtol=0)
    assert run.num_compilations == 0


def compile_that_raises(monkeypatch, error):
    """As torch does it: the error comes with the first call."""

    def first_call(*args):
        raise error

    monkeypatch.setattr(torch, "compile", lambda *args, **kwargs: first_call)


def test_b49_failed_compile_is_refused_with_its_cause(monkeypatch):
    compile_that_raises(monkeypatch, RuntimeError(PTXAS))
    with pytest.raises(RunnerError) as caught:
        runner_on(tiny_pi05.model()).warm_up()
    assert caught.value.code == "compile_failed"
    assert caught.value.message == f"torch.compile of the denoising step: {CAUSE}"
    assert "runner.kind: eager" in caught.value.suggestion
    assert "runner.allow_eager" in caught.value.suggestion


def test_b49_failed_compile_goes_on_eagerly_where_allowed_and_says_so(monkeypatch):
    compile_that_raises(monkeypatch, RuntimeError(PTXAS))
    run = runner_on(tiny_pi05.model(), partial(CompiledRunner, allow_eager=True))
    costs = run.warm_up()
    assert costs.fault == f"eager, since compiling failed: {CAUSE}"
    assert costs.backend == f"eager (plain), since compiling failed: {CAUSE}"
    assert costs.backend in costs.in_words()
    for one, other in zip(chunks(run), chunks(runner_on(tiny_pi05.model(), EagerRunner)), strict=True):
        assert np.array_equal(one, other)
    assert run.num_compilations == 0


@pytest.mark.parametrize("allow_eager", [False, True])
def test_memory_that_runs_out_is_not_called_a_failed_compile(monkeypatch, allow_eager):
    compile_that_raises(monkeypatch, torch.OutOfMemoryError("CUDA out of memory"))
    with pytest.raises(RunnerError, match="out_of_memory"):
        runner_on(tiny_pi05.model(), partial(CompiledRunner, allow_eager=allow_eager)).warm_up()


def test_packed_layers_are_named_beside_a_cause_that_does_not_name_them(monkeypatch):
    compile_that_raises(monkeypatch, AssertionError())
    run = runner_on(tiny_pi05.model())
    run.model.kernels = "onednn, plain"
    with pytest.raises(RunnerError, match=r"AssertionError \(linear layers packed .*: onednn, plain\)"):
        run.warm_up()


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (PTXAS, CAUSE),
        (
            "C++ compile error\n\nOutput:\nx.cpp:2:10: fatal error: Python.h: No such file",
            "x.cpp:2:10: fatal error: ",
        ),
        (
            "C++ compile error\nx.cpp: In function f\nx.cpp:3:1: error: no g\n",
            "RuntimeError: x.cpp:3:1: error: no g",
        ),
        ("backend raised:\nno triton", "RuntimeError: backend raised:"),
        ("", "RuntimeError"),
    ],
)
def test_decisive_line_is_the_one_that_says_why(message, line):
    assert line in decisive_line(RuntimeError(message))
