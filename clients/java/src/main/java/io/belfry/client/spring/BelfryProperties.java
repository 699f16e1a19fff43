package io.belfry.client.spring;

import io.belfry.client.Backoff;
import java.time.Duration;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * Settings of an application that is one tenant's.
 *
 * @param tenant who it is
 * @param prefix of belfry's topics
 * @param secret what its requests are signed with, or null
 * @param retry how records come again that a listener could not handle
 */
@ConfigurationProperties("belfry")
public record BelfryProperties(
        String tenant,
        @DefaultValue("belfry.") String prefix,
        String secret,
        @DefaultValue Retry retry) {

    /**
     * How records come again.
     *
     * @param deadLetters the topic for what has failed in every try; null: {@code <tenant>.dead-letters}
     */
    public record Retry(
            @DefaultValue("1s") Duration first,
            @DefaultValue("2") double factor,
            @DefaultValue("1h") Duration most,
            @DefaultValue("8") int attempts,
            String deadLetters) {
        Backoff backoff() {
            return new Backoff(first, factor, most, attempts);
        }
    }
}
