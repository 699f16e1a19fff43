package io.belfry.client;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Optional;
import java.util.function.Function;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.junit.jupiter.api.Test;

/** What belfry's own code says, for the clients of all languages. */
class VectorsTest {
    private final JsonNode vectors;

    VectorsTest() throws IOException {
        vectors = new ObjectMapper().readTree(new File("../vectors.json"));
    }

    @Test
    void requestsGoToTheirTenantsHome() {
        for (JsonNode each : vectors.required("partitions")) {
            int found = BelfryClient.home(each.get("tenant").asText(), each.get("partitions").asInt());
            assertEquals(each.get("partition").asInt(), found, each::toString);
        }
    }

    @Test
    void signatures() {
        for (JsonNode each : vectors.required("signatures")) {
            Headers headers = new RecordHeaders();
            each.get("headers").forEach(pair -> headers.add(pair.get(0).asText(), bytes(pair.get(1))));
            String found =
                    Signature.of(
                            Schedule.bytes(each.get("secret").asText()), each.get("tenant").asText(),
                            bytes(each.get("key")), bytes(each.get("value")), headers);
            assertEquals(HexFormat.of().formatHex(bytes(each.get("signature"))), found);
        }
    }

    @Test
    void verdicts() {
        for (JsonNode each : vectors.required("verdicts")) {
            byte[] value = bytes(each.get("value"));
            JsonNode wanted = each.get("verdict");
            Verdict verdict =
                    new Verdict(
                            wanted.get("tenant").asText(), wanted.get("schedule_id").asText(),
                            wanted.get("outcome").asText(), text(wanted, "request_id"),
                            text(wanted, "fire_id"), number(wanted, "version"),
                            Instant.ofEpochMilli(number(wanted, "at")),
                            or(wanted, "due_at", at -> Instant.ofEpochMilli(at.asLong())),
                            text(wanted, "code"), text(wanted, "reason"), text(wanted, "source_topic"),
                            number(wanted, "source_partition"), number(wanted, "source_offset"));
            assertEquals(verdict, Verdict.parse(value));
            // A field that a later release adds changes nothing, and half an event is none.
            assertEquals(verdict, Verdict.parse(Arrays.copyOf(value, value.length + 1)));
            for (int size = 0; size < value.length; size++) {
                byte[] cut = Arrays.copyOf(value, size);
                assertThrows(IllegalArgumentException.class, () -> Verdict.parse(cut));
            }
        }
    }

    @Test
    void events() {
        for (JsonNode each : vectors.required("events")) {
            Headers headers = new RecordHeaders();
            each.get("headers").forEach(pair -> headers.add(pair.get(0).asText(), bytes(pair.get(1))));
            JsonNode wanted = each.get("event");
            FiredEvent.Source source =
                    or(
                            wanted, "source",
                            told ->
                                    new FiredEvent.Source(
                                            told.get("topic").asText(), told.get("partition").asInt(),
                                            told.get("offset").asLong()));
            FiredEvent.Claim claim =
                    or(
                            wanted, "claim",
                            told ->
                                    new FiredEvent.Claim(
                                            told.get("digest").asText(), told.get("size_bytes").asLong(),
                                            text(told, "encrypted_for")));
            Long version = number(wanted, "version");
            FiredEvent event =
                    new FiredEvent(
                            text(wanted, "fire_id"), text(wanted, "schedule_id"),
                            Instant.ofEpochMilli(number(wanted, "scheduled_at_ms")),
                            number(wanted, "occurrence"), number(wanted, "missed"),
                            text(wanted, "event_type"), text(wanted, "tenant"), text(wanted, "group"),
                            version == null ? 0 : version, source, text(wanted, "backfill"),
                            text(wanted, "redriven"), claim);
            assertEquals(Optional.of(event), FiredEvent.of(headers), each::toString);
        }
    }

    @Test
    void encryptedPayloads() {
        for (JsonNode each : vectors.required("encrypted")) {
            String tenant = each.get("tenant").asText();
            Encryption encryption = new Encryption(new OneKey(each.get("reference").asText(), each));
            byte[] payload = bytes(each.get("payload"));
            byte[] sealed = bytes(each.get("sealed"));
            Headers headers =
                    new RecordHeaders()
                            .add("encryption-key", Schedule.bytes(each.get("names").asText()))
                            .add("belfry-schedule-tenant", Schedule.bytes(tenant));
            if (payload == null) {
                assertThrows(NotDecryptedException.class, () -> encryption.open(headers, sealed));
                continue;
            }
            assertArrayEquals(payload, encryption.open(headers, sealed), each::toString);
            Schedule asked =
                    encryption.seal(Schedule.of(tenant, "a", When.in(Duration.ZERO)).payload(payload));
            assertArrayEquals(sealed, asked.payload, each::toString);
            assertEquals(
                    each.get("reference").asText(), FiredEvent.last(asked.headers(), "encryption-key"));
        }
    }

    private record OneKey(String reference, JsonNode vector) implements Keys {
        @Override
        public Optional<String> current(String tenant) {
            return Optional.of(reference);
        }

        @Override
        public Optional<byte[]> named(String given) {
            return given.equals(reference) ? Optional.of(bytes(vector.get("key"))) : Optional.empty();
        }
    }

    @Test
    void retriesOfEvents() {
        assertFalse(vectors.required("retries").isEmpty());
        for (JsonNode each : vectors.required("retries")) {
            Headers headers = new RecordHeaders();
            each.get("headers").forEach(pair -> headers.add(pair.get(0).asText(), bytes(pair.get(1))));
            ConsumerRecord<byte[], byte[]> failed =
                    new ConsumerRecord<>(
                            each.get("topic").asText(), 0, 0, 0, TimestampType.CREATE_TIME, 0, 0,
                            bytes(each.get("key")), null, headers, Optional.empty());
            JsonNode wanted = each.get("retry");
            String tenant = wanted.get("tenant").asText();
            Retrier retrier = new Retrier(null, tenant, null, "dead");
            Schedule again = retrier.again(failed, Duration.ofSeconds(1));
            assertEquals(tenant, FiredEvent.last(again.headers(), "belfry-tenant"));
            assertEquals(wanted.get("id").asText(), again.id, each::toString);
            assertEquals(wanted.get("request_id").asText(), again.requestId, each::toString);
            assertArrayEquals(bytes(wanted.get("key")), again.key, each::toString);
            for (JsonNode pair : wanted.get("headers")) {
                String found = FiredEvent.last(again.headers(), pair.get(0).asText());
                assertEquals(pair.get(1).asText(), found, each::toString);
            }
            var dead = retrier.deadLetter(failed, new IllegalStateException("no money"));
            assertArrayEquals(bytes(wanted.get("key")), dead.key(), each::toString);
        }
    }

    @Test
    void waits() {
        for (JsonNode each : vectors.required("waits")) {
            Backoff backoff =
                    new Backoff(
                            Duration.ofMillis(each.get("first_ms").asLong()),
                            each.get("factor").asDouble(),
                            Duration.ofMillis(each.get("most_ms").asLong()), each.get("attempts").asInt());
            Optional<Long> wanted = Optional.ofNullable(number(each, "delay_ms"));
            assertEquals(wanted.map(Duration::ofMillis), backoff.delay(each.get("failed").asInt()));
        }
    }

    private static byte[] bytes(JsonNode spaced) {
        return spaced.isNull() ? null : HexFormat.of().parseHex(spaced.asText().replace(" ", ""));
    }

    private static String text(JsonNode node, String name) {
        return or(node, name, JsonNode::asText);
    }

    private static Long number(JsonNode node, String name) {
        return or(node, name, JsonNode::asLong);
    }

    private static <T> T or(JsonNode node, String name, Function<JsonNode, T> read) {
        return node.hasNonNull(name) ? read.apply(node.get(name)) : null;
    }
}
