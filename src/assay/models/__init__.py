"""Models: each file is one type, named by the function in it. A model answers requests and knows its identity."""
