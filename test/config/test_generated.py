"""config/oxygen.yaml and docs/parameters.md are made from the declared parameters and up to date."""

import re
from pathlib import Path

import pytest
import yaml

from oxygen_ros.config import OxygenConfig
from oxygen_ros.config.schema import build, flatten, oxygen_schema
from oxygen_ros.config.source import flatten_keys, read_parameters
from oxygen_ros.config.value import coerce
from oxygen_ros.tools.gen_parameter_docs import ROOT, main, outdated

YAML = ROOT / "config" / "oxygen.yaml"


def test_generated_files_are_up_to_date() -> None:
    assert outdated(ROOT) == []
    assert main(["--check"]) == 0


def test_generated_files_that_differ_are_named_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--check", "--root", str(tmp_path)]) == 1
    assert "oxygen.yaml" in capsys.readouterr().err
    assert main(["--root", str(tmp_path)]) == 0
    assert main(["--check", "--root", str(tmp_path)]) == 0
    (tmp_path / "docs" / "parameters.md").write_text("changed by hand\n")
    assert main(["--check", "--root", str(tmp_path)]) == 1


def test_yaml_as_shipped_changes_nothing() -> None:
    given = read_parameters(YAML, "oxygen_node")
    assert list(given) == ["autostart"]
    assert build(given) == OxygenConfig()


def test_yaml_with_every_line_uncommented_is_the_defaults() -> None:
    shown = re.sub(r"^    #([a-z].*)$", r"    \1", YAML.read_text(), flags=re.MULTILINE)
    flat = flatten_keys(yaml.safe_load(shown)["/**"]["ros__parameters"], "")
    schema = oxygen_schema()
    specs = schema.expand({}) | {
        spec.name: spec for named in schema.named for spec in named.expand(f"<{named.noun}>")
    }
    values = {name: coerce(specs[name], raw, "oxygen.yaml") for name, raw in flat.items()}
    assert values == {name: specs[name].default for name in values}
    assert all(_is_in_default_section(name) for name in set(specs) - set(values))
    assert flatten(OxygenConfig()).items() >= {k: v for k, v in values.items() if "<" not in k}.items()


def test_yaml_has_help_for_every_parameter() -> None:
    lines = YAML.read_text().splitlines()
    for index, line in enumerate(lines):
        if re.match(r"    #[a-z_.]+: ", line) and "<" not in line and "tasks" not in line:
            assert lines[index - 1].startswith("    # "), line


def test_parameters_all_have_help_and_units_where_they_are_numbers() -> None:
    schema = oxygen_schema()
    specs = [*schema.parameters, *(spec for named in schema.named for spec in named.parameters)]
    unitless = {"seed", "priority", "temperature", "cost_quantile", "max_special_fraction"}
    unitless |= {"ensemble_decay", "rtc_max_guidance_weight"}
    for spec in specs:
        assert spec.facts.help.endswith("."), spec.name
        if spec.kind.value in ("int", "float") and spec.name.rpartition(".")[2] not in unitless:
            assert spec.facts.unit, spec.name


def _is_in_default_section(name: str) -> bool:
    """True for a parameter of a section that exists by default; its pattern stands in the file instead."""
    return any(
        name.startswith(f"{named.prefix}.{key}.") for named in oxygen_schema().named for key in named.defaults
    )
