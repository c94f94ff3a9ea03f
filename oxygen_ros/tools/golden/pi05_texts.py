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
    _compare_greedy(run, recorded, report)
    _compare_ended(run, recorded, report)
    _compare_joining(run, recorded, report)


def _new_texts(run: Pi05Run, capacity: int) -> tuple[list[GreedyText], GreedyTexts, KVMemory]:
    """A text on every prefix, none of which has written anything."""
    memory = run.new_memory(capacity)
    memory.prefix_k.copy_(run.memory.prefix_k)
    memory.prefix_v.copy_(run.memory.prefix_v)
    texts = [GreedyText(row, s.num_tokens, s.hidden[-1]) for row, s in enumerate(run.samples)]
    return texts, GreedyTexts(run.model, memory), memory


def _padded(rows: list[list[int]], like: Tensor, fill: int) -> Tensor:
    out = torch.full_like(like, fill)
    for row, tokens in enumerate(rows):
        out[row, : len(tokens)] = torch.tensor(tokens, dtype=out.dtype)
    return out


def _compare_seeds(run: Pi05Run, recorded: Recorded, report: Report) -> None:
    if (expected := recorded.get("seed_index_correct")) is not None:
        num_image_tokens = run.pad_mask.shape[1] - run.config.max_token_len
        last = [int(sample.valid[sample.valid >= num_image_tokens][-1]) for sample in run.samples]
        report.equal("seed_index_correct", expected, torch.tensor(last))
    if (expected := recorded.get("seed_logits_correct")) is not None:
        hidden = torch.stack([sample.hidden[-1] for sample in run.samples])
        report.close_to_scale("seed_logits_correct", expected, run.model.logits(hidden))


def _compare_greedy(run: Pi05Run, recorded: Recorded, report: Report) -> None:
    """All texts in one batch to their limit: tokens, log-probabilities, the rows' keys and values."""
    expected = recorded.get(f"text.{SEED}.tokens")
    if expected is None:
        return
    count = expected.shape[1]
    texts, decoder, memory = _new_texts(run, count)
    for _ in range(count):
        decoder.step(texts)
    tokens = torch.tensor([text.tokens for text in texts])
    report.equal(f"text.{SEED}.tokens", expected, tokens)
    for row, text in enumerate(texts):
        report.note(f"text {row}: {text.tokens}")
        if text.tokens != expected[row].tolist():
            report.note(f"recorded: {expected[row].tolist()}")
    if (log_probs := recorded.get(f"text.{SEED}.logprobs")) is not None:
        computed = torch.stack([torch.stack(text.log_probs) for text in texts])
        report.close_to_scale(f"text.{SEED}.logprobs", log_probs, computed)
    following = decoder.next_log_probs(texts)  # also feeds the last token, whose KV is recorded
    if (log_probs := recorded.get(f"text.{SEED}.next_logprobs")) is not None:
        report.close_to_scale(f"text.{SEED}.next_logprobs", log_probs, following)
    padded = run.pad_mask.shape[1]
    for layer in range(run.config.vlm.depth):
        for part, rows in (("k", memory.row_k), ("v", memory.row_v)):
            name = f"text.{SEED}.cache_{part}.{layer}"
            if (cache := recorded.get(name)) is not None:
                report.close_to_scale(name, cache[:, :, padded:], rows[layer])


def _compare_ended(run: Pi05Run, recorded: Recorded, report: Report) -> None:
    """Texts that leave the batch at their end token, or at the limit."""
    eos_id, expected = recorded.get(f"eos.{SEED}.eos_id"), recorded.get(f"eos.{SEED}.tokens")
    if eos_id is None or expected is None:
        return
    count = expected.shape[1]
    texts, decoder, _ = _new_texts(run, count)
    running = texts
    while running:
        decoder.step(running)
        running = [t for t in running if t.tokens[-1] != int(eos_id) and len(t.tokens) < count]
    tokens = _padded([text.tokens for text in texts], expected, fill=0)
    steps = torch.tensor([len(text.tokens) for text in texts])
    computed = {
        "tokens": tokens,
        "output_tokens": tokens,
        "current_step": steps,
        "is_finished": torch.ones(len(texts), dtype=torch.bool),
    }
    for name, value in computed.items():
        if (entry := recorded.get(f"eos.{SEED}.{name}")) is not None:
            report.equal(f"eos.{SEED}.{name}", entry, value)


def _compare_joining(run: Pi05Run, recorded: Recorded, report: Report) -> None:
    """Text r joins at frame r and leaves at its limit; every frame decodes all that are there."""
    frames, expected = recorded.get(f"cb.{SEED}.frame_tokens"), recorded.get(f"cb.{SEED}.tokens")
    if frames is None or expected is None:
        return
    count = expected.shape[1]
    texts, decoder, _ = _new_texts(run, count)
    computed = torch.full_like(frames, -1)
    for frame in range(frames.shape[0]):
        for step in range(frames.shape[2]):
            running = [text for text in texts[: frame + 1] if len(text.tokens) < count]
            if running:
                decoder.step(running)
            for text in running:
                computed[frame, text.row, step] = text.tokens[-1]
    report.equal(f"cb.{SEED}.frame_tokens", frames, computed)
    report.equal(f"cb.{SEED}.tokens", expected, _padded([t.tokens for t in texts], expected, fill=0))
