"""Models: one file for each type, named like the function in it. Adding one touches no other file."""
