"""What differs between two experiments: settings, data, what was served, answers, scores. The statistics are those of
`compare`, and nothing is written."""
