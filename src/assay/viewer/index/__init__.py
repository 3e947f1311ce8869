"""The samples of experiments as columns, so that a million can be filtered at once.

It holds no text of theirs but ids: what pages show is read from the rows. No number of a metric comes from here.
"""
