"""The fake runner as configured. No torch."""

from __future__ import annotations

import numpy as np

from oxygen_ros.assembly.model import Model, check_memory
from oxygen_ros.clock import Clock
from oxygen_ros.config import FakeConfig, OxygenConfig
from oxygen_ros.kv.layout import KVLayout
from oxygen_ros.models.protocol import ExpertSpec, ModelSpec
from oxygen_ros.runners.fake import FakeCosts, FakeRunner
from oxygen_ros.runners.fake_processor import PassThroughProcessor
from oxygen_ros.text.byte_tokenizer import ByteTokenizer

PROMPT_TOKENS = 64


def build_stand_in(config: OxygenConfig, clock: Clock) -> Model:
    """A stand-in with set costs and scripted texts. Several experts share the commanded joints, in order.

    Raises:
        ConfigError: if its memory is larger than allowed.
    """
    robot, kv, fake = config.robot, config.kv, config.runner.fake
    shares = np.array_split(np.array(robot.command_joint_names, dtype=object), len(config.model.experts))
    joints = {name: tuple(share) for name, share in zip(config.model.experts, shares, strict=True)}
    tokenizer = ByteTokenizer()
    spec = ModelSpec(
        family="fake",
        experts=tuple(ExpertSpec(n, config.model.horizon, len(names)) for n, names in joints.items()),
        max_prefix_tokens=fake.prefix_tokens,
        vocab_size=tokenizer.vocab_size,
        stop_token_ids=tokenizer.end_ids,
    )
    dtype = config.runner.dtype
    layout = KVLayout(1, 1, 8, dtype, kv.num_prefixes, fake.prefix_tokens, kv.num_rows, kv.row_capacity)
    check_memory(layout, config)
    prompts = [config.text.tasks[name].prompt for name in config.text.task_names]
    texts = fake.script or ("",)
    script = {prompt: texts[i % len(texts)] for i, prompt in enumerate(prompts)}
    cameras = tuple(role for role in robot.camera_roles if robot.cameras[role].required)
    return Model(
        runner=FakeRunner(spec, layout, clock, tokenizer, _costs(fake, config.model.seed), script),
        processor=PassThroughProcessor(tokenizer, cameras, joints, robot.state_dim, PROMPT_TOKENS),
        tokenizer=tokenizer,
        is_stand_in=True,
    )


def _costs(fake: FakeConfig, seed: int) -> FakeCosts:
    return FakeCosts(
        prefill_ns=round(fake.prefill_ms * 1e6),
        act_ns=round(fake.act_ms * 1e6),
        decode_ns=round(max(0.0, fake.decode_step_ms - fake.decode_row_ms) * 1e6),
        decode_token_ns=round(fake.decode_row_ms * 1e6),
        first_call_ns=round(fake.first_act_ms * 1e6),
        jitter_ns=round(fake.jitter_ms * 1e6),
        seed=seed,
    )
