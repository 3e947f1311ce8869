"""The samples of experiments in SQLite, so that a million can be filtered at once.

It holds no text of theirs but ids and names: what pages show is read from the rows. No number of
a metric comes from here.
"""
