"""The event logs of OpenAI evals (`oaieval`), read as experiments. None of its code is run, and logs are only read, not
written."""
