package io.belfry.client;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Set;
import org.apache.kafka.common.utils.ByteUtils;

/**
 * What became of a request; what it does not say is null.
 *
 * @param outcome {@code ACCEPTED}, {@code UPDATED}, {@code CANCELLED}, {@code REJECTED} …; {@code
 *     UNKNOWN} is newer than this client
 * @param at when it was decided
 * @param dueAt the next due instant
 * @param code stable, for programs; of a {@code DUPLICATE} it is the first outcome
 * @param reason for people
 */
public record Verdict(
        String tenant,
        String id,
        String outcome,
        String requestId,
        String fireId,
        Long version,
        Instant at,
        Instant dueAt,
        String code,
        String reason,
        String sourceTopic,
        Long sourcePartition,
        Long sourceOffset) {
    private static final String[] OUTCOMES = {
        "UNKNOWN", "ACCEPTED", "UPDATED", "UNCHANGED", "PAUSED", "RESUMED", "TRIGGERED", "CANCELLED",
        "NOT_FOUND", "TOO_LATE", "CONFLICT", "DUPLICATE", "REJECTED", "FIRED", "MISSED", "COMPLETED",
        "DELIVERED", "FAILED",
    };
    private static final Set<String> REFUSALS =
            Set.of("NOT_FOUND", "CONFLICT", "TOO_LATE", "REJECTED");
    private static final Set<String> TOLD =
            Set.of("FIRED", "MISSED", "COMPLETED", "DELIVERED", "FAILED");

    /** Whether the answer is a no. */
    public boolean refused() {
        String decisive = outcome.equals("DUPLICATE") ? code : outcome;
        return decisive != null && REFUSALS.contains(decisive);
    }

    /** Whether a lifecycle event answers a request; the others tell of occurrences and deliveries. */
    boolean answers() {
        return !TOLD.contains(outcome);
    }

    /**
     * Read a value of {@code belfry.lifecycle}: Avro, after either of belfry's two prefixes. The
     * fields stand in the order of the schema, and releases add theirs at the end, so no schema is
     * looked up.
     *
     * @throws IllegalArgumentException for bytes that are no event
     */
    public static Verdict parse(byte[] value) {
        try {
            return new Reader(body(value)).verdict();
        } catch (RuntimeException error) {
            throw new IllegalArgumentException("These bytes are no LifecycleEvent.", error);
        }
    }

    private static ByteBuffer body(byte[] value) {
        ByteBuffer bytes = ByteBuffer.wrap(value);
        byte first = bytes.get();
        if (first == 0) {
            return bytes.position(5); // Confluent's prefix and the schema's id
        }
        if (first == (byte) 0xc3 && bytes.get() == 1) {
            return bytes.position(10); // Avro's single object
        }
        throw new IllegalArgumentException("no frame");
    }

    /** Avro's binary encoding, whose numbers are those of Kafka's own records. */
    private record Reader(ByteBuffer bytes) {
        Verdict verdict() {
            String tenant = text();
            String id = text();
            int symbol = (int) number();
            String outcome = symbol < OUTCOMES.length ? OUTCOMES[symbol] : OUTCOMES[0];
            String requestId = optionalText();
            String fireId = optionalText();
            Long version = optionalNumber();
            Instant at = Instant.ofEpochMilli(number());
            Long due = optionalNumber();
            String code = optionalText();
            String reason = optionalText();
            optionalText(); // target
            optionalNumber(); // attempt
            return new Verdict(
                    tenant, id, outcome, requestId, fireId, version, at,
                    due == null ? null : Instant.ofEpochMilli(due), code, reason,
                    optionalText(), optionalNumber(), optionalNumber());
        }

        private long number() {
            return ByteUtils.readVarlong(bytes);
        }

        private String text() {
            byte[] text = new byte[(int) Math.min(number(), bytes.remaining() + 1L)];
            bytes.get(text);
            return new String(text, StandardCharsets.UTF_8);
        }

        private String optionalText() {
            return number() == 0 ? null : text();
        }

        private Long optionalNumber() {
            return number() == 0 ? null : number();
        }
    }
}
