"""MixEval and MixEval-Hard: the protocol's data, prompts, parsers, judges, files and scores, on the ordinary engine."""

from assay.formats.mixeval import entries as entries
from assay.formats.mixeval import judging as judging
from assay.formats.mixeval import scorers as scorers
