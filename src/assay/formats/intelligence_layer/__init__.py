"""The Intelligence Layer's evaluation library by its own names, over Assay's engine, rows and store.

`intelligence_layer.core` and `intelligence_layer.evaluation` are `assay.formats.intelligence_layer.core` and
`assay.formats.intelligence_layer.evaluation`, and so are the modules below them: existing code moves by changing the
import's root. What is here may import everything below `formats`, and no other format.
"""

from assay.formats.intelligence_layer.names import install

install()
