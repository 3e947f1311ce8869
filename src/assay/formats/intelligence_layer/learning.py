"""`intelligence_layer.learning`, which is not offered."""

from assay.formats.intelligence_layer.names import refuse

refuse("learning")
