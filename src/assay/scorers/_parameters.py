"""The parameters that scorers share, described once (see `assay.parameters`)."""


class Texts:
    """An answer that is compared with the accepted ones.

    Parameters:
    expected: the field of the ground truth that has the accepted answers
    expected_content: the answer itself, for all items
    response_field: use only this field (a dotted path) of the JSON in the answer
    normalize: how both sides are made comparable; see [exact_match](#exact_match)
    case_sensitive: with `none`, whether case counts
    strip_whitespace: with `none`, whether whitespace around the text is dropped
    stemming: compare the stems of English words (Porter 1980); `nltk` with the changes of the NLTK package
    threshold: the least score that passes; 0 stands for any score above 0
    strip_reasoning: look only at what follows `</think>`
    documents: the field that has the passages, such as `item.data.context`; by default a usual one
    """


class Ranked:
    """Documents that were retrieved, best first.

    Parameters:
    documents: the field that has the ranked documents, such as `response.output.docs`; by default a usual one
    relevant: the field of the ground truth that has the relevant ids, or ids and grades; by default a usual one
    k: how many documents count
    threshold: the least score that passes; 0 stands for any score above 0
    """


class Encoded(Texts):
    """Texts that become vectors.

    Parameters:
    model: a folder with a model of the transformers library, or the name of one on the Hugging Face hub
    revision: the commit, tag or branch on the hub
    batch_size: how many texts go through the model at a time
    """


class Grounded(Texts):
    """How far retrieved passages support an answer.

    Parameters:
    method: how support is measured
    model: with `nli`, a folder with a model, or the name of one on the Hugging Face hub
    revision: with `nli`, the commit, tag or branch on the hub
    batch_size: with `nli`, how many passages go through the model at a time
    stopwords: with `token_overlap`, the words that do not count; by default English function words
    words: with `token_overlap`, runs of letters and digits, or `split` at spaces, so that "Paris." is not "Paris"
    """
