"""The filter: split-block Bloom filters as bytes in, bytes out. Opens nothing, prints nothing, knows no file.

`filter.BloomFilter` is the noun; `hashing` turns plain-encoded values into hashes, `sizing` turns counts and error rates into
sizes and back. The work is done by a kernel (`kernels`), of which there are three with one interface (`interface`): `spec`, slow
and obvious; `numpy_kernel`; `compiled_kernel`, in C.

Asking one filter about one value costs no more than the question does: only `numpy_kernel` imports numpy.
"""

DEFAULT_FPP = 0.01
"""Target false-positive rate where none is given. It stands here, where help texts find it without what sizing takes."""
