"""Pure text functions that scorers, models and the mock server share."""
