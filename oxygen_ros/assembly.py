"""Builds the brain from a configuration. The only place that names concrete runners and model families.

Knows no ROS. What is not there is refused by name: nothing is replaced in silence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oxygen_ros.clock import Clock
from oxygen_ros.config import OxygenConfig
from oxygen_ros.engine.budget import AutoSteps, FixedSteps
from oxygen_ros.engine.engine import Engine
from oxygen_ros.engine.settings import EngineSettings, TextRules
from oxygen_ros.engine.tasks import TextTask, TextTasks
from oxygen_ros.errors import ConfigError
from oxygen_ros.kv.layout import KVLayout
from oxygen_ros.models.protocol import ExpertSpec, ModelSpec, Processor, Tokenizer
from oxygen_ros.runners.fake import FakeCosts, FakeRunner
from oxygen_ros.runners.fake_processor import PassThroughProcessor
from oxygen_ros.runners.protocol import ModelRunner, WarmUp
from oxygen_ros.runtime.control_cycle import ControlCycle, CycleSettings, Numbering
from oxygen_ros.runtime.ports import ActionSink, ObservationSource, ReportSink, TextSink
from oxygen_ros.text.byte_tokenizer import ByteTokenizer
from oxygen_ros.types import SamplingParams, TextKind

FAKE_PROMPT_TOKENS = 64


@dataclass(frozen=True)
class Brain:
    """Everything that thinks, warmed up: what a control cycle is made around.

    Attributes:
        is_stand_in: True if no model is behind it.
    """

    config: OxygenConfig
    runner: ModelRunner
    engine: Engine
    processor: Processor
    tasks: TextTasks
    warm_up: WarmUp
    is_stand_in: bool

    def cycle(
        self,
        *,
        source: ObservationSource,
        actions: ActionSink,
        texts: TextSink,
        reports: ReportSink,
        clock: Clock,
        numbering: Numbering,
    ) -> ControlCycle:
        """A control cycle between these ends."""
        cycle, text = self.config.cycle, self.config.text
        return ControlCycle(
            engine=self.engine,
            processor=self.processor,
            source=source,
            actions=actions,
            texts=texts,
            reports=reports,
            clock=clock,
            settings=CycleSettings(
                period_ns=cycle.period_ns,
                reserve_ns=cycle.reserve_ns,
                execute_horizon=cycle.execute_horizon,
                dt_ns=cycle.action_dt_ns,
                seed=self.config.model.seed,
                decode_while_holding=text.on_stale_input == "continue",
            ),
            tasks=self.tasks,
            numbering=numbering,
        )


def build_brain(config: OxygenConfig, clock: Clock) -> Brain:
    """Load the model and warm it up. Takes as long as that takes; no other thread may use the parts yet.

    Raises:
        ConfigError: if the configuration asks for what is not there, or for more memory than it allows.
        CheckpointError: if the checkpoint cannot be used.
        RunnerError: if the model fails in warm-up.
    """
    runner, processor, tokenizer, is_stand_in = _build_model(config, clock)
    engine = Engine(runner, tokenizer, clock, engine_settings(config))
    return Brain(
        config=config,
        runner=runner,
        engine=engine,
        processor=processor,
        tasks=text_tasks(config),
        warm_up=engine.warm_up(),
        is_stand_in=is_stand_in,
    )


def engine_settings(config: OxygenConfig) -> EngineSettings:
    """Budget and text rules of the engine."""
    cycle, text = config.cycle, config.text
    return EngineSettings(
        steps=AutoSteps() if cycle.decode_policy == "auto" else FixedSteps(cycle.fixed_decode_steps),
        steps_per_round=cycle.steps_per_round,
        cost_quantile=cycle.cost_quantile,
        cost_window=cycle.cost_window,
        max_waiting=text.max_waiting,
        aging_ns=text.aging_ns,
        rules=TextRules(
            is_enabled=text.enabled,
            max_prompt_tokens=text.max_prompt_tokens,
            max_tokens=text.max_tokens,
            max_special_share=text.max_special_fraction,
            loop_ngram=text.loop_ngram if text.loop_guard else 0,
            loop_repeats=text.loop_repeats,
        ),
    )


def text_tasks(config: OxygenConfig) -> TextTasks:
    """The configured text tasks; none writes by itself while text is off."""
    text = config.text
    return TextTasks(
        TextTask(
            name=name,
            kind=TextKind[task.kind.upper()],
            prompt=task.prompt,
            every_cycles=task.every_cycles or None if text.enabled else None,
            sampling=SamplingParams(
                max_tokens=task.max_tokens,
                temperature=task.temperature,
                top_k=task.top_k,
                seed=text.seed,
                stop_strings=task.stop_strings,
            ),
            priority=task.priority,
            max_age_ns=task.max_age_ns,
            is_superseding=task.supersedes,
            supersede_running=task.supersedes_running,
        )
        for name, task in ((name, text.tasks[name]) for name in text.task_names)
    )


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


def _build_model(config: OxygenConfig, clock: Clock) -> tuple[ModelRunner, Processor, Tokenizer, bool]:
    if config.runner.kind == "fake":
        return _build_fake(config, clock)
    raise ConfigError("runner", f"runner.kind '{config.runner.kind}' is not there", "runner.kind: fake")


def _build_fake(config: OxygenConfig, clock: Clock) -> tuple[ModelRunner, Processor, Tokenizer, bool]:
    """The stand-in. Several experts share the commanded joints among them, in order."""
    robot, kv, fake = config.robot, config.kv, config.runner.fake
    shares = np.array_split(np.array(robot.command_joint_names), len(config.model.experts))
    joint_names = {
        name: tuple(str(joint) for joint in share)
        for name, share in zip(config.model.experts, shares, strict=True)
    }
    tokenizer = ByteTokenizer()
    spec = ModelSpec(
        family="fake",
        experts=tuple(ExpertSpec(n, config.model.horizon, len(joints)) for n, joints in joint_names.items()),
        max_prefix_tokens=fake.prefix_tokens,
        vocab_size=tokenizer.vocab_size,
        stop_token_ids=tokenizer.end_ids,
    )
    layout = KVLayout(
        1, 1, 8, config.runner.dtype, kv.num_prefixes, fake.prefix_tokens, kv.num_rows, kv.row_capacity
    )
    check_memory(layout, config)
    costs = FakeCosts(
        prefill_ns=round(fake.prefill_ms * 1e6),
        act_ns=round(fake.act_ms * 1e6),
        decode_ns=round(max(0.0, fake.decode_step_ms - fake.decode_row_ms) * 1e6),
        decode_token_ns=round(fake.decode_row_ms * 1e6),
        first_call_ns=round(fake.first_act_ms * 1e6),
        jitter_ns=round(fake.jitter_ms * 1e6),
        seed=config.model.seed,
    )
    prompts = [config.text.tasks[name].prompt for name in config.text.task_names]
    script = (
        {prompt: fake.script[i % len(fake.script)] for i, prompt in enumerate(prompts)} if fake.script else {}
    )
    runner = FakeRunner(spec, layout, clock, tokenizer, costs, script)
    cameras = tuple(role for role in robot.camera_roles if robot.cameras[role].required)
    processor = PassThroughProcessor(tokenizer, cameras, joint_names, robot.state_dim, FAKE_PROMPT_TOKENS)
    return runner, processor, tokenizer, True
