"""SGLang imports torchvision at its start, for image models; the real wheel would bring a CUDA torch with it."""

import sys

from sgl_kernel.placeholders import PlaceholderModule, install

__version__ = "0.0.0"

install("torchvision")
sys.modules[__name__].__class__ = PlaceholderModule
