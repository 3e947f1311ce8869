"""The names of `lm_eval` that modules of tasks import, written anew. No module of lm-eval is ever imported."""
