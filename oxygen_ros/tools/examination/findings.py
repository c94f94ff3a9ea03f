"""Findings of the doctor: facts, warnings and refusals in sections, for people and for machines."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from oxygen_ros.errors import OxygenError


class Level(enum.IntEnum):
    """How bad a finding is; the worst one is the exit code."""

    OK = 0
    """A fact."""
    WARNING = 1
    """Odd, or likely not meant; the node starts."""
    REFUSAL = 2
    """The node does not start, or does not act."""


_MARKS = {Level.OK: "    ", Level.WARNING: "warn", Level.REFUSAL: "NO  "}


@dataclass(frozen=True)
class Finding:
    """One finding. ``values`` are for machines and are not printed to people."""

    level: Level
    text: str
    code: str = ""
    suggestion: str = ""
    values: dict[str, Any] = field(default_factory=dict)


@dataclass
class Section:
    """Findings about one subject, in the order they were made."""

    title: str
    findings: list[Finding] = field(default_factory=list)

    def fact(self, text: str, /, **values: Any) -> None:
        """Something that was found."""
        self.findings.append(Finding(Level.OK, text, values=values))

    def warn(self, text: str, /, code: str = "", suggestion: str = "", **values: Any) -> None:
        """Something odd."""
        self.findings.append(Finding(Level.WARNING, text, code, suggestion, values))

    def refuse(self, text: str, /, code: str = "", suggestion: str = "", **values: Any) -> None:
        """Something that stops the node."""
        self.findings.append(Finding(Level.REFUSAL, text, code, suggestion, values))

    def refuse_error(self, error: OxygenError) -> None:
        """A refusal that the node itself would give."""
        self.findings.append(Finding(Level.REFUSAL, error.message, error.code, error.suggestion))

    @property
    def level(self) -> Level:
        """The worst finding."""
        return max((finding.level for finding in self.findings), default=Level.OK)


@dataclass(frozen=True)
class Diagnosis:
    """All sections of one examination."""

    sections: Sequence[Section]

    @property
    def level(self) -> Level:
        """The worst finding of all."""
        return max((section.level for section in self.sections), default=Level.OK)

    def to_text(self) -> str:
        """Everything for people."""
        lines = []
        for section in self.sections:
            lines.append(section.title)
            for finding in section.findings:
                first, *more = finding.text.splitlines() or [""]
                lines.append(f"  {_MARKS[finding.level]} {first}")
                lines += [f"       {line}" for line in more]
                if finding.suggestion:
                    lines.append(f"       try: {finding.suggestion}")
        counts = {level: self._count(level) for level in Level}
        verdict = {Level.OK: "ok", Level.WARNING: "warnings", Level.REFUSAL: "refused"}[self.level]
        lines.append(
            f"verdict: {verdict} ({counts[Level.REFUSAL]} refusals, {counts[Level.WARNING]} warnings)"
        )
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Everything for machines."""
        return {
            "verdict": self.level.name.lower(),
            "exit_code": int(self.level),
            "sections": [
                {
                    "title": section.title,
                    "findings": [
                        {
                            "level": finding.level.name.lower(),
                            "text": finding.text,
                            "code": finding.code,
                            "suggestion": finding.suggestion,
                            "values": finding.values,
                        }
                        for finding in section.findings
                    ],
                }
                for section in self.sections
            ],
        }

    def _count(self, level: Level) -> int:
        return sum(finding.level is level for section in self.sections for finding in section.findings)
