"""EEN's evaluation method, letter for letter."""


# fmt: off
# Evaluation method checks if response contains correct answer
def exact_match_eval(response: str, ground_truth: dict, inference_result=None, **params):
    correct_answer = ground_truth["answer"]
    return {
        "label": {"name": "exact_match"},
        "result": {
            "passed": correct_answer in response, "score": 1.0 if correct_answer in response else 0.0
        }
    }
