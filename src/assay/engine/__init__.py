"""The three steps, in five rooms: what calls need, run, evaluate, aggregate, and the experiment that joins them. It
writes rows; nothing here prints, and no format is named."""
