"""Looking at what is stored: list, trace, SQL, export, duplicates. Nothing is computed anew."""
