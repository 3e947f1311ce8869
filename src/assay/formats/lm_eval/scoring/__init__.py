"""From answers to the harness's numbers: filters, values of a document, aggregations, standard errors, groups. No model
is asked here, and nothing is stored."""
