"""Compressed parts of bags: chunks, single messages, whole files. Reads as much as a cut part still holds."""

from __future__ import annotations

import sys
import tempfile
import zlib
from pathlib import Path
from typing import IO

import lz4.frame

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PackedError = zstd.ZstdError
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
PIECE_BYTES = 1 << 22


def inflate(
    raw: bytes, compression: str, size: int, checksum: int = 0, is_cut: bool = False
) -> tuple[bytes, bool]:
    """Content of a chunk, and whether it is all there and right. Damage costs the chunk, a cut its end."""
    if compression == "":
        content = raw
    else:
        try:
            content = _inflated(raw, compression)
        except (zstd.ZstdError, RuntimeError, ValueError, EOFError):
            return b"", False
        if size and len(content) != size:
            return content if is_cut else b"", False
    if checksum and not is_cut and zlib.crc32(content) != checksum:
        return b"", False
    return content, not is_cut


def _inflated(raw: bytes, compression: str) -> bytes:
    """As much as ``raw`` holds.

    Raises:
        ValueError: if the compression is not known.
    """
    if compression == "zstd":
        return zstd.ZstdDecompressor().decompress(raw)
    if compression == "lz4":
        return bytes(lz4.frame.LZ4FrameDecompressor().decompress(raw))
    raise ValueError(compression)


def message_bytes(data: bytes) -> bytes:
    """A message as it was sent: rosbag2 can compress each one, and CDR never begins as zstd does."""
    return zstd.decompress(data) if data.startswith(ZSTD_MAGIC) else data


def unpack_file(path: Path, folder: Path) -> tuple[Path, bool]:
    """A compressed file unpacked into ``folder``, and whether all of it could be."""
    target = Path(tempfile.mkdtemp(dir=folder)) / path.name.removesuffix(".zstd")
    unpack = zstd.ZstdDecompressor()
    with path.open("rb") as packed, target.open("wb") as whole:
        try:
            _copy(packed, whole, unpack)
        except zstd.ZstdError:
            return target, False
    return target, unpack.eof


def _copy(packed: IO[bytes], whole: IO[bytes], unpack: zstd.ZstdDecompressor) -> None:
    while not unpack.eof and (piece := packed.read(PIECE_BYTES)):
        whole.write(unpack.decompress(piece))
