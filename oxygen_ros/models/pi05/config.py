"""Sizes and switches of a pi0.5 model."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

import torch

from oxygen_ros.errors import ConfigError
from oxygen_ros.kv.layout import KVLayout
from oxygen_ros.models.flow_matching import TimeGrid

CAMERAS = ("base_0_rgb", "left_wrist_0_rgb", "right_wrist_0_rgb")
EOS_TOKEN_ID = 1


class AttentionMode(enum.Enum):
    """Who sees whom inside the prefix. A property of the checkpoint: the same weights act differently."""

    BIDIRECTIONAL = "bidirectional"
    """Images and text see each other fully (openpi, LeRobot)."""
    CAUSAL_TEXT = "causal_text"
    """Images see images; text sees images and earlier text (OxyGen's fork)."""


class ActionHead(enum.Enum):
    """How an expert learns of time and state: what pi0 and pi0.5 do differently."""

    PI05 = "pi05"
    """Time conditions every norm; the state is text in the prompt."""
    PI0 = "pi0"
    """Time is mixed into the action tokens; one token before them is the state; norms are plain."""


@dataclass(frozen=True)
class GemmaSize:
    """Sizes of a Gemma stack: the language backbone or an action expert."""

    width: int
    depth: int
    mlp_dim: int
    num_heads: int
    num_kv_heads: int
    head_dim: int


@dataclass(frozen=True)
class VisionSize:
    """Sizes of the SigLIP tower."""

    width: int
    depth: int
    num_heads: int
    mlp_dim: int
    image_size: int
    patch_size: int
    eps: float = 1e-6

    @property
    def num_tokens(self) -> int:
        """Tokens per image."""
        return (self.image_size // self.patch_size) ** 2


GEMMA_SIZES = {
    "gemma_2b": GemmaSize(2048, 18, 16384, 8, 1, 256),
    "gemma_300m": GemmaSize(1024, 18, 4096, 8, 1, 256),
}
SIGLIP_SO400M = VisionSize(1152, 27, 16, 4304, 224, 14)


@dataclass(frozen=True)
class ExpertConfig:
    """One action expert. The first is stored under openpi's names, further ones under ``experts.<name>``.

    Attributes:
        state_dim: width of the state that a pi0 head takes; 0 for pi0.5.
    """

    name: str
    size: GemmaSize
    horizon: int
    action_dim: int
    head: ActionHead = ActionHead.PI05
    state_dim: int = 0

    @property
    def num_state_tokens(self) -> int:
        """Tokens before the action tokens."""
        return int(self.head is ActionHead.PI0)


@dataclass(frozen=True)
class DtypePolicy:
    """Dtypes of the weights. Norms, patch and position embeddings and softmax are always float32.

    Attributes:
        model: attention, MLPs, embeddings, head; activations and KV.
        vision: the tower's layers and the projector; LeRobot keeps them float32.
        action: action and time projections; float32 in openpi.
    """

    model: torch.dtype = torch.float32
    vision: torch.dtype = torch.float32
    action: torch.dtype = torch.float32

    @staticmethod
    def openpi(dtype: torch.dtype) -> DtypePolicy:
        """What openpi does when asked for ``dtype``."""
        return DtypePolicy(dtype, dtype, torch.float32)


@dataclass(frozen=True)
class Pi05Config:
    """Everything that shapes one pi0.5 model.

    Attributes:
        rope_frequency_dtype: bfloat16 for checkpoints of a project that rounds the rotary frequencies
            with the rest of the model; at position 500 that turns keys by up to 0.1 rad.
    """

    vlm: GemmaSize
    vision: VisionSize
    experts: tuple[ExpertConfig, ...]
    vocab_size: int
    max_token_len: int
    cameras: tuple[str, ...] = CAMERAS
    attention: AttentionMode = AttentionMode.BIDIRECTIONAL
    rms_norm_eps: float = 1e-6
    expert_rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    expert_rope_theta: float = 10000.0
    rope_frequency_dtype: torch.dtype = torch.float32
    min_period: float = 4e-3
    max_period: float = 4.0
    num_denoise_steps: int = 10
    time_grid: TimeGrid = TimeGrid.ACCUMULATED
    stop_token_ids: frozenset[int] = frozenset({EOS_TOKEN_ID})
    dtypes: DtypePolicy = DtypePolicy()

    def __post_init__(self) -> None:
        """Refuse sizes that cannot work together."""
        for expert in self.experts:
            _require_same_cache(self.vlm, expert)
        if not self.experts:
            raise ConfigError("no_expert", "a pi0.5 model needs at least one action expert")

    @property
    def max_prefix_tokens(self) -> int:
        """All cameras and the longest prompt."""
        return len(self.cameras) * self.vision.num_tokens + self.max_token_len

    @property
    def max_suffix_tokens(self) -> int:
        """Longest suffix of any expert: actions, and the state where it is a token."""
        return max(expert.horizon + expert.num_state_tokens for expert in self.experts)

    @property
    def takes_state(self) -> bool:
        """True if an expert reads the state as numbers."""
        return any(expert.num_state_tokens for expert in self.experts)

    def kv_layout(self, num_prefixes: int, num_rows: int, row_capacity: int) -> KVLayout:
        """Layout whose slots hold the longest prefix and the longest action suffix."""
        return KVLayout(
            num_layers=self.vlm.depth,
            num_kv_heads=self.vlm.num_kv_heads,
            head_dim=self.vlm.head_dim,
            dtype=str(self.dtypes.model).removeprefix("torch."),
            num_prefixes=num_prefixes,
            prefix_capacity=self.max_prefix_tokens + self.max_suffix_tokens,
            num_rows=num_rows,
            row_capacity=row_capacity,
        )

    def expert(self, name: str) -> ExpertConfig:
        """Expert of that name.

        Raises:
            KeyError: if there is none.
        """
        return {expert.name: expert for expert in self.experts}[name]

    def with_dtypes(self, dtypes: DtypePolicy) -> Pi05Config:
        """The same model in other dtypes."""
        return replace(self, dtypes=dtypes)


def _require_same_cache(vlm: GemmaSize, expert: ExpertConfig) -> None:
    """Raise unless the expert can read the backbone's cache layer by layer."""
    wanted = (vlm.depth, vlm.num_kv_heads, vlm.head_dim)
    got = (expert.size.depth, expert.size.num_kv_heads, expert.size.head_dim)
    if wanted != got:
        raise ConfigError(
            "expert_size",
            f"expert {expert.name!r} has (depth, kv heads, head_dim) {got}, the backbone {wanted}",
        )
