package belfry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const attemptHeader = "retry-attempt"

// Backoff says how long to wait after each try: First, then Factor times as long each time, never
// above Most. Attempts counts all tries, the first one too.
type Backoff struct {
	First    time.Duration
	Factor   float64
	Most     time.Duration
	Attempts int
}

// Delay is the wait after so many failed tries; false when none is left.
func (b Backoff) Delay(failed int) (time.Duration, bool) {
	if failed >= b.Attempts {
		return 0, false
	}
	wait := float64(b.First) * math.Pow(b.Factor, float64(failed-1))
	return time.Duration(math.Min(wait, float64(b.Most))), true
}

// Attempt is how often a record has been retried: 0 for one that comes for the first time.
func Attempt(record *kgo.Record) int {
	text, _ := last(record.Headers, attemptHeader)
	attempt, err := strconv.Atoi(text)
	if err != nil || attempt < 0 {
		return 0
	}
	return attempt
}

// Retrier puts back what a consumer could not handle, from any topic.
type Retrier struct {
	Client *Client
	// Tenant on whose topic of fired events records come again.
	Tenant  string
	Backoff Backoff
	// DeadLetters is the topic for what has failed in every try.
	DeadLetters string
}

// Retry has a record come again after a wait, as a schedule with the record's own key, value and
// headers. It returns true, or false where no try was left and the record is a dead letter now.
// After it the record counts as handled, so commit its offset. To call it twice for one record makes
// one retry, since its id is made of the fire id, or of the record's place in its topic. An event
// that a redrive has sent again is tried again as well.
func (r Retrier) Retry(ctx context.Context, record *kgo.Record, cause error) (bool, error) {
	delay, left := r.Backoff.Delay(Attempt(record) + 1)
	if !left {
		_, err := r.Client.produce(ctx, r.deadLetter(record, cause))
		return false, err
	}
	_, err := r.Client.Schedule(ctx, r.again(record, delay))
	var refused *RefusedError
	if errors.As(err, &refused) && refused.Verdict.Code == "request_id_reused" {
		return true, nil // put back a moment ago, with another backoff
	}
	return err == nil, err
}

func (r Retrier) again(record *kgo.Record, delay time.Duration) Schedule {
	id := "retry/" + place(record)
	kind, _ := last(record.Headers, eventType)
	if event, fired := ParseFired(record); fired {
		id, kind = "retry/"+event.FireID, event.Type
		if event.Redriven != "" {
			// Not the id that it had before it was sent again: within the hour it would be a repeat.
			id += "/" + event.Redriven
		}
	}
	return Schedule{
		Tenant: r.Tenant, ID: id, When: In(delay), Key: ownKey(record), Payload: record.Value,
		Headers: counted(record), Type: kind, RequestID: id,
	}
}

func (r Retrier) deadLetter(record *kgo.Record, cause error) *kgo.Record {
	headers := append(counted(record), header("dead-letter-reason", fmt.Sprint(cause)),
		header("dead-letter-origin", place(record)))
	return &kgo.Record{Topic: r.DeadLetters, Key: ownKey(record), Value: record.Value, Headers: headers}
}

// counted are the user's headers, and how often the record has failed.
func counted(record *kgo.Record) []kgo.RecordHeader {
	return append(ownHeaders(record), header(attemptHeader, strconv.Itoa(Attempt(record)+1)))
}

// ownKey is the key that was asked for. On the topic that tenants share, that of the record has its
// tenant and a slash before it, which belfry adds at each fire.
func ownKey(record *kgo.Record) []byte {
	tenant, told := last(record.Headers, "belfry-schedule-tenant")
	// Its name ends so. That of a tenant's own goes on with the tenant's name, which may end so too.
	shared := strings.HasSuffix(record.Topic, "fired") && !strings.Contains(record.Topic, "fired.")
	if !told || !shared {
		return record.Key
	}
	return bytes.TrimPrefix(record.Key, []byte(tenant+"/"))
}

func place(record *kgo.Record) string {
	return fmt.Sprintf("%s/%d/%d", record.Topic, record.Partition, record.Offset)
}
