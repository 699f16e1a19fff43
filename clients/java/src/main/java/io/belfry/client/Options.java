package io.belfry.client;

import java.time.Duration;
import java.util.Map;

/**
 * How a client asks.
 *
 * @param prefix of belfry's topics
 * @param secrets by tenant, what its requests are signed with
 * @param ownTopics whether it writes to each tenant's own topic, {@code belfry.schedules.<tenant>}
 * @param timeout longest wait for a verdict
 */
public record Options(
        String prefix, Map<String, byte[]> secrets, boolean ownTopics, Duration timeout) {

    /** Topics that begin with {@code belfry.}, no signatures, and ten seconds for a verdict. */
    public static Options defaults() {
        return new Options("belfry.", Map.of(), false, Duration.ofSeconds(10));
    }

    /** The same with another prefix. */
    public Options withPrefix(String prefix) {
        return new Options(prefix, secrets, ownTopics, timeout);
    }

    /** The same with secrets. */
    public Options withSecrets(Map<String, byte[]> secrets) {
        return new Options(prefix, secrets, ownTopics, timeout);
    }
}
