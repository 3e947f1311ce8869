"""A filter and a sampler of our own, and a filter that this module registers under a name."""

from lm_eval.api.filter import Filter
from lm_eval.api.registry import register_filter
from lm_eval.api.samplers import ContextSampler
from lm_eval.filters.extraction import RegexFilter


class Shorten(Filter):
    def __init__(self, size=3, **kwargs):
        self.size = size

    def apply(self, resps, docs):
        return [[text[: self.size] for text in texts] for texts in resps]


class Digits(RegexFilter):
    def __init__(self, **kwargs):
        super().__init__(regex_pattern=r"(\d+)", group_select=-1, fallback="no digits")


@register_filter("our_reverse")
class Reverse(Filter):
    def apply(self, resps, docs):
        return [[text[::-1] for text in texts] for texts in resps]


class LastOnes(ContextSampler):
    def sample(self, n, eval_doc=None, df=None, **kwargs):
        return self.df[-n:]
