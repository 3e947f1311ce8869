"""Looking at rows after the steps: queries, frames, comparisons."""
