"""From a definition to documents with the requests about them: data, templates, examples, contexts. Nothing is sent
from here, and nothing is known of answers."""
