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
     * Once, when the next fire of another schedule of the tenant is acknowledged. That schedule asks
     * for acknowledgements: {@code serial}, {@code concurrency} or {@code overlap}.
     */
    public static When afterAck(String id) {
        return new When(Map.of("belfry-after-ack", id));
    }

    /** Once, when all of a group of the tenant have fired and are acknowledged. */
    public static When afterGroup(String group) {
        return new When(Map.of("belfry-after-group", group));
    }

    /** For {@link #afterAck} and {@link #afterGroup}: so long after the acknowledgement. */
    public When ackDelay(Duration delay) {
        return with("belfry-ack-delay", milliseconds(delay));
    }

    /**
     * For {@link #afterAck} and {@link #afterGroup}: at this instant at the latest, acknowledged or
     * not.
     */
    public When latestAt(Instant instant) {
        return with("belfry-latest-at", Long.toString(instant.toEpochMilli()));
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

    /** Nothing that recurs happens before an instant. */
    public When startAt(Instant instant) {
        return with("belfry-start-at", Long.toString(instant.toEpochMilli()));
    }

    /** Nothing that recurs happens after an instant. */
    public When endAt(Instant instant) {
        return with("belfry-end-at", Long.toString(instant.toEpochMilli()));
    }

    /** What recurs is over after so many fires. */
    public When maxFires(long count) {
        return with("belfry-max-fires", Long.toString(count));
    }

    /** Leaves out the days off of a calendar of the tenant. It is for what recurs. */
    public When calendar(String name) {
        return with("belfry-calendar", name);
    }

    /**
     * What becomes of an instant on a day off of the calendar: {@code SKIP}, {@code
     * NEXT_BUSINESS_DAY} or {@code PREVIOUS_BUSINESS_DAY}.
     */
    public When onHoliday(String moved) {
        return with("belfry-on-holiday", moved);
    }

    /** Moves each occurrence later by a fixed share of so long, so that not all come at once. */
    public When jitter(Duration most) {
        return with("belfry-jitter", milliseconds(most));
    }

    /**
     * What becomes of occurrences that are later than {@link #maxLateness}: {@code FIRE_ONCE},
     * {@code FIRE_ALL} or {@code SKIP}.
     */
    public When misfire(String policy) {
        return with("belfry-misfire", policy);
    }

    /** How late an occurrence still counts as in time. */
    public When maxLateness(Duration most) {
        return with("belfry-max-lateness", milliseconds(most));
    }

    /**
     * Debounces {@link #in}: each further request while the schedule waits begins its delay anew, at
     * most for so long after the first one.
     */
    public When maxWait(Duration most) {
        return with("belfry-max-wait", milliseconds(most));
    }

    /**
     * For {@link #at} and {@link #in}: the request changes nothing while the schedule waits, nor
     * within so long after its last fire.
     */
    public When throttle(Duration window) {
        return with("belfry-throttle", milliseconds(window));
    }

    private When with(String name, String value) {
        Map<String, String> more = new HashMap<>(headers);
        more.put(name, value);
        return new When(Map.copyOf(more));
    }

    /** Rounded up: what is scheduled never comes early. */
    static String milliseconds(Duration duration) {
        return Long.toString(duration.plusNanos(999_999).toMillis());
    }
}
