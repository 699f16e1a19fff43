package belfry

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// What belfry's own code says, for the clients of all languages.
type vectors struct {
	Partitions []struct {
		Tenant     string
		Partitions int
		Partition  int
	} `json:"partitions"`
	Signatures []struct {
		Secret, Tenant string
		Key, Value     *spaced
		Headers        [][2]*string
		Signature      spaced
	} `json:"signatures"`
	Verdicts []struct {
		Value   spaced
		Verdict struct {
			Tenant, Outcome string
			ScheduleID      string  `json:"schedule_id"`
			RequestID       *string `json:"request_id"`
			FireID          *string `json:"fire_id"`
			Version         int64
			At              int64
			DueAt           *int64 `json:"due_at"`
			Code, Reason    *string
			SourcePartition *int64 `json:"source_partition"`
			SourceOffset    *int64 `json:"source_offset"`
		}
	} `json:"verdicts"`
	Events []struct {
		Headers [][2]*string
		Event   struct {
			FireID        string `json:"fire_id"`
			ScheduleID    string `json:"schedule_id"`
			Tenant, Group *string
			EventType     *string `json:"event_type"`
			Backfill      *string
			Redriven      *string
			ScheduledAtMS int64 `json:"scheduled_at_ms"`
			Occurrence    int64
			Missed        int64
			Version       *int64
			Source        *Source
			Claim         *struct {
				Digest       string
				SizeBytes    int64   `json:"size_bytes"`
				EncryptedFor *string `json:"encrypted_for"`
			}
		} `json:"event"`
	} `json:"events"`
	Encrypted []struct {
		Key                      spaced
		Reference, Names, Tenant string
		Payload                  *spaced
		Sealed                   spaced
	} `json:"encrypted"`
	Retries []struct {
		Topic   string
		Key     *spaced
		Headers [][2]*string
		Retry   struct {
			Tenant, ID string
			RequestID  string `json:"request_id"`
			Key        *spaced
			Headers    [][2]string
		}
	} `json:"retries"`
	Waits []struct {
		FirstMS  int64 `json:"first_ms"`
		Factor   float64
		MostMS   int64 `json:"most_ms"`
		Attempts int
		Failed   int
		DelayMS  *int64 `json:"delay_ms"`
	} `json:"waits"`
}

type spaced string

func (s *spaced) bytes(t *testing.T) []byte {
	if s == nil {
		return nil
	}
	found, err := hex.DecodeString(strings.ReplaceAll(string(*s), " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func load(t *testing.T) (found vectors) {
	text, err := os.ReadFile("../vectors.json")
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	if err != nil || len(found.Partitions) == 0 || len(found.Verdicts) == 0 || len(found.Events) == 0 {
		t.Fatal(err)
	}
	return found
}

func TestRequestsGoToTheirTenantsHome(t *testing.T) {
	for _, each := range load(t).Partitions {
		record := asking(each.Tenant, "any", "UPSERT")
		record.Key = []byte("the event's own key")
		if found := partitioner("t")(record, each.Partitions); found != each.Partition {
			t.Errorf("%+v: %d", each, found)
		}
	}
}

func TestSignatures(t *testing.T) {
	for _, each := range load(t).Signatures {
		record := &kgo.Record{Key: each.Key.bytes(t), Value: each.Value.bytes(t)}
		for _, pair := range each.Headers {
			value := (*spaced)(pair[1]).bytes(t)
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: *pair[0], Value: value})
		}
		Sign([]byte(each.Secret), each.Tenant, record)
		found, _ := last(record.Headers, signatureHeader)
		if found != hex.EncodeToString(each.Signature.bytes(t)) {
			t.Errorf("%+v: %s", each, found)
		}
	}
}

func TestVerdicts(t *testing.T) {
	for _, each := range load(t).Verdicts {
		value, wanted := each.Value.bytes(t), each.Verdict
		found, err := ParseVerdict(value)
		if err != nil {
			t.Fatal(err)
		}
		if due := wanted.DueAt; due != nil && found.DueAt.UnixMilli() != *due || due == nil && !found.DueAt.IsZero() {
			t.Errorf("due at %v", found.DueAt)
		}
		same := found.Tenant == wanted.Tenant && found.ID == wanted.ScheduleID &&
			found.Outcome == wanted.Outcome && found.Version == wanted.Version &&
			found.At.UnixMilli() == wanted.At && found.RequestID == or(wanted.RequestID) &&
			found.FireID == or(wanted.FireID) && found.Code == or(wanted.Code) &&
			found.Reason == or(wanted.Reason) && or(found.partition) == or(wanted.SourcePartition) &&
			or(found.offset) == or(wanted.SourceOffset)
		if !same {
			t.Errorf("%+v is not %+v", found, wanted)
		}
		// A field that a later release adds changes nothing, and half an event is none.
		if _, err := ParseVerdict(append(value, 0)); err != nil {
			t.Error(err)
		}
		for size := range value {
			if _, err := ParseVerdict(value[:size]); err == nil {
				t.Errorf("%d bytes are taken for an event", size)
			}
		}
	}
}

func TestEvents(t *testing.T) {
	for _, each := range load(t).Events {
		record, wanted := &kgo.Record{}, each.Event
		for _, pair := range each.Headers {
			value := (*spaced)(pair[1]).bytes(t)
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: *pair[0], Value: value})
		}
		found, ok := ParseFired(record)
		same := ok && found.FireID == wanted.FireID && found.ID == wanted.ScheduleID &&
			found.Tenant == or(wanted.Tenant) && found.Group == or(wanted.Group) &&
			found.Type == or(wanted.EventType) && found.Backfill == or(wanted.Backfill) &&
			found.Redriven == or(wanted.Redriven) && found.Missed == wanted.Missed &&
			found.ScheduledAt.UnixMilli() == wanted.ScheduledAtMS &&
			found.Occurrence == wanted.Occurrence && found.Version == or(wanted.Version)
		if !same || or(found.Source) != or(wanted.Source) || (found.Source == nil) != (wanted.Source == nil) {
			t.Errorf("%+v is not %+v", found, wanted)
		}
		claim := or(wanted.Claim)
		if (found.Claim == nil) != (wanted.Claim == nil) ||
			or(found.Claim) != (Claim{claim.Digest, claim.SizeBytes, or(claim.EncryptedFor)}) {
			t.Errorf("%+v is not %+v", found.Claim, wanted.Claim)
		}
	}
}

func TestRetriesOfEvents(t *testing.T) {
	given := load(t).Retries
	if len(given) == 0 {
		t.Fatal("none is there")
	}
	for _, each := range given {
		record := &kgo.Record{Topic: each.Topic, Key: each.Key.bytes(t)}
		for _, pair := range each.Headers {
			value := (*spaced)(pair[1]).bytes(t)
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: *pair[0], Value: value})
		}
		wanted := each.Retry
		var headers []kgo.RecordHeader
		for _, pair := range wanted.Headers {
			headers = append(headers, header(pair[0], pair[1]))
		}
		retrier := Retrier{Tenant: wanted.Tenant, DeadLetters: "dead"}
		again, dead, key := retrier.again(record, time.Second), retrier.deadLetter(record, nil), wanted.Key.bytes(t)
		if again.ID != wanted.ID || again.RequestID != wanted.RequestID || again.Tenant != wanted.Tenant ||
			!reflect.DeepEqual(again.Key, key) || !reflect.DeepEqual(again.Headers, headers) {
			t.Errorf("%+v is not %+v", again, each)
		}
		if !reflect.DeepEqual(dead.Key, key) {
			t.Errorf("a dead letter has the key %q, which is not that of %+v", dead.Key, each)
		}
	}
}

func TestWaits(t *testing.T) {
	for _, each := range load(t).Waits {
		backoff := Backoff{
			First: time.Duration(each.FirstMS) * time.Millisecond, Factor: each.Factor,
			Most: time.Duration(each.MostMS) * time.Millisecond, Attempts: each.Attempts,
		}
		delay, left := backoff.Delay(each.Failed)
		if left != (each.DelayMS != nil) || delay.Milliseconds() != or(each.DelayMS) {
			t.Errorf("%+v: %v %v", each, delay, left)
		}
	}
}

func or[T any](given *T) (value T) {
	if given != nil {
		value = *given
	}
	return value
}
