"""`data_config` of a graph_config.yaml: where records come from, what is done to them, and where results go.

Only records may be here, nothing of graphs or metrics. Everything streams: a million records pass in flat memory,
except where a transform of the user's wants a list.
"""

from assay.formats.sygra.data.records import (
    Load,
    NoRecords,
    Record,
    Records,
    id_text,
    item_ids,
    open_records,
    open_source,
)
from assay.formats.sygra.data.schema import row_schema
from assay.formats.sygra.data.sinks import check_sinks, write_sinks

__all__ = [
    "Load",
    "NoRecords",
    "Record",
    "Records",
    "check_sinks",
    "id_text",
    "item_ids",
    "open_records",
    "open_source",
    "row_schema",
    "write_sinks",
]
