from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.model.topic_config import (
    KNOWN_VERSIONS,
    SETTINGS_SINCE,
    BrokerFacts,
    ConfigProblem,
    KafkaVersion,
    config_problems,
    impossible_values,
    is_same_value,
    narrowed_versions,
    new_problems,
)
from regent.model.topic_config.java_parsing import (
    parse_boolean,
    parse_double,
    parse_int,
    parse_list,
    parse_long,
)
from regent.model.topic_config.kafka_definitions import DEFINITIONS

REMOTE_ON = {"remote.log.storage.system.enable": "true"}


def broker(
    *versions: KafkaVersion,
    broker_id: int = 1,
    protocol_version: KafkaVersion | None = (3, 9),
    settings: Mapping[str, str] | None = None,
) -> BrokerFacts:
    """A broker that has answered; by default one of 3.9 with default settings."""
    return BrokerFacts(
        broker_id=broker_id,
        versions=versions or ((3, 9),),
        protocol_version=protocol_version,
        settings={} if settings is None else settings,
        has_answered=True,
    )


SILENT = BrokerFacts(broker_id=2)
"""A broker of which nothing is known yet."""


def problem(config: Mapping[str, str], *brokers: BrokerFacts) -> ConfigProblem:
    (found,) = config_problems(config, brokers or [broker()])
    return found


class TestParsingAsJava:
    @pytest.mark.parametrize(
        ("text", "number"),
        [("5", 5), (" 5\t", 5), ("\x005", 5), ("+5", 5), ("-0", 0), ("007", 7)],
    )
    def test_whole_numbers(self, text: str, number: int) -> None:
        assert parse_int(text) == parse_long(text) == number

    @pytest.mark.parametrize(
        "text",
        [
            "",
            " ",
            "\u00a05",
            "5\u2003",
            "\uff15",
            "\u0665",
            "1_000",
            "1e3",
            "5.0",
            "0x5",
            "9" * 5000,
        ],
    )
    def test_what_is_no_whole_number(self, text: str) -> None:
        assert parse_int(text) is parse_long(text) is None

    def test_bounds_of_the_types(self) -> None:
        assert parse_int("2147483647") == 2**31 - 1
        assert parse_int("2147483648") is None
        assert parse_long("-9223372036854775808") == -(2**63)
        assert parse_long("-9223372036854775809") is None

    @pytest.mark.parametrize(
        ("text", "number"),
        [("0.5", 0.5), (" .5 ", 0.5), ("5e-1", 0.5), ("0.5d", 0.5), ("1F", 1), ("0x1p-1", 0.5)],
    )
    def test_doubles(self, text: str, number: float) -> None:
        assert parse_double(text) == number

    @pytest.mark.parametrize(
        "text",
        ["", "NaN", "Infinity", "1e400", "0x1", "0_5", "\uff10.5", "0,5", "e5", "0x1p99999", "inf"],
    )
    def test_what_is_no_finite_double(self, text: str) -> None:
        assert parse_double(text) is None

    def test_booleans(self) -> None:
        assert parse_boolean(" TRUE ") is True
        assert parse_boolean("False") is False
        assert parse_boolean("yes") is parse_boolean("fal\u017fe") is None

    def test_lists(self) -> None:
        assert parse_list("") == parse_list(" ") == ()
        assert parse_list(" a , b,c") == ("a", "b", "c")
        assert parse_list("a,") == ("a", "")


class TestComparing:
    """Values as brokers use them."""

    @pytest.mark.parametrize(
        ("key", "one", "other"),
        [
            ("retention.ms", " 86400000 ", "86400000"),
            ("retention.ms", "+5", "05"),
            ("max.message.bytes", "1000\n", "1000"),
            ("min.cleanable.dirty.ratio", "0.0", "0"),
            ("min.cleanable.dirty.ratio", "5e-1", ".5"),
            ("preallocate", "True", " true"),
            ("compression.type", " lz4", "lz4"),
            ("message.format.version", "2.8 ", "2.8"),
            ("cleanup.policy", "delete,compact", "delete, compact"),
            ("cleanup.policy", "delete,compact", "compact , delete"),
            ("cleanup.policy", "", " "),
            ("leader.replication.throttled.replicas", "0:1,1:2", "1:2,0:1"),
            ("leader.replication.throttled.replicas", "", None),
            ("follower.replication.throttled.replicas", None, ""),
            ("retention.ms", None, None),
            ("x.foreign", "5", "5"),
        ],
    )
    def test_values_are_equal_when_brokers_use_them_alike(
        self, key: str, one: str | None, other: str | None
    ) -> None:
        assert is_same_value(key, one, other)
        assert is_same_value(key, other, one)

    @pytest.mark.parametrize(
        ("key", "one", "other"),
        [
            ("retention.ms", "5", "6"),
            ("retention.ms", "5", None),
            ("retention.ms", "soon", " soon"),
            ("retention.ms", "5", "\u00a05"),
            ("retention.bytes", "9223372036854775807", "9223372036854775806"),
            ("min.cleanable.dirty.ratio", "0.5", "0.6"),
            ("preallocate", "false", None),
            ("compression.type", "lz4", "LZ4"),
            ("cleanup.policy", "delete", "delete,compact"),
            ("cleanup.policy", "", None),
            ("leader.replication.throttled.replicas", "*", None),
            # Brokers fail over the blank.
            ("leader.replication.throttled.replicas", "0:1,1:2", "0:1, 1:2"),
            ("x.foreign", "5", " 5"),
            ("x.foreign", "", None),
        ],
    )
    def test_values_differ_when_brokers_use_them_otherwise(
        self, key: str, one: str | None, other: str | None
    ) -> None:
        assert not is_same_value(key, one, other)
        assert not is_same_value(key, other, one)

    @given(key=st.sampled_from(sorted(DEFINITIONS)), value=st.text(max_size=12))
    def test_legal_value_is_equal_to_itself_with_blanks_around(self, key: str, value: str) -> None:
        assert is_same_value(key, value, value)
        if not impossible_values({key: value}):
            assert is_same_value(key, value, f" {value}\t")


class TestOneValue:
    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("retention.ms", " 86400000 "),
            ("retention.bytes", "-9223372036854775808"),
            ("segment.bytes", "14"),
            ("cleanup.policy", "compact, delete"),
            ("cleanup.policy", ""),
            ("compression.type", "zstd"),
            ("compression.gzip.level", "-1"),
            ("min.cleanable.dirty.ratio", "1"),
            ("preallocate", "TRUE"),
            ("message.format.version", "0.11.0-IV2"),
            ("message.format.version", "2.8.2"),
            ("message.timestamp.type", "LogAppendTime"),
            ("leader.replication.throttled.replicas", "*"),
            ("leader.replication.throttled.replicas", "0:1,1:2"),
            ("follower.replication.throttled.replicas", ""),
        ],
    )
    def test_legal(self, key: str, value: str) -> None:
        assert config_problems({key: value}, [broker()]) == ()
        assert impossible_values({key: value}) == ()

    @pytest.mark.parametrize(
        ("key", "value", "expected"),
        [
            ("retention.ms", "-2", "a whole number of at least -1"),
            ("retention.ms", "\u00a05000", "a whole number"),
            ("retention.bytes", "9223372036854775808", "that fits into 64 bits"),
            ("segment.bytes", "13", "at least 14"),
            ("segment.bytes", "2147483648", "that fits into 32 bits"),
            ("cleanup.policy", "compress", "a comma-separated list of compact, delete"),
            ("compression.type", "ZSTD", "one of gzip, lz4"),
            ("compression.gzip.level", "0", "a whole number -1 or from 1 to 9"),
            ("min.cleanable.dirty.ratio", "\uff10.\uff15", "a number from 0 to 1"),
            ("min.cleanable.dirty.ratio", "1.1", "a number from 0 to 1"),
            ("min.insync.replicas", "two", "a whole number of at least 1"),
            ("preallocate", "yes", "true or false"),
            ("message.format.version", "2.99", "a version of Kafka"),
            ("message.format.version", "2.8.", "a version of Kafka"),
            ("message.timestamp.type", "NoTimestampType", "one of CreateTime, LogAppendTime"),
            ("leader.replication.throttled.replicas", "99999999999:1", "at most 2147483647"),
            ("leader.replication.throttled.replicas", "0:1, 1:2", "without blanks"),
        ],
    )
    def test_what_no_version_could_load(self, key: str, value: str, expected: str) -> None:
        for found in (*impossible_values({key: value}), problem({key: value}, SILENT)):
            assert found.key == key
            assert found.is_certain
            assert f"{key!r} cannot be {value!r}: it must be " in found.message
            assert expected in found.message

    def test_a_long_value_is_cut_in_the_message(self) -> None:
        assert len(problem({"retention.ms": "9" * 100_000}).message) < 300

    @pytest.mark.parametrize(
        ("key", "suggestion"),
        [
            ("retention.msec", "did you mean 'retention.ms'?"),
            ("retentionMs", "did you mean 'retention.ms'?"),
            ("Retention.Ms", "did you mean 'retention.ms'?"),
            ("log.retention.hours", "(it belongs to brokers); did you mean 'retention.ms'?"),
            ("something.else", "the keys are those of Kafka's TopicConfig"),
        ],
    )
    def test_an_unknown_key(self, key: str, suggestion: str) -> None:
        message = problem({key: "1"}).message
        assert message.startswith(f"{key!r} is not a topic configuration of Kafka")
        assert suggestion in message

    @given(st.sampled_from(sorted(DEFINITIONS)), st.text())
    def test_any_text_is_judged(self, key: str, value: str) -> None:
        for each in config_problems({key: value}, [broker(), broker((1, 1)), SILENT]):
            assert each.key == key


class TestVersions:
    def test_a_key_that_a_broker_does_not_know(self) -> None:
        found = problem({"compression.gzip.level": "3"}, broker(), broker((3, 6), broker_id=7))
        assert found.is_certain
        assert "does not exist in Kafka 3.6 (broker 7 runs Kafka 3.6)" in found.message
        assert "since Kafka 3.8" in found.message

    def test_a_value_that_a_broker_does_not_know(self) -> None:
        found = problem({"compression.type": "zstd"}, broker((1, 1), protocol_version=(1, 1)))
        assert found.is_certain
        assert found.message.endswith("snappy, uncompressed (broker 1 runs Kafka 1.1)")

    def test_a_value_has_to_survive_an_upgrade(self) -> None:
        """Kafka 1.1 takes it, and 2.2 does not start with it."""
        assert problem({"retention.ms": "-5"}, broker((1, 1))).is_certain

    def test_a_value_has_to_be_legal_in_every_version_that_a_broker_may_run(self) -> None:
        config = {"message.timestamp.after.max.ms": "5"}
        assert config_problems(config, [broker((3, 6))]) == ()
        assert "runs Kafka 3.5 or 3.6" in problem(config, broker((3, 5), (3, 6))).message

    def test_what_every_version_can_load_waits_for_nobody(self) -> None:
        assert config_problems({"retention.ms": "5", "cleanup.policy": "compact"}, [SILENT]) == ()

    def test_a_broker_that_has_not_answered_may_turn_out_to_be_new_enough(self) -> None:
        for config in ({"compression.type": "zstd"}, {"compression.gzip.level": "3"}):
            found = problem(config, broker(), SILENT)
            assert not found.is_certain
            assert "broker 2 has not answered yet" in found.message

    def test_certain_problems_come_first(self) -> None:
        config = {"compression.gzip.level": "3", "compression.type": "zstd"}
        old = broker((3, 7), protocol_version=(2, 0))
        assert [each.is_certain for each in config_problems(config, [SILENT, old])] == [True, True]
        config = {"compression.gzip.level": "3", "retention.ms": "x"}
        assert next(p.key for p in config_problems(config, [SILENT])) == "retention.ms"

    def test_what_is_impossible_is_found_without_brokers(self) -> None:
        config = {"unknown": "1", "compression.type": "zstd"}
        assert [each.key for each in config_problems(config, [])] == ["unknown"]

    def test_a_conflict_is_certain_even_if_the_keys_may_be_unknown(self) -> None:
        config = {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}
        assert config_problems(config, [SILENT])[0].is_certain


class TestRelations:
    def test_compaction_lags(self) -> None:
        config = {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}
        assert "must not exceed 'max.compaction.lag.ms' (4)" in problem(config).message
        assert impossible_values(config)

    @pytest.mark.parametrize("size", ["0", "4", "11"])
    def test_an_index_without_room_for_one_entry(self, size: str) -> None:
        assert "must be" in problem({"segment.index.bytes": size}).message
        assert impossible_values({"segment.index.bytes": size})
        assert not impossible_values({"segment.index.bytes": "12"})

    @pytest.mark.parametrize(
        ("config", "needed"),
        [
            ({"segment.index.bytes": "1024"}, 12 * (2**30 // 4097 + 1)),
            ({"index.interval.bytes": "0"}, 12 * (2**30 // 26 + 1)),
            ({"index.interval.bytes": "1023"}, 12 * (2**30 // 1024 + 1)),
            ({"segment.bytes": "999", "segment.index.bytes": "12"}, 12),
            ({"segment.bytes": "5000", "segment.index.bytes": "23"}, 24),
        ],
    )
    def test_an_index_has_room_for_what_a_broker_that_was_killed_writes_into_it(
        self, config: Mapping[str, str], needed: int
    ) -> None:
        if int(config.get("segment.index.bytes", 0)) < needed:
            found = problem(config)
            assert found.is_certain
            assert f"must be {needed} or more" in found.message
        enough = {**config, "segment.index.bytes": str(needed)}
        assert config_problems(enough, [broker()]) == ()

    def test_an_index_without_room_waits_for_what_brokers_have_for_all_topics(self) -> None:
        config = {"segment.index.bytes": "1024"}
        assert not problem(config, SILENT).is_certain
        small = broker(settings={"log.segment.bytes": "100000"})
        assert config_problems(config, [small]) == ()
        assert not problem(config, small, SILENT).is_certain
        assert impossible_values(config | {"segment.bytes": "1000000", "index.interval.bytes": "9"})

    def test_an_index_may_be_as_brokers_have_it_for_all_topics(self) -> None:
        odd = broker(settings={"log.index.interval.bytes": "100"})
        assert config_problems({"segment.bytes": "1000000000"}, [odd]) == ()
        assert problem({"segment.bytes": "2000000000"}, odd).key == "segment.bytes"

    @pytest.mark.parametrize(
        ("before", "change", "lowered"),
        [
            ({}, {"segment.index.bytes": "1024"}, "segment.index.bytes"),
            # The segments that are there are as large as before.
            (
                {},
                {"segment.index.bytes": "1024", "segment.bytes": "100000"},
                "segment.index.bytes",
            ),
            # They may be older than the present size.
            ({"segment.bytes": "100000"}, {"segment.index.bytes": "1024"}, "segment.index.bytes"),
            ({}, {"segment.bytes": "9999", "index.interval.bytes": "9"}, "index.interval.bytes"),
            ({"segment.bytes": "100000", "segment.index.bytes": "2000"}, {}, ""),
            ({}, {"segment.index.bytes": "4000000"}, ""),
            ({}, {"index.interval.bytes": "2048"}, ""),
            ({}, {"segment.bytes": "100000"}, ""),
            ({"segment.index.bytes": "1024"}, {"segment.index.bytes": "4000000"}, ""),
        ],
    )
    def test_an_index_is_not_made_too_small_for_the_segments_that_are_there(
        self, before: Mapping[str, str], change: Mapping[str, str], lowered: str
    ) -> None:
        for brokers in ([], [broker()], [broker(), SILENT]):
            found = new_problems(before, {**before, **change}, brokers, changed=change)
            keys = [each.key for each in found if "cannot be lowered" in each.message]
            assert keys == ([lowered] if lowered else [])

    def test_an_interval_can_be_lowered_with_the_size_that_the_refusal_names(self) -> None:
        change = {"segment.bytes": "100000000", "index.interval.bytes": "1023"}
        (found,) = new_problems({}, change, [broker()], changed=change)
        needed = str(12 * (2**30 // 1024 + 1))
        assert found.message.endswith(f"or set 'segment.index.bytes' to {needed} or more")
        change["segment.index.bytes"] = needed
        assert new_problems({}, change, [broker()], changed=change) == ()

    def test_an_index_is_not_made_too_small_by_a_key_that_is_reset(self) -> None:
        before = {"segment.index.bytes": "500000000", "index.interval.bytes": "0"}
        (found, *_) = new_problems(before, {}, [broker()], changed={})
        assert "from 500000000 to 10485760" in found.message

    def test_a_compaction_lag_that_brokers_set_for_all_topics(self) -> None:
        known = broker(settings={"log.cleaner.max.compaction.lag.ms": "4"})
        found = problem({"min.compaction.lag.ms": "5"}, known)
        assert "broker 1 sets for all topics" in found.message

    @pytest.mark.parametrize("version", [(2, 0), None])
    def test_zstd_needs_followers_that_can_fetch_it(self, version: KafkaVersion | None) -> None:
        found = problem({"compression.type": "zstd"}, broker(protocol_version=version))
        assert found.is_certain
        assert "inter.broker.protocol.version is 2.1 or higher" in found.message

    @pytest.mark.parametrize(
        ("facts", "reason"),
        [
            (broker(), "on broker 1 it is off"),
            (broker((3, 3)), "broker 1 runs Kafka 3.3"),
            (BrokerFacts(broker_id=1, versions=((3, 9),), has_answered=True), "not reported its"),
        ],
    )
    def test_tiered_storage_has_to_be_on(self, facts: BrokerFacts, reason: str) -> None:
        found = problem({"remote.storage.enable": "true"}, facts)
        assert found.is_certain
        assert reason in found.message

    def test_tiered_storage_where_it_is_on(self) -> None:
        config = {"remote.storage.enable": "true"}
        known = broker(settings=REMOTE_ON | {"log.retention.hours": "1"})
        assert config_problems(config, [known]) == ()
        assert impossible_values(config) == ()
        assert "compacted" in problem(config | {"cleanup.policy": "compact"}, known).message
        too_long = config | {"local.retention.ms": "3600001"}
        assert "'retention.ms' (3600000)" in problem(too_long, known).message

    def test_tiered_storage_cannot_be_turned_off(self) -> None:
        known = broker(settings=REMOTE_ON)
        for after in ({}, {"remote.storage.enable": "false"}):
            found = new_problems({"remote.storage.enable": "true"}, after, [known], changed=after)
            assert ["cannot be turned off" in each.message for each in found] == [True]

    def test_local_retention_without_tiered_storage(self) -> None:
        assert problem({"local.retention.bytes": "5"}, broker((3, 3))).is_certain
        assert config_problems({"local.retention.bytes": "5"}, [broker()]) == ()

    def test_what_somebody_else_has_set_is_not_judged(self) -> None:
        before = {"retention.ms": "x", "min.compaction.lag.ms": "5"}
        known = [broker()]
        assert (
            new_problems(before, before | {"flush.ms": "1"}, known, changed={"flush.ms": "1"}) == ()
        )

    def test_how_it_goes_with_what_is_changed_is(self) -> None:
        before, change = {"min.compaction.lag.ms": "5"}, {"max.compaction.lag.ms": "4"}
        (found,) = new_problems(before, before | change, [broker()], changed=change)
        assert found.key == "min.compaction.lag.ms"


class TestNarrowing:
    @pytest.mark.parametrize("version", KNOWN_VERSIONS)
    def test_settings_tell_versions_apart(self, version: KafkaVersion) -> None:
        settings = {name: None for name, since in SETTINGS_SINCE.items() if since <= version}
        possible = narrowed_versions(KNOWN_VERSIONS, settings)
        assert version in possible
        assert ((3, 5) in possible) is (version < (3, 6) and version >= (2, 3))

    def test_an_answer_that_fits_no_version_narrows_nothing(self) -> None:
        assert narrowed_versions(((3, 5),), dict.fromkeys(SETTINGS_SINCE)) == ((3, 5),)
