"""The embedded model of the demo: a solver of small questions, and a judge of their answers. No file of Assay but the
model `demo` and the mock server uses it."""
