"""Small tasks whose requests are compared with those that lm-evaluation-harness makes (golden.json)."""

from typing import Any

Case = dict[str, Any]

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]


def qa(count: int, start: int = 0) -> list[dict[str, Any]]:
    return [
        {
            "q": f"What follows {WORDS[number % 10]} {number}?",
            "a": WORDS[(number + 1) % 10],
            "options": [WORDS[(number + step) % 10] for step in (1, 2, 3)],
            "label": number % 3,
            "many": [WORDS[(number + 1) % 10], str(number)],
            "lead": " so" if number % 2 else "So",
            "topic": f"topic {number % 2}",
        }
        for number in range(start, start + count)
    ]


SPLITS = {"train": qa(9, 100), "validation": qa(6, 50), "test": qa(5)}
ODD = [
    {
        "q": "a\nb\n",
        "when": "2020-01-02",
        "number": 1,
        "none": None,
        "deep": {"x": [1, 2]},
        "a": "007",
        "options": ["", " b"],
        "label": "1",
    },
    {
        "q": "  {{ q }} ",
        "when": "2021-03-04",
        "number": 2.5,
        "none": None,
        "deep": {"x": []},
        "a": "['x', 1]",
        "options": ["a", "b\n"],
        "label": "0",
    },
    {
        "q": "ünï 语",
        "when": "2022-05-06",
        "number": 3,
        "none": None,
        "deep": {"x": [3]},
        "a": "[1, x]",
        "options": ["é", "Z"],
        "label": "7",
    },
]
GENERATE = {"test_split": "test", "doc_to_text": "Q: {{q}}\nA:", "doc_to_target": "a"}
CHOICE = {
    "output_type": "multiple_choice",
    "test_split": "test",
    "doc_to_text": "Q: {{q}}",
    "doc_to_choice": "options",
    "doc_to_target": "label",
}


def generate(**keys: Any) -> Case:
    return {"config": {**GENERATE, **keys}}


def choice(**keys: Any) -> Case:
    return {"config": {**CHOICE, **keys}}


CASES: dict[str, Case] = {
    "plain": generate(),
    "column text": generate(doc_to_text="q"),
    "target template": generate(doc_to_target="{{a}}", num_fewshot=1, fewshot_split="train"),
    "target list": generate(doc_to_target="many", num_fewshot=2, fewshot_split="train"),
    "target list template": generate(
        doc_to_target="{{many}}", num_fewshot=2, fewshot_split="train"
    ),
    "target text list": generate(doc_to_target=["x", "y"], num_fewshot=1),
    "description": generate(description="Answer.", num_fewshot=1),
    "description newline": generate(description="Answer about {{topic}}.\n\n", num_fewshot=1),
    "description column": generate(description="topic"),
    "system": {**generate(description="Answer."), "system_instruction": "You know words."},
    "system space": {
        **generate(description=" Answer."),
        "system_instruction": "You know words.\n",
        "limit": 1,
    },
    "train pool": generate(training_split="train", num_fewshot=3),
    "train pool and fewshot split": generate(
        training_split="train", fewshot_split="train", num_fewshot=3
    ),
    "validation pool": generate(validation_split="validation", num_fewshot=2),
    "test pool": generate(num_fewshot=4),
    "same split": generate(fewshot_split="test", num_fewshot=4),
    "validation leak": {
        "config": {
            **GENERATE,
            "test_split": None,
            "validation_split": "validation",
            "fewshot_split": "validation",
            "num_fewshot": 3,
        }
    },
    "nothing set": {
        "config": {
            **GENERATE,
            "test_split": None,
            "validation_split": "validation",
            "training_split": "train",
            "num_fewshot": 3,
        }
    },
    "first n": generate(
        fewshot_split="train", fewshot_config={"sampler": "first_n"}, num_fewshot=3
    ),
    "first n same split": generate(
        fewshot_split="test", fewshot_config={"sampler": "first_n"}, num_fewshot=4
    ),
    "copies": {**generate(num_fewshot=2), "rows": {"test": [*qa(2), *qa(2), *qa(2)]}},
    "shot samples": generate(fewshot_config={"samples": qa(4, 20)}, num_fewshot=2),
    "shot samples function": generate(
        fewshot_config={"samples": "!function functions.shots"}, num_fewshot=1
    ),
    "shot samples first n": generate(
        fewshot_config={"samples": qa(4, 20), "sampler": "first_n"}, num_fewshot=2
    ),
    "shot split and samples": generate(
        fewshot_config={"samples": qa(4, 20), "split": "validation"}, num_fewshot=2
    ),
    "shot texts": generate(
        fewshot_split="train",
        num_fewshot=2,
        fewshot_config={
            "doc_to_text": "Example: {{q}}",
            "doc_to_target": "{{a|upper}}",
            "fewshot_delimiter": "\n---\n",
            "target_delimiter": " => ",
        },
    ),
    "shot process_docs": generate(
        fewshot_config={"split": "train", "process_docs": "!function functions.longer"},
        num_fewshot=2,
    ),
    "delimiters": generate(target_delimiter="", fewshot_delimiter="\n", num_fewshot=2),
    "gen prefix": generate(gen_prefix="The answer:", num_fewshot=2),
    "gen prefix space": generate(gen_prefix="The answer: ", doc_to_text="{{q}}\n", num_fewshot=1),
    "gen prefix template": generate(gen_prefix="{{lead}}", doc_to_text="{{q}}", num_fewshot=2),
    "gen prefix column": generate(gen_prefix="lead", target_delimiter="|", num_fewshot=2),
    "gen prefix of examples": generate(
        gen_prefix="Now:",
        fewshot_split="train",
        fewshot_config={"gen_prefix": "topic"},
        num_fewshot=1,
    ),
    "gen prefix empty question": generate(gen_prefix="X", doc_to_text="", num_fewshot=1),
    "empty answer": {
        **generate(num_fewshot=2),
        "rows": {"test": [{**doc, "a": ""} for doc in qa(4)]},
    },
    "empty answer, prefix": {
        **generate(num_fewshot=2, gen_prefix="P"),
        "rows": {"test": [{**doc, "a": ""} for doc in qa(4)]},
    },
    "kwargs": generate(
        generation_kwargs={"temperature": 0, "max_gen_toks": 5, "do_sample": False},
        fewshot_delimiter="##",
    ),
    "kwargs until": generate(generation_kwargs={"until": ["\n", "Q:"], "top_p": 0.5}),
    "kwargs until empty": generate(generation_kwargs={"until": []}),
    "repeats": generate(repeats=3),
    "limit": {**generate(num_fewshot=2), "limit": 2},
    "limit part": {**generate(num_fewshot=2), "limit": 0.5},
    "limit large": {**generate(num_fewshot=2), "limit": 50},
    "samples": {**generate(num_fewshot=2), "samples": [1, 3, 4]},
    "seed": {**generate(num_fewshot=2), "seed": 7},
    "choice": choice(),
    "choice shots": choice(num_fewshot=3),
    "choice shots train": choice(num_fewshot=2, training_split="train"),
    "choice label template": choice(doc_to_target="{{label}}", num_fewshot=1),
    "choice label text": choice(doc_to_target="{{a}}", num_fewshot=1),
    "choice list": choice(doc_to_choice=["A", "B", "C"], num_fewshot=1),
    "choice dict": choice(doc_to_choice={"x": "A", "y": "B", "z": "C"}, num_fewshot=1),
    "choice template": choice(doc_to_choice="{{options}}", num_fewshot=1),
    "choice template list": choice(doc_to_choice="{{[options[0], 'none of ' ~ options[1]]}}"),
    "choice function": choice(doc_to_choice="!function functions.choices", num_fewshot=1),
    "choice numbers": choice(
        doc_to_text="{{q}}", doc_to_choice=["0", "1", "2"], doc_to_target="{{label}}", num_fewshot=1
    ),
    "choice delimiter": choice(target_delimiter="", num_fewshot=1),
    "choice prefix": choice(gen_prefix="It is", num_fewshot=1),
    "choice prefix space": choice(gen_prefix="It is ", num_fewshot=1),
    "choice many": choice(doc_to_target="{{[0, 2]}}"),
    "choice mutual": choice(
        metric_list=[{"metric": "acc_mutual_info"}, {"metric": "acc"}], num_fewshot=1
    ),
    "choice shots other": choice(
        num_fewshot=2,
        training_split="train",
        fewshot_config={
            "doc_to_choice": ["I", "II", "III"],
            "doc_to_text": "!function functions.text",
        },
    ),
    "inputs": choice(
        doc_to_text="label", doc_to_choice="options", doc_to_target="a", num_fewshot=2
    ),
    "inputs template": choice(
        doc_to_text="{{label}}", doc_to_target="{{a}}", gen_prefix="P", description="D"
    ),
    "inputs mutual": choice(
        doc_to_text="label", doc_to_target="a", metric_list=[{"metric": "acc_mutual_info"}]
    ),
    "text not digits": generate(doc_to_text="{{label}}", doc_to_target="{{label}}", num_fewshot=1),
    "likelihood": {
        "config": {
            **GENERATE,
            "output_type": "loglikelihood",
            "doc_to_target": " {{a}}",
            "num_fewshot": 1,
        }
    },
    "likelihood column": {
        "config": {**GENERATE, "output_type": "loglikelihood", "gen_prefix": "P"}
    },
    "rolling": {
        "config": {
            **GENERATE,
            "output_type": "loglikelihood_rolling",
            "doc_to_text": "",
            "doc_to_target": "q",
        }
    },
    "rolling template": {
        "config": {
            **GENERATE,
            "output_type": "loglikelihood_rolling",
            "doc_to_text": "",
            "doc_to_target": "{{q}}\n",
        }
    },
    "functions": generate(
        doc_to_text="!function functions.text",
        doc_to_target="!function functions.target",
        num_fewshot=2,
    ),
    "process_docs": generate(process_docs="!function functions.longer", num_fewshot=2),
    "process_docs shuffled": choice(
        process_docs="!function functions.shuffled",
        doc_to_choice="order",
        doc_to_text="{{number}} {{q}}",
        num_fewshot=2,
    ),
    "process_docs shuffled train": choice(
        process_docs="!function functions.shuffled",
        doc_to_choice="order",
        doc_to_text="{{number}} {{q}}",
        training_split="train",
    ),
    "process_docs shuffled split": choice(
        process_docs="!function functions.shuffled",
        doc_to_choice="order",
        fewshot_split="train",
        num_fewshot=1,
    ),
    "drifting": generate(
        process_docs="!function functions.drifting",
        doc_to_text="{{number}} {{other}} {{q}}",
        num_fewshot=1,
    ),
    "drifting train": generate(
        process_docs="!function functions.drifting",
        doc_to_text="{{number}} {{other}} {{q}}",
        training_split="train",
    ),
    "drifting part": {
        **generate(
            process_docs="!function functions.drifting", doc_to_text="{{number}} {{other}} {{q}}"
        ),
        "limit": 0.5,
    },
    "random text": generate(doc_to_text="!function functions.random_text", num_fewshot=1),
    "changing": generate(doc_to_text="!function functions.changing", num_fewshot=2),
    "custom": {
        "config": {
            **GENERATE,
            "custom_dataset": "!function functions.custom",
            "metadata": {"version": 1, "rows": 4},
            "num_fewshot": 1,
        },
        "rows": {},
    },
    "odd": {
        **generate(
            doc_to_text="{{q}}|{{when}}|{{number}}|{{none}}|{{deep}}",
            doc_to_target="{{a}}",
            num_fewshot=1,
        ),
        "rows": {"test": ODD},
    },
    "odd target": {**generate(doc_to_target="{{number}}"), "rows": {"test": ODD}},
    "odd choices": {
        **choice(doc_to_choice="{{['p', 'q']}}", doc_to_target="{{label}}"),
        "rows": {"test": ODD},
    },
    "jinja": {
        **generate(
            doc_to_text="{% for option in options %}{{loop.index}}. {{option|trim}}\n{% endfor %}"
            "{% if none is defined %}N{% endif %}{% set x = q.split() %}{{x[0]}}"
            "{{ q | regex_replace('[a-z]+', '<\\\\g<0>>', 1) }}\n",
        ),
        "rows": {"test": ODD},
    },
    "jinja newline": generate(doc_to_text="{{q}}\n\n", doc_to_target="\n{{a}}\n", num_fewshot=1),
    "jinja append": generate(
        doc_to_text="{% set l = [] %}{% set _ = l.append(q) %}{{ l|join(',') }} {{ q|length }} {{ options|join(', ') }}"
    ),
    "jinja global": {
        **generate(doc_to_text="{{range}} {{dict}}"),
        "rows": {"test": [{**doc, "range": "r", "dict": 5} for doc in qa(2)]},
    },
    "missing column": {
        **generate(doc_to_text="{{q}} {{extra}}"),
        "rows": {"test": [qa(1)[0], {**qa(1)[0], "extra": 3}]},
    },
}
CHAT = [
    *(
        "plain",
        "system",
        "description",
        "train pool",
        "gen prefix",
        "gen prefix space",
        "gen prefix template",
        "choice",
    ),
    *(
        "choice shots",
        "choice prefix",
        "choice prefix space",
        "inputs",
        "inputs template",
        "empty answer, prefix",
    ),
    *("likelihood", "choice mutual", "gen prefix column"),
]
