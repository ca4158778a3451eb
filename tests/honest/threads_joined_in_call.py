"""
kernel: gelu
outcome: solved

Threads started and joined within the call, a queue between them, a lock, a pool.
"""

import math
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

ERF = np.vectorize(math.erf, otypes=[np.float64])
CHUNK = 1024


def gelu(x, out, n):
    chunks, lock, done = queue.SimpleQueue(), threading.Lock(), []
    for first in range(0, n, CHUNK):
        chunks.put(slice(first, first + CHUNK))

    def work():
        while True:
            try:
                part = chunks.get_nowait()
            except queue.Empty:
                return
            out[part] = 0.5 * x[part] * (1 + ERF(x[part] / math.sqrt(2)))
            with lock:
                done.append(part.start)

    thread = threading.Thread(target=work)
    thread.start()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()
    thread.join()
    assert len(done) == -(-n // CHUNK)
