"""The machine: free memory, and kernel buffers that large messages need."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from oxygen_ros.tools.examination.findings import Section

SYSCTL = Path("/proc/sys")
LARGE_MESSAGE_BYTES = 260_000
"""Above this one UDP message is so many fragments that a default receive buffer loses some."""
SUGGESTED_BYTES = 8 * 1024 * 1024
BUFFER = "net.core.rmem_max"
FRAGMENTS = ("net.ipv4.ipfrag_high_thresh", "net.ipv4.ipfrag_time")


def read_sysctl(name: str, root: Path = SYSCTL) -> int | None:
    """Value of a kernel setting, or None where there is none."""
    try:
        return int((root / name.replace(".", "/")).read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def examine_buffers(message_bytes: Mapping[str, int], root: Path = SYSCTL) -> Section:
    """Whether messages of these sizes, by topic, survive the kernel's buffers.

    Args:
        message_bytes: bytes of one message of each topic.
        root: where kernel settings are read.
    """
    section = Section("kernel buffers")
    held = read_sysctl(BUFFER, root)
    if held is None:
        section.fact(f"{BUFFER} cannot be read here")
        return section
    section.fact(f"{BUFFER} is {held} bytes", rmem_max=held)
    large = {topic: size for topic, size in message_bytes.items() if size > LARGE_MESSAGE_BYTES}
    wanted = 2 * sum(large.values())
    if held < wanted:
        shown = ", ".join(f"{topic} ({size} bytes)" for topic, size in large.items())
        section.warn(
            f"messages of {shown} are larger than {BUFFER} holds in flight: over the network they vanish",
            code="kernel_buffers",
            suggestion=f"sudo sysctl -w {BUFFER}={max(wanted, SUGGESTED_BYTES)}; see also "
            f"{' and '.join(FRAGMENTS)}; or publish compressed pictures",
            topics=large,
        )
    return section
