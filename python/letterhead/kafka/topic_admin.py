"""Create topics with settings copied from another topic: :class:`TopicAdmin`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from letterhead.errors import TopicNotFoundError
from letterhead.kafka.client import KafkaClient
from letterhead.kafka.responses import check_code

# Imported after client, because its ImportError names the required version.
from kafka import errors as kafka_errors  # isort: skip
from kafka.protocol.admin import CreateTopicsRequest, DescribeConfigsRequest  # isort: skip

__all__ = ["TopicAdmin"]

_TOPIC = 2
"""Resource type of topics."""

_OWN = 1
"""Source of settings that are overridden for the topic."""

_WAIT = 0.1
"""Seconds between requests for a newly created topic."""


class TopicAdmin(KafkaClient):
    """Describes the settings of topics, and creates topics."""

    def settings(self, topic: str) -> dict[str, str]:
        """Return the effective settings of a topic."""
        return {name: value for name, (value, _) in self._described(topic).items()}

    def own_settings(self, topic: str) -> dict[str, str]:
        """Return the settings that are overridden for the topic."""
        return {name: value for name, (value, source) in self._described(topic).items() if source == _OWN}

    def create(self, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
        """Create a topic, and wait until a broker lists it."""
        self.call(partial(self._create, topic, partitions, settings))
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                if len(self.partitions([topic])) == partitions:
                    return
            except TopicNotFoundError:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(_WAIT)

    def _described(self, topic: str) -> dict[str, tuple[str, int]]:
        described: dict[str, tuple[str, int]] = self.call(partial(self._describe, topic))
        return described

    async def _describe(self, topic: str, deadline: float) -> dict[str, tuple[str, int]]:
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=_TOPIC, resource_name=topic, configuration_keys=None
        )
        request = DescribeConfigsRequest(
            resources=[resource], include_synonyms=False, include_documentation=False, min_version=1, max_version=4
        )

        def find_mismatch(response: Any) -> str | None:
            names = [result.resource_name for result in response.results or ()]
            return None if names == [topic] else "sent settings of other topics than the requested one"

        response = await self.send_to_any(request, deadline, find_mismatch)
        [result] = response.results
        check_code(result.error_code, topic)
        return {
            setting.name: (setting.value, setting.config_source)
            for setting in result.configs
            if setting.value is not None and not setting.is_sensitive
        }

    async def _create(self, topic: str, partitions: int, settings: Mapping[str, str], deadline: float) -> None:
        metadata = await self._metadata([], deadline)
        new = CreateTopicsRequest.CreatableTopic
        request = CreateTopicsRequest(
            topics=[
                new(
                    name=topic,
                    num_partitions=partitions,
                    replication_factor=-1,  # default of the brokers
                    assignments=[],
                    configs=[new.CreatableTopicConfig(name=name, value=value) for name, value in settings.items()],
                )
            ],
            timeout_ms=int(1000 * self.timeout),
            validate_only=False,
            min_version=4,
            max_version=7,
        )

        def find_mismatch(response: Any) -> str | None:
            names = [result.name for result in response.topics or ()]
            return None if names == [topic] else "sent the results of other topics than the requested one"

        response = await self.send(metadata.controller_id, request, deadline, find_mismatch)
        [result] = response.topics
        if result.error_code == kafka_errors.TopicAlreadyExistsError.errno:
            return  # created by an earlier attempt of this request
        if result.error_code and result.error_message and not kafka_errors.for_code(result.error_code).retriable:
            raise ValueError(f"topic {topic!r} cannot be created: {result.error_message}")
        check_code(result.error_code, topic)
