// A shop that uses belfry: it schedules, cancels, hears verdicts, reads what fires, and puts back
// charges that fail.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	belfry "belfry/clients/go"
)

const tenant = "go"

func main() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	prefix := cmp.Or(os.Getenv("BELFRY_CLUSTER__TOPIC_PREFIX"), "belfry.")
	kafka := kgo.SeedBrokers(cmp.Or(os.Getenv("BELFRY_BOOTSTRAP_SERVERS"), "localhost:9092"))
	options := belfry.Options{Prefix: prefix}
	if secret := os.Getenv("BELFRY_SECRET"); secret != "" {
		options.Secrets = map[string][]byte{tenant: []byte(secret)}
	}
	client, err := belfry.New(ctx, options, kafka)
	check(err)
	defer client.Close()

	ask(ctx, client)
	consume(ctx, client, prefix, kafka)
}

// ask schedules and cancels. Each call returns once belfry has answered.
func ask(ctx context.Context, client *belfry.Client) {
	verdict, err := client.Schedule(ctx, belfry.Schedule{
		Tenant: tenant, ID: "greeting/1", When: belfry.In(time.Second),
		Key: []byte("customer-7"), Payload: []byte("hello from Go"), Type: "greeting",
		Group: "customer-7", Serial: true,
	})
	check(err)
	fmt.Println(verdict.Outcome, verdict.ID, "version", verdict.Version)

	_, err = client.Schedule(ctx, belfry.Schedule{
		Tenant: tenant, ID: "report", When: belfry.Cron("0 9 * * MON", "Europe/Paris").Except("* * 25 12 *").MaxFires(52),
		Overlap: "SKIP", Reason: "the weekly report",
	})
	check(err)
	verdict, err = client.Cancel(ctx, tenant, "report")
	check(err)
	fmt.Println(verdict.Outcome, verdict.ID)

	_, err = client.Schedule(ctx, belfry.Schedule{
		Tenant: tenant, ID: "closing", When: belfry.At(time.Now().Add(time.Hour)),
	})
	check(err)
	verdict, err = client.Cancel(ctx, tenant, "closing")
	check(err)
	fmt.Println(verdict.Outcome, verdict.ID)

	_, err = client.Cancel(ctx, tenant, "nothing")
	var refused *belfry.RefusedError
	if errors.As(err, &refused) {
		fmt.Println(refused.Verdict.Outcome, refused.Verdict.ID)
	}
}

// consume reads what fires, and charges from a topic of the shop's own. A charge that fails comes
// again among the fired events, until it ends as a dead letter.
func consume(ctx context.Context, client *belfry.Client, prefix string, kafka kgo.Opt) {
	charges := prefix + "example.go.charges"
	retrier := belfry.Retrier{
		Client: client, Tenant: tenant, DeadLetters: charges + ".dead",
		Backoff: belfry.Backoff{First: 200 * time.Millisecond, Factor: 2, Most: time.Hour, Attempts: 3},
	}
	consumer, err := kgo.NewClient(kafka,
		kgo.ConsumerGroup(prefix+"example.go"),
		kgo.ConsumeTopics(charges, prefix+"fired."+tenant),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), // not the default of franz-go
		kgo.DisableAutoCommit(),
	)
	check(err)
	defer consumer.Close()
	_, err = kadm.NewClient(consumer).CreateTopics(ctx, 1, -1, nil, charges, retrier.DeadLetters)
	check(err)
	charge := &kgo.Record{Topic: charges, Key: []byte("order-1"), Value: []byte("card 4711")}
	check(consumer.ProduceSync(ctx, charge).FirstErr())

	greeted, dead := false, false
	for !greeted || !dead {
		fetches := consumer.PollFetches(ctx)
		check(fetches.Err())
		for _, record := range fetches.Records() {
			if event, ok := belfry.ParseFired(record); ok && event.Type == "greeting" {
				fmt.Printf("fired %s, occurrence %d: %s\n", event.ID, event.Occurrence, event.Value)
				done, err := client.Acknowledge(ctx, tenant, event)
				check(err)
				fmt.Println(done.Outcome, done.ID)
				greeted = true
				continue
			}
			fmt.Printf("try %d of %s fails\n", belfry.Attempt(record)+1, record.Value)
			again, err := retrier.Retry(ctx, record, errors.New("the bank is away"))
			check(err)
			dead = dead || !again
		}
		check(consumer.CommitUncommittedOffsets(ctx))
	}
	fmt.Println("dead letter in", retrier.DeadLetters)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
