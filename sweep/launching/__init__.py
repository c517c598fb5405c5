"""Launch scripts of frameworks, read and written by one table each: `tables/NAME.yaml`.

To add a framework: its table, its name in `names.FRAMEWORKS` and, in the order of their signs, in
`reading.RECOGNISED`; what cases of the table cannot say in `conversions`, its files in `writing`.
Test: a row of RUNS in tests/sweep/launching/test_round_trip.py.
"""
