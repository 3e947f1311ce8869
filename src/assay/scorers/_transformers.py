"""Models of the transformers library, from a folder or from the hub: loaded once per process, with what they are.

Nothing is imported or downloaded before the first text is scored. Code that comes with a model is never run.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from assay.sdk import JsonMapping, Mask, UserError, install_command

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]

_WEIGHTS = ("*.safetensors", "*.bin", "config.json", "tokenizer.json", "vocab.txt")
_LONGEST = 512  # tokens, where neither the tokenizer nor the model says it


class Loaded(NamedTuple):
    """`identity` names the weights: by the commit of the hub, or by the digest of a folder's files."""

    tokenizer: Any
    model: Any
    torch: Any
    longest: int
    identity: dict[str, str]


def check_model(params: JsonMapping, where: str, name: str = "model") -> None:
    """Refuse, before anything is spent, what cannot work: missing packages, or a path where there is no model."""
    for package in ("torch", "transformers"):
        if find_spec(package) is None:
            raise UserError(
                f"this needs {package}, which is not installed",
                where=where,
                fix=install_command("neural"),
            )
    model = str(params[name])
    if model.startswith(("/", ".", "~")) and not (_folder(model) / "config.json").is_file():
        raise UserError(
            f"there is no model in {model!r}", where=where, fix="name a folder with a `config.json`"
        )


def load(kind: str, name: str, revision: str | None) -> Loaded:
    """A model of one of the library's classes, such as `AutoModel`; the same one for the same names."""
    found = _attempt(kind, name, revision)
    if isinstance(found, UserError):
        raise found
    return found


@cache
def _attempt(kind: str, name: str, revision: str | None) -> Loaded | UserError:
    """A failure is remembered too: it may have taken a while, and every batch would ask again."""
    torch, transformers = import_module("torch"), import_module("transformers")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    place = str(_folder(name)) if _folder(name).is_dir() else name
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(place, revision=revision)
        model = getattr(transformers, kind).from_pretrained(place, revision=revision)
    except (OSError, ValueError, ImportError) as error:
        what = f"the model {name!r} cannot be loaded: {str(error).strip().splitlines()[0]}"
        return UserError(
            what,
            fix="name a folder with a model of transformers, or a model of the Hugging Face hub",
        )
    model = model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    longest = min(
        tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None) or 10**9
    )
    known = (
        _digest(Path(place))
        if Path(place).is_dir()
        else str(model.config._commit_hash or revision or "")
    )
    return Loaded(
        tokenizer,
        model,
        torch,
        longest if longest < 10**9 else _LONGEST,
        {"name": name, "weights": known},
    )


def chunks(texts: Sequence[Any], size: int) -> Iterator[list[Any]]:
    """The texts in batches of alike length, so that little of a batch is padding."""
    ordered = sorted(
        texts, key=lambda text: len(text) if isinstance(text, str) else sum(map(len, text))
    )
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]


def _folder(name: str) -> Path:
    return Path(name).expanduser()


def _digest(folder: Path) -> str:
    state = hashlib.blake2b(digest_size=16)
    for file in sorted({file for pattern in _WEIGHTS for file in folder.glob(pattern)}):
        state.update(file.name.encode())
        with file.open("rb") as opened:
            while block := opened.read(1 << 20):
                state.update(block)
    return state.hexdigest()


_MOST_HELD = 1 << 24  # numbers that are remembered: 64 MB


class TokenVectors(NamedTuple):
    """A row for each token; `words` marks those that stand for text, not for its beginning and end."""

    vectors: "Vectors"
    words: Mask


class Encoder:
    """The hidden states of one layer of a model, by default its last."""

    def __init__(self, name: str, revision: str | None, layer: int | None) -> None:
        self._loaded = load("AutoModel", name, revision)
        self.layer = self._loaded.model.config.num_hidden_layers if layer is None else layer
        self.identity = {**self._loaded.identity, "layer": self.layer}
        self._known: dict[str, TokenVectors] = {}
        self._held = 0

    def encode(self, texts: Iterable[str], batch_size: int) -> dict[str, TokenVectors]:
        """The vectors of each text. References come back with every sample, so some texts are remembered."""
        wanted = dict.fromkeys(texts)
        found = {text: self._known[text] for text in wanted if text in self._known}
        for batch in chunks([text for text in wanted if text not in found], batch_size):
            found.update(zip(batch, self._forward(batch), strict=True))
        if self._held > _MOST_HELD:
            self._known, self._held = {}, 0
        new = {text: tokens for text, tokens in found.items() if text not in self._known}
        self._known |= new
        self._held += sum(tokens.vectors.size for tokens in new.values())
        return found

    def _forward(self, batch: list[str]) -> list[TokenVectors]:
        tokenizer, model, torch, longest, _ = self._loaded
        inputs: Any = tokenizer(
            batch,
            padding=True,
            truncation=True,
            max_length=longest,
            return_tensors="pt",
            return_special_tokens_mask=True,
        )
        words = (inputs.pop("special_tokens_mask") == 0).numpy()
        present = inputs["attention_mask"].numpy() == 1
        last = self.layer == model.config.num_hidden_layers
        with torch.inference_mode():
            made = model(**inputs.to(model.device), output_hidden_states=not last)
        states = made.last_hidden_state if last else made.hidden_states[self.layer]
        vectors = states.float().cpu().numpy()
        return [
            TokenVectors(each[here], real[here])
            for each, real, here in zip(vectors, words, present, strict=True)
        ]


@cache
def encoder(name: str, revision: str | None, layer: int | None) -> Encoder:
    return Encoder(name, revision, layer)
