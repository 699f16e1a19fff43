package io.belfry.client;

import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.format.DateTimeParseException;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;

/**
 * What the headers of a fired record say.
 *
 * @param fireId the same for every attempt to fire this occurrence: deduplicate by it
 * @param id the schedule's
 * @param scheduledAt the instant by the rule
 * @param occurrence 0, 1, 2 …; -1 is an extra one that a TRIGGER asked for
 * @param missed how many further occurrences this one stands for
 * @param type that of a CloudEvent, else that of the header {@code event-type}, else the schedule's,
 *     else null
 * @param tenant the schedule's
 * @param group the schedule's, or null
 * @param version which version of the schedule fired
 * @param source where its request lies; null unless the tenant's policy says {@code source_header}
 */
public record FiredEvent(
        String fireId, String id, Instant scheduledAt, long occurrence, long missed, String type,
        String tenant, String group, long version, Source source) {
    private static final Pattern PLACE = Pattern.compile("([^/]+)/([0-9]{1,9})/([0-9]{1,18})");
    static final String EVENT_TYPE = "event-type";
    private static final Set<String> MADE =
            Set.of("ce_specversion", "ce_id", "ce_source", "ce_type", "ce_time");

    /** A place in the topic of requests. */
    public record Source(String topic, int partition, long offset) {
        /** Read {@code topic/partition/offset}; null for anything else. */
        static Source of(String text) {
            Matcher place = PLACE.matcher(text == null ? "" : text);
            return place.matches()
                    ? new Source(place.group(1), Integer.parseInt(place.group(2)), Long.parseLong(place.group(3)))
                    : null;
        }
    }

    /** Read the headers of a record; empty for a record that belfry did not fire. */
    public static Optional<FiredEvent> of(Headers headers) {
        String fireId = last(headers, "belfry-fire-id");
        String id = last(headers, "belfry-schedule-id");
        String at = last(headers, "belfry-scheduled-at");
        String occurrence = last(headers, "belfry-occurrence");
        if (fireId == null || id == null || at == null || occurrence == null) {
            return Optional.empty();
        }
        try {
            return Optional.of(
                    new FiredEvent(
                            fireId, id, Instant.parse(at), Long.parseLong(occurrence),
                            number(headers, "belfry-missed"),
                            first(headers, "ce_type", EVENT_TYPE, "belfry-schedule-type"),
                            last(headers, "belfry-schedule-tenant"),
                            last(headers, "belfry-schedule-group"),
                            number(headers, "belfry-schedule-version"),
                            Source.of(last(headers, "belfry-source"))));
        } catch (DateTimeParseException | NumberFormatException error) {
            return Optional.empty();
        }
    }

    private static long number(Headers headers, String name) {
        String found = last(headers, name);
        return found == null ? 0 : Long.parseLong(found);
    }

    private static String first(Headers headers, String... names) {
        return Stream.of(names)
                .map(name -> last(headers, name))
                .filter(Objects::nonNull)
                .findFirst()
                .orElse(null);
    }

    /** The last header of a name as text: belfry puts its own after the user's. */
    static String last(Headers headers, String name) {
        Header found = headers.lastHeader(name);
        return found == null || found.value() == null
                ? null
                : new String(found.value(), StandardCharsets.UTF_8);
    }

    /** The user's headers: without belfry's, and without the CloudEvent that belfry made. */
    static Headers own(Headers headers) {
        String fireId = last(headers, "belfry-fire-id");
        boolean made = fireId != null && fireId.equals(last(headers, "ce_id"));
        Headers own = new RecordHeaders();
        for (Header each : headers) {
            boolean belfrys = each.key().toLowerCase(Locale.ROOT).startsWith("belfry-");
            if (!belfrys && !each.key().equals(Retrier.ATTEMPT) && !(made && MADE.contains(each.key()))) {
                own.add(each);
            }
        }
        return own;
    }
}
