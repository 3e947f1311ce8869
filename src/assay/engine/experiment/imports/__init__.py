"""Results of other programs become an experiment: what readers give, how it is written, and copies for verbs that
are given a log. No format is known here."""
