"""One real cycle of the loaded model on grey pictures: that it runs, how long it takes, what it writes."""

from __future__ import annotations

import numpy as np

from oxygen_ros.assembly import build_brain
from oxygen_ros.clock import SteadyClock
from oxygen_ros.config import OxygenConfig
from oxygen_ros.errors import OxygenError
from oxygen_ros.models.protocol import Tokenizer
from oxygen_ros.runners.protocol import BatchRow, ModelRunner
from oxygen_ros.tools.examination.findings import Section
from oxygen_ros.types import DEFAULT_EXPERT, FloatArray, Observation, SamplingParams

NUM_TOKENS = 24
PICTURE = (224, 224, 3)
GREY = 128


def examine_run(config: OxygenConfig, state: FloatArray) -> Section:
    """Load the model, make one chunk and the start of every text task's text."""
    section = Section("trial run on grey pictures")
    clock = SteadyClock()
    try:
        brain = build_brain(config, clock)
        if brain.warm_up.fault:
            section.warn(f"the model runs {brain.warm_up.fault}", "not_as_asked", "runner.kind: eager")
        images = {role: np.full(PICTURE, GREY, np.uint8) for role in config.robot.camera_roles}
        observation = Observation(1, 0, images, state, config.instruction or "wait")
        runner, processor = brain.model.runner, brain.model.processor
        start_ns = clock.now_ns()
        num_tokens = runner.prefill(processor.prepare(observation), 0)
        raw = runner.sample_actions(0, DEFAULT_EXPERT, config.model.seed)
        taken_ms = (clock.now_ns() - start_ns) / 1e6
        commands = processor.finish(DEFAULT_EXPERT, raw, observation)
        section.fact(f"prefill of {num_tokens} tokens and one chunk: {taken_ms:.1f} ms", action_ms=taken_ms)
        for name, column in zip(processor.joint_names(DEFAULT_EXPERT), commands.T, strict=True):
            section.fact(f"{name}: first {column[0]:.4f}, from {column.min():.4f} to {column.max():.4f}")
        if config.text.enabled:
            for name in config.text.task_names:
                prompt = config.text.tasks[name].prompt
                _try_text(section, name, prompt, runner, brain.model.tokenizer, num_tokens)
    except OxygenError as error:
        section.refuse_error(error)
    return section


def _try_text(
    section: Section, name: str, prompt: str, runner: ModelRunner, tokenizer: Tokenizer, num_tokens: int
) -> None:
    ids = _write(runner, tokenizer.encode(prompt), num_tokens)
    ends = [index for index, token_id in enumerate(ids) if token_id in runner.spec.stop_token_ids]
    written = ids[: ends[0]] if ends else ids
    special = [token_id for token_id in written if token_id is None or tokenizer.is_special(token_id)]
    text = tokenizer.decode([token_id for token_id in written if token_id is not None])
    values = {"task": name, "text": text, "special_tokens": len(special)}
    if special:
        section.warn(
            f"text task {name}: {len(special)} of {len(written)} tokens are special or unused: {text!r}",
            "text_not_spoken",
            "this checkpoint does not speak: text.enabled: false, or take the task out of text.task_names",
            **values,
        )
    else:
        section.fact(f"text task {name}: {text!r}", **values)


def _write(runner: ModelRunner, prompt: list[int], num_tokens: int) -> list[int | None]:
    """Greedy tokens of one text on prefix slot 0."""
    ids: list[int | None] = []
    suffix = 0
    for written in range(NUM_TOKENS):
        new = tuple(prompt) if written == 0 else ()
        runner.decode_step([BatchRow(0, 0, num_tokens, suffix, new, written, SamplingParams())])
        suffix += len(new) if written == 0 else 1
        ids += runner.read_tokens()[0]
        if ids[-1] is None or ids[-1] in runner.spec.stop_token_ids:
            break
    return ids
