"""`intelligence_layer.examples`, which is not offered."""

from assay.formats.intelligence_layer.names import refuse

refuse("examples")
