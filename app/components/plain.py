"""A foreign text inside Markdown: shown letter for letter."""

import re

JOINER = "\u2060"  # takes no room and allows no line break

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")

# Emoji, icons, addresses and arrows are found after the escapes are gone: they must be taken apart.
_TAKEN_APART = re.compile(r"(?<=[:@])|(?i:(?<=www))(?=\.)|(?<=[-<>~])(?=[-=>])")


def plain(text: str) -> str:
    """The text, escaped so that Streamlit's Markdown shows it as it is, in one line."""
    parted = _TAKEN_APART.sub(JOINER, " ".join(text.split()))
    return _PUNCTUATION.sub(r"\\\1", parted)
