"""The errors that people meet: each has a stable code, what was got and wanted, and what to do.

Shortage that is to be expected (no row free, no slack, a stale camera) is a value, not an error.
"""

from __future__ import annotations


class OxygenError(Exception):
    """Base of the package's errors. ``str`` gives "code: message. Try: suggestion"."""

    def __init__(self, code: str, message: str, suggestion: str = "") -> None:
        super().__init__(code, message, suggestion)
        self.code = code
        self.message = message
        self.suggestion = suggestion

    def __str__(self) -> str:
        hint = f" Try: {self.suggestion}" if self.suggestion else ""
        return f"[{self.code}] {self.message}{hint}"


class ConfigError(OxygenError):
    """A parameter, preset or device profile that cannot be used."""


class CheckpointError(OxygenError):
    """Files of a checkpoint that are missing, broken, ambiguous or of another kind."""


class ContractError(OxygenError):
    """An input whose shape, dtype, names or values break the contract of a part."""


class RunnerError(OxygenError):
    """The model failed while it ran: not finite, out of memory, device lost."""


class IntegrityError(OxygenError):
    """Accounts that do not add up: a fault of our own."""
