"""How fast paradl is, as ratios within one run: `python -m benchmarks`.

A shared or a small machine is slow and noisy, and so is what the engine is compared with: only
ratios of measurements that were taken in turn say something about the engine.
"""
