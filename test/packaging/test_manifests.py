"""What package.xml, CMakeLists.txt, setup.py, requirements and changelog say, and that they agree."""

import ast
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import oxygen_ros

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = ElementTree.parse(ROOT / "package.xml").getroot()
PROGRAMS = [
    line.split()
    for line in (ROOT / "cmake" / "programs.txt").read_text().splitlines()
    if not line.startswith("#")
]


def texts(tag: str) -> list[str]:
    return [element.text or "" for element in MANIFEST.iter(tag)]


def test_manifest_valid_for_ros_tools():
    package = pytest.importorskip("catkin_pkg.package", reason="needs catkin_pkg, which comes with ROS")
    parsed = package.parse_package(str(ROOT))
    parsed.validate()
    assert parsed.get_build_type() == "ament_cmake"
    assert [group.name for group in parsed.member_of_groups] == ["rosidl_interface_packages"]


def test_manifest_leaves_torch_and_tensorrt_to_the_user():
    named = texts("depend") + texts("exec_depend") + texts("build_depend")
    assert len(named) > 8
    assert [name for name in named if "torch" in name or "tensorrt" in name] == []


def test_manifest_names_every_ros_package_the_sources_import():
    known = set(texts("depend") + texts("exec_depend"))
    wanted = set()
    for path in [*(ROOT / "oxygen_ros" / "ros").rglob("*.py"), *(ROOT / "launch").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            wanted |= {name.partition(".")[0] for name in names}
    ros = {
        name
        for name in wanted
        if re.fullmatch(r"rclpy|\w+_msgs|\w+_srvs|builtin_\w+|rcl_\w+|launch\w*|ament_\w+", name)
    }
    assert ros - known == set()


def test_version_is_the_same_everywhere():
    (version,) = texts("version")
    assert oxygen_ros.__version__ == version
    command = [sys.executable, "setup.py", "--version"]
    assert (
        subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()[-1]
        == version
    )


def test_licence_is_the_one_the_manifest_names():
    (licence,) = MANIFEST.iter("license")
    assert licence.text == "Apache-2.0"
    text = (ROOT / licence.attrib["file"]).read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_cmake_lists_every_interface_file():
    listed = re.findall(r'"((?:msg|srv)/\w+\.(?:msg|srv))"', (ROOT / "CMakeLists.txt").read_text())
    present = [
        f"{path.parent.name}/{path.name}" for path in [*ROOT.glob("msg/*.msg"), *ROOT.glob("srv/*.srv")]
    ]
    assert sorted(listed) == sorted(present)


@pytest.mark.parametrize(("name", "module"), PROGRAMS)
def test_program_module_has_main(name, module):
    tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
    assert "main" in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)], name


def test_requirements_every_pin_exact():
    files = sorted((ROOT / "requirements").glob("*.txt"))
    assert len(files) >= 5
    lines = [(f.name, line) for f in files for line in f.read_text().splitlines() if line and line[0] != "#"]
    assert [(f, line) for f, line in lines if not re.fullmatch(r"[\w.-]+(\[\w+\])?==[\w.]+", line)] == []


def test_requirements_agree_with_constraints():
    pins: dict[str, set[str]] = {}
    for path in (ROOT / "requirements").glob("*.txt"):
        for line in path.read_text().splitlines():
            name, exact, version = line.partition("==")
            if exact and path.name != "colcon.txt":
                pins.setdefault(
                    re.sub(r"\[.*|[-_.]+", lambda m: "" if m[0][0] == "[" else "-", name).lower(), set()
                ).add(version)
    assert {name: versions for name, versions in pins.items() if len(versions) > 1} == {}


def test_changelog_has_the_form_that_release_tools_read():
    lines = (ROOT / "CHANGELOG.rst").read_text(encoding="utf-8").splitlines()
    assert lines[0] == lines[2] == "^" * len(lines[0])
    assert lines[1] == "Changelog for package oxygen_ros"
    titles = [lines[i - 1] for i, line in enumerate(lines) if i > 3 and re.fullmatch("-+", line)]
    assert titles
    assert [
        t for t in titles if not re.fullmatch(r"Forthcoming|\d+\.\d+\.\d+ \(\d{4}-\d{2}-\d{2}\)", t)
    ] == []


def test_no_file_names_a_registry_host():
    hosts = re.compile(r"pypi\.org|pythonhosted|download\.pytorch|" + "index" + "-url")
    places = [ROOT / "setup.py", ROOT / "pyproject.toml"]
    places += [
        path
        for folder in ("requirements", "scripts", ".ci")
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
    ]
    assert [
        str(path)
        for path in places
        if path.suffix != ".pyc" and hosts.search(path.read_text(encoding="utf-8"))
    ] == []
