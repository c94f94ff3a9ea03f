"""The text tasks: what is asked, what it costs, and what to expect of a checkpoint made for actions."""

from __future__ import annotations

from oxygen_ros.config import OxygenConfig
from oxygen_ros.models.protocol import Tokenizer
from oxygen_ros.tools.examination.findings import Section

HONESTY = (
    "public action checkpoints may not write sensible text: look at ~/text_stream, or run the doctor with "
    "--run. Special or unused tokens end a text with reason error. text.enabled: false switches text off; "
    "actions do not change"
)


def examine_texts(config: OxygenConfig, tokenizer: Tokenizer) -> Section:
    """Prompt, trigger and limits of every text task."""
    section, text = Section("text tasks"), config.text
    if not text.enabled:
        section.fact("text is off (text.enabled: false)", enabled=False)
        return section
    for name in text.task_names:
        task = text.tasks[name]
        ids = tokenizer.encode(task.prompt)
        when = f"every {task.every_cycles} cycles" if task.every_cycles else "on request"
        section.fact(
            f"{name}: {when}, prompt {task.prompt!r} ({len(ids)} tokens), up to {task.max_tokens} tokens, "
            f"priority {task.priority}",
            task=name,
            prompt=task.prompt,
            prompt_token_ids=ids,
            every_cycles=task.every_cycles,
        )
        if len(ids) > text.max_prompt_tokens:
            section.warn(
                f"{name}: its prompt has {len(ids)} tokens, text.max_prompt_tokens allows "
                f"{text.max_prompt_tokens}",
                "text_prompt",
                "a shorter prompt",
            )
    section.fact(HONESTY)
    return section
