"""The third step: the results of evaluations to one object of statistics."""
