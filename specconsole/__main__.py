"""`python -m specconsole`."""

import sys

from specconsole.cli.main import main

sys.exit(main())
