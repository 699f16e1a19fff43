package belfry

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const eventType = "event-type"

var sourcePattern = regexp.MustCompile(`^([^/]+)/([0-9]+)/([0-9]+)$`)

// Source is a place in the topic of requests.
type Source struct {
	Topic     string
	Partition int32
	Offset    int64
}

// parseSource reads topic/partition/offset; nil for anything else.
func parseSource(text string) *Source {
	found := sourcePattern.FindStringSubmatch(text)
	if found == nil {
		return nil
	}
	partition, errPartition := strconv.ParseInt(found[2], 10, 32)
	offset, errOffset := strconv.ParseInt(found[3], 10, 64)
	if errPartition != nil || errOffset != nil {
		return nil
	}
	return &Source{found[1], int32(partition), offset}
}

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
	// Source is where its request lies; nil unless the tenant's policy says source_header.
	Source *Source
	*kgo.Record
}

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
	source, _ := last(record.Headers, "belfry-source")
	event.Source = parseSource(source)
	return event, true
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
