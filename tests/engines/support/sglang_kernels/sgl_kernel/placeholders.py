"""Modules in which every name exists: importing one is fine, using it says what is missing."""

import importlib.abc
import importlib.machinery
import sys
import types


class _AnythingType(type):
    """Of a class that may be a base, a decorator or an enumeration: whatever is asked of it is itself."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return cls


class Anything(metaclass=_AnythingType):
    def __init__(self, *args, **kwargs):
        pass


class PlaceholderModule(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if self.__name__.partition(".")[0] == "torchvision" or name[0].isupper() or name == "scalar_types":
            return Anything
        wanted = f"{self.__name__}.{name}"

        def missing(*args, **kwargs):
            raise NotImplementedError(f"{wanted} has no stand-in on the CPU")

        missing.__name__ = name
        return missing


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Last on the path, so that real files are found first."""

    def __init__(self, package):
        self._prefix = package + "."

    def find_spec(self, name, path, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.startswith(self._prefix) else None

    def create_module(self, spec):
        return PlaceholderModule(spec.name)

    def exec_module(self, module):
        pass


def install(package):
    """Submodules of `package` that have no file become placeholders."""
    sys.meta_path.append(_Finder(package))
