package belfry

import (
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// When says when a schedule fires. Make one with At, In, Every, Cron or RRule.
type When struct {
	headers []kgo.RecordHeader
}

// At fires once, at an instant. One in the past fires at once.
func At(instant time.Time) When {
	return When{[]kgo.RecordHeader{header("belfry-at", strconv.FormatInt(instant.UnixMilli(), 10))}}
}

// In fires once, after a delay that counts from when Kafka has the request.
func In(delay time.Duration) When {
	return When{[]kgo.RecordHeader{header("belfry-in", milliseconds(delay))}}
}

// Every fires again and again, with an interval.
func Every(interval time.Duration) When {
	return When{[]kgo.RecordHeader{header("belfry-every", milliseconds(interval))}}
}

// Cron fires by an expression such as "0 9 * * MON", read in an IANA time zone; "" is UTC.
func Cron(expression, timezone string) When {
	headers := []kgo.RecordHeader{header("belfry-cron", expression)}
	if timezone != "" {
		headers = append(headers, header("belfry-timezone", timezone))
	}
	return When{headers}
}

// RRule fires by RFC 5545: lines DTSTART (with TZID, else UTC), RRULE, RDATE, EXDATE.
func RRule(lines string) When {
	return When{[]kgo.RecordHeader{header("belfry-rrule", lines)}}
}

// Except leaves out the minutes that an expression of five fields names: "* 0-5 * * *" is no night.
// It is for what recurs, and is read in the zone of Cron, in that of DTSTART, or in TimeZone.
func (w When) Except(expression string) When {
	return w.with("belfry-except-cron", expression)
}

// TimeZone is the IANA zone that Except is read in where Every has none; UTC without it.
func (w When) TimeZone(name string) When {
	return w.with("belfry-timezone", name)
}

func (w When) with(name, value string) When {
	return When{append(w.headers[:len(w.headers):len(w.headers)], header(name, value))}
}

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
	if s.Group != "" {
		record.Headers = append(record.Headers, header("belfry-group", s.Group))
	}
	if s.Type != "" {
		record.Headers = append(record.Headers, header("belfry-type", s.Type))
		if _, told := last(s.Headers, eventType); !told {
			record.Headers = append(record.Headers, header(eventType, s.Type))
		}
	}
	record.Headers = append(record.Headers, s.Headers...)
	return record
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

// milliseconds rounds up: what is scheduled never comes early.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Millisecond-1)/time.Millisecond), 10)
}
