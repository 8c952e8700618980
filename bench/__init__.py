"""Side by side with Apache Kafka in one run: the same client programs against both brokers, printed as ratios."""

import sys
from pathlib import Path

# The brokers as processes are the tests' own.
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
