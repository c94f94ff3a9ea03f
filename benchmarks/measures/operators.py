"""Counts what decode steps do to memory, by looking at every operator that torch runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from benchmarks.lab import Lab
from benchmarks.workloads import make_jobs
from oxygen_ros.runners.eager import EagerRunner
from oxygen_ros.runners.protocol import BatchRow

COPYING = frozenset(
    {"clone", "copy_", "cat", "stack", "_to_copy", "contiguous", "index", "index_select", "repeat"}
)
READING_BACK = frozenset({"_local_scalar_dense", "item"})


@dataclass(frozen=True)
class DecodeOperators:
    """What the decode steps of ``num_cycles`` warm control cycles did.

    Attributes:
        kv_sized_allocations: new tensors shaped like keys of a prefix, [..., at least its tokens, head_dim].
        prefix_copies: copying operators that read prefix memory.
        host_reads: values read back to the host within the steps.
        token_transfers_per_cycle: most transfers of tokens in one cycle.
        operators_per_step: operators of one step, on average.
        largest_allocation: bytes of the largest new tensor.
    """

    num_cycles: int
    num_steps: int
    mean_rows: float
    kv_sized_allocations: int
    prefix_copies: int
    host_reads: int
    token_transfers_per_cycle: int
    operators_per_step: float
    largest_allocation: int


class _Watch(TorchDispatchMode):
    """Notes operators while it is active."""

    def __init__(self, prefix_memory: tuple[Tensor, ...], num_prefix_tokens: int, head_dim: int) -> None:
        super().__init__()
        self._prefix_storages = {t.untyped_storage().data_ptr() for t in prefix_memory}
        self._num_prefix_tokens = num_prefix_tokens
        self._head_dim = head_dim
        self.names: Counter[str] = Counter()
        self.kv_sized: list[str] = []
        self.copies: list[str] = []
        self.largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        self.names[name] += 1
        known = {t.untyped_storage().data_ptr() for t in _tensors((args, kwargs))}
        for tensor in _tensors(result):
            if tensor.untyped_storage().data_ptr() not in known:
                self.largest = max(self.largest, tensor.numel() * tensor.element_size())
                if self._is_like_keys(tensor):
                    self.kv_sized.append(name)
        if name in COPYING and known & self._prefix_storages:
            self.copies.append(name)
        return result

    def _is_like_keys(self, tensor: Tensor) -> bool:
        shape = tensor.shape
        return len(shape) >= 2 and self._head_dim in shape[-2:] and max(shape[-2:]) >= self._num_prefix_tokens


def _tensors(tree: Any) -> Iterator[Tensor]:
    return (leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor) and leaf.device.type != "meta")


class WatchedRunner(EagerRunner):
    """The product's runner, with a look at every operator of its decode steps."""

    watch: _Watch | None = None
    num_steps = 0
    num_transfers = 0

    def decode_step(self, rows: Sequence[BatchRow]) -> None:
        """One decode step, watched once ``watch`` is set."""
        if self.watch is None:
            return super().decode_step(rows)
        self.num_steps += 1
        with self.watch:
            super().decode_step(rows)
        return None

    def read_tokens(self) -> dict[int, list[int | None]]:
        """Tokens; transfers are counted, calls that have nothing to read are not."""
        tokens = super().read_tokens()
        self.num_transfers += bool(tokens)
        return tokens


def count_operators(lab: Lab, num_cycles: int = 3) -> DecodeOperators:
    """Run control cycles until the batch is steady, then watch ``num_cycles`` of them."""
    runner = lab.runner(kind=WatchedRunner)
    assert isinstance(runner, WatchedRunner)
    executor = lab.oxygen(runner=runner)
    num_warm_up = lab.workload.cycles_until_steady
    jobs = make_jobs(lab.workload, lab.config, num_warm_up + num_cycles)
    for job in jobs[:num_warm_up]:
        executor.run(job)
    robot = lab.workload.robot
    num_tokens = lab.model.num_prefix_tokens(robot.num_cameras, robot.prompt_tokens)
    memory = (runner.memory.prefix_k, runner.memory.prefix_v)
    watch = runner.watch = _Watch(memory, num_tokens, lab.config.vlm.head_dim)
    transfers, rows = [], []
    for job in jobs[num_warm_up:]:
        before = runner.num_transfers
        rows.append(executor.run(job).rows)
        transfers.append(runner.num_transfers - before)
    executor.close()
    return DecodeOperators(
        num_cycles=num_cycles,
        num_steps=runner.num_steps,
        mean_rows=sum(rows) / len(rows),
        kv_sized_allocations=len(watch.kv_sized),
        prefix_copies=len(watch.copies),
        host_reads=sum(watch.names[name] for name in READING_BACK),
        token_transfers_per_cycle=max(transfers),
        operators_per_step=sum(watch.names.values()) / max(1, runner.num_steps),
        largest_allocation=watch.largest,
    )
