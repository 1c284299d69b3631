"""The benchmark client: standard library alone, Python 3.9 or newer, a process of its own.

The folder travels: it is copied to the server's host and run there as `python3 -m loadgen PLAN.json OUT.jsonl`, so
that neither a tunnel nor a screen is in the numbers. It knows nothing of the rest of the program; what it is to do
stands in the plan (`plan.py`), what it saw in JSON lines (`records.py`). Statistics are made elsewhere.
"""
