"""What every way of running a model comes to, and the check that its memory is allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from oxygen_ros.config import OxygenConfig
from oxygen_ros.errors import ConfigError
from oxygen_ros.kv.layout import KVLayout
from oxygen_ros.models.protocol import Processor, Tokenizer
from oxygen_ros.runners.protocol import ModelRunner


@dataclass(frozen=True)
class Model:
    """Runner, processor and tokenizer that belong together.

    Attributes:
        is_stand_in: True if no model is behind it.
        has_relative_actions: True if actions in model space are offsets from the observation's state.
        notes: what was decided about the checkpoint, one sentence each, for the log.
        warnings: what is odd about it, one sentence each.
        counts: what the processor had to change since the start, by kind.
    """

    runner: ModelRunner
    processor: Processor
    tokenizer: Tokenizer
    is_stand_in: bool
    has_relative_actions: bool = False
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    counts: Callable[[], Mapping[str, int]] = dict


def check_memory(layout: KVLayout, config: OxygenConfig) -> None:
    """Refuse a KV memory that is larger than allowed, with the numbers.

    Raises:
        ConfigError: code ``memory``.
    """
    if layout.total_bytes <= config.kv.memory_limit_bytes:
        return
    raise ConfigError(
        "memory",
        f"{layout.in_words()}; kv.memory_limit_mb allows {config.kv.memory_limit_mb:g} MiB",
        "fewer kv.num_prefixes or kv.num_rows, or a smaller kv.row_capacity",
    )
