package io.belfry.client;

import org.apache.kafka.common.header.Headers;

/**
 * Encrypts payloads by their tenants' newest keys, and decrypts them by any that is there.
 *
 * <pre>{@code
 * Encryption encryption = new Encryption(new KeyFolder(Path.of("keys")));
 * belfry.schedule(encryption.seal(Schedule.of("shop", "card", when).payload("4711")));
 * // …
 * byte[] payload = encryption.open(record.headers(), record.value());
 * }</pre>
 *
 * Kafka and belfry carry the bytes and never look into them. The cipher is AES-SIV (RFC 5297): the same
 * payload under the same key gives the same bytes, so a request that is repeated is {@code UNCHANGED}.
 */
public record Encryption(Keys keys) {
    private static final String KEY = "encryption-key";
    private static final int KEY_BYTES = 64;

    /**
     * The same schedule with its payload encrypted, and with one more header, which names the key; call
     * it last. An empty payload stays empty.
     */
    public Schedule seal(Schedule schedule) {
        if (schedule.payload == null || schedule.payload.length == 0) {
            return schedule;
        }
        String reference =
                keys.current(schedule.tenant)
                        .orElseThrow(
                                () -> new IllegalStateException("Tenant " + schedule.tenant + " has no key"));
        byte[] name = Schedule.bytes(reference);
        return schedule.payload(cipher(reference).seal(schedule.payload, name)).header(KEY, name);
    }

    /**
     * The payload of an event as it was before; that of one that nobody encrypted as it is. {@link
     * NotDecryptedException} where the key is gone, or the bytes are not what was encrypted.
     */
    public byte[] open(Headers headers, byte[] value) {
        String reference = FiredEvent.last(headers, KEY);
        if (reference == null || value == null || value.length == 0) {
            return value;
        }
        // The writer of the record wrote this too: no other Keys than a folder has to doubt it.
        if (!KeyFolder.isReference(reference)) {
            throw new NotDecryptedException("The record's header " + KEY + " names no key");
        }
        String tenant = FiredEvent.last(headers, "belfry-schedule-tenant");
        if (tenant != null && !reference.startsWith(tenant + "/")) {
            throw new NotDecryptedException(reference + " is a key of another tenant than " + tenant);
        }
        return cipher(reference)
                .open(value, Schedule.bytes(reference))
                .orElseThrow(
                        () ->
                                new NotDecryptedException(
                                        "The payload is not what was encrypted with " + reference));
    }

    private Siv cipher(String reference) {
        byte[] key =
                keys.named(reference)
                        .orElseThrow(
                                () ->
                                        new NotDecryptedException(
                                                "The key " + reference
                                                        + " is not there: it was shredded, or lies elsewhere"));
        if (key.length != KEY_BYTES) {
            throw new NotDecryptedException(
                    "The key " + reference + " has " + key.length + " bytes: " + KEY_BYTES + " are one");
        }
        return new Siv(key);
    }
}
