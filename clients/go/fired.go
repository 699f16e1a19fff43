package belfry

import (
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
	// Type is that of a CloudEvent, else that of the header event-type.
	Type string
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
	if kind, ok := last(record.Headers, "ce_type"); ok {
		event.Type = kind
	} else {
		event.Type, _ = last(record.Headers, eventType)
	}
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
