"""What two responses share and where they differ, in bounded time.

Texts are compared by pieces: words, punctuation marks, or tokens. difflib's time grows with the
number of pairs of equal pieces, so these are counted first. Where there are too many, whole lines
and sentences are compared, and pieces only within those that differ.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise, takewhile

MOST_PAIRS = 1_000_000  # pairs of equal pieces that one diff looks at: about half a second

_WORD = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")


@dataclass(frozen=True)
class Block:
    """Pieces `left[0]:left[1]` of one text against `right[0]:right[1]` of the other."""

    equal: bool
    left: tuple[int, int]
    right: tuple[int, int]


@dataclass(frozen=True)
class Diff:
    """Blocks in order, without a gap.

    `whole`: pieces were compared everywhere; else some differing lines were not looked into.
    """

    blocks: list[Block]
    whole: bool


def words(text: str) -> list[str]:
    """The text in pieces: a word or a mark with the white space after it. Joined they are it."""
    return _WORD.findall(text)


def diff(left: Sequence[str], right: Sequence[str], most: int = MOST_PAIRS) -> Diff:
    """Which pieces are equal, in blocks; equal and differing blocks alternate."""
    start = _same(left, right)
    end = _same(left[start:][::-1], right[start:][::-1])
    middle = left[start : len(left) - end], right[start : len(right) - end]
    found, whole = _middle(*middle, most)
    raw = [
        Block(True, (0, start), (0, start)),
        *(_moved(block, start, start) for block in found),
        Block(True, (len(left) - end, len(left)), (len(right) - end, len(right))),
    ]
    return Diff(list(_merged(raw)), whole)


def _same(left: Sequence[str], right: Sequence[str]) -> int:
    """How many first pieces are the same."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right)))  # noqa: B905


def _middle(left: Sequence[str], right: Sequence[str], most: int) -> tuple[list[Block], bool]:
    if _pairs(left, right) <= most:
        return _matched(left, right), True
    ends, others = _line_ends(left), _line_ends(right)
    lines, against = _lines(left, ends), _lines(right, others)
    most -= _pairs(lines, against)
    if most < 0:
        return [Block(False, (0, len(left)), (0, len(right)))], False
    found, whole = [], True
    for block in _matched(lines, against):
        (i, j), (k, m) = _pieces(ends, block.left), _pieces(others, block.right)
        cost = 0 if block.equal else _pairs(left[i:j], right[k:m])
        if block.equal or cost > most:
            found.append(Block(block.equal, (i, j), (k, m)))
            whole = whole and block.equal
        else:
            most -= cost
            found += [_moved(each, i, k) for each in _matched(left[i:j], right[k:m])]
    return found, whole


def _pairs(left: Sequence[str], right: Sequence[str]) -> int:
    """Pairs of equal pieces, one of each side: what difflib looks at in a pass."""
    counts = Counter(right)
    return sum(number * counts[piece] for piece, number in Counter(left).items())


def _matched(left: Sequence[str], right: Sequence[str]) -> list[Block]:
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    return [Block(kind == "equal", (i, j), (k, m)) for kind, i, j, k, m in matcher.get_opcodes()]


def _line_ends(pieces: Sequence[str]) -> list[int]:
    """How many pieces there are up to the end of each line or sentence, from 0."""
    ends = [at for at, piece in enumerate(pieces, 1) if "\n" in piece or piece[:1] in (".", ";")]
    return [0, *ends] if ends and ends[-1] == len(pieces) else [0, *ends, len(pieces)]


def _lines(pieces: Sequence[str], ends: list[int]) -> list[str]:
    return ["\0".join(pieces[start:end]) for start, end in pairwise(ends)]


def _pieces(ends: list[int], lines: tuple[int, int]) -> tuple[int, int]:
    return ends[lines[0]], ends[lines[1]]


def _moved(block: Block, left: int, right: int) -> Block:
    (i, j), (k, m) = block.left, block.right
    return Block(block.equal, (i + left, j + left), (k + right, m + right))


def _merged(blocks: list[Block]) -> Iterator[Block]:
    """Without empty blocks, and neighbours of one kind as one."""
    last: Block | None = None
    for block in blocks:
        if block.left[0] == block.left[1] and block.right[0] == block.right[1]:
            continue
        if last is not None and last.equal == block.equal:
            last = Block(
                block.equal, (last.left[0], block.left[1]), (last.right[0], block.right[1])
            )
            continue
        if last is not None:
            yield last
        last = block
    if last is not None:
        yield last
