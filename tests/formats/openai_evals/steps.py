"""For `make_logs.py`: a model behind an address, and an eval of our own with two samplings for a question and the kinds
of events that few evals write."""

import evals
import evals.record
from evals.completion_fns.openai import OpenAIChatCompletionFn


class Chat(OpenAIChatCompletionFn):
    def __init__(self, registry=None, **settings):
        super().__init__(**settings)


class Steps(evals.Eval):
    def __init__(self, completion_fns, samples_jsonl, *args, **kwargs):
        super().__init__(completion_fns, *args, **kwargs)
        self.samples_jsonl = samples_jsonl

    def eval_sample(self, sample, rng):
        first = self.completion_fn(prompt=sample["input"], temperature=0.0).get_completions()[0]
        again = [
            *sample["input"],
            {"role": "assistant", "content": first},
            {"role": "user", "content": "Are you sure?"},
        ]
        if "France" in sample["input"][1]["content"]:
            evals.record.record_error("no second answer", ValueError("planned"))
            return
        self.completion_fn(prompt=again, temperature=0.0)
        recorder = evals.record.default_recorder()
        recorder.record_function_call("add", {"numbers": [1, 2]}, 3)
        recorder.record_cond_logp("2 + 3 =", " 5", -0.25)
        recorder.record_pick_option("pick", ["a", "b"], "b")
        recorder.record_extra({"remark": "short"})
        evals.record.record_metrics(score=0.5, passed=True, words={"a": 1})

    def run(self, recorder):
        self.eval_all_samples(recorder, self.get_samples())
        scores = recorder.get_scores("score")
        return {
            "score": sum(scores) / len(scores),
            "errors": len(recorder.get_events("error")),
            "by": {"kind": 1},
        }
