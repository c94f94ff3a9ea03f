"""Who may import whom, read from the syntax trees: docs/architecture.md draws the same picture.

A module's level is its first folder, or its own name at the top. Each level lists the levels it may use and
the libraries beyond Python's own. What is not listed is refused, so a new folder starts by being named here.
"""

import ast
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "oxygen_ros"

BASE = {"types", "errors", "clock", "config"}
CORE = BASE | {"kv", "robots", "text", "models", "runners", "engine", "runtime", "sim"}
BAGS = {"rosbags", "lz4", "backports", "compression"}
FILES = {"tokenizers", "sentencepiece", "safetensors", "PIL", "cv2"}


@dataclass(frozen=True)
class Level:
    """What the modules of one level may import: `ours` by level or module, `libraries` by top-level name."""

    ours: set[str] = field(default_factory=set)
    libraries: set[str] = field(default_factory=set)


LEVELS = {
    "__init__": Level(),
    "errors": Level(),
    "types": Level({"errors"}, {"numpy"}),
    "clock": Level({"errors"}),
    "config": Level({"errors", "types", "config"}, {"numpy", "yaml"}),
    "kv": Level({"errors", "types", "kv"}, {"numpy", "torch"}),
    "robots": Level({"errors", "types", "config", "robots"}, {"numpy", "yaml"}),
    "text": Level({"errors", "types", "models.protocol", "text"}, {"numpy"}),
    "models": Level({"errors", "types", "kv", "models"}, {"numpy", "torch"} | FILES),
    "runners": Level(BASE | {"kv", "models", "runners"}, {"numpy", "torch", "tensorrt"}),
    "engine": Level(BASE | {"kv", "text", "models.protocol", "runners.protocol", "engine"}, {"numpy"}),
    "runtime": Level(
        BASE | {"kv", "text", "robots", "engine", "models.protocol", "runtime"}, {"numpy", "cv2", "PIL"}
    ),
    "sim": Level(BASE | {"robots", "models.protocol", "sim"}, {"numpy", "mujoco"}),
    "speech": Level(BASE | {"text", "runtime.refusals", "runtime.text_release", "speech"}),
    "memory": Level(BASE | {"memory"}),
    "assembly": Level(CORE | {"assembly"}, {"numpy", "torch"}),
    "replay": Level(
        CORE | {"__version__", "assembly", "replay"}, {"numpy", "yaml", "cv2", "matplotlib"} | BAGS
    ),
    "demo": Level(
        {"__version__", "errors", "clock", "types", "runtime.stamps", "replay.bag", "sim", "demo"},
        {"numpy", "matplotlib", "PIL"},
    ),
    # The one part of it that runs a model, loaded only when it is asked for.
    "demo/compare": Level(CORE | {"training", "demo"}, {"numpy", "torch"}),
    "training": Level(CORE | {"assembly", "training"}, {"numpy", "torch"} | FILES),
    "tools": Level(
        # The doctor looks at the running graph only when it is asked to.
        CORE | {"assembly", "replay", "tools", "ros.doctor_graph"},
        {"numpy", "torch", "yaml", "onnx"} | FILES | BAGS,
    ),
}
ROS_LEVEL = "ros"  # may import everything

NO_TORCH = ("kv/ledger.py", "kv/layout.py")  # beside the levels that do not list torch at all
TENSORRT_HOME = "runners/tensorrt.py"
CLOCK_HOME = "clock.py"
TIME_ELSEWHERE: dict[str, str] = {}  # module: the reason why it reads the clock of the machine itself

PICKLES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}


def modules() -> dict[str, ast.Module]:
    """Return every module of the package by its path below the package."""
    root = ROOT / PACKAGE
    return {
        str(p.relative_to(root)): ast.parse(p.read_text(encoding="utf-8"), str(p))
        for p in sorted(root.rglob("*.py"))
    }


def level_of(path: str) -> str:
    if path.startswith("demo/compare"):
        return "demo/compare"
    first, slash, _ = path.partition("/")
    return first if slash else first.removesuffix(".py")


def imported(tree: ast.Module) -> set[str]:
    """Return the full names of all that a module imports, anywhere in it, lazily or for types alone."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            home = "." * node.level + (node.module or "")
            names |= {f"{home}.{alias.name}" for alias in node.names} if home == PACKAGE else {home}
        elif isinstance(node, ast.Call) and called_name(node).rpartition(".")[2] in (
            "import_module",
            "__import__",
        ):
            names |= {arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant)}
    return names


def called_name(call: ast.Call) -> str:
    """Return the dotted name of what is called, as far as it is a name."""
    parts: list[str] = []
    node: ast.expr = call.func
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return ".".join(reversed(parts))


def direction_faults(path: str, tree: ast.Module) -> list[str]:
    """Return the imports that a module's level does not allow."""
    level = level_of(path)
    if level == ROS_LEVEL:
        return []
    if level not in LEVELS:
        return [f"{path}: its level {level!r} is not in the table"]
    rule = LEVELS[level]
    faults = []
    for name in sorted(imported(tree)):
        top, _, rest = name.partition(".")
        if name.startswith("."):
            faults.append(f"{path}: relative import {name}")
        elif top == PACKAGE:
            parts = rest.split(".")
            if parts[0] not in rule.ours and ".".join(parts[:2]) not in rule.ours:
                faults.append(f"{path}: {level} must not know {name}")
        elif top not in sys.stdlib_module_names and top not in rule.libraries:
            faults.append(f"{path}: {level} must not import {name}")
    return faults


def library_faults(path: str, tree: ast.Module) -> list[str]:
    """Return imports of what belongs into one file only, and of what reads code from files."""
    tops = {name.partition(".")[0] for name in imported(tree)}
    faults = []
    if path in NO_TORCH and "torch" in tops:
        faults.append(f"{path}: torch")
    if path != TENSORRT_HOME and "tensorrt" in tops:
        faults.append(f"{path}: tensorrt outside {TENSORRT_HOME}")
    if path != CLOCK_HOME and path not in TIME_ELSEWHERE and tops & {"time", "datetime"}:
        faults.append(f"{path}: the machine's clock outside {CLOCK_HOME}")
    faults += [f"{path}: {name}" for name in sorted(tops & PICKLES)]
    return faults


def is_true(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is True


def is_false(value: ast.expr | None) -> bool:
    """Tell whether a keyword is left out or False."""
    return value is None or (isinstance(value, ast.Constant) and value.value is False)


def unsafe_loads(path: str, tree: ast.Module) -> list[str]:
    """Return calls that could run code from a file."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    safe_loaders = {node.name for node in classes if "yaml.SafeLoader" in map(ast.unparse, node.bases)}
    faults = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value == "trust_remote_code":
            faults.append(f"{path}:{node.lineno}: trust_remote_code")
        if not isinstance(node, ast.Call):
            continue
        name = called_name(node)
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        if "trust_remote_code" in keywords:
            faults.append(f"{path}:{node.lineno}: trust_remote_code")
        if name == "torch.load" and not is_true(keywords.get("weights_only")):
            faults.append(f"{path}:{node.lineno}: torch.load without weights_only=True")
        if name in ("np.load", "numpy.load") and not is_false(keywords.get("allow_pickle")):
            faults.append(f"{path}:{node.lineno}: numpy.load with allow_pickle")
        if (
            name == "yaml.load"
            and not set(map(ast.unparse, [*node.args[1:], *keywords.values()])) & safe_loaders
        ):
            faults.append(f"{path}:{node.lineno}: yaml.load without a safe loader")
        if name in ("yaml.unsafe_load", "yaml.full_load", "eval", "exec"):
            faults.append(f"{path}:{node.lineno}: {name}")
    return faults


@pytest.mark.parametrize("check", [direction_faults, library_faults, unsafe_loads])
def test_package_imports_keep_the_boundaries(check):
    found = modules()
    assert len(found) > 20
    assert [fault for path, tree in found.items() for fault in check(path, tree)] == []


def test_exceptions_all_used():
    found = modules()
    unused = [
        p for p in TIME_ELSEWHERE if p not in found or not library_faults_without_exception(p, found[p])
    ]
    assert unused == []
    assert all(len(reason.split()) > 3 for reason in TIME_ELSEWHERE.values())


def library_faults_without_exception(path: str, tree: ast.Module) -> list[str]:
    """Return the faults a listed module would have if it were not listed."""
    return library_faults(f"unlisted/{path}", tree)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("engine/scheduler.py", "import torch"),
        ("engine/engine.py", "def f():\n    import torch.nn"),
        ("engine/engine.py", "from oxygen_ros.models.pi05 import model"),
        ("engine/engine.py", "from oxygen_ros.runners.eager import EagerRunner"),
        ("engine/engine.py", "from oxygen_ros import runtime"),
        ("kv/ledger.py", "from oxygen_ros.models.protocol import ModelSpec"),
        ("runtime/control_cycle.py", "import rclpy"),
        ("runtime/control_cycle.py", "import importlib\nimportlib.import_module('std_msgs.msg')"),
        ("runtime/control_cycle.py", "from oxygen_ros.msg import ActionChunk"),
        ("runtime/control_cycle.py", "from . import mailbox"),
        ("types.py", "import torch"),
        ("config/model.py", "import oxygen_ros.engine.engine"),
        ("assembly.py", "from oxygen_ros.ros.qos import SENSOR"),
        ("demo/finish.py", "from oxygen_ros.training import product"),
        ("demo/compare.py", "import rclpy"),
        ("attic/new.py", "import numpy"),
    ],
)
def test_direction_forbidden_import_found(path, source):
    assert len(direction_faults(path, ast.parse(source))) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("kv/ledger.py", "import torch"),
        ("runners/eager.py", "import tensorrt"),
        ("ros/oxygen_node.py", "import tensorrt"),
        ("engine/budget.py", "import time"),
        ("ros/oxygen_node.py", "from time import monotonic"),
        ("models/pi05/weights.py", "import pickle"),
    ],
)
def test_library_out_of_its_place_found(path, source):
    assert len(library_faults(path, ast.parse(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "AutoModel.from_pretrained(path, trust_remote_code=True)",
        "options = {'trust_remote_code': True}",
        "np.load(path, allow_pickle=True)",
        "yaml.load(text)",
        "yaml.load(text, yaml.Loader)",
        "eval(text)",
    ],
)
def test_unsafe_load_found(source):
    assert len(unsafe_loads("models/weights.py", ast.parse(source))) == 1


def test_safe_load_passes():
    source = "np.load(path, allow_pickle=False)\nyaml.safe_load(text)\nmodel.eval()\n"
    source += "torch.load(path, weights_only=True, map_location='cpu')"
    loader = "class Strict(yaml.SafeLoader):\n    pass\nyaml.load(text, Strict)"
    assert unsafe_loads("models/weights.py", ast.parse(source)) == []
    assert unsafe_loads("config/source.py", ast.parse(loader)) == []
