"""Reading free-form answers by rule: conclusions, phrases, quantities, dates. Text in, values out:
nothing here is about rows or models."""
