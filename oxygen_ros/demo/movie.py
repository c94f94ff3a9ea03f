"""demo.gif: the show view, what the robot is told above it, and what it says as it grows below it."""

from __future__ import annotations

import io
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from oxygen_ros.demo.captions import Caption, Captions
from oxygen_ros.demo.recording import RunRecording
from oxygen_ros.demo.verdict import Episode, Mark, Truths, Verdict
from oxygen_ros.runtime.stamps import S

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

MAX_BYTES = 3_000_000
MAX_SECONDS = 14.0
LAST_FRAME_S = 2.0
MARGIN = 6
LINES_A_CAPTION = 2
BRIGHT = 60
"""Largest minus smallest channel of a pixel whose colour matters."""
INK, LABEL, PAPER = "#f4f6f7", "#aeb6bf", "#17202a"
COLORS = {Mark.TRUE: "#58d68d", Mark.FALSE: "#ec7063", Mark.INEXACT: "#f4d03f"}


@dataclass(frozen=True)
class Quality:
    """Width in pixels, pictures per second, colours."""

    width: int
    hz: float
    colors: int


LADDER = (
    Quality(480, 10, 250),
    Quality(400, 8, 128),
    Quality(320, 6, 64),
    Quality(280, 5, 48),
    Quality(240, 3, 32),
)
"""Tried in this order until the file is small enough."""


def draw_movie(run: RunRecording, verdict: Verdict, path: Path) -> str:
    """Write the GIF. Gives one sentence about it.

    It begins with a successful episode if there is one, with the one that has most to say, and goes on for at
    most ``MAX_SECONDS``. Without truth it begins where the pictures begin.
    """
    begin_ns = _begin_ns(run, verdict)
    frames = [f for f in run.show if begin_ns <= f[0] <= begin_ns + MAX_SECONDS * S] or run.show[:1]
    data = b""
    for quality in LADDER:
        data = _encode(frames, run, verdict, quality)
        if len(data) <= MAX_BYTES:
            break
    path.write_bytes(data)
    seconds = (frames[-1][0] - frames[0][0]) / S
    after = (frames[0][0] - run.span_ns[0]) / S
    return f"{seconds:.1f} s of the run, from {after:.1f} s on, at the speed it had"


def _begin_ns(run: RunRecording, verdict: Verdict) -> int:
    """Begin of the stretch that is shown."""
    length_ns = round(MAX_SECONDS * S)

    def has_pictures(episode: Episode) -> bool:
        return any(episode.begin_ns <= time_ns <= episode.end_ns for time_ns, _ in run.show)

    def worth(episode: Episode) -> tuple[bool, int]:
        end_ns = episode.begin_ns + length_ns
        texts = (
            t for t in run.texts if t.is_complete and episode.begin_ns <= t.born_ns <= t.end_ns <= end_ns
        )
        return episode.is_success, sum(1 for _ in texts)

    best = max(filter(has_pictures, verdict.episodes), key=worth, default=None)
    return run.show[0][0] if best is None else best.begin_ns


def _encode(frames: list[tuple[int, bytes]], run: RunRecording, verdict: Verdict, quality: Quality) -> bytes:
    from PIL.Image import Dither

    chosen = _thin(frames, quality.hz)
    captions, truths = Captions(run.texts, verdict.marks), Truths(run.truths)
    painter = _Painter(quality.width, captions.tasks)
    pictures = [
        painter.paint(jpeg, _headline(truths, time_ns), captions.at(time_ns, _since_ns(verdict, time_ns)))
        for time_ns, jpeg in chosen
    ]
    palette = _palette(pictures[:: max(1, len(pictures) // 6)], quality.colors)
    indexed = [picture.quantize(palette=palette, dither=Dither.NONE) for picture in pictures]
    gaps = [round((b - a) / 1e6) for a, b in itertools.pairwise(time_ns for time_ns, _ in chosen)]
    file = io.BytesIO()
    indexed[0].save(
        file,
        "GIF",
        save_all=True,
        append_images=indexed[1:],
        duration=[*gaps, round(LAST_FRAME_S * 1000)],
        loop=0,
        optimize=False,
    )
    return file.getvalue()


def _headline(truths: Truths, time_ns: int) -> str:
    truth = truths.near(time_ns)
    if truth is None:
        return ""
    return f"told: {truth.instruction}" + ("   (done)" if truth.is_done else "")


def _since_ns(verdict: Verdict, time_ns: int) -> int:
    """Begin of the episode that runs at ``time_ns``: what was said of an earlier one is not shown."""
    return max((e.begin_ns for e in verdict.episodes if e.begin_ns <= time_ns), default=0)


def _thin(frames: list[tuple[int, bytes]], hz: float) -> list[tuple[int, bytes]]:
    kept = frames[:1]
    for frame in frames[1:]:
        if frame[0] - kept[-1][0] >= 0.95 * S / hz:
            kept.append(frame)
    return kept


def _palette(pictures: list[Image], colors: int) -> Image:
    """A palette for all pictures. Bright pixels, the cubes and the marks, are few: they weigh half."""
    from PIL import Image

    pixels = np.concatenate([np.asarray(picture).reshape(-1, 3)[::5] for picture in pictures])
    spread = pixels.max(axis=1).astype(int) - pixels.min(axis=1)
    bright = pixels[spread > BRIGHT]
    if len(bright):
        pixels = np.concatenate([pixels, np.resize(bright, pixels.shape)])
    return Image.fromarray(pixels[None]).quantize(colors)


class _Painter:
    """Lays words around pictures of one width. The room for captions is the same in all of them."""

    def __init__(self, width: int, tasks: tuple[str, ...]) -> None:
        self._width = width
        self._size = max(9, round(width / 34))
        self._step = self._size + 4
        self._font = _font(self._size)
        label = max((self._font.getlength(task) for task in tasks), default=0)
        self._left = round(MARGIN + label + self._size)
        self._tops = {task: LINES_A_CAPTION * self._step * i for i, task in enumerate(tasks)}

    def paint(self, jpeg: bytes, headline: str, captions: list[Caption]) -> Image:
        """The picture with the task above and a caption of each text task below."""
        from PIL import Image, ImageDraw

        picture = Image.open(io.BytesIO(jpeg)).convert("RGB")
        height = round(picture.height * self._width / picture.width)
        bar = self._step + MARGIN
        panel = LINES_A_CAPTION * self._step * len(self._tops) + (2 * MARGIN if self._tops else 0)
        canvas = Image.new("RGB", (self._width, bar + height + panel), PAPER)
        canvas.paste(picture.resize((self._width, height), Image.Resampling.BILINEAR), (0, bar))
        draw = ImageDraw.Draw(canvas)
        draw.text((MARGIN, MARGIN // 2), headline, font=self._font, fill=INK)
        for caption in captions:
            self._write(draw, bar + height + MARGIN + self._tops[caption.task], caption)
        return canvas

    def _write(self, draw: ImageDraw, top: int, caption: Caption) -> None:
        draw.text((MARGIN, top), caption.task, font=self._font, fill=LABEL)
        lines = self._lines(caption.text)
        for index, line in enumerate(lines):
            draw.text((self._left, top + index * self._step), line, font=self._font, fill=INK)
        if caption.mark is not None:
            right = self._left + self._font.getlength(lines[-1]) + self._size // 2
            place = (right, top + (len(lines) - 1) * self._step)
            draw.text(place, caption.mark.sign, font=self._font, fill=COLORS[caption.mark])
            after = (place[0] + self._size, place[1])
            draw.text(after, f"{caption.age_s:.1f} s ago", font=self._font, fill=LABEL)

    def _lines(self, text: str) -> list[str]:
        """The words in lines that leave room for a mark; of more than fit, the last ones."""
        room = self._width - MARGIN - self._left - 6 * self._size
        lines = [""]
        for word in text.split():
            longer = f"{lines[-1]} {word}".strip()
            if self._font.getlength(longer) > room and lines[-1]:
                lines.append(word)
            else:
                lines[-1] = longer
        return lines[-LINES_A_CAPTION:]


def _font(size: int) -> FreeTypeFont:
    """DejaVu Sans, which comes with matplotlib and knows the marks."""
    import matplotlib
    from PIL import ImageFont

    return ImageFont.truetype(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", size)
