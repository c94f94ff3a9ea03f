"""What an openpi PyTorch directory says of its robot: statistics under ``assets``, by asset id."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from oxygen_ros.errors import CheckpointError
from oxygen_ros.models.json_file import JsonObject, read_json
from oxygen_ros.models.pi05.checkpoint import Feature
from oxygen_ros.models.pi05.statistics import FeatureStatistics, NormMode

ASSETS = "assets"
FILE = "norm_stats.json"


def read_features(folder: Path, asset_id: str, mode: NormMode) -> tuple[Feature, Feature]:
    """State and action statistics of an openpi directory.

    Args:
        folder: the checkpoint.
        asset_id: folder under ``assets``; empty takes the only one.
        mode: quantiles for pi0.5, mean and deviation for pi0.

    Raises:
        CheckpointError: if they are missing, empty, or it is not clear whose they are.
    """
    path = _find(folder / ASSETS, asset_id)
    document = read_json(path)
    groups = document.child("norm_stats") if "norm_stats" in document else document
    if not groups.data:
        raise CheckpointError(
            "statistics_empty",
            f"{path} holds no statistics at all",
            "copy it again from where the checkpoint was trained",
        )
    state, action = (_feature(groups, name, path, mode) for name in ("state", "actions"))
    return state, action


def _find(assets: Path, asset_id: str) -> Path:
    there = (
        sorted(str(path.parent.relative_to(assets)) for path in assets.rglob(FILE)) if assets.is_dir() else []
    )
    if not there:
        raise CheckpointError(
            "statistics_missing",
            f"no statistics: looked for {assets / (asset_id or '<asset id>') / FILE}",
            "copy assets/ from where the checkpoint was trained; conversion often leaves it behind",
        )
    if asset_id and asset_id not in there:
        raise CheckpointError(
            "statistics_asset",
            f"no statistics for asset id {asset_id!r}: looked for {assets / asset_id / FILE}; "
            f"there is {', '.join(there)}",
            "set model.asset_id to one of those",
        )
    if not asset_id and len(there) > 1:
        raise CheckpointError(
            "statistics_ambiguous",
            f"{assets} holds statistics of {len(there)} robots: {', '.join(there)}",
            "set model.asset_id to yours",
        )
    return assets / (asset_id or there[0]) / FILE


def _feature(groups: JsonObject, name: str, path: Path, mode: NormMode) -> Feature:
    if name not in groups:
        raise CheckpointError(
            "statistics_feature",
            f"{path} has no statistics for {name!r}; there are some for {', '.join(groups.data)}",
            "the statistics belong to another kind of policy",
        )
    group = groups.child(name)
    values = {
        key: np.array(group.numbers(key), np.float64) for key in group.data if group.data[key] is not None
    }
    return Feature(FeatureStatistics(name, str(path), values), mode, None)


def fit_to_robot(feature: Feature, num_dims: int) -> FeatureStatistics:
    """Statistics for a robot of ``num_dims`` numbers: what lies past them must be padding.

    Raises:
        CheckpointError: if the statistics are shorter, or tell of more joints.
    """
    statistics = feature.statistics
    if feature.mode is NormMode.IDENTITY:
        return statistics
    sizes = {vector.size for vector in statistics.values.values()}
    longest = max(sizes, default=0)
    if longest < num_dims or any(_has_content(statistics.values, num_dims)):
        raise CheckpointError(
            "statistics_robot",
            f"{statistics.source}: {statistics.feature!r} has {longest} dimensions, the robot has {num_dims}",
            "checkpoint and preset belong to different robots; see model.asset_id and robot.joint_names",
        )
    cut = {name: vector[:num_dims] for name, vector in statistics.values.items()}
    return FeatureStatistics(statistics.feature, statistics.source, cut)


def _has_content(values: Mapping[str, np.ndarray], num_dims: int) -> list[bool]:
    return [bool(np.any(vector[num_dims:])) for name, vector in values.items() if name != "std"]
