"""Reading free-form answers by rule: conclusions, phrases, quantities, dates. Pure functions
of text: no rows, no files."""
