"""Reading free-form answers by rule: conclusions, phrases, quantities, dates. Text in, values out: nothing here knows of
rows or models."""
