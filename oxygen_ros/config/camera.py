"""One camera: its topic, how it is subscribed to, and where its picture goes."""

from __future__ import annotations

from dataclasses import dataclass, field

from oxygen_ros.config.field import parameter

ENCODINGS = ("", "rgb8", "bgr8", "rgba8", "bgra8", "mono8", "yuv422", "yuv422_yuy2")


@dataclass(frozen=True)
class QosConfig:
    """Quality of service of one subscription."""

    reliability: str = parameter(
        "best_effort",
        choices=("best_effort", "reliable"),
        help="best_effort hears every publisher; reliable hears reliable ones only.",
    )
    depth: int = parameter(1, unit="messages", minimum=1, maximum=1000, help="Messages kept until taken.")


@dataclass(frozen=True)
class CameraConfig:
    """One camera role."""

    topic: str = parameter("", help="Topic of the picture.")
    type: str = parameter("Image", choices=("Image", "CompressedImage"), help="Message type of the topic.")
    qos: QosConfig = field(default_factory=QosConfig)
    encoding_override: str = parameter(
        "", choices=ENCODINGS, help="Used in place of the message's encoding. Empty: the message is trusted."
    )
    rotate_180: bool = parameter(False, help="Turns the picture by 180 degrees first.")
    slot: str = parameter(
        "", help="Camera slot of the model, e.g. base_0_rgb. Empty: the role is the slot's name."
    )
    feature: str = parameter(
        "", help="Image key in a LeRobot checkpoint, e.g. observation.images.top. Empty: found by slot."
    )
    required: bool = parameter(True, help="False: without it the robot acts on; the slot is masked.")
    max_age_s: float = parameter(
        0.2, unit="s", minimum=0.001, maximum=3600.0, help="An older picture is stale: the robot holds."
    )
    expected_rate_hz: float = parameter(
        0.0, unit="Hz", minimum=0.0, maximum=1000.0, help="Diagnostics warn below half of it. 0: not checked."
    )

    @property
    def max_age_ns(self) -> int:
        """The age limit in nanoseconds."""
        return round(self.max_age_s * 1e9)
