"""Sizes of the KV memory: what one prefix and one text row take, in bytes. No torch."""

from __future__ import annotations

from dataclasses import dataclass

DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True)
class KVLayout:
    """Shape of the KV memory. Prefixes and text rows are preallocated slots of fixed capacity.

    Attributes:
        num_layers, num_kv_heads, head_dim, dtype: of the language backbone.
        num_prefixes: prefixes that fit; one of them is always kept for the next observation.
        prefix_capacity: tokens a prefix slot holds: the longest prefix and the longest action suffix.
        num_rows: texts that are decoded together.
        row_capacity: tokens a row holds: the longest suffix prompt and the most tokens of a text.
    """

    num_layers: int
    num_kv_heads: int
    head_dim: int
    dtype: str
    num_prefixes: int
    prefix_capacity: int
    num_rows: int
    row_capacity: int

    @property
    def bytes_per_token(self) -> int:
        """K and V of all layers for one token."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim * DTYPE_BYTES[self.dtype]

    @property
    def prefix_bytes(self) -> int:
        """One prefix slot."""
        return self.prefix_capacity * self.bytes_per_token

    @property
    def row_bytes(self) -> int:
        """One text row."""
        return self.row_capacity * self.bytes_per_token

    @property
    def total_bytes(self) -> int:
        """Everything that is allocated at configure."""
        return self.num_prefixes * self.prefix_bytes + self.num_rows * self.row_bytes

    def in_words(self) -> str:
        """One line for the log: how much memory, and what it is made of."""
        return (
            f"KV memory {self.total_bytes / 2**20:.1f} MiB: {self.num_prefixes} prefixes of "
            f"{self.prefix_capacity} tokens and {self.num_rows} text rows of {self.row_capacity} tokens, "
            f"{self.bytes_per_token} bytes per token ({self.num_layers} layers, {self.num_kv_heads} KV heads "
            f"of {self.head_dim}, {self.dtype})"
        )
