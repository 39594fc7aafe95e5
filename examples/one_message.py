"""One message: write headers, read them, and find the error in damaged bytes. Needs letterhead only.

Run: python examples/one_message.py
"""

import letterhead as lh

headers = lh.Headers([("tenant", "acme"), ("route", "eu-1"), ("route", "eu-2"), ("note", None)])
headers.add("retry", lh.Int32(3))

# Keys repeat, order matters, and null is not empty: what is written is what is read.
block = lh.encode(headers, "kafka", types="be")
read = lh.decode(block, "kafka")
print(read.keys(), read.get_all("route"), read["note"])

# Some of them with types; columns and Spark take the same arguments.
print(lh.select(block, {"tenant": "string", "retry": "int32", "route": "array<string>"}))

# The value of a Kafka Streams store (KIP-1271): headers, timestamp and payload in one value.
value = lh.encode(lh.Message(headers=read, timestamp=1767225600000, payload=b"42"), "streams-timestamped")
print(lh.decode(value, "streams-timestamped").headers == read)

# Damaged bytes are an error with its position, never a guess.
for error in lh.validate(block[:-2], "kafka"):
    print(error.code, "-", error)
