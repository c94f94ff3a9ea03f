"""Every launch file: by its syntax tree always, and loaded by the real libraries where they are installed.

The libraries have no Python wheels. Without them this shows that a file uses known names and keywords, starts
programs that are installed, and names files that exist; test_launch_arguments.py has the arguments' meaning.
"""

import ast
from pathlib import Path

import pytest
from launch_api import KEYWORDS, NAMES, REQUIRED

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "launch").glob("*.launch.py"))
PROGRAMS = {
    line.split()[0]
    for line in (ROOT / "cmake" / "programs.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
}


def calls(tree: ast.Module) -> list[tuple[str, ast.Call]]:
    """Return the calls of launch classes with the name of the class."""
    found = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    return [(node.func.id, node) for node in found if node.func.id in KEYWORDS]


def texts_of(value: ast.expr, tree: ast.Module) -> set[str]:
    """Return the texts an expression can be: itself, or those a comprehension takes its name from."""
    if isinstance(value, ast.Constant):
        return {value.value}
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.comprehension)]
    sources = [loop.iter for loop in loops if ast.unparse(loop.target) == ast.unparse(value)]
    return {item.value for source in sources for item in ast.walk(source) if isinstance(item, ast.Constant)}


def faults(source: str) -> list[str]:
    """Return what is wrong with a launch file as far as its syntax tree tells."""
    tree = ast.parse(source)
    found = []
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if "generate_launch_description" not in functions or functions["generate_launch_description"].args.args:
        found.append("generate_launch_description() is missing")
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [f"import {alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("oxygen_ros."):
            names = {alias.name for alias in node.names}
            found += [f"{node.module}.{name}" for name in names - NAMES.get(node.module or "", set())]
    for name, call in calls(tree):
        keywords = {keyword.arg: keyword.value for keyword in call.keywords}
        found += [f"{name}({keyword}=)" for keyword in keywords.keys() - KEYWORDS[name]]
        found += [f"{name} without {keyword}" for keyword in REQUIRED.get(name, set()) - keywords.keys()]
        if name in REQUIRED and "executable" in keywords:
            started = texts_of(keywords["executable"], tree)
            found += [
                f"no program {program}" for program in started - PROGRAMS or ([] if started else ["at all"])
            ]
        if name == "PathJoinSubstitution":
            parts = [item.value for item in call.args[0].elts if isinstance(item, ast.Constant)]
            found += [] if ROOT.joinpath(*parts).is_file() else [f"no file {'/'.join(parts)}"]
        if name == "DeclareLaunchArgument" and "description" not in keywords:
            found.append(f"argument without description, line {call.lineno}")
    return found


def test_launch_files_are_those_of_the_design():
    names = {path.name for path in FILES}
    assert names >= {"oxygen.launch.py", "demo.launch.py", "replay.launch.py"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_launch_file_syntax_tree_has_no_faults(path):
    source = path.read_text(encoding="utf-8")
    assert faults(source) == []
    assert ast.get_docstring(ast.parse(source))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_launch_file_chooses_the_shared_memory_transport(path):
    texts = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
    sets_it = {"FASTRTPS_DEFAULT_PROFILES_FILE", "fastdds_shm.xml"} <= texts
    assert sets_it or "oxygen.launch.py" in texts, "neither sets it nor includes the file that does"


START = "from launch import LaunchDescription\n"
HEAD = START + "def generate_launch_description():\n    return "


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        (START, "generate_launch_description() is missing"),
        (HEAD + "None\nimport launch", "import launch"),
        (HEAD + "None\nfrom launch.actions import GroupThing", "launch.actions.GroupThing"),
        (
            HEAD + "DeclareLaunchArgument('a', default='b', description='c')",
            "DeclareLaunchArgument(default=)",
        ),
        (HEAD + "Node(package='oxygen_ros', executable='oxygen')", "no program oxygen"),
        (HEAD + "[Node(package='p', executable=x) for x in ('oxygen_node', 'b')]", "no program b"),
        (
            HEAD + "LifecycleNode(package='p', executable='oxygen_node', name='n')",
            "LifecycleNode without namespace",
        ),
        (HEAD + "PathJoinSubstitution([share, 'config', 'none.yaml'])", "no file config/none.yaml"),
        (HEAD + "DeclareLaunchArgument('bag')", "argument without description, line 3"),
    ],
)
def test_syntax_tree_fault_found(source, fault):
    assert faults(source) == [fault]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_launch_file_real_libraries_load_it(path, monkeypatch):
    reason = "launch_ros is not installed (it has no wheels): the file was checked by its syntax tree alone"
    actions = pytest.importorskip("launch_ros.actions", reason=reason)
    from launch import LaunchContext
    from launch.actions import DeclareLaunchArgument, OpaqueFunction
    from launch.launch_description_sources import PythonLaunchDescriptionSource

    context = LaunchContext()
    description = PythonLaunchDescriptionSource(str(path)).get_launch_description(context)
    declared = [entity for entity in description.entities if isinstance(entity, DeclareLaunchArgument)]
    for argument in declared:
        context.launch_configurations.setdefault(argument.name, "")
        argument.visit(context)
    started = list(description.entities)
    for entity in description.entities:
        if isinstance(entity, OpaqueFunction):
            started += entity.execute(context) or []
    nodes = [entity for entity in started if isinstance(entity, actions.Node)]
    if path.name == "oxygen.launch.py":
        assert {node.node_executable for node in nodes} == {"oxygen_node", "action_player"}
        assert {argument.name for argument in declared} >= {"preset", "device", "namespace", "autostart"}
    assert description.entities
