"""Compares the texts of a recorded pi0.5 run: greedy tokens, early ends, rows that join later."""

from __future__ import annotations

import torch
from torch import Tensor

from oxygen_ros.kv.memory import KVMemory
from oxygen_ros.tools.golden.pi05_run import Pi05Run, Recorded
from oxygen_ros.tools.golden.report import Report
from oxygen_ros.tools.golden.texts import GreedyText, GreedyTexts

SEED = "correct_seed"


def compare_texts(run: Pi05Run, recorded: Recorded, report: Report) -> None:
    """Compare what is recorded about text; a folder may hold none of it."""
    _compare_seeds(run, recorded, report)
    if (limit := _limit(run, recorded)) is not None:
        _compare_greedy(run, recorded, report, limit)
        _compare_ended(run, recorded, report, limit)
        _compare_joining(run, recorded, report, limit)


def _limit(run: Pi05Run, recorded: Recorded) -> int | None:
    """Tokens of a text, as the records of texts show it; None if there are none."""
    shapes = {name: tuple(recorded.peek(name).shape) for name in recorded.names() if f".{SEED}." in name}
    for kind, name in (
        ("text", "tokens"),
        ("text", "logprobs"),
        ("cb", "tokens"),
        ("eos", "tokens"),
        ("eos", "output_tokens"),
    ):
        shape = shapes.get(f"{kind}.{SEED}.{name}", ())
        if len(shape) >= 2:
            return shape[1]
    caches = [shape[2] for name, shape in shapes.items() if ".cache_" in name and len(shape) == 4]
    return max(caches) - run.pad_mask.shape[1] if caches else None


def _new_texts(run: Pi05Run, capacity: int) -> tuple[list[GreedyText], GreedyTexts, KVMemory]:
    """A text on every prefix, none of which has written anything."""
    memory = run.new_memory(capacity)
    memory.prefix_k.copy_(run.memory.prefix_k)
    memory.prefix_v.copy_(run.memory.prefix_v)
    texts = [GreedyText(row, s.num_tokens, s.hidden[-1]) for row, s in enumerate(run.samples)]
    return texts, GreedyTexts(run.model, memory), memory


def _padded(texts: list[GreedyText], limit: int) -> Tensor:
    """Tokens [B, limit], filled up with 0."""
    return torch.tensor([text.tokens + [0] * (limit - len(text.tokens)) for text in texts])


def _compare_seeds(run: Pi05Run, recorded: Recorded, report: Report) -> None:
    if (expected := recorded.get("seed_index_correct")) is not None:
        num_image_tokens = run.pad_mask.shape[1] - run.config.max_token_len
        last = [int(sample.valid[sample.valid >= num_image_tokens][-1]) for sample in run.samples]
        report.equal("seed_index_correct", expected, torch.tensor(last))
    if (expected := recorded.get("seed_logits_correct")) is not None:
        hidden = torch.stack([sample.hidden[-1] for sample in run.samples])
        report.close_to_scale("seed_logits_correct", expected, run.model.logits(hidden))


def _compare_greedy(run: Pi05Run, recorded: Recorded, report: Report, limit: int) -> None:
    """All texts in one batch to their limit: tokens, log-probabilities, the rows' keys and values."""
    if not any(name.startswith(f"text.{SEED}.") for name in recorded.names()):
        return
    texts, decoder, memory = _new_texts(run, limit)
    for _ in range(limit):
        decoder.step(texts)
    tokens = torch.tensor([text.tokens for text in texts])
    for row, text in enumerate(texts):
        report.note(f"text {row}: {text.tokens}")
    if (expected := recorded.get(f"text.{SEED}.tokens")) is not None:
        report.equal(f"text.{SEED}.tokens", expected, tokens)
        if expected.tolist() != tokens.tolist():
            report.note(f"recorded: {expected.tolist()}")
    following = decoder.next_log_probs(texts)  # also feeds the last token, whose KV is recorded
    chosen_by = torch.stack([torch.stack(text.log_probs) for text in texts])
    for name, computed in (("logprobs", chosen_by), ("next_logprobs", following)):
        if (log_probs := recorded.get(f"text.{SEED}.{name}")) is not None:
            report.close_to_scale(f"text.{SEED}.{name}", log_probs, computed)
    for layer in range(run.config.vlm.depth):
        for part, prefixes, rows in (
            ("k", memory.prefix_k[layer], memory.row_k[layer]),
            ("v", memory.prefix_v[layer], memory.row_v[layer]),
        ):
            name = f"text.{SEED}.cache_{part}.{layer}"
            if (cache := recorded.get(name)) is not None:
                _compare_cache(name, run, cache, prefixes, rows, report)


def _compare_cache(
    name: str, run: Pi05Run, cache: Tensor, prefixes: Tensor, rows: Tensor, report: Report
) -> None:
    """One layer of a text's own cache [B, K, padded prefix and written tokens, D], in its two parts."""
    padded = run.pad_mask.shape[1]
    report.close_to_scale(f"{name} prefix", run.valid_cache(cache[:, :, :padded]), run.valid_rows(prefixes))
    report.close_to_scale(f"{name} written", cache[:, :, padded:], rows)


def _compare_ended(run: Pi05Run, recorded: Recorded, report: Report, limit: int) -> None:
    """Texts that leave the batch at their end token, or at the limit."""
    eos_id = recorded.get(f"eos.{SEED}.eos_id")
    if eos_id is None:
        return
    texts, decoder, _ = _new_texts(run, limit)
    running = texts
    while running:
        decoder.step(running)
        running = [t for t in running if t.tokens[-1] != int(eos_id) and len(t.tokens) < limit]
    tokens = _padded(texts, limit)
    computed = {
        "tokens": tokens,
        "output_tokens": tokens,
        "current_step": torch.tensor([len(text.tokens) for text in texts]),
        "is_finished": torch.ones(len(texts), dtype=torch.bool),
    }
    for name, value in computed.items():
        if (entry := recorded.get(f"eos.{SEED}.{name}")) is not None:
            report.equal(f"eos.{SEED}.{name}", entry, value)


def _compare_joining(run: Pi05Run, recorded: Recorded, report: Report, limit: int) -> None:
    """Text r joins at frame r and leaves at its limit; every frame decodes all that are there."""
    frames, expected = recorded.get(f"cb.{SEED}.frame_tokens"), recorded.get(f"cb.{SEED}.tokens")
    if frames is None and expected is None:
        return
    num_frames, steps = (run.num_samples, limit) if frames is None else (frames.shape[0], frames.shape[-1])
    texts, decoder, _ = _new_texts(run, limit)
    computed = torch.full((num_frames, run.num_samples, steps), -1)
    for frame in range(num_frames):
        for step in range(steps):
            running = [text for text in texts[: frame + 1] if len(text.tokens) < limit]
            if running:
                decoder.step(running)
            for text in running:
                computed[frame, text.row, step] = text.tokens[-1]
    if frames is not None:
        report.equal(f"cb.{SEED}.frame_tokens", frames, computed)
    if expected is not None:
        report.equal(f"cb.{SEED}.tokens", expected, _padded(texts, limit))
