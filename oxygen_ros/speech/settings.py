"""Parameters of the speech node."""

from __future__ import annotations

from dataclasses import dataclass

from oxygen_ros.config.field import parameter


@dataclass(frozen=True)
class SpeechSettings:
    """What speaks, and how much may wait to be said."""

    command: tuple[str, ...] = parameter(
        (),
        help="Program and arguments that say one sentence. {text} in an argument stands for it; without one "
        "it comes by standard input. ['']: espeak-ng --stdin, or the log where that is not installed.",
    )
    max_waiting: int = parameter(
        16, unit="sentences", minimum=1, maximum=1000, help="The oldest go when more wait to be said."
    )
    max_age_s: float = parameter(
        15.0, unit="s", minimum=0.1, maximum=3600.0, help="Sentences that have waited longer are not said."
    )
    max_utterance_s: float = parameter(
        30.0, unit="s", minimum=0.1, maximum=3600.0, help="A command that takes longer is ended."
    )
    text_sentence: str = parameter("oxygen_node/text_sentence", help="In: sentences to say (String).")
    text_stream: str = parameter("oxygen_node/text_stream", help="In: tells which texts are cancelled.")

    @property
    def max_age_ns(self) -> int:
        """The age limit in nanoseconds."""
        return round(self.max_age_s * 1e9)

    @property
    def max_utterance_ns(self) -> int:
        """The limit of one utterance in nanoseconds."""
        return round(self.max_utterance_s * 1e9)
