"""Random words that are the same on every machine and with every version of numpy."""

from hashlib import blake2b

import numpy as np


def philox(*name: object) -> np.random.Philox:
    """A random generator whose stream depends only on `name`. Use its raw words: numpy never changes those streams."""
    digest = blake2b("/".join(map(str, name)).encode(), digest_size=16).digest()
    # The key is the digest as a big-endian number, low word first. Philox splits numbers the same way, but more slowly.
    return np.random.Philox(key=np.frombuffer(digest[::-1], "<u8"))
