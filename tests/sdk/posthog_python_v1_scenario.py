"""What an application does with posthog-python in capture mode v1, with each of its compressions; prints its complaints.

Arguments: address, project key, prefix of distinct ids.
"""

import json
import sys
from datetime import datetime, timezone

from posthog import Posthog

host, project_key, prefix = sys.argv[1:4]
complaints = []


def client_with(**options):
    def on_error(error, _batch):
        complaints.append([repr(error), [detail for _, detail in getattr(error, "drops", None) or []]])

    return Posthog(project_key, host=host, on_error=on_error, capture_mode="v1", **options)


for compression in ("none", "gzip", "deflate"):
    client = client_with(capture_compression=compression)
    client.capture(
        "bought",
        distinct_id=prefix + compression,
        properties={"price": 9.5, "$session_id": "S-1", "$process_person_profile": False},
        timestamp=datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=timezone.utc),
    )
    client.set(distinct_id=prefix + "person", properties={"plan": "pro"})
    client.shutdown()

client = client_with(flush_at=3)
client.capture("first", distinct_id=prefix + "mixed")
client.capture("second", distinct_id=prefix + "mixed" + "x" * 200)
client.capture("third", distinct_id=prefix + "mixed")
client.shutdown()

imported = client_with(historical_migration=True)
imported.capture(
    "old", distinct_id=prefix + "imported", timestamp=datetime(2021, 5, 6, 7, 8, 9, 123000, tzinfo=timezone.utc)
)
imported.shutdown()

print(json.dumps(complaints))
