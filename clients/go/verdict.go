package belfry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Verdict is what became of a request.
type Verdict struct {
	Tenant, ID string
	// Outcome is ACCEPTED, UPDATED, CANCELLED, REJECTED …; UNKNOWN is newer than this client.
	Outcome   string
	RequestID string
	FireID    string
	Version   int64
	At        time.Time
	// DueAt is the next due instant, zero where there is none.
	DueAt time.Time
	// Code is stable, for programs; Reason is for people. Of a DUPLICATE the code is the first outcome.
	Code, Reason string

	partition, offset *int64
}

// Refused tells whether the answer is a no.
func (v Verdict) Refused() bool {
	decisive := v.Outcome
	if decisive == "DUPLICATE" {
		decisive = v.Code
	}
	switch decisive {
	case "NOT_FOUND", "CONFLICT", "TOO_LATE", "REJECTED":
		return true
	}
	return false
}

// RefusedError is the error of a request whose verdict is a no.
type RefusedError struct{ Verdict Verdict }

func (e *RefusedError) Error() string {
	v := e.Verdict
	return fmt.Sprintf("%s (%s) %s/%s: %s", v.Outcome, v.Code, v.Tenant, v.ID, v.Reason)
}

var outcomes = [...]string{
	"UNKNOWN", "ACCEPTED", "UPDATED", "UNCHANGED", "PAUSED", "RESUMED", "TRIGGERED", "CANCELLED",
	"NOT_FOUND", "TOO_LATE", "CONFLICT", "DUPLICATE", "REJECTED", "FIRED", "MISSED", "COMPLETED",
	"DELIVERED", "FAILED",
}

// answers tells whether a lifecycle event is a verdict: the later ones tell of occurrences.
func (v Verdict) answers() bool {
	switch v.Outcome {
	case "FIRED", "MISSED", "COMPLETED", "DELIVERED", "FAILED":
		return false
	}
	return true
}

var errNoEvent = errors.New("these bytes are no LifecycleEvent")

// ParseVerdict reads a value of belfry.lifecycle: Avro, after either of belfry's two prefixes. The
// fields stand in the order of the schema, and releases add theirs at the end, so no schema is
// looked up.
func ParseVerdict(value []byte) (verdict Verdict, err error) {
	switch {
	case len(value) >= 5 && value[0] == 0: // Confluent's prefix and the schema's id
		value = value[5:]
	case len(value) >= 10 && value[0] == 0xc3 && value[1] == 0x01: // Avro's single object
		value = value[10:]
	default:
		return Verdict{}, errNoEvent
	}
	read := avro{rest: value}
	verdict.Tenant, verdict.ID = read.text(), read.text()
	verdict.Outcome = outcomes[0]
	if symbol := read.long(); symbol >= 0 && symbol < int64(len(outcomes)) {
		verdict.Outcome = outcomes[symbol]
	}
	verdict.RequestID, verdict.FireID = read.optionalText(), read.optionalText()
	if version := read.optionalLong(); version != nil {
		verdict.Version = *version
	}
	verdict.At = time.UnixMilli(read.long()).UTC()
	if due := read.optionalLong(); due != nil {
		verdict.DueAt = time.UnixMilli(*due).UTC()
	}
	verdict.Code, verdict.Reason = read.optionalText(), read.optionalText()
	read.optionalText() // target
	read.optionalLong() // attempt
	read.optionalText() // source topic
	verdict.partition, verdict.offset = read.optionalLong(), read.optionalLong()
	if read.broken {
		return Verdict{}, errNoEvent
	}
	return verdict, nil
}

// avro reads Avro's binary encoding; what follows the first broken field is zero.
type avro struct {
	rest   []byte
	broken bool
}

func (a *avro) long() int64 {
	// Avro's numbers are those of Go's signed varints.
	number, size := binary.Varint(a.rest)
	if size <= 0 {
		a.rest, a.broken = nil, true
		return 0
	}
	a.rest = a.rest[size:]
	return number
}

func (a *avro) text() string {
	size := a.long()
	if size < 0 || size > int64(len(a.rest)) {
		a.rest, a.broken = nil, true
		return ""
	}
	text := string(a.rest[:size])
	a.rest = a.rest[size:]
	return text
}

func (a *avro) optionalText() string {
	if a.long() == 0 {
		return ""
	}
	return a.text()
}

func (a *avro) optionalLong() *int64 {
	if a.long() == 0 {
		return nil
	}
	number := a.long()
	return &number
}
