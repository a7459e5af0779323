"""Split-block Bloom filters: bytes in, bytes out. This package opens no files and prints nothing.

`filter.BloomFilter` is the main class; `hashing` turns plain-encoded values into hashes, `sizing`
turns counts and FPPs into sizes and back. A kernel (`kernels`) does the work; three kernels share
one interface (`interface`): `spec`, slow and obvious; `numpy_kernel`; and `compiled_kernel`, in C.

Only `numpy_kernel` imports numpy, so a query for one value costs little.
"""

DEFAULT_FPP = 0.01
"""Target false-positive rate if none is given. It is defined here so that help texts need not
import `sizing`."""
