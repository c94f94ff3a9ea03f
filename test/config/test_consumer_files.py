"""The params files of the consumers state the defaults, and all of them."""

from pathlib import Path

import pytest
import yaml

from oxygen_ros.config.schema import parameter_specs
from oxygen_ros.memory.settings import MemorySettings
from oxygen_ros.speech.settings import SpeechSettings

CONFIG = Path(__file__).resolve().parents[2] / "config"
CASES = [("speech.yaml", SpeechSettings()), ("memory.yaml", MemorySettings())]


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_params_file_equals_the_declared_defaults(name, settings):
    (node,) = yaml.safe_load((CONFIG / name).read_text(encoding="utf-8")).values()
    defaults = {spec.name: spec.default for spec in parameter_specs(settings)}
    shown = {
        key: list(value) or [""] if isinstance(value, tuple) else value for key, value in defaults.items()
    }
    assert node["ros__parameters"] == shown


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_page_on_consumers_names_every_parameter(name, settings):
    page = (CONFIG.parent / "docs" / "consumers.md").read_text(encoding="utf-8")
    assert [spec.name for spec in parameter_specs(settings) if f"`{spec.name}`" not in page] == []
