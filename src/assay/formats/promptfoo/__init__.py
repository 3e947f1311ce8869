"""promptfoo's results as it writes them with `-o out.json` and `-o out.jsonl`. They are only read: nothing here writes
one, and no path or template in them is followed."""
