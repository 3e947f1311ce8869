"""The three steps, in five rooms: what calls need, run, evaluate, aggregate, and the experiment that joins them. Every
row is written here and nowhere else; no format is known."""
