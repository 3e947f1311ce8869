"""How scorers are called: inline, in a thread, awaited, or with a batch of cases."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from assay.engine.calls.context import RowContext, Surroundings
from assay.engine.evaluate.bind import BoundScorer
from assay.engine.evaluate.cases import Call
from assay.engine.evaluate.rows import Result
from assay.errors import BudgetError, LaneError
from assay.store.keys import digest, seed_of


async def call_scorer(calls: list[Call], around: Surroundings, seed: int) -> list[Result]:
    """(what the scorer returned, what it raised) for each of several calls of one scorer.

    LaneError and BudgetError are raised: no call can be made any more, and the next run makes these.
    """
    if not calls:
        return []
    scorer = calls[0].scorer
    contexts = [_context(call, around, seed) for call in calls] if scorer.takes_context else []
    if scorer.batch:
        results = await _batch(scorer, calls, contexts, around)
    elif scorer.mode == "inline" and scorer.form == "item" and not contexts:
        results = _inline(scorer, calls)
    else:
        bound = [
            scorer.arguments(call.case, contexts[i] if contexts else None)
            for i, call in enumerate(calls)
        ]
        results = await _each(scorer, bound, around)
    for _, error in results:
        if isinstance(error, (LaneError, BudgetError)):
            raise error
    for call, context in zip(calls, contexts, strict=False):
        context.write_trace(call.key)
    return results


def _inline(scorer: BoundScorer, calls: list[Call]) -> list[Result]:
    function, params = scorer.function, scorer.params
    results: list[Result] = []
    for call in calls:
        try:
            results.append((function(call.case.item, call.case.responses[0], **params), None))
        except Exception as error:  # becomes the row's error
            results.append((None, error))
    return results


async def _each(
    scorer: BoundScorer, bound: list[tuple[list[Any], dict[str, Any]]], around: Surroundings
) -> list[Result]:
    if scorer.mode == "async":
        return [await _awaited(scorer, positional, keywords) for positional, keywords in bound]
    made = [partial(scorer.function, *positional, **keywords) for positional, keywords in bound]
    if scorer.mode == "thread":
        return await around.threads.map(made, scorer.timeout)
    return [_called(call) for call in made]


async def _batch(
    scorer: BoundScorer, calls: list[Call], contexts: list[RowContext], around: Surroundings
) -> list[Result]:
    cases = [call.case for call in calls]
    keywords = {**scorer.params, "contexts": contexts} if contexts else scorer.params
    ((result, error),) = await _each(scorer, [([cases], keywords)], around)
    if error is None and (not isinstance(result, list) or len(result) != len(calls)):
        error = ValueError(f"a batch of {len(calls)} cases needs a list of as many results")
    if error is not None:
        return [(None, error)] * len(calls)
    return [(entry, None) for entry in result]


def _context(call: Call, around: Surroundings, seed: int) -> RowContext:
    response = call.case.responses[0]
    addresses = [f"{row.task}:{row.item_id}:{row.sample_index}" for row in call.case.responses]
    if call.players is not None:
        addresses += [*call.players, str(call.seat)]
    owner = digest(
        "scorer-owner", call.scorer.name.encode(), *(address.encode() for address in addresses)
    )
    return RowContext(
        around,
        item_id=response.item_id,
        sample_index=response.sample_index,
        seed=seed_of(seed, owner),
        owner=owner,
        name=call.scorer.name,
        model="",
    )


async def _awaited(scorer: BoundScorer, positional: list[Any], keywords: dict[str, Any]) -> Result:
    try:
        async with asyncio.timeout(scorer.timeout):
            return await scorer.function(*positional, **keywords), None
    except Exception as error:  # becomes the row's error
        return None, error


def _called(call: Callable[[], Any]) -> Result:
    try:
        return call(), None
    except Exception as error:  # becomes the row's error
        return None, error
