// Package belfry schedules events in Kafka, cancels them, hears what became of each request, reads
// what fires and puts back what a consumer could not handle.
//
// Requests are plain records with headers, so neither Avro nor a schema registry is needed.
package belfry

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Options of a client.
type Options struct {
	// Prefix of belfry's topics; "" is "belfry.".
	Prefix string
	// Secrets by tenant, what its requests are signed with.
	Secrets map[string][]byte
	// OwnTopics writes to each tenant's own topic, belfry.schedules.<tenant>.
	OwnTopics bool
	// Timeout for a verdict; 0 is 10 s.
	Timeout time.Duration
}

// ErrNoVerdict says that a request was written, and its verdict did not come in time. To ask again
// with the same request id is safe.
var ErrNoVerdict = errors.New("no verdict in time: does a worker run?")

// Client writes requests and waits for their verdicts. Many goroutines may use one. It reads the
// topic of verdicts from its making until Close.
type Client struct {
	options  Options
	producer *kgo.Client
	reader   *kgo.Client

	lock    sync.Mutex
	waiting map[string][]chan Verdict
}

// New makes a client; kafka says where Kafka is and how to log in: kgo.SeedBrokers, kgo.SASL …
func New(ctx context.Context, options Options, kafka ...kgo.Opt) (*Client, error) {
	if options.Prefix == "" {
		options.Prefix = "belfry."
	}
	if options.Timeout == 0 {
		options.Timeout = 10 * time.Second
	}
	producer, err := kgo.NewClient(append(kafka[:len(kafka):len(kafka)],
		kgo.RecordPartitioner(kgo.BasicConsistentPartitioner(partitioner)))...)
	if err != nil {
		return nil, err
	}
	client := &Client{options: options, producer: producer, waiting: map[string][]chan Verdict{}}
	if err := client.readFromNow(ctx, kafka); err != nil {
		producer.Close()
		return nil, err
	}
	return client, nil
}

// readFromNow stands at the end of every partition before the first request is written, so that no
// verdict can be missed.
func (c *Client) readFromNow(ctx context.Context, kafka []kgo.Opt) error {
	topic := c.options.Prefix + "lifecycle"
	ends, err := kadm.NewClient(c.producer).ListCommittedOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("topic %s: %w", topic, err)
	}
	from := map[string]map[int32]kgo.Offset{topic: {}}
	ends.Each(func(end kadm.ListedOffset) {
		from[topic][end.Partition] = kgo.NewOffset().At(end.Offset)
	})
	c.reader, err = kgo.NewClient(append(kafka[:len(kafka):len(kafka)],
		kgo.ConsumePartitions(from), kgo.FetchIsolationLevel(kgo.ReadCommitted()))...)
	if err == nil {
		go c.read()
	}
	return err
}

// Close waits for what is being written and gives the connections back.
func (c *Client) Close() {
	c.producer.Close()
	c.reader.Close()
}

// Schedule asks for an event, or changes one that waits. It returns once the request has its
// verdict, with a *RefusedError where that is a no.
func (c *Client) Schedule(ctx context.Context, schedule Schedule) (Verdict, error) {
	return c.ask(ctx, schedule.Tenant, schedule.ID, schedule.RequestID, schedule.record())
}

// Cancel takes a schedule back. TOO_LATE is the verdict where it has fired, NOT_FOUND where it never was.
func (c *Client) Cancel(ctx context.Context, tenant, id string) (Verdict, error) {
	return c.ask(ctx, tenant, id, "", asking(tenant, id, "CANCEL"))
}

// Pause keeps a schedule from firing until Resume.
func (c *Client) Pause(ctx context.Context, tenant, id string) (Verdict, error) {
	return c.ask(ctx, tenant, id, "", asking(tenant, id, "PAUSE"))
}

// Resume lets a schedule that was paused go on.
func (c *Client) Resume(ctx context.Context, tenant, id string) (Verdict, error) {
	return c.ask(ctx, tenant, id, "", asking(tenant, id, "RESUME"))
}

// Trigger fires a schedule once more, now.
func (c *Client) Trigger(ctx context.Context, tenant, id string) (Verdict, error) {
	return c.ask(ctx, tenant, id, "", asking(tenant, id, "TRIGGER"))
}

// Acknowledge says that an event is done, so that what waits for it goes on: UPDATED, or UNCHANGED
// where nothing waits for it.
func (c *Client) Acknowledge(ctx context.Context, tenant string, event FiredEvent) (Verdict, error) {
	record := asking(tenant, event.ID, "ACK")
	record.Headers = append(record.Headers, header("belfry-fire-id", event.FireID))
	return c.ask(ctx, tenant, event.ID, "", record)
}

func (c *Client) ask(
	ctx context.Context, tenant, id, requestID string, record *kgo.Record,
) (Verdict, error) {
	if requestID == "" {
		requestID = rand.Text()
	}
	record.Topic = c.options.Prefix + "schedules"
	if c.options.OwnTopics {
		record.Topic += "." + tenant
	}
	record.Headers = append(record.Headers, header("belfry-request-id", requestID))
	if secret, signs := c.options.Secrets[tenant]; signs {
		Sign(secret, tenant, record)
	}
	answers := c.expect(requestID)
	defer c.forget(requestID, answers)
	ctx, stop := context.WithTimeoutCause(ctx, c.options.Timeout, ErrNoVerdict)
	defer stop()
	sent, err := c.produce(ctx, record)
	if err != nil {
		return Verdict{}, err
	}
	for {
		select {
		case verdict := <-answers:
			if verdict.Tenant != tenant || verdict.ID != id || !verdict.isOn(sent) {
				continue // on another request that shows the same id
			}
			if verdict.Refused() {
				return verdict, &RefusedError{verdict}
			}
			return verdict, nil
		case <-ctx.Done():
			return Verdict{}, fmt.Errorf("%s/%s, request %s: %w", tenant, id, requestID, context.Cause(ctx))
		}
	}
}

// isOn tells whether a verdict is on this very record; one without a place is on any.
func (v Verdict) isOn(record *kgo.Record) bool {
	return v.partition == nil || v.offset == nil ||
		*v.partition == int64(record.Partition) && *v.offset == record.Offset
}

func (c *Client) produce(ctx context.Context, record *kgo.Record) (*kgo.Record, error) {
	return c.producer.ProduceSync(ctx, record).First()
}

func (c *Client) expect(requestID string) chan Verdict {
	answers := make(chan Verdict, 16)
	c.lock.Lock()
	defer c.lock.Unlock()
	c.waiting[requestID] = append(c.waiting[requestID], answers)
	return answers
}

func (c *Client) forget(requestID string, answers chan Verdict) {
	c.lock.Lock()
	defer c.lock.Unlock()
	kept := c.waiting[requestID][:0]
	for _, each := range c.waiting[requestID] {
		if each != answers {
			kept = append(kept, each)
		}
	}
	if c.waiting[requestID] = kept; len(kept) == 0 {
		delete(c.waiting, requestID)
	}
}

func (c *Client) read() {
	for {
		fetches := c.reader.PollFetches(context.Background())
		if fetches.IsClientClosed() {
			return
		}
		fetches.EachRecord(func(record *kgo.Record) {
			verdict, err := ParseVerdict(record.Value)
			if err != nil || !verdict.answers() {
				return
			}
			c.lock.Lock()
			defer c.lock.Unlock()
			for _, answers := range c.waiting[verdict.RequestID] {
				select {
				case answers <- verdict:
				default: // nobody asks sixteen times at once with one id
				}
			}
		})
	}
}

// partitioner sends a request straight to its tenant's home, whatever its key; other records go by
// their key, as Kafka's own clients send them.
func partitioner(topic string) func(*kgo.Record, int) int {
	byKey := kgo.StickyKeyPartitioner(nil).ForTopic(topic)
	return func(record *kgo.Record, partitions int) int {
		if tenant, asks := last(record.Headers, "belfry-tenant"); asks {
			record = &kgo.Record{Key: []byte(tenant)}
		}
		return byKey.Partition(record, partitions)
	}
}
