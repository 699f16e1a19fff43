package belfry

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// shown is a record in one line: name=value of each header, then key and value.
func shown(record *kgo.Record) string {
	var text strings.Builder
	for _, each := range record.Headers {
		fmt.Fprintf(&text, "%s=%s ", each.Key, each.Value)
	}
	return fmt.Sprintf("%s%s:%s", text.String(), record.Key, record.Value)
}

func TestSchedulesAreHeaders(t *testing.T) {
	for wanted, when := range map[string]When{
		"belfry-at=1796115600000": At(time.UnixMilli(1_796_115_600_000)),
		"belfry-in=1":             In(time.Nanosecond),
		"belfry-every=90000":      Every(90 * time.Second),
		"belfry-cron=0 9 * * MON": Cron("0 9 * * MON", ""),
		"belfry-cron=0 9 * * * belfry-timezone=Europe/Rome":      Cron("0 9 * * *", "Europe/Rome"),
		"belfry-rrule=FREQ=DAILY belfry-except-cron=* * * * SUN": RRule("FREQ=DAILY").Except("* * * * SUN"),
		"belfry-every=60000 belfry-timezone=Europe/Rome belfry-except-cron=* 0-5 * * *": Every(time.Minute).
			TimeZone("Europe/Rome").Except("* 0-5 * * *"),
		"belfry-every=60000 belfry-start-at=1796115600000 belfry-end-at=1796115600001 belfry-max-fires=3": Every(
			time.Minute).StartAt(time.UnixMilli(1_796_115_600_000)).EndAt(time.UnixMilli(1_796_115_600_001)).MaxFires(3),
		"belfry-cron=@daily belfry-calendar=de belfry-on-holiday=NEXT_BUSINESS_DAY": Cron("@daily", "").
			Calendar("de", "NEXT_BUSINESS_DAY"),
		"belfry-cron=@daily belfry-calendar=de": Cron("@daily", "").Calendar("de", ""),
		"belfry-in=1000 belfry-max-wait=60000 belfry-jitter=50": In(time.Second).MaxWait(time.Minute).
			Jitter(50 * time.Millisecond),
		"belfry-in=1000 belfry-throttle=60000 belfry-misfire=SKIP belfry-max-lateness=500": In(time.Second).
			Throttle(time.Minute).Misfire("SKIP").MaxLateness(500 * time.Millisecond),
		"belfry-after-ack=x belfry-ack-delay=1000 belfry-latest-at=1796115600000": AfterAck("x").
			AckDelay(time.Second).LatestAt(time.UnixMilli(1_796_115_600_000)),
		"belfry-after-group=g": AfterGroup("g"),
	} {
		found := shown(Schedule{Tenant: "demo", ID: "a", When: when, Payload: []byte("x")}.record())
		if found != "belfry-tenant=demo belfry-id=a belfry-action=UPSERT "+wanted+" :x" {
			t.Error(found)
		}
	}
}

func TestWhatAScheduleMayHave(t *testing.T) {
	found := shown(Schedule{
		Tenant: "demo", ID: "a", When: In(0), Key: []byte("k"), Group: "g", Type: "t", CreateOnly: true,
		Headers: []kgo.RecordHeader{header("trace", "1")},
	}.record())
	if found != "belfry-tenant=demo belfry-id=a belfry-action=CREATE belfry-in=0 belfry-group=g"+
		" belfry-type=t event-type=t trace=1 k:" {
		t.Error(found)
	}
}

func TestWhatAScheduleMayAskFor(t *testing.T) {
	found := shown(Schedule{
		Tenant: "demo", ID: "a", When: In(0), Overlap: "SKIP", Serial: true, Concurrency: 2,
		AckTimeout: time.Second, Priority: -2, Webhook: "https://a.example", ExpectedVersion: 3, Reason: "why",
	}.record())
	if found != "belfry-tenant=demo belfry-id=a belfry-action=UPSERT belfry-in=0 belfry-overlap=SKIP"+
		" belfry-serial=true belfry-concurrency=2 belfry-ack-timeout=1000"+
		" belfry-priority=-2 belfry-webhook=https://a.example belfry-expected-version=3 belfry-reason=why :" {
		t.Error(found)
	}
}

func fired(more ...kgo.RecordHeader) *kgo.Record {
	return &kgo.Record{
		Topic: "belfry.fired.demo", Partition: 2, Offset: 7, Key: []byte("k"), Value: []byte("v"),
		Headers: append(more,
			header("belfry-fire-id", "f1"), header("belfry-schedule-id", "order/1"),
			header("belfry-scheduled-at", "2026-12-01T09:00:00.250Z"), header("belfry-occurrence", "-1")),
	}
}

func TestFiredEvents(t *testing.T) {
	event, ok := ParseFired(fired(header("event-type", "order.expired"), header("belfry-missed", "3")))
	if !ok || event.FireID != "f1" || event.ID != "order/1" || event.Occurrence != -1 ||
		event.Missed != 3 || event.Type != "order.expired" || string(event.Value) != "v" ||
		event.ScheduledAt.UnixMilli() != 1_796_115_600_250 {
		t.Errorf("%+v", event)
	}
	event, _ = ParseFired(fired(header("belfry-schedule-type", "t"), header("belfry-schedule-tenant", "shop"),
		header("belfry-schedule-group", "g"), header("belfry-schedule-version", "7"),
		header("belfry-source", "belfry.schedules/3/4711")))
	if event.Type != "t" || event.Tenant != "shop" || event.Group != "g" || event.Version != 7 ||
		event.Source == nil || *event.Source != (Source{"belfry.schedules", 3, 4711}) {
		t.Errorf("%+v", event)
	}
	if _, ok := ParseFired(&kgo.Record{Headers: []kgo.RecordHeader{header("belfry-fire-id", "f")}}); ok {
		t.Error("half the headers are taken for an event")
	}
}

func TestRetries(t *testing.T) {
	retrier := Retrier{Tenant: "shop", DeadLetters: "dead"}
	first := &kgo.Record{
		Topic: "orders", Partition: 1, Offset: 42, Key: []byte("k"), Value: []byte("v"),
		Headers: []kgo.RecordHeader{header("trace", "1"), header("event-type", "order")},
	}
	again := retrier.again(first, time.Second)
	if again.ID != "retry/orders/1/42" || again.RequestID != again.ID || again.Type != "order" {
		t.Errorf("%+v", again)
	}
	if found := shown(again.record()); !strings.HasSuffix(
		found, "belfry-in=1000 belfry-type=order trace=1 event-type=order retry-attempt=1 k:v") {
		t.Error(found)
	}
	second := fired(header("trace", "1"), header("ce_id", "f1"), header("ce_type", "t"), header("retry-attempt", "1"))
	again = retrier.again(second, time.Second)
	if again.ID != "retry/f1" || again.Type != "t" || Attempt(second) != 1 {
		t.Errorf("%+v", again)
	}
	dead := retrier.deadLetter(second, errors.New("no money"))
	if found := shown(dead); dead.Topic != "dead" || found != "trace=1 retry-attempt=2"+
		" dead-letter-reason=no money dead-letter-origin=belfry.fired.demo/2/7 k:v" {
		t.Error(found)
	}
}

func TestRefusals(t *testing.T) {
	for outcome, refused := range map[string]bool{"ACCEPTED": false, "NOT_FOUND": true, "UNKNOWN": false} {
		if (Verdict{Outcome: outcome}).Refused() != refused ||
			(Verdict{Outcome: "DUPLICATE", Code: outcome}).Refused() != refused {
			t.Error(outcome)
		}
	}
}
