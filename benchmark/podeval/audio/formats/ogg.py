"""The pages of an Ogg file: whether it is complete, how many streams it holds, and with which codec.

Sources: RFC 3533 (pages), Vorbis I specification 4.2.2 (identification header), RFC 7845 (Opus).
"""

from dataclasses import dataclass
from typing import BinaryIO

from podeval.audio.formats.mpeg import read_at

_MAX_PAGES = 2_000_000


@dataclass(frozen=True)
class OggPages:
    """What the page headers of a whole file say.

    Attributes:
        end: where the last page should end according to its header.
        streams: number of logical streams, multiplexed or chained.
        first_packet: the beginning of the first packet, which names the codec.
        ended: whether the last page is marked as the end of its stream.
        regular: whether pages follow one another up to the end of the file.
        links: the offsets at which chained streams begin, the first of which is 0.
    """

    end: int
    streams: int
    first_packet: bytes
    ended: bool
    regular: bool
    links: tuple[int, ...]

    @property
    def plain_vorbis(self) -> bool:
        """Whether this is Vorbis of one or two channels, one stream after another."""
        vorbis = self.first_packet[:7] == b"\x01vorbis" and self.first_packet[11:12] in (b"\x01", b"\x02")
        return vorbis and self.streams == len(self.links) and self.regular


def walk_pages(file: BinaryIO, size: int) -> OggPages:
    """Read all page headers in order, up to the end of the file or the first bytes that are not a page."""
    at, streams, flags, first_packet, links = 0, 0, 0, b"", [0]
    for _ in range(_MAX_PAGES):
        header = read_at(file, at, 27 + 255 + 16)
        if header[:4] != b"OggS"[: len(header)]:
            return OggPages(at, streams, first_packet, ended=bool(flags & 4), regular=False, links=tuple(links))
        if len(header) < 27:
            return OggPages(at + 27, streams, first_packet, ended=False, regular=True, links=tuple(links))
        if header[5] & 2 and at and not flags & 2:
            links.append(at)
        flags, segments = header[5], header[26]
        streams += flags >> 1 & 1
        first_packet = first_packet or header[27 + segments : 27 + segments + 16]
        at += 27 + segments + sum(header[27 : 27 + segments])
        if at >= size:
            break
    return OggPages(at, streams, first_packet, ended=bool(flags & 4), regular=at >= size, links=tuple(links))
