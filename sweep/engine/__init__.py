"""The engine: blocks evaluated and written, in this process or on Dask's workers."""
