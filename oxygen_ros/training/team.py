"""One to a few training processes on one machine that average their gradients.

Every member holds the same weights and draws its own data; one member alone needs no communication.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as distributed
from torch import Tensor
from torch.multiprocessing.spawn import spawn


class Team:
    """The members and what they say to each other. All calls are made by all members, in the same order."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size

    @property
    def is_leader(self) -> bool:
        """True in the one member that writes files and logs."""
        return self.rank == 0

    def average_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Replace every gradient by its mean over the members."""
        gradients = [p.grad for p in parameters if p.grad is not None]
        if self.size > 1:
            self.add_up(gradients)
            torch._foreach_div_(gradients, float(self.size))

    def add_up(self, tensors: list[Tensor]) -> None:
        """Replace every tensor by its sum over the members."""
        if self.size == 1:
            return
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        distributed.all_reduce(flat)
        first = 0
        for tensor in tensors:
            tensor.copy_(flat[first : first + tensor.numel()].view_as(tensor))
            first += tensor.numel()

    def agree(self, value: float) -> float:
        """The leader's ``value``, for all."""
        if self.size == 1:
            return value
        shared = torch.tensor([value], dtype=torch.float64)
        distributed.broadcast(shared, src=0)
        return float(shared.item())

    def gather(self, value: Any) -> list[Any]:
        """What every member has, for all."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        distributed.all_gather_object(values, value)
        return values


def run_team(work: Callable[..., None], size: int, rendezvous: Path, *arguments: Any) -> None:
    """Call ``work(team, *arguments)`` in ``size`` processes; in this one when ``size`` is 1."""
    if size == 1:
        work(Team(0, 1), *arguments)
        return
    rendezvous.unlink(missing_ok=True)
    # Without this, a terminated command leaves its members training.
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    places = (work, size, str(rendezvous.absolute()), arguments)
    try:
        spawn(_member, places, nprocs=size, daemon=True)  # type: ignore[no-untyped-call]
    finally:
        signal.signal(signal.SIGTERM, before)


def _member(
    rank: int, work: Callable[..., None], size: int, rendezvous: str, arguments: tuple[Any, ...]
) -> None:
    distributed.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=size)
    torch.set_num_threads(1)
    try:
        work(Team(rank, size), *arguments)
    finally:
        distributed.destroy_process_group()
