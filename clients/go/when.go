package belfry

import (
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// When says when a schedule fires. Make one with At, In, Every, Cron, RRule, AfterAck or
// AfterGroup.
type When struct {
	headers []kgo.RecordHeader
}

// At fires once, at an instant. One in the past fires at once.
func At(instant time.Time) When {
	return When{[]kgo.RecordHeader{header("belfry-at", epoch(instant))}}
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

// AfterAck fires once, when the next fire of another schedule of the tenant is acknowledged. That
// schedule asks for acknowledgements: Serial, Concurrency or Overlap.
func AfterAck(id string) When {
	return When{[]kgo.RecordHeader{header("belfry-after-ack", id)}}
}

// AfterGroup fires once, when all of a group of the tenant have fired and are acknowledged.
func AfterGroup(group string) When {
	return When{[]kgo.RecordHeader{header("belfry-after-group", group)}}
}

// AckDelay is for AfterAck and AfterGroup: so long after the acknowledgement.
func (w When) AckDelay(delay time.Duration) When {
	return w.with("belfry-ack-delay", milliseconds(delay))
}

// LatestAt is for AfterAck and AfterGroup: at this instant at the latest, acknowledged or not.
func (w When) LatestAt(instant time.Time) When {
	return w.with("belfry-latest-at", epoch(instant))
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

// StartAt lets nothing that recurs happen before an instant.
func (w When) StartAt(instant time.Time) When {
	return w.with("belfry-start-at", epoch(instant))
}

// EndAt lets nothing that recurs happen after an instant.
func (w When) EndAt(instant time.Time) When {
	return w.with("belfry-end-at", epoch(instant))
}

// MaxFires ends what recurs after so many fires.
func (w When) MaxFires(count int64) When {
	return w.with("belfry-max-fires", strconv.FormatInt(count, 10))
}

// Calendar leaves out the days off of a calendar of the tenant, or moves what falls on one: onHoliday
// is "" (or "SKIP"), "NEXT_BUSINESS_DAY" or "PREVIOUS_BUSINESS_DAY". It is for what recurs.
func (w When) Calendar(name, onHoliday string) When {
	w = w.with("belfry-calendar", name)
	if onHoliday != "" {
		w = w.with("belfry-on-holiday", onHoliday)
	}
	return w
}

// Jitter moves each occurrence later by a fixed share of a duration, so that not all come at once.
func (w When) Jitter(most time.Duration) When {
	return w.with("belfry-jitter", milliseconds(most))
}

// Misfire says what becomes of occurrences that are later than MaxLateness: "FIRE_ONCE", "FIRE_ALL"
// or "SKIP".
func (w When) Misfire(policy string) When {
	return w.with("belfry-misfire", policy)
}

// MaxLateness is how late an occurrence still counts as in time.
func (w When) MaxLateness(most time.Duration) When {
	return w.with("belfry-max-lateness", milliseconds(most))
}

// MaxWait debounces In: each further request while the schedule waits begins its delay anew, at most
// for so long after the first one.
func (w When) MaxWait(most time.Duration) When {
	return w.with("belfry-max-wait", milliseconds(most))
}

// Throttle is for At and In: the request changes nothing while the schedule waits, nor within so long
// after its last fire.
func (w When) Throttle(window time.Duration) When {
	return w.with("belfry-throttle", milliseconds(window))
}

func epoch(instant time.Time) string {
	return strconv.FormatInt(instant.UnixMilli(), 10)
}

// milliseconds rounds up: what is scheduled never comes early.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Millisecond-1)/time.Millisecond), 10)
}
