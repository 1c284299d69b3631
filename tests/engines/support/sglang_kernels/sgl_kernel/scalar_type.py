"""Names of number formats: tables of quantisation methods are built from them at import, and nothing more here."""


class ScalarType:
    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return self.name


class _Names:
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = ScalarType(name)
        setattr(self, name, value)
        return value


scalar_types = _Names()
