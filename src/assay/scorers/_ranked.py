"""What the scorers of rankings share."""

from typing import Annotated

from msgspec import Meta

from assay.records import Item, Response
from assay.text.ranking import grades
from assay.text.retrieved import relevant, retrieved

Cutoff = Annotated[int, Meta(ge=1)]


def graded_ranking(
    item: Item, response: Response, documents: str | None, relevant_field: str | None, k: int | None = None
) -> tuple[list[float], dict[str, float]]:
    """The grade at each place of the ranking, and the grades of all relevant documents."""
    wanted = relevant(item, relevant_field)
    ranked = [document.id for document in retrieved(item, response, documents)]
    return grades(ranked, wanted, k), wanted
