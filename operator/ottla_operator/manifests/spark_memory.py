"""How much memory a pod needs around a JVM of a given size. Pure."""

__all__ = ["overhead_mib", "pod_memory_mib"]

MIB_OF = {"k": 1 / 1024, "m": 1.0, "g": 1024.0, "t": 1024.0 * 1024}
# Spark's own rule for what lives beside the heap: Python's processes are counted there.
OVERHEAD_SHARE = {"Python": 0.4, "Java": 0.1, "Scala": 0.1}
OVERHEAD_MIB_MIN = 384


def pod_memory_mib(heap: str, *, language: str) -> int:
    return int(_mib(heap)) + overhead_mib(heap, language=language)


def overhead_mib(heap: str, *, language: str) -> int:
    return int(max(_mib(heap) * OVERHEAD_SHARE[language], OVERHEAD_MIB_MIN))


def _mib(heap: str) -> float:
    return int(heap[:-1]) * MIB_OF[heap[-1]]
