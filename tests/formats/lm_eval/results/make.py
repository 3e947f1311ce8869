"""Makes the golden files beside it by running lm-evaluation-harness (0.4.13) on data of our own:
`python make.py` in an environment that has lm-eval. `{"!function": name}` stands for a function of own.py."""

import json
import random
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
WORDS = "the a cat Dog sat on mat 12 7, 3.5 Paris! ÄPFEL naïve #### (A) B: yes no".split()  # noqa: SIM905
CHOICES = ["yes", "No", "maybe so", "Äpfel", "x"]


def hook(name):
    return {"!function": name}


def text(rnd, most=8):
    return " ".join(rnd.choice(WORDS) for _ in range(rnd.randint(0, most)))


def documents(rnd, count):
    docs = []
    for number in range(count):
        label, answer = rnd.randrange(2), text(rnd) or "a"
        docs.append(
            {
                "id": number,
                "text": text(rnd) + f" {number}",
                "answer": answer,
                "answers": [answer, *(text(rnd) or "b" for _ in range(rnd.randrange(3)))],
                "two": [answer, text(rnd) or "b"],
                "label": label,
                "labels": sorted(rnd.sample(range(5), rnd.randint(1, 3))),
                "wild": rnd.choice([0, 1, 2, 7, -1]),
                "choices": rnd.sample(CHOICES, 4),
            }
        )
    return docs


def generated(rnd, doc, repeats):
    options = [
        doc["answer"],
        doc["answer"].upper(),
        doc["answer"] + ".",
        text(rnd),
        f"#### {rnd.randrange(30)}, so",
    ]
    options += [
        f" the answer is ({rnd.choice('ABCD')}) {text(rnd)} ",
        rnd.choice(doc["choices"]).upper() + "!",
    ]
    options += [
        f"person: {text(rnd, 2)}, none\nLocation : x $$ date: 3",
        "('a', 'NOUN') ('b', 'VERB')",
        ": B",
        "0",
        "1",
    ]
    return [rnd.choice(options) for _ in range(repeats)]


def likelihoods(rnd, number):
    return [
        [-round(rnd.uniform(0.01, 12), rnd.choice([1, 6])), rnd.random() < 0.4]
        for _ in range(number)
    ]


GENERATE = {"doc_to_text": "text", "doc_to_target": "answer", "output_type": "generate_until"}
CHOOSE = {
    "doc_to_text": "text",
    "doc_to_target": "label",
    "doc_to_choice": ["no", "yes"],
    "output_type": "multiple_choice",
}


def exact(**params):
    return {
        "metric_list": [
            {"metric": "exact_match", "aggregation": "mean", "higher_is_better": True, **params}
        ]
    }


def pipeline(*steps, name="made"):
    return {
        "filter_list": [
            {"name": name, "filter": [{"function": name, **params} for name, params in steps]}
        ]
    }


FIRST = ("take_first", {})
CASES = {
    "generate_default": GENERATE,
    "exact_case": {**GENERATE, **exact(ignore_case=True, ignore_punctuation=True)},
    "exact_all": {
        **GENERATE,
        **exact(
            regexes_to_ignore=["the ", r"\.$"],
            ignore_case=True,
            ignore_punctuation=True,
            ignore_numbers=True,
        ),
    },
    "exact_int": {**GENERATE, "doc_to_target": "label"},
    "exact_choice": {**GENERATE, "doc_to_target": "label", "doc_to_choice": ["0", "1"]},
    "exact_many": {**GENERATE, "doc_to_target": "answers", **exact(ignore_case=True)},
    "exact_no_pattern": {**GENERATE, **exact(regexes_to_ignore=[])},
    "regex": {**GENERATE, **pipeline(("regex", {}), FIRST)},
    "regex_groups": {
        **GENERATE,
        **pipeline(
            ("regex", {"regex_pattern": r"(\d+)|([A-Z])|(!)", "group_select": -1, "fallback": "?"}),
            FIRST,
        ),
    },
    "two_pipelines": {
        **GENERATE,
        "filter_list": [
            {
                "name": "strict",
                "filter": [
                    {"function": "regex", "regex_pattern": r"\((\w)\)"},
                    {"function": "take_first"},
                ],
            },
            {
                "name": "loose",
                "filter": [{"function": "remove_whitespace"}, {"function": "take_first"}],
            },
        ],
    },
    "majority": {
        **GENERATE,
        "repeats": 5,
        **pipeline(("lowercase", {}), ("majority_vote", {}), FIRST),
    },
    "first_k": {
        **GENERATE,
        "repeats": 3,
        **pipeline(("take_first_k", {"k": 2}), ("uppercase", {}), FIRST),
    },
    "no_first": {**GENERATE, "repeats": 3, **pipeline(("remove_whitespace", {}))},
    "map": {
        **GENERATE,
        **pipeline(("map", {"mapping_dict": {"0": "a", "1": "b"}, "default_value": "c"}), FIRST),
    },
    "multi_choice_regex": {
        **GENERATE,
        **pipeline(
            (
                "multi_choice_regex",
                {"regex_pattern": r"(\([A-Z]\))", "ignore_case": True, "ignore_punctuation": True},
            ),
            FIRST,
        ),
    },
    "multi_choice_regex_patterns": {
        **GENERATE,
        **pipeline(
            (
                "multi_choice_regex",
                {"group_select": -1, "regexes_to_ignore": ["the "], "fallback": "!"},
            ),
            FIRST,
        ),
    },
    "format_span": {**GENERATE, **pipeline(("format_span", {}), FIRST)},
    "regex_pos": {
        **GENERATE,
        "doc_to_target": "two",
        **pipeline(("regex_pos", {}), FIRST),
        **exact(),
    },
    "custom": {**GENERATE, **pipeline(("custom", {"filter_fn": hook("with_text")}), FIRST)},
    "class": {**GENERATE, **pipeline((hook("Reversed"), {"mark": "."}), FIRST)},
    "choose_default": CHOOSE,
    "choose_all": {
        **CHOOSE,
        "metric_list": [
            {"metric": name}
            for name in [
                "acc",
                "acc_norm",
                "acc_bytes",
                "acc_mutual_info",
                "f1",
                "mcc",
                "brier_score",
                "exact_match",
            ]
        ],
    },
    "choose_wild": {
        **CHOOSE,
        "doc_to_target": "wild",
        "doc_to_choice": "choices",
        "metric_list": [
            {"metric": name} for name in ["acc", "acc_norm", "mcc", "exact_match", "acc_bytes"]
        ],
    },
    "choose_text": {**CHOOSE, "doc_to_target": "{{choices[id % 4]}}", "doc_to_choice": "choices"},
    "choose_many": {
        **CHOOSE,
        "doc_to_target": "labels",
        "doc_to_choice": "{{choices + ['' if id else 'q']}}",
    },
    "choose_inputs": {
        **CHOOSE,
        "doc_to_text": "label",
        "doc_to_target": "answer",
        "doc_to_choice": "{{choices[:2]}}",
    },
    "likelihood": {**CHOOSE, "metric_list": [{"metric": "likelihood"}]},
    "continued": {"doc_to_text": "text", "doc_to_target": "answer", "output_type": "loglikelihood"},
    "rolling": {
        "doc_to_text": "",
        "doc_to_target": "{{text}} ÄÖ\n\n",
        "output_type": "loglikelihood_rolling",
    },
    "bypass": {**GENERATE, "metric_list": [{"metric": "bypass"}]},
    "function": {
        **GENERATE,
        "metric_list": [
            {"metric": hook("overlap"), "aggregation": "median", "higher_is_better": True},
            {"metric": hook("pair_only"), "aggregation": "nanmean", "higher_is_better": True},
        ],
    },
    "function_dict": {
        **GENERATE,
        "metric_list": [
            {
                "metric": hook("lengths"),
                "aggregation": hook("worst"),
                "higher_is_better": False,
                "scale": 2,
            }
        ],
    },
    "function_many": {
        **GENERATE,
        "doc_to_target": "answers",
        "metric_list": [
            {"metric": hook("overlap"), "aggregation": "mean", "higher_is_better": True},
            {"metric": "exact_match", "aggregation": "mean", "higher_is_better": True},
        ],
    },
    "process_results": {
        **GENERATE,
        "process_results": hook("of_document"),
        "metric_list": [{"metric": "pair", "aggregation": "f1", "higher_is_better": True}],
    },
    "process_results_custom": {
        **GENERATE,
        "process_results": hook("of_document"),
        "metric_list": [
            {"metric": "pair", "aggregation": hook("agreement"), "higher_is_better": True},
            {"metric": "hit", "aggregation": hook("fmean"), "higher_is_better": True},
        ],
    },
    "process_likelihoods": {
        **CHOOSE,
        "process_results": hook("of_likelihoods"),
        "metric_list": [
            {"metric": "spread", "aggregation": "median", "higher_is_better": True},
            {"metric": "greedy", "aggregation": "perplexity", "higher_is_better": True},
        ],
    },
    "imported_mean": {
        **GENERATE,
        "process_results": hook("of_document"),
        "metric_list": [
            {"metric": "hit", "aggregation": hook("imported_mean"), "higher_is_better": True}
        ],
    },
    "registered": {
        **GENERATE,
        **pipeline(("own_shortening", {"size": 3}), FIRST),
        "metric_list": [
            {"metric": hook("lengths"), "aggregation": "median", "higher_is_better": False},
            {"metric": "own_agreement", "aggregation": "own_worst", "higher_is_better": True},
        ],
    },
    "translation": {
        **GENERATE,
        "metric_list": [{"metric": name} for name in ["bleu", "chrf", "chrf++", "ter"]],
    },
    "translation_two": {
        **GENERATE,
        "doc_to_target": "two",
        "process_results": hook("translated"),
        "metric_list": [{"metric": name} for name in ["bleu", "chrf", "ter"]],
    },
    "raises": {
        **GENERATE,
        "process_results": hook("raises"),
        "metric_list": [{"metric": "hit", "aggregation": "mean"}],
    },
}


def main():
    sys.path.insert(0, str(HERE))
    import datasets
    import own
    from lm_eval.api.task import ConfigurableTask
    from lm_eval.evaluator_utils import _compute_task_aggregations

    def real(value):
        if isinstance(value, dict):
            return (
                getattr(own, value["!function"])
                if set(value) == {"!function"}
                else {k: real(v) for k, v in value.items()}
            )
        return [real(entry) for entry in value] if isinstance(value, list) else value

    def plain(value):
        if isinstance(value, np.generic | np.ndarray):
            return value.tolist()
        if isinstance(value, dict):
            return {key: plain(entry) for key, entry in value.items()}
        return [plain(entry) for entry in value] if isinstance(value, list | tuple) else value

    for name, config in CASES.items():
        rnd = random.Random(name)
        docs = documents(rnd, 11)
        made = datasets.Dataset.from_list(docs)
        task = ConfigurableTask(
            config={
                **real(config),
                "task": name,
                "test_split": "test",
                "custom_dataset": lambda made=made, **_: {"test": made},
            }
        )
        task.build_all_requests(rank=0, world_size=1)
        by_doc, raw, rows = defaultdict(list), defaultdict(list), []
        for instance in task.instances:
            by_doc[instance.doc_id].append(instance)
        for instances in by_doc.values():
            if task.OUTPUT_TYPE == "generate_until":
                answers = instances[0].resps = generated(rnd, instances[0].doc, task.config.repeats)
            else:
                answers = likelihoods(rnd, len(instances))
                for instance, (likelihood, greedy) in zip(instances, answers, strict=True):
                    instance.resps = [
                        likelihood if task.OUTPUT_TYPE.endswith("rolling") else (likelihood, greedy)
                    ]
            doc = instances[0].doc
            gold = task.doc_to_text(doc) if task.multiple_input else task.doc_to_target(doc)
            chosen = task.doc_to_choice(doc) if task.config.doc_to_choice is not None else None
            rows.append(
                {
                    "doc": doc,
                    "target": plain(gold),
                    "choices": chosen,
                    "answers": answers,
                    "values": {},
                }
            )
        case = {
            "config": config,
            "multiple_target": bool(task.multiple_target),
            "rows": rows,
            "numbers": {},
        }
        try:
            task.apply_filters()
            for number, instances in by_doc.items():
                for pipe in instances[0].filtered_resps:
                    results = task.process_results(
                        instances[0].doc, [entry.filtered_resps[pipe] for entry in instances]
                    )
                    for metric, value in results.items():
                        raw[metric, pipe].append(value)
                        rows[number]["values"][f"{metric},{pipe}"] = plain(value)
            case["numbers"] = plain(_compute_task_aggregations(task, raw, 2500)[0])
            case["higher_is_better"] = {
                key: value for key, value in task.higher_is_better().items() if isinstance(key, str)
            }
        except Exception as error:
            case["error"] = type(error).__name__
        (HERE / f"{name}.json").write_text(
            json.dumps(case, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        print(name, case["numbers"] or case["error"])


if __name__ == "__main__":
    main()
