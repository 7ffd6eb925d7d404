"""What an application does with posthog-python, whatever its age; prints what it saw as one JSON object.

Arguments: address, project key, personal key, prefix of distinct ids. The version in use is whatever the interpreter has.
"""

import json
import logging
import sys
import time
from datetime import datetime, timezone

from posthog import Posthog

host, project_key, personal_key, prefix = sys.argv[1:5]
complaints = []


class Listener(logging.Handler):
    def emit(self, record):
        complaints.append(record.getMessage())


logging.getLogger("posthog").addHandler(Listener(level=logging.WARNING))
logging.getLogger("posthog").propagate = False


def client_with(key=project_key, **options):
    return Posthog(key, host=host, on_error=lambda error, _batch: complaints.append(repr(error)), **options)


def identify(client, distinct_id, properties):
    # `identify` of the older ones became `set`.
    method = client.identify if hasattr(client, "identify") else client.set
    method(distinct_id=distinct_id, properties=properties)


def stored_flags(client, distinct_id, **more):
    both = client.get_all_flags_and_payloads(distinct_id, **more)
    return both["featureFlags"], both["featureFlagPayloads"]


seen = {}
gold = {"groups": {"company": "acme"}, "group_properties": {"company": {"tier": "gold"}}}

client = client_with()
reader = prefix + "reader"
seen["flags"], seen["payloads"] = stored_flags(client, reader)
seen["multi"] = client.get_feature_flag("multi", reader)
seen["bool_on"] = client.feature_enabled("bool-on", reader)
seen["payload"] = client.get_feature_flag_payload("bool-on", reader)
seen["with_property"] = client.get_feature_flag("local-prop", reader, person_properties={"plan": "pro"})
seen["with_group"] = client.get_feature_flag("group-flag", reader, **gold)

sender, alias, company = prefix + "sender", prefix + "alias", prefix + "acme"
client.capture(
    distinct_id=sender,
    event="bought",
    properties={"price": 9.5, "ok": True, "name": "tea"},
    timestamp=datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=timezone.utc),
    send_feature_flags=True,
)
identify(client, sender, {"email": "a@example.org"})
client.alias(previous_id=sender, distinct_id=alias)
client.group_identify(group_type="company", group_key=company, properties={"tier": "gold"})
client.capture(distinct_id=sender, event="grouped", groups={"company": company})
client.shutdown()

many = client_with(gzip=True)
for number in range(1000):
    many.capture(distinct_id=f"d{number}", event=prefix + "thousand", properties={"n": number})
many.shutdown()

imported = client_with(historical_migration=True)
imported.capture(
    distinct_id=prefix + "imported", event="old", timestamp=datetime(2021, 5, 6, 7, 8, 9, 123000, tzinfo=timezone.utc)
)
imported.shutdown()

local = client_with(personal_api_key=personal_key, poll_interval=1)
local.load_feature_flags()
only = {"only_evaluate_locally": True}
seen["local"] = {
    "bool-on": local.get_feature_flag("bool-on", "x", **only),
    "bool-off": local.get_feature_flag("bool-off", "x", **only),
    "multi": local.get_feature_flag("multi", "x", **only),
    "local-prop": local.get_feature_flag("local-prop", "x", person_properties={"plan": "pro"}, **only),
    "group-flag": local.get_feature_flag("group-flag", "x", **gold, **only),
    "cohort-flag": local.get_feature_flag("cohort-flag", "x", person_properties={"plan": "pro"}, **only),
}
time.sleep(1.5)  # one more poll
local.shutdown()
seen["complaints"] = complaints[:]

complaints.clear()
stranger = client_with("phc_of_nobody", max_retries=1)
seen["stranger"] = stranger.get_feature_flag("bool-on", prefix + "stranger")
stranger.capture(distinct_id=prefix + "stranger", event="lost")
stranger.shutdown()
seen["refusals"] = complaints[:]

print(json.dumps(seen))
