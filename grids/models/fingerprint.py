"""Fingerprints: short digests by which a network is known whatever it is called."""

from hashlib import sha256


def digest_text(text: str) -> str:
    """The first 16 hexadecimal digits of the text's SHA-256."""
    return sha256(text.encode()).hexdigest()[:16]
