"""Mathematical answers, read into trees and compared: first exactly, then by numbers, last by sympy. Nothing that a
model wrote is ever evaluated as code, and nothing here knows about items or responses."""
