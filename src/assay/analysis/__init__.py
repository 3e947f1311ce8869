"""Looking at rows after the steps, in four rooms: compare, rank, judge, look. Functions return values: text is made
in `reports/`, and no model is called."""
