"""Picks the device a model runs on, and times work on it. Nothing is replaced in silence."""

from __future__ import annotations

from collections.abc import Callable

import torch

from oxygen_ros.clock import Clock
from oxygen_ros.errors import ConfigError

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def pick_device(name: str) -> torch.device:
    """Device ``cpu``, ``cuda`` or ``cuda:N``.

    Raises:
        ConfigError: if it is not there; the CPU never takes the place of a GPU.
    """
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError("device", f"unknown device {name!r}", "cpu or cuda") from None
    if device.type == "cpu":
        return device
    if device.type != "cuda":
        raise ConfigError("device", f"device {name!r} is not supported", "cpu or cuda")
    if not torch.cuda.is_available():
        built = torch.version.cuda or "no CUDA"
        raise ConfigError(
            "device",
            f"device {name!r} was asked for, but torch {torch.__version__} (built with {built}) finds no GPU",
            "install a torch built for this machine's CUDA, or set the device to cpu",
        )
    if (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError("device", f"there is no {name!r}: {torch.cuda.device_count()} GPUs found")
    return device


def pick_dtype(name: str) -> torch.dtype:
    """Dtype ``float32`` or ``bfloat16``.

    Raises:
        ConfigError: if it is another; float16 is refused since the models were trained in bfloat16 and
            lose their actions in its range.
    """
    if name not in DTYPES:
        raise ConfigError("dtype", f"dtype {name!r} is not supported", f"one of {', '.join(DTYPES)}")
    return DTYPES[name]


def describe(device: torch.device) -> str:
    """Device in words, for logs and reports."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def wait_for(device: torch.device) -> None:
    """Block until everything that was started on ``device`` is done."""
    if device.type == "cuda":
        torch.cuda.current_stream(device).synchronize()


def measure_ns(work: Callable[[], object], device: torch.device, clock: Clock) -> int:
    """Nanoseconds that ``work`` takes: by events on a GPU, by ``clock`` elsewhere."""
    if device.type != "cuda":
        start_ns = clock.now_ns()
        work()
        return clock.now_ns() - start_ns
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    wait_for(device)
    begin.record()
    work()
    end.record()
    end.synchronize()
    return int(begin.elapsed_time(end) * 1e6)
