"""Which model is loaded, from where, and how it is asked for actions."""

from __future__ import annotations

from dataclasses import dataclass

from oxygen_ros.config.field import parameter


@dataclass(frozen=True)
class ModelConfig:
    """The model family and its checkpoint."""

    family: str = parameter("pi05", help="Model family.")
    checkpoint: str = parameter("", help="Folder of the checkpoint. Not used by the fake runner.")
    tokenizer: str = parameter(
        "", help="Tokenizer file (.model or tokenizer.json). Empty: the one in the checkpoint."
    )
    dialect: str = parameter(
        "auto",
        choices=("auto", "openpi", "lerobot_0_4", "lerobot_0_5_plus"),
        help="Whose prompt, resize and epsilons the checkpoint was trained with. auto: found from its files.",
    )
    attention_mode: str = parameter(
        "auto",
        choices=("auto", "bidirectional", "causal_text"),
        help="Who attends to whom in the prefix. auto: found from the checkpoint.",
    )
    openpi_prompt: str = parameter(
        "task_state_action",
        choices=("task_state_action", "task_only", "task_subtask"),
        help="Prompt form of openpi checkpoints; their files do not say it. LeRobot checkpoints ignore it.",
    )
    state_below_range: str = parameter(
        "as_trained",
        choices=("as_trained", "clip"),
        help="Prompt number of a state below its normal range. as_trained: -1, as in training. clip: 0.",
    )
    asset_id: str = parameter(
        "", help="Folder under assets/ with the statistics (openpi). Empty: the only one there."
    )
    horizon: int = parameter(
        10,
        unit="actions",
        minimum=1,
        maximum=1000,
        help="Actions in one chunk. Must be the checkpoint's: a different one is refused.",
    )
    max_prompt_tokens: int = parameter(
        200,
        unit="tokens",
        minimum=16,
        maximum=4096,
        help="Longest prompt. A longer task text is shortened, the state and the tail never.",
    )
    num_denoise_steps: int = parameter(
        10, unit="steps", minimum=1, maximum=100, help="Euler steps of the flow that makes the actions."
    )
    experts: tuple[str, ...] = parameter(
        ("default",), help="Action experts to run, in this order. All read the same prefix."
    )
    seed: int = parameter(
        0, minimum=0, maximum=2**31 - 1, help="Seed of the action noise. Equal seed and input, equal actions."
    )
