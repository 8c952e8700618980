"""Writes kafka.json beside it: how Apache Kafka 4.1.1 answers every case of `support.authorization_cases`.

PYTHONPATH=tests:. .venv/bin/python tests/golden/authorization/record.py
"""

import json
import sys
import tempfile
from pathlib import Path

from support.authorization_answers import recorded, settings
from support.genuine import GenuineKafka
from support.ports import free_port

OUTPUT = Path(__file__).parent / "kafka.json"


def main() -> int:
    sasl_port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        broker = GenuineKafka(Path(folder))
        broker.settings.update(settings(sasl_port, broker.port, broker._controller_port))
        broker.start()
        try:
            OUTPUT.write_text(json.dumps(recorded(broker, sasl_port), indent=1, sort_keys=True) + "\n")
        finally:
            broker.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
