"""Split-block Bloom filters as bytes in, bytes out. This package opens no files and prints nothing.

`filter.BloomFilter` is the main class; `hashing` turns plain-encoded values into hashes, `sizing` turns counts and FPPs into sizes and
back. A kernel (`kernels`) does the work; three kernels share one interface (`interface`): `spec`, slow and obvious; `numpy_kernel`;
`compiled_kernel`, in C.

A query for one value costs little: only `numpy_kernel` imports numpy.
"""

DEFAULT_FPP = 0.01
"""Target false-positive rate where none is given. It stands here, where help texts find it without what sizing takes."""
