package io.belfry.client;

import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.HashMap;
import java.util.Map;

/** When a schedule fires. */
public final class When {
    final Map<String, String> headers;

    private When(Map<String, String> headers) {
        this.headers = headers;
    }

    /** Once, at an instant; one in the past fires at once. */
    public static When at(Instant instant) {
        return new When(Map.of("belfry-at", Long.toString(instant.toEpochMilli())));
    }

    /** Once, after a delay that counts from when Kafka has the request. */
    public static When in(Duration delay) {
        return new When(Map.of("belfry-in", milliseconds(delay)));
    }

    /** Again and again, with an interval. */
    public static When every(Duration interval) {
        return new When(Map.of("belfry-every", milliseconds(interval)));
    }

    /** By an expression such as {@code 0 9 * * MON}, read in a time zone. */
    public static When cron(String expression, ZoneId zone) {
        // Java calls UTC "Z", and belfry reads an expression without a zone in UTC.
        return zone.normalized().equals(ZoneOffset.UTC)
                ? new When(Map.of("belfry-cron", expression))
                : new When(Map.of("belfry-cron", expression, "belfry-timezone", zone.getId()));
    }

    /** By RFC 5545: lines DTSTART (with TZID, else UTC), RRULE, RDATE, EXDATE. */
    public static When rrule(String lines) {
        return new When(Map.of("belfry-rrule", lines));
    }

    /**
     * Leaves out the minutes that an expression of five fields names: {@code * 0-5 * * *} is no
     * night. It is for what recurs, and is read in the zone of the expression, in that of DTSTART,
     * or in {@link #timeZone}.
     */
    public When except(String expression) {
        return with("belfry-except-cron", expression);
    }

    /** The zone that {@link #except} is read in where an interval has none; UTC without it. */
    public When timeZone(ZoneId zone) {
        return with("belfry-timezone", zone.getId());
    }

    private When with(String name, String value) {
        Map<String, String> more = new HashMap<>(headers);
        more.put(name, value);
        return new When(Map.copyOf(more));
    }

    /** Rounded up: what is scheduled never comes early. */
    private static String milliseconds(Duration duration) {
        return Long.toString(duration.plusNanos(999_999).toMillis());
    }
}
