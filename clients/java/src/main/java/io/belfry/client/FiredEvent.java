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
 * @param source where its request lies; null unless the tenant's policy says {@code source_header},
 *     or nobody knows
 * @param backfill the id of the job, for what a backfill fires of the past, else null
 * @param redriven for an event that was sent again: the name of the redrive, {@code @} and the
 *     offset of the first one, else null
 * @param claim where its payload lies, if not in the value, else null
 */
public record FiredEvent(
        String fireId, String id, Instant scheduledAt, long occurrence, long missed, String type,
        String tenant, String group, long version, Source source, String backfill,
        String redriven, Claim claim) {
    static final String EVENT_TYPE = "event-type";
    private static final Set<String> MADE =
            Set.of("ce_specversion", "ce_id", "ce_source", "ce_type", "ce_time");

    /** Where a request lies. */
    public record Source(String topic, int partition, long offset) {
        private static final Pattern FORM = Pattern.compile("([^/]+)/([0-9]{1,9})/([0-9]{1,18})");

        static Source of(Headers headers) {
            String told = last(headers, "belfry-source");
            Matcher found = FORM.matcher(told == null ? "" : told);
            return found.matches()
                    ? new Source(
                            found.group(1), Integer.parseInt(found.group(2)), Long.parseLong(found.group(3)))
                    : null;
        }
    }

    /**
     * A payload that lies elsewhere: in the store's folder of its tenant, as {@code <2
     * digits>/<sha256>}.
     *
     * @param sha256 of what is stored, in hexadecimal digits: its name
     * @param bytes how long it is there
     * @param encryptedFor the schedule, as {@code tenant/id}, that a worker has encrypted it for, or
     *     null
     */
    public record Claim(String sha256, long bytes, String encryptedFor) {
        static Claim of(Headers headers) {
            String sha256 = last(headers, "claim-check-sha256");
            String bytes = last(headers, "claim-check-bytes");
            if (sha256 == null || !sha256.matches("[0-9a-f]{64}")) {
                return null;
            }
            return bytes == null || !bytes.matches("[0-9]{1,18}")
                    ? null
                    : new Claim(sha256, Long.parseLong(bytes), last(headers, "claim-check-encrypted"));
        }
    }

    /** One that says nothing of its request, and is none that a job or a redrive has made. */
    public FiredEvent(
            String fireId, String id, Instant scheduledAt, long occurrence, long missed, String type,
            String tenant, String group, long version) {
        this(
                fireId, id, scheduledAt, occurrence, missed, type, tenant, group, version, null, null,
                null, null);
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
                            number(headers, "belfry-schedule-version"), Source.of(headers),
                            last(headers, "belfry-backfill"), last(headers, "belfry-redriven"),
                            Claim.of(headers)));
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
