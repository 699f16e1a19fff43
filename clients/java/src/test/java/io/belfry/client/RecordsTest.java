package io.belfry.client;

import static io.belfry.client.Schedule.bytes;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.junit.jupiter.api.Test;

/** What is written to Kafka, and how what is read is understood. */
class RecordsTest {
    private static final Map<String, String> ASKED =
            Map.of("belfry-tenant", "demo", "belfry-id", "a", "belfry-action", "UPSERT");

    private static Map<String, String> shown(Headers headers) {
        Map<String, String> shown = new TreeMap<>();
        headers.forEach(each -> shown.put(each.key(), new String(each.value())));
        return shown;
    }

    private static Map<String, String> with(Map<String, String> some, Map<String, String> more) {
        Map<String, String> all = new TreeMap<>(some);
        all.putAll(more);
        return all;
    }

    private static ConsumerRecord<byte[], byte[]> record(String topic, Map<String, String> headers) {
        Headers own = new RecordHeaders();
        headers.forEach((name, value) -> own.add(name, bytes(value)));
        return new ConsumerRecord<>(
                topic, 1, 7, 0, TimestampType.CREATE_TIME, 0, 0, bytes("k"), bytes("v"), own,
                Optional.empty());
    }

    private static ConsumerRecord<byte[], byte[]> fired(Map<String, String> more) {
        Map<String, String> belfrys =
                Map.of(
                        "belfry-fire-id", "f1",
                        "belfry-schedule-id", "order/1",
                        "belfry-scheduled-at", "2026-12-01T09:00:00.250Z",
                        "belfry-occurrence", "-1");
        return record("belfry.fired.shop", with(more, belfrys));
    }

    @Test
    void schedulesAreHeaders() {
        Map<When, Map<String, String>> cases =
                Map.of(
                        When.at(Instant.ofEpochMilli(1_796_115_600_000L)),
                        Map.of("belfry-at", "1796115600000"),
                        When.in(Duration.ofNanos(1)),
                        Map.of("belfry-in", "1"),
                        When.every(Duration.ofSeconds(90)),
                        Map.of("belfry-every", "90000"),
                        When.cron("0 9 * * MON", ZoneOffset.UTC),
                        Map.of("belfry-cron", "0 9 * * MON"),
                        When.cron("0 9 * * *", ZoneId.of("Europe/Rome")),
                        Map.of("belfry-cron", "0 9 * * *", "belfry-timezone", "Europe/Rome"),
                        When.rrule("FREQ=DAILY").except("* * * * SUN"),
                        Map.of("belfry-rrule", "FREQ=DAILY", "belfry-except-cron", "* * * * SUN"),
                        When.every(Duration.ofMinutes(1))
                                .timeZone(ZoneId.of("Europe/Rome"))
                                .except("* 0-5 * * *"),
                        Map.of(
                                "belfry-every", "60000",
                                "belfry-timezone", "Europe/Rome",
                                "belfry-except-cron", "* 0-5 * * *"));
        cases.forEach(
                (when, wanted) ->
                        assertEquals(
                                with(ASKED, wanted),
                                shown(Schedule.of("demo", "a", when).payload("x").headers())));
    }

    @Test
    void whatAScheduleMayHave() {
        Schedule schedule =
                Schedule.of("demo", "a", When.in(Duration.ZERO))
                        .group("g").type("t").createOnly().header("trace", bytes("1"));
        Map<String, String> wanted =
                Map.of(
                        "belfry-action", "CREATE", "belfry-in", "0", "belfry-group", "g",
                        "belfry-type", "t", "event-type", "t", "trace", "1");
        assertEquals(with(ASKED, wanted), shown(schedule.headers()));
    }

    @Test
    void whatAScheduleMayAskFor() {
        When when =
                When.every(Duration.ofMillis(1))
                        .startAt(Instant.ofEpochMilli(5)).endAt(Instant.ofEpochMilli(9)).maxFires(3)
                        .calendar("de").onHoliday("NEXT_BUSINESS_DAY").jitter(Duration.ofNanos(1))
                        .misfire("SKIP").maxLateness(Duration.ofMillis(2));
        Schedule schedule =
                Schedule.of("demo", "a", when)
                        .overlap("SKIP").serial().concurrency(2).ackTimeout(Duration.ofSeconds(1))
                        .priority(-2).webhook("https://a.example").expectedVersion(3).reason("why");
        String wanted =
                "belfry-ack-timeout=1000, belfry-calendar=de, belfry-concurrency=2,"
                        + " belfry-end-at=9, belfry-every=1, belfry-expected-version=3,"
                        + " belfry-jitter=1, belfry-max-fires=3, belfry-max-lateness=2,"
                        + " belfry-misfire=SKIP, belfry-on-holiday=NEXT_BUSINESS_DAY,"
                        + " belfry-overlap=SKIP, belfry-priority=-2, belfry-reason=why,"
                        + " belfry-serial=true,"
                        + " belfry-start-at=5, belfry-webhook=https://a.example";
        Map<String, String> shown = shown(schedule.headers());
        shown.keySet().removeAll(ASKED.keySet());
        assertEquals("{" + wanted + "}", shown.toString());
        When once = When.in(Duration.ofMillis(1));
        assertEquals("2", once.maxWait(Duration.ofMillis(2)).headers.get("belfry-max-wait"));
        assertEquals("2", once.throttle(Duration.ofMillis(2)).headers.get("belfry-throttle"));
        When after = When.afterAck("x").ackDelay(Duration.ofMillis(2)).latestAt(Instant.ofEpochMilli(9));
        assertEquals(
                Map.of("belfry-after-ack", "x", "belfry-ack-delay", "2", "belfry-latest-at", "9"),
                after.headers);
        assertEquals(Map.of("belfry-after-group", "g"), When.afterGroup("g").headers);
    }

    @Test
    void firedEvents() {
        var record = fired(Map.of("event-type", "order.expired", "belfry-missed", "3"));
        Instant at = Instant.ofEpochMilli(1_796_115_600_250L);
        assertEquals(
                Optional.of(
                        new FiredEvent("f1", "order/1", at, -1, 3, "order.expired", null, null, 0, null)),
                FiredEvent.of(record.headers()));
        var told =
                fired(
                        Map.of(
                                "belfry-schedule-type", "t", "belfry-schedule-tenant", "shop",
                                "belfry-schedule-group", "g", "belfry-schedule-version", "7",
                                "belfry-source", "belfry.schedules/3/4711"));
        var source = new FiredEvent.Source("belfry.schedules", 3, 4711);
        assertEquals(
                Optional.of(new FiredEvent("f1", "order/1", at, -1, 0, "t", "shop", "g", 7, source)),
                FiredEvent.of(told.headers()));
        assertTrue(FiredEvent.of(record("t", Map.of("belfry-fire-id", "f")).headers()).isEmpty());
    }

    @Test
    void retries() {
        Retrier retrier = new Retrier(null, "shop", null, "dead");
        Schedule first =
                retrier.again(
                        record("orders", Map.of("trace", "1", "event-type", "order")), Duration.ofSeconds(1));
        assertEquals("retry/orders/1/7", first.id);
        assertEquals(first.id, first.requestId);
        Map<String, String> wanted =
                Map.of(
                        "belfry-tenant", "shop", "belfry-id", "retry/orders/1/7", "belfry-in", "1000",
                        "belfry-type", "order", "trace", "1", "event-type", "order",
                        "retry-attempt", "1");
        assertEquals(with(ASKED, wanted), shown(first.headers()));

        var failed = fired(Map.of("trace", "1", "ce_id", "f1", "ce_type", "t", "retry-attempt", "1"));
        assertEquals("retry/f1", retrier.again(failed, Duration.ZERO).id);
        assertEquals(1, Retrier.attempt(failed));
        var dead = retrier.deadLetter(failed, new IllegalStateException("no money"));
        assertEquals("dead", dead.topic());
        assertEquals(
                Map.of(
                        "trace", "1", "retry-attempt", "2", "dead-letter-reason", "no money",
                        "dead-letter-origin", "belfry.fired.shop/1/7"),
                shown(dead.headers()));
    }

    @Test
    void refusals() {
        assertFalse(verdict("ACCEPTED", null).refused());
        assertTrue(verdict("NOT_FOUND", null).refused());
        assertFalse(verdict("UNKNOWN", null).refused());
        assertTrue(verdict("DUPLICATE", "CONFLICT").refused());
        assertFalse(verdict("DUPLICATE", "ACCEPTED").refused());
    }

    private static Verdict verdict(String outcome, String code) {
        return new Verdict(
                "demo", "a", outcome, null, null, null, Instant.EPOCH, null, code, null, null, null, null);
    }
}
