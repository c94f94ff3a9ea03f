"""What kind of directory this is: the two that load, and the look-alikes that are refused with a way out."""

from __future__ import annotations

from pathlib import Path

from oxygen_ros.errors import CheckpointError
from oxygen_ros.models.engine_file import SUFFIXES as ENGINE_SUFFIXES
from oxygen_ros.models.engine_file import refuse_engine, this_platform
from oxygen_ros.models.json_file import read_json
from oxygen_ros.models.pi05.checkpoint import Origin
from oxygen_ros.models.pt_files import NAMES as PT_NAMES
from oxygen_ros.models.tensor_files import INDEX, SINGLE

ORBAX_MARKS = ("_CHECKPOINT_METADATA", "_METADATA", "manifest.ocdbt", "checkpoint", "_sharding")
ADAPTER_FILES = ("adapter_config.json", "adapter_model.safetensors", "adapter_model.bin")
PICKLE_SUFFIXES = (".bin", ".pkl", ".pickle", ".ckpt")


def find_origin(folder: Path) -> tuple[Origin, str]:
    """Which project wrote ``folder``, and by what this shows.

    Raises:
        CheckpointError: if it is no checkpoint, or one of a kind that cannot be loaded.
    """
    if not folder.exists():
        raise CheckpointError(
            "checkpoint_missing",
            f"checkpoint {folder} does not exist",
            "check the path; none is ever downloaded",
        )
    if not folder.is_dir():
        raise _refuse_file(folder)
    _refuse_adapter(folder)
    _refuse_jax(folder)
    if not any((folder / name).is_file() for name in (SINGLE, INDEX, *PT_NAMES)):
        raise _refuse_without_weights(folder)
    if (folder / "config.json").is_file() and "type" in read_json(folder / "config.json"):
        return Origin.LEROBOT, "config.json has a policy type"
    if (folder / "policy_preprocessor.json").is_file():
        return Origin.LEROBOT, "there is a policy_preprocessor.json"
    return Origin.OPENPI, "config.json has no policy type" if (
        folder / "config.json"
    ).is_file() else "there is no config.json"


def _refuse_file(path: Path) -> CheckpointError:
    if path.suffix in ENGINE_SUFFIXES:
        return refuse_engine(path, this_platform())
    return CheckpointError(
        "checkpoint_file",
        f"checkpoint {path} is a file, want the directory with config, weights and statistics",
        f"give {path.parent}",
    )


def _refuse_adapter(folder: Path) -> None:
    found = [name for name in ADAPTER_FILES if (folder / name).is_file()]
    if found:
        raise CheckpointError(
            "checkpoint_adapter",
            f"{folder} holds a PEFT adapter ({', '.join(found)}): the difference to a model, not the model",
            "merge it into its base model first (peft: merge_and_unload, then save_pretrained)",
        )


def _refuse_jax(folder: Path) -> None:
    for place in (folder, folder / "params"):
        found = [name for name in ORBAX_MARKS if (place / name).exists()]
        if found and not (folder / SINGLE).is_file():
            raise CheckpointError(
                "checkpoint_jax",
                f"{folder} is an openpi checkpoint for JAX (orbax: {', '.join(found)} in {place})",
                "convert it with openpi's examples/convert_jax_model_to_pytorch.py (--checkpoint_dir, "
                "--config_name, --output_path), then see that assets/ was copied too",
            )


def _refuse_without_weights(folder: Path) -> CheckpointError:
    pickles = sorted(path.name for path in folder.iterdir() if path.suffix in PICKLE_SUFFIXES)
    if pickles:
        return CheckpointError(
            "checkpoint_pickle",
            f"{folder} holds pickled weights ({', '.join(pickles[:3])}): loading one can run any code",
            "save the model as safetensors where it was trained",
        )
    deeper = sorted(str(path.parent.relative_to(folder)) for path in folder.glob(f"*/{SINGLE}"))
    deeper += sorted(str(path.parent.relative_to(folder)) for path in folder.glob(f"*/*/{SINGLE}"))
    if deeper:
        return CheckpointError(
            "checkpoint_deeper",
            f"{folder} itself is no checkpoint, but there is one in {', '.join(deeper[:3])}",
            f"give {folder / deeper[0]}",
        )
    names = sorted(path.name for path in folder.iterdir())
    return CheckpointError(
        "checkpoint_unknown",
        f"{folder} is not a checkpoint: it holds {', '.join(names[:8]) or 'nothing'}, no {SINGLE} or {INDEX}",
        "give the directory with config.json, model.safetensors and the statistics",
    )
