"""Plans one batched forward over new text tokens: which token reads which prefix and which row.

A batch is a flat list of tokens. Most rows bring one token; a row in its first step may bring a suffix
prompt of several. Keys are never gathered: queries are laid out on a grid, [prefix slots, tokens per
slot] for the prefix and [rows, tokens per row] for the row's own keys, and read a contiguous view of
the memory. Plans are made on the host from counts alone; shared by families, made by runners.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class TextSegment:
    """The new tokens of one row.

    Attributes:
        row, prefix_slot: where its own and its prefix's keys lie.
        prefix_tokens: valid tokens of the prefix.
        position: rotary position of the first new token.
        suffix_start: tokens the row holds already.
        num_new: tokens it brings, at least one.
    """

    row: int
    prefix_slot: int
    prefix_tokens: int
    position: int
    suffix_start: int
    num_new: int


@dataclass(frozen=True)
class Grid:
    """Tokens of a group laid out over a contiguous range of slots or rows.

    Attributes:
        start, end: range of slots or rows.
        depth: tokens per slot or row.
        cells: token of each cell, int64 [(end - start) * depth]; an empty cell repeats token 0.
        cell_of: cell of each token, int64 [N].
        length: keys that are read.
    """

    start: int
    end: int
    depth: int
    cells: Tensor
    cell_of: Tensor
    length: int

    @property
    def num_lanes(self) -> int:
        """Slots or rows in the range."""
        return self.end - self.start


@dataclass(frozen=True)
class TextGroup:
    """Tokens whose attention is computed in one go: all single tokens, or one suffix prompt.

    Attributes:
        start, end: its tokens in the flat list.
        prefix_bias: added to prefix scores, [slots, 1, 1, length].
        suffix_bias: added to the scores of the row's own keys, [rows, 1, depth * heads, length].
    """

    start: int
    end: int
    prefix: Grid
    prefix_bias: Tensor
    suffix: Grid
    suffix_bias: Tensor


@dataclass(frozen=True)
class TextBatch:
    """One planned step. Tokens come in the order of the segments.

    Attributes:
        rows, suffix_index, positions: of each token, int64 [N].
        last: index of each segment's last token, int64 [num_segments].
    """

    rows: Tensor
    suffix_index: Tensor
    positions: Tensor
    last: Tensor
    groups: tuple[TextGroup, ...]


@dataclass(frozen=True)
class _GroupPlan:
    """The part of a group that stays while its rows only grow."""

    start: int
    end: int
    prefix: Grid
    prefix_bias: Tensor
    suffix_start: int
    suffix_end: int
    suffix_depth: int
    suffix_cells: Tensor
    suffix_cell_of: Tensor


class TextPlanner:
    """Makes batches; keeps the plan of the last composition, since most steps only append one token."""

    def __init__(self, heads_per_kv: int, dtype: torch.dtype, device: torch.device) -> None:
        self._heads_per_kv = heads_per_kv
        self._dtype = dtype
        self._device = device
        self._key: tuple[tuple[int, int, int, int], ...] = ()
        self._plans: tuple[_GroupPlan, ...] = ()
        self._last = torch.empty(0, dtype=torch.int64)

    def plan(self, segments: Sequence[TextSegment]) -> TextBatch:
        """Batch of ``segments``; those with one token come first, so that they share one group."""
        key = tuple((s.row, s.prefix_slot, s.prefix_tokens, s.num_new) for s in segments)
        if key != self._key:
            self._plans = self._make_plans(segments)
            self._last = self._upload(np.cumsum([s.num_new for s in segments]) - 1)
            self._key = key
        per_token = np.concatenate(
            [
                np.stack(
                    [
                        np.full(s.num_new, s.row),
                        np.arange(s.suffix_start, s.suffix_start + s.num_new),
                        np.arange(s.position, s.position + s.num_new),
                    ]
                )
                for s in segments
            ],
            axis=1,
        )
        rows, suffix_index, positions = self._upload(per_token).unbind(0)
        groups = tuple(
            self._with_suffix(plan, suffix_index, int(per_token[1, plan.start : plan.end].max()) + 1)
            for plan in self._plans
        )
        return TextBatch(rows, suffix_index, positions, self._last, groups)

    def _make_plans(self, segments: Sequence[TextSegment]) -> tuple[_GroupPlan, ...]:
        num_singles = sum(s.num_new == 1 for s in segments)
        if any(s.num_new != 1 for s in segments[:num_singles]):
            raise ValueError("segments with one token come first")
        plans = [self._make_plan(segments[:num_singles], 0)] if num_singles else []
        start = num_singles
        for segment in segments[num_singles:]:
            plans.append(self._make_plan([segment], start))
            start += segment.num_new
        return tuple(plans)

    def _make_plan(self, segments: Sequence[TextSegment], start: int) -> _GroupPlan:
        counts = [s.num_new for s in segments]
        lengths = {s.prefix_slot: s.prefix_tokens for s in segments}
        prefix = self._grid(np.repeat([s.prefix_slot for s in segments], counts), max(lengths.values()))
        suffix = self._grid(np.repeat([s.row for s in segments], counts), 0)
        valid = np.array([lengths.get(slot, prefix.length) for slot in range(prefix.start, prefix.end)])
        prefix_bias = self._bias(self._upload(valid - 1), prefix.length)[:, None, None]
        return _GroupPlan(
            start,
            start + sum(counts),
            prefix,
            prefix_bias,
            suffix.start,
            suffix.end,
            suffix.depth,
            suffix.cells,
            suffix.cell_of,
        )

    def _grid(self, lanes: np.ndarray, length: int) -> Grid:
        """Lay tokens out by lane (slot or row), each lane in the order of the tokens."""
        start, end = int(lanes.min()), int(lanes.max()) + 1
        depth_of = np.array([np.count_nonzero(lanes[:i] == lane) for i, lane in enumerate(lanes)])
        depth = int(depth_of.max()) + 1
        cell_of = (lanes - start) * depth + depth_of
        cells = np.zeros((end - start) * depth, dtype=np.int64)
        cells[cell_of] = np.arange(len(lanes))
        return Grid(start, end, depth, self._upload(cells), self._upload(cell_of), length)

    def _with_suffix(self, plan: _GroupPlan, suffix_index: Tensor, length: int) -> TextGroup:
        grid = Grid(
            plan.suffix_start,
            plan.suffix_end,
            plan.suffix_depth,
            plan.suffix_cells,
            plan.suffix_cell_of,
            length,
        )
        newest = suffix_index[plan.start : plan.end][grid.cells].view(grid.num_lanes, grid.depth)
        bias = self._bias(newest, length)
        if grid.depth > 1:
            bias = bias.repeat_interleave(self._heads_per_kv, dim=1)
        return TextGroup(plan.start, plan.end, plan.prefix, plan.prefix_bias, grid, bias[:, None])

    def _bias(self, newest: Tensor, length: int) -> Tensor:
        """Zero for keys 0 .. ``newest``, the lowest number for later ones: [..., length]."""
        keys = torch.arange(length, device=self._device)
        hidden = torch.finfo(self._dtype).min / 2
        return (keys > newest[..., None]).to(self._dtype) * hidden

    def _upload(self, values: np.ndarray) -> Tensor:
        return torch.from_numpy(np.asarray(values, dtype=np.int64)).to(self._device, non_blocking=True)
