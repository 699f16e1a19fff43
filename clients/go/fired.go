package belfry

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const eventType = "event-type"

// FiredEvent is a fired record and what its headers say.
type FiredEvent struct {
	// FireID is the same for every attempt to fire this occurrence: deduplicate by it.
	FireID string
	ID     string
	// ScheduledAt is the instant by the rule.
	ScheduledAt time.Time
	// Occurrence counts 0, 1, 2 …; -1 is an extra one that a TRIGGER asked for.
	Occurrence int64
	// Missed is how many further occurrences this one stands for.
	Missed int64
	// Type is that of a CloudEvent, else that of the header event-type, else the schedule's.
	Type string
	// Tenant and Group are the schedule's, and Version is which version of it fired.
	Tenant, Group string
	Version       int64
	// Source is where the request lies that it comes from; nil unless the tenant's policy says
	// source_header, or nobody knows.
	Source *Source
	// Backfill is the id of the job, for what a backfill fires of the past; else "".
	Backfill string
	// Redriven is for an event that was sent again: the name of the redrive, "@" and the offset of
	// the first one; else "".
	Redriven string
	// Claim is where the payload lies, if not in the value; else nil.
	Claim *Claim
	*kgo.Record
}

// Source is where a request lies.
type Source struct {
	Topic     string
	Partition int32
	Offset    int64
}

// Claim is a payload that lies elsewhere: in the store's folder of its tenant, as
// <first two digits>/<SHA256>.
type Claim struct {
	// SHA256 of what is stored, in hexadecimal digits: its name.
	SHA256 string
	// Bytes is how long it is there.
	Bytes int64
	// EncryptedFor is the schedule, as tenant/id, that a worker has encrypted it for; else "".
	EncryptedFor string
}

var (
	sourceForm = regexp.MustCompile(`^([^/]+)/([0-9]{1,9})/([0-9]{1,18})$`)
	digestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// ParseFired reads a fired record; false for a record that belfry did not fire. The value is the
// payload, unless the tenant's policy asks for envelopes.
func ParseFired(record *kgo.Record) (FiredEvent, bool) {
	event := FiredEvent{Record: record}
	var fired, named bool
	event.FireID, fired = last(record.Headers, "belfry-fire-id")
	event.ID, named = last(record.Headers, "belfry-schedule-id")
	at, _ := last(record.Headers, "belfry-scheduled-at")
	occurrence, _ := last(record.Headers, "belfry-occurrence")
	var errAt, errOccurrence error
	event.ScheduledAt, errAt = time.Parse(time.RFC3339, at)
	event.Occurrence, errOccurrence = strconv.ParseInt(occurrence, 10, 64)
	if !fired || !named || errAt != nil || errOccurrence != nil {
		return FiredEvent{}, false
	}
	if missed, ok := last(record.Headers, "belfry-missed"); ok {
		event.Missed, _ = strconv.ParseInt(missed, 10, 64)
	}
	for _, name := range []string{"belfry-schedule-type", eventType, "ce_type"} {
		if kind, ok := last(record.Headers, name); ok {
			event.Type = kind
		}
	}
	event.Tenant, _ = last(record.Headers, "belfry-schedule-tenant")
	event.Group, _ = last(record.Headers, "belfry-schedule-group")
	if version, ok := last(record.Headers, "belfry-schedule-version"); ok {
		event.Version, _ = strconv.ParseInt(version, 10, 64)
	}
	event.Source = sourceOf(record)
	event.Backfill, _ = last(record.Headers, "belfry-backfill")
	event.Redriven, _ = last(record.Headers, "belfry-redriven")
	event.Claim = claimOf(record)
	return event, true
}

func sourceOf(record *kgo.Record) *Source {
	told, _ := last(record.Headers, "belfry-source")
	found := sourceForm.FindStringSubmatch(told)
	if found == nil {
		return nil
	}
	partition, _ := strconv.ParseInt(found[2], 10, 32)
	offset, _ := strconv.ParseInt(found[3], 10, 64)
	return &Source{Topic: found[1], Partition: int32(partition), Offset: offset}
}

func claimOf(record *kgo.Record) *Claim {
	digest, _ := last(record.Headers, "claim-check-sha256")
	size, _ := last(record.Headers, "claim-check-bytes")
	bytes, err := strconv.ParseUint(size, 10, 63)
	if err != nil || !digestForm.MatchString(digest) {
		return nil
	}
	encryptedFor, _ := last(record.Headers, "claim-check-encrypted")
	return &Claim{SHA256: digest, Bytes: int64(bytes), EncryptedFor: encryptedFor}
}

// ownHeaders are the user's: without belfry's, and without the CloudEvent that belfry made.
func ownHeaders(record *kgo.Record) (own []kgo.RecordHeader) {
	fireID, fired := last(record.Headers, "belfry-fire-id")
	id, _ := last(record.Headers, "ce_id")
	made := fired && id == fireID
	for _, each := range record.Headers {
		switch {
		case strings.HasPrefix(strings.ToLower(each.Key), "belfry-"), each.Key == attemptHeader:
		case made && isMade(each.Key):
		default:
			own = append(own, each)
		}
	}
	return own
}

func isMade(name string) bool {
	switch name {
	case "ce_specversion", "ce_id", "ce_source", "ce_type", "ce_time":
		return true
	}
	return false
}
