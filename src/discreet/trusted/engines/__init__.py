"""Access to data: each engine turns a plan into exact integers, bit for bit the same as every other engine."""

from discreet.trusted.engines.engine import Engine, execute
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.engines.memory import MemoryEngine, memory_engine_from_arrays, memory_engine_from_frame

__all__ = ["Engine", "FileEngine", "MemoryEngine", "execute", "memory_engine_from_arrays", "memory_engine_from_frame"]
