"""Percentiles: which ones are told of a time, and how far from its median they lie.

Times are log-Student-t with 4 degrees of freedom, which the fit takes errors for. Apart from the
kernels that find them: whoever only names them needs no JAX.
"""

# Steps of a spread, the standard deviation of the time's logarithm.
# 1.5332: the 90th percentile of Student's t with 4 degrees of freedom; 1.2816 of a normal.
PERCENTILES = {10: -1.5332, 50: 0.0, 90: 1.5332}
