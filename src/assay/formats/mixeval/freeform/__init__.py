"""Reading free-form answers by rule: conclusions, phrases, quantities, dates."""
