"""Builds the brain from a configuration. What is not there is refused by name, never replaced in silence.

Knows no ROS. Torch is imported only for a runner that needs it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median

from oxygen_ros.assembly.model import Model
from oxygen_ros.assembly.stand_in import build_stand_in
from oxygen_ros.clock import Clock
from oxygen_ros.config import OxygenConfig
from oxygen_ros.engine.budget import AutoSteps, FixedSteps, StepPolicy
from oxygen_ros.engine.engine import Engine
from oxygen_ros.engine.settings import EngineSettings, TextRules
from oxygen_ros.engine.tasks import TextTask, TextTasks
from oxygen_ros.errors import ConfigError
from oxygen_ros.runners.protocol import WarmUp
from oxygen_ros.runtime.control_cycle import ControlCycle, CycleSettings, Numbering
from oxygen_ros.runtime.ports import ActionSink, ObservationSource, ReportSink, TextSink
from oxygen_ros.runtime.rtc import ChunkGuide, GuideSettings, Schedule
from oxygen_ros.types import SamplingParams, TextKind


@dataclass(frozen=True)
class Brain:
    """Everything that thinks, warmed up: what a control cycle is made around."""

    config: OxygenConfig
    model: Model
    engine: Engine
    tasks: TextTasks
    warm_up: WarmUp

    def model_faults(self) -> tuple[str, ...]:
        """What is wrong with how the model runs, one sentence each; it runs all the same."""
        faults = [self.warm_up.fault] if self.warm_up.fault else []
        asked, there = self.config.runner.dtype, self.warm_up.dtype
        if asked != there:
            faults.append(f"precision not as asked: runner.dtype is {asked}, the model runs in {there}")
        if num := self.model.runner.num_compilations:
            faults.append(
                f"{num} compilations after warm-up: a shape was not warmed up, each one stalls a cycle"
            )
        return tuple(faults)

    def cycle(
        self,
        *,
        source: ObservationSource,
        actions: ActionSink,
        texts: TextSink,
        reports: ReportSink,
        clock: Clock,
        numbering: Numbering,
        guide: ChunkGuide | None = None,
    ) -> ControlCycle:
        """A control cycle between these ends."""
        cycle, text = self.config.cycle, self.config.text
        return ControlCycle(
            engine=self.engine,
            processor=self.model.processor,
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
            guide=guide,
        )

    def guide(
        self, num_played: Callable[[], int], settle: Callable[[int], int] = lambda delay: delay
    ) -> ChunkGuide | None:
        """What guides each chunk by the last one, with player.mode rtc; None otherwise. As ChunkGuide."""
        player = self.config.player
        if player.mode != "rtc":
            return None
        costs_ns = median(self.warm_up.prefill_ns or (0,)) + median(self.warm_up.act_ns or (0,))
        return ChunkGuide(
            GuideSettings(
                schedule=Schedule(player.rtc_schedule),
                window=player.rtc_execution_horizon,
                max_gain=player.rtc_max_guidance_weight,
                delay_window=player.rtc_delay_window,
                first_delay=math.ceil(costs_ns / self.config.cycle.action_dt_ns),
            ),
            num_played,
            settle,
        )


def build_brain(
    config: OxygenConfig,
    clock: Clock,
    *,
    adapt: Callable[[Model], Model] = lambda model: model,
    steps: StepPolicy | None = None,
) -> Brain:
    """Load the model and warm it up. Takes as long as that takes; no other thread may use the parts yet.

    Args:
        config: of the node.
        clock: steady or simulated time.
        adapt: changes the model before it is warmed up, e.g. gives its calls a set cost.
        steps: rule for decode steps in place of the configured one.

    Raises:
        ConfigError: if the configuration asks for what is not there, or for more memory than it allows.
        CheckpointError: if the checkpoint cannot be used.
        RunnerError: if the model fails in warm-up.
    """
    model = adapt(_build_model(config, clock))
    if config.player.mode == "rtc" and model.has_relative_actions:
        raise ConfigError(
            "relative_rtc",
            "player.mode is rtc, but the checkpoint's actions are offsets from each observation's own state: "
            "the last chunk cannot guide the next",
            "player.mode: receding or ensembling",
        )
    settings = engine_settings(config)
    if steps is not None:
        settings = replace(settings, steps=steps)
    engine = Engine(model.runner, model.tokenizer, clock, settings)
    brain = Brain(config, model, engine, text_tasks(config), engine.warm_up())
    told = (fault for fault in brain.model_faults() if fault != brain.warm_up.fault)  # that one is an error
    warnings = (*model.warnings, *told)
    return replace(brain, model=replace(model, warnings=warnings))


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


def _build_model(config: OxygenConfig, clock: Clock) -> Model:
    if config.runner.kind == "fake":
        return build_stand_in(config, clock)
    builders = {"pi05": "pi05", "pi0": "pi05"}
    if config.model.family not in builders:
        known = ", ".join(builders)
        raise ConfigError("family", f"model.family is '{config.model.family}'; there is {known}", known)
    try:
        from oxygen_ros.assembly.pi05 import build_pi05
    except ModuleNotFoundError as error:
        raise ConfigError(
            "no_torch",
            f"runner.kind '{config.runner.kind}' needs {error.name}",
            "install torch for this machine",
        ) from error
    return build_pi05(config, clock)
