"""The viewer in the browser and reports as files: pages of data, and the one page that shows them.

No number is computed here: pages put together what the engine, analysis and reports give.
"""
