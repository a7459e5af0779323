"""Which hashes of a chunk's distinct values are kept for comparison with other chunks."""

import numpy as np
import pytest

from sbbf_tool.file.distinct import COMPARED, Sketch


@pytest.mark.parametrize(("more", "are_all"), [(0, True), (1, False)])
def test_a_chunk_with_as_many_values_as_are_compared_has_all_hashes(more, are_all):
    sketch = Sketch()
    hashes = np.arange(COMPARED + more, dtype=np.uint64)
    sketch.add(memoryview(hashes))
    kept, has_all = sketch.smallest()
    assert has_all == are_all
    assert kept.tolist() == list(range(COMPARED))
