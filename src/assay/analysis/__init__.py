"""Looking at rows after the steps: compare, rank, judge, look. Each room returns values; nothing here calls a model or
makes text for people."""
