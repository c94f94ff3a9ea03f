"""How and where the model runs, and the set costs of the fake runner."""

from __future__ import annotations

from dataclasses import dataclass, field

from oxygen_ros.config.field import parameter

_COST_MAX_MS = 60_000.0


@dataclass(frozen=True)
class FakeConfig:
    """Costs and script of the fake runner: it needs no weights and keeps the same timing contract."""

    prefill_ms: float = parameter(
        40.0, unit="ms", minimum=0.0, maximum=_COST_MAX_MS, help="Cost of one prefill."
    )
    act_ms: float = parameter(
        30.0, unit="ms", minimum=0.0, maximum=_COST_MAX_MS, help="Cost of one chunk of one expert."
    )
    decode_step_ms: float = parameter(
        5.0, unit="ms", minimum=0.0, maximum=_COST_MAX_MS, help="Cost of one decode step with one row."
    )
    decode_row_ms: float = parameter(
        0.1, unit="ms", minimum=0.0, maximum=_COST_MAX_MS, help="Cost of each further row in a decode step."
    )
    first_act_ms: float = parameter(
        0.0, unit="ms", minimum=0.0, maximum=_COST_MAX_MS, help="Added to the first chunk: a late warm-up."
    )
    jitter_ms: float = parameter(
        0.0, unit="ms", minimum=0.0, maximum=_COST_MAX_MS, help="Costs vary by up to this, by the seed."
    )
    prefix_tokens: int = parameter(528, unit="tokens", minimum=1, maximum=8192, help="Tokens of a prefix.")
    script: tuple[str, ...] = parameter(
        ("I see the table.", "I reach for the cup.", "The cup is in my hand."),
        help="Texts: one for each text task, in their order, round again. Other prompts get one of its own.",
    )


@dataclass(frozen=True)
class RunnerConfig:
    """Backend, device and precision. Nothing is replaced in silence: what is not there is refused."""

    kind: str = parameter(
        "eager",
        choices=("eager", "compiled", "fake"),
        help="How the model runs. compiled: denoising by torch.compile. fake: set costs and scripted text.",
    )
    allow_eager: bool = parameter(
        False, help="With kind compiled: go on eagerly when compiling fails, with an ERROR that says so."
    )
    device: str = parameter("cpu", choices=("cpu", "cuda"), help="Where the model runs.")
    dtype: str = parameter(
        "float32", choices=("float32", "bfloat16"), help="Precision of weights and KV memory."
    )
    num_threads: int = parameter(
        1, unit="threads", minimum=1, maximum=256, help="CPU threads of the tensor library."
    )
    row_buckets: tuple[int, ...] = parameter(
        (1, 2, 4, 8, 16, 32),
        unit="rows",
        minimum=1,
        maximum=1024,
        help="Decode batch sizes that are warmed up; a batch is padded to the next one.",
    )
    warm_up_runs: int = parameter(
        20, unit="runs", minimum=1, maximum=1000, help="Timed runs of each shape before the first cycle."
    )
    fake: FakeConfig = field(default_factory=FakeConfig)
