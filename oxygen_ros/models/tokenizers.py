"""Tokenizers from local files: SentencePiece ``.model`` and Hugging Face ``tokenizer.json``.

Nothing is ever fetched. Files of known content are recognised by their sha256, so that a log line can
say which vocabulary it is. Knows nothing of prompts: begin tokens and truncation belong to the caller.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from oxygen_ros.errors import CheckpointError
from oxygen_ros.models.protocol import Tokenizer

KNOWN_SHA256 = {
    "8986bb4f423f07f8c7f70d0dbe3526fb2316056c17bae71b1ea975e77a168fc6": "PaliGemma SentencePiece",
    "61a7b147390c64585d6c3543dd6fc636906c9af3865a5548f27f31aee1d4c8e2": "Gemma SentencePiece",
    "d0d908b4f9326e0998815690e325b6abbd378978553e10627924dd825db7e243": "Gemma tokenizer.json",
    "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4": "Qwen3 tokenizer.json",
}

# A text and its ids in Gemma's vocabulary: a file of unknown content is Gemma's if it agrees.
GEMMA_PROBE = ("Task: pick up the red cup", (7071, 235292, 4788, 908, 573, 3118, 7190))

FILE_NAMES = ("tokenizer.json", "tokenizer.model", "paligemma_tokenizer.model")

_SPECIAL_NAME = re.compile(
    r"<(pad|eos|bos|unk|mask|2mass|unused\d+|loc\d+|seg\d+|(start|end)_of_\w+)>"
    r"|\[@BOS@\]|\[toxicity=0\]|<\|\w+\|>"
)
# The first group that the vocabulary knows counts: in Gemma's, "<s>" and "</s>" are only HTML.
_BEGIN_GROUPS = (("<bos>",), ("<s>",))
_END_GROUPS = (("<eos>",), ("<|endoftext|>", "<|im_end|>"), ("</s>",))


@dataclass(frozen=True)
class TokenizerFile:
    """Where a tokenizer came from. ``known_as`` is None for a file of unknown content."""

    path: Path
    sha256: str
    known_as: str | None


class LocalTokenizer(Tokenizer, Protocol):
    """A tokenizer that also knows its file and the tokens that begin and end a text."""

    @property
    def file(self) -> TokenizerFile:
        """Where it came from."""
        ...

    @property
    def begin_id(self) -> int | None:
        """Id put before a prompt, if the vocabulary has one."""
        ...

    @property
    def end_ids(self) -> frozenset[int]:
        """Ids that end a text."""
        ...


class _NamedVocabulary:
    """What both kinds share: piece names decide which ids are special and which begin or end a text."""

    def __init__(self, file: TokenizerFile, names: list[str], control_ids: frozenset[int]) -> None:
        self.file = file
        self.vocab_size = len(names)
        named = {token_id for token_id, name in enumerate(names) if _SPECIAL_NAME.fullmatch(name)}
        self._special_ids = frozenset(named | control_ids)
        by_name = {name: token_id for token_id, name in enumerate(names)}
        self.begin_id = min(_first_group(by_name, _BEGIN_GROUPS), default=None)
        self.end_ids = _first_group(by_name, _END_GROUPS)

    def is_special(self, token_id: int) -> bool:
        """True for control, unused, location and segmentation tokens, and for ids outside the vocabulary."""
        return not 0 <= token_id < self.vocab_size or token_id in self._special_ids

    def _spoken(self, token_ids: list[int]) -> list[int]:
        return [token_id for token_id in token_ids if not self.is_special(token_id)]


class SentencePieceTokenizer(_NamedVocabulary):
    """A SentencePiece ``.model``. Control names in a text stay text: nobody can type a control token."""

    def __init__(self, file: TokenizerFile) -> None:
        from sentencepiece import SentencePieceProcessor

        self._processor: Any = SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(file.path.read_bytes())
        except (RuntimeError, OSError) as error:
            raise _broken(file.path, error) from error
        size = int(self._processor.GetPieceSize())
        names = [str(self._processor.IdToPiece(token_id)) for token_id in range(size)]
        control = frozenset(
            token_id
            for token_id in range(size)
            if self._processor.IsControl(token_id)
            or self._processor.IsUnused(token_id)
            or self._processor.IsUnknown(token_id)
        )
        super().__init__(file, names, control)

    def encode(self, text: str) -> list[int]:
        """Ids of ``text`` without any begin or end token."""
        return [int(token_id) for token_id in self._processor.EncodeAsIds(text)]

    def decode(self, token_ids: list[int]) -> str:
        """Text of ``token_ids``; special tokens give nothing; a cut character gives U+FFFD."""
        return str(self._processor.DecodeIds(self._spoken(token_ids))) if token_ids else ""


class JsonTokenizer(_NamedVocabulary):
    """A ``tokenizer.json``. Special names in a text stay text: nobody can type a control token."""

    def __init__(self, file: TokenizerFile) -> None:
        from tokenizers import Tokenizer as HuggingFaceTokenizer

        try:
            self._tokenizer: Any = HuggingFaceTokenizer.from_str(file.path.read_text(encoding="utf-8"))
        # The library raises a bare Exception for a file that it cannot read.
        except Exception as error:
            raise _broken(file.path, error) from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True
        by_name = self._tokenizer.get_vocab(with_added_tokens=True)
        names = [""] * (max(by_name.values(), default=-1) + 1)
        for name, token_id in by_name.items():
            names[token_id] = name
        added = self._tokenizer.get_added_tokens_decoder()
        super().__init__(file, names, frozenset(i for i, token in added.items() if token.special))

    def encode(self, text: str) -> list[int]:
        """Ids of ``text`` without any begin or end token."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, token_ids: list[int]) -> str:
        """Text of ``token_ids``; special tokens give nothing; a cut character gives U+FFFD."""
        return str(self._tokenizer.decode(self._spoken(token_ids), skip_special_tokens=False))


def open_tokenizer(path: Path) -> LocalTokenizer:
    """Open a tokenizer file, or the one tokenizer file in a directory.

    Raises:
        CheckpointError: if there is none, or it is of another kind or broken.
    """
    file = _describe(_find(path))
    if file.path.suffix == ".json":
        return JsonTokenizer(file)
    return SentencePieceTokenizer(file)


def is_gemma(tokenizer: Tokenizer) -> bool:
    """True if a probe text has Gemma's ids: PaliGemma's and Gemma's own files both do."""
    text, ids = GEMMA_PROBE
    return tuple(tokenizer.encode(text)) == ids


def _first_group(by_name: dict[str, int], groups: tuple[tuple[str, ...], ...]) -> frozenset[int]:
    for group in groups:
        if ids := frozenset(by_name[name] for name in group if name in by_name):
            return ids
    return frozenset()


def _find(path: Path) -> Path:
    if path.is_dir():
        for name in FILE_NAMES:
            if (path / name).is_file():
                return path / name
        raise CheckpointError(
            "tokenizer_missing",
            f"no tokenizer in {path}: looked for {', '.join(FILE_NAMES)}",
            "put the vocabulary file of the checkpoint there, or name it by the parameter 'tokenizer'",
        )
    if not path.is_file():
        raise CheckpointError(
            "tokenizer_missing",
            f"tokenizer file {path} does not exist",
            "give the path of a SentencePiece .model or of a tokenizer.json",
        )
    if path.suffix not in (".json", ".model"):
        raise CheckpointError(
            "tokenizer_kind",
            f"tokenizer file {path} is neither a SentencePiece .model nor a .json",
            "give the path of a SentencePiece .model or of a tokenizer.json",
        )
    return path


def _describe(path: Path) -> TokenizerFile:
    with path.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    return TokenizerFile(path=path, sha256=sha256, known_as=KNOWN_SHA256.get(sha256))


def _broken(path: Path, error: Exception) -> CheckpointError:
    return CheckpointError(
        "tokenizer_broken",
        f"tokenizer file {path} cannot be read: {error}",
        "copy the file again; a file of a few hundred bytes is often a pointer to the real one",
    )
