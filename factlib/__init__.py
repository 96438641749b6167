__version__ = "0.1.0"

from .core import moved as _moved
