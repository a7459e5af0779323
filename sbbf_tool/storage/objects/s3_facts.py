"""Facts about a bucket of S3, which are requested once: what it supports, and which uploads are
unfinished."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import Lock

from sbbf_tool.errors import SbbfError
from sbbf_tool.storage.objects.s3_bucket import S3Bucket
from sbbf_tool.storage.threads import holding, waiting

_UPLOADS_SECONDS = 60.0
"""How long the list of unfinished uploads of a prefix is used."""
_MOST_PREFIXES = 1000
_FIRST_SECONDS = 1.0


class S3Facts:
    """Facts about a bucket. Threads may share them."""

    def __init__(self, store: S3Bucket) -> None:
        self._store = store
        self._lock = Lock()
        self._has_access_lists: bool | None = None
        self._uploads: dict[str, tuple[float, Counter[str] | None]] = {}
        self.has_tags = True
        """Whether objects may have tags; False once the store has answered that it does not
        implement them."""
        self.has_conditions: bool | None = None
        """Whether an object can be replaced on condition of its ETag; None before the first
        answer."""
        self._first_write = Lock()
        """Held by the write that finds out."""

    @contextmanager
    def first_write(self) -> Iterator[None]:
        """Let the first write find out whether the store has conditions while the others wait, so
        that a store without conditions does not refuse many writes at once."""
        with ExitStack() as first:
            if self.has_conditions is None:
                # Only for a moment: an answer that does not come must not hold back the others.
                with waiting():
                    if self._first_write.acquire(timeout=_FIRST_SECONDS):
                        first.callback(self._first_write.release)
            if self.has_conditions is not None:
                first.close()
            yield

    @property
    def has_access_lists(self) -> bool:
        """Whether an object may have an access list of its own: not if the bucket's owner owns and
        controls every object."""
        with holding(self._lock):
            if self._has_access_lists is None:
                self._has_access_lists = not self._is_owner_enforced()
            return self._has_access_lists

    def _is_owner_enforced(self) -> bool:
        # Stores that do not implement the request, and users who may not send it, have access lists
        # as far as can be known.
        with suppress(SbbfError):
            answer = self._store.send(
                lambda: self._store.client.get_bucket_ownership_controls(Bucket=self._store.bucket)
            )
            rules = answer.get("OwnershipControls", {}).get("Rules", ())
            return any(rule.get("ObjectOwnership") == "BucketOwnerEnforced" for rule in rules)
        return False

    def count_unfinished_uploads(self, key: str) -> int:
        """Count the uploads of a key, by any client, that were neither completed nor aborted; 0 if
        the store does not list them."""
        prefix = key[: key.rfind("/") + 1]
        with holding(self._lock):
            since, uploads = self._uploads.get(prefix, (0.0, None))
            if prefix not in self._uploads or time.monotonic() > since + _UPLOADS_SECONDS:
                uploads = self._list_uploads(prefix, "/")
                if len(self._uploads) >= _MOST_PREFIXES:
                    self._uploads.clear()
                self._uploads[prefix] = (time.monotonic(), uploads)
        if uploads is None:
            # The prefix has more of them than one answer lists.
            uploads = self._list_uploads(key, "") or Counter()
        return uploads[key]

    def _list_uploads(self, prefix: str, delimiter: str) -> Counter[str] | None:
        """Count the unfinished uploads below a prefix by key; None if there are more than one
        answer lists, of which those of the key `prefix` come first."""
        with suppress(SbbfError):
            options = {"Delimiter": delimiter} if delimiter else {}
            answer = self._store.send(
                lambda: self._store.client.list_multipart_uploads(
                    Bucket=self._store.bucket, Prefix=prefix, **options
                )
            )
            if answer.get("IsTruncated") and delimiter:
                return None
            return Counter(upload.get("Key", "") for upload in answer.get("Uploads", ()))
        return Counter()
