package belfry

import (
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Schedule says who, which, when and what. Key, Payload and Headers are those of the event.
type Schedule struct {
	Tenant, ID string
	When       When
	// Key of the event; nil takes the group, else the id.
	Key []byte
	// Payload is the value of the event; nil fires a null value.
	Payload []byte
	// Headers travel with the event. Names that begin with belfry- are belfry's own.
	Headers []kgo.RecordHeader
	// Events of one Group keep their due order.
	Group string
	// Type travels in the header event-type as well, where FiredEvent finds it.
	Type string
	// RequestID names the request: a repeat within an hour changes nothing. "" takes a new one.
	RequestID string
	// Overlap says what becomes of an occurrence while the one before is not acknowledged: "ALLOW",
	// "SKIP", "QUEUE_ONE", "QUEUE_ALL", "CANCEL_OTHER" or "TERMINATE_OTHER".
	Overlap string
	// Serial lets the Group wait until this event is acknowledged.
	Serial bool
	// Concurrency lets the Group wait while so many of its events are not acknowledged; 0 is no limit.
	Concurrency int64
	// AckTimeout is the longest wait for an acknowledgement; 0 takes the worker's five minutes.
	AckTimeout time.Duration
	// Priority, -9 to 9, says which of the tenant's events leave first while they are held back: higher
	// ones do. Not for the events of a Group.
	Priority int64
	// Webhook is an address that the event is posted to as well, or a JSON list of targets.
	Webhook string
	// ExpectedVersion lets the request count only for this version of the schedule; 0 asks for none.
	ExpectedVersion int64
	// Reason is kept in the history.
	Reason string
	// CreateOnly leaves a schedule that exists alone, with the verdict CONFLICT.
	CreateOnly bool
}

func (s Schedule) record() *kgo.Record {
	action := "UPSERT"
	if s.CreateOnly {
		action = "CREATE"
	}
	record := asking(s.Tenant, s.ID, action)
	record.Key, record.Value = s.Key, s.Payload
	record.Headers = append(record.Headers, s.When.headers...)
	record.Headers = append(record.Headers, s.options()...)
	if _, told := last(s.Headers, eventType); s.Type != "" && !told {
		record.Headers = append(record.Headers, header(eventType, s.Type))
	}
	record.Headers = append(record.Headers, s.Headers...)
	return record
}

// options are the headers of all that is set besides the instant.
func (s Schedule) options() (told []kgo.RecordHeader) {
	for _, each := range []struct {
		name, value string
		set         bool
	}{
		{"belfry-group", s.Group, s.Group != ""},
		{"belfry-type", s.Type, s.Type != ""},
		{"belfry-overlap", s.Overlap, s.Overlap != ""},
		{"belfry-serial", "true", s.Serial},
		{"belfry-concurrency", strconv.FormatInt(s.Concurrency, 10), s.Concurrency != 0},
		{"belfry-ack-timeout", milliseconds(s.AckTimeout), s.AckTimeout != 0},
		{"belfry-priority", strconv.FormatInt(s.Priority, 10), s.Priority != 0},
		{"belfry-webhook", s.Webhook, s.Webhook != ""},
		{"belfry-expected-version", strconv.FormatInt(s.ExpectedVersion, 10), s.ExpectedVersion != 0},
		{"belfry-reason", s.Reason, s.Reason != ""},
	} {
		if each.set {
			told = append(told, header(each.name, each.value))
		}
	}
	return told
}

// asking is a record that asks for something about one schedule.
func asking(tenant, id, action string) *kgo.Record {
	return &kgo.Record{Headers: []kgo.RecordHeader{
		header("belfry-tenant", tenant), header("belfry-id", id), header("belfry-action", action),
	}}
}

func header(name, value string) kgo.RecordHeader {
	return kgo.RecordHeader{Key: name, Value: []byte(value)}
}

// last is the last header of a name: belfry puts its own after the user's.
func last(headers []kgo.RecordHeader, name string) (string, bool) {
	for i := len(headers) - 1; i >= 0; i-- {
		if headers[i].Key == name && headers[i].Value != nil {
			return string(headers[i].Value), true
		}
	}
	return "", false
}
