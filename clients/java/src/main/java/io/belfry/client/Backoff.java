package io.belfry.client;

import java.time.Duration;
import java.util.Optional;

/**
 * How long to wait after each try: {@code first}, then {@code factor} times as long each time, never
 * above {@code most}.
 *
 * @param attempts counts all tries, the first one too
 */
public record Backoff(Duration first, double factor, Duration most, int attempts) {

    /** The wait after so many failed tries; empty when no try is left. */
    public Optional<Duration> delay(int failed) {
        if (failed >= attempts) {
            return Optional.empty();
        }
        double wait = first.toMillis() * Math.pow(factor, failed - 1);
        return Optional.of(Duration.ofMillis((long) Math.min(wait, most.toMillis())));
    }
}
