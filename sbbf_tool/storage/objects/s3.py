"""S3 and what speaks like it, as an `ObjectStore`: `s3_bucket` reads, `s3_publish` writes."""

from __future__ import annotations

from sbbf_tool.storage.objects.location import Location
from sbbf_tool.storage.objects.s3_bucket import S3Bucket
from sbbf_tool.storage.source import Piece, Source


class S3Store(S3Bucket):
    """See `ObjectStore`."""

    def ensure_writable(self, target: Location, in_place: bool) -> None:
        from sbbf_tool.storage.objects import s3_publish

        s3_publish.ensure_writable(self, target, in_place)

    def replace(self, source: Source, target: Location, keep: int, pieces: tuple[Piece, ...]) -> list[str]:
        from sbbf_tool.storage.objects import s3_publish

        return s3_publish.replace(self, source, target, keep, pieces)
