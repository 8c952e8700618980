// Consume, transform, produce with franz-go: the same as TransactionalCopier.java, argument for argument.
//
// Each poll becomes a transaction with its offsets, until standard input ends. Some are aborted on purpose and done
// again. Prints `begin|commit|abort ATTEMPT` as it happens; ends with code 3 when its producer is of no use any more.
package main

import (
	"context"
	"fmt"
	"io"
	"math/rand"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	gaveUp      = 3
	batchMax    = 60
	poll        = 200 * time.Millisecond
	oneAbortIn  = 5
	sessionTime = 10 * time.Second
)

type copier struct {
	session *kgo.GroupTransactSession
	target  string
	totals  int32
}

func main() {
	arguments := os.Args[1:]
	totals := must(strconv.Atoi(arguments[3]))
	one := copier{session: must(kgo.NewGroupTransactSession(options(arguments)...)), target: arguments[2], totals: int32(totals)}
	stopping, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	for number := 0; stopping.Err() == nil; number++ {
		if records := one.poll(); len(records) > 0 {
			one.copy(records, fmt.Sprintf("%s-%d", arguments[6], number))
		}
	}
	one.session.Close()
}

func options(arguments []string) []kgo.Opt {
	timeout := must(strconv.Atoi(arguments[7]))
	options := []kgo.Opt{
		kgo.SeedBrokers(arguments[0]),
		kgo.ConsumeTopics(arguments[1]),
		kgo.ConsumerGroup(arguments[4]),
		kgo.TransactionalID(arguments[5]),
		kgo.TransactionTimeout(time.Duration(timeout) * time.Millisecond),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RequireStableFetchOffsets(),
		kgo.FetchMaxWait(50 * time.Millisecond),
		kgo.MetadataMinAge(100 * time.Millisecond),
	}
	if arguments[8] == "classic" {
		return append(options, kgo.SessionTimeout(sessionTime), kgo.HeartbeatInterval(time.Second))
	}
	return append(options, kgo.WithContext(context.WithValue(context.Background(), "opt_in_kafka_next_gen_balancer_beta", true)))
}

// poll gives what came within a moment; errors of the consumer pass, or they come again.
func (one *copier) poll() []*kgo.Record {
	ctx, done := context.WithTimeout(context.Background(), poll)
	defer done()
	return one.session.PollRecords(ctx, batchMax).Records()
}

// copy ends the transaction in any case; the session goes back to what is committed when that was an abort.
func (one *copier) copy(records []*kgo.Record, attempt string) {
	ctx := context.Background()
	report("begin", attempt)
	check(one.session.Begin())
	for _, record := range records {
		value := fmt.Sprintf("%s copy %d %s", attempt, record.Offset, record.Value)
		one.session.Produce(ctx, &kgo.Record{Topic: one.target, Partition: record.Partition, Value: []byte(value)}, ignored)
	}
	total := fmt.Sprintf("%s total %d", attempt, len(records))
	one.session.Produce(ctx, &kgo.Record{Topic: one.target, Partition: one.totals, Value: []byte(total)}, ignored)
	committed, failure := one.session.End(ctx, kgo.TransactionEndTry(rand.Intn(oneAbortIn) != 0))
	check(failure)
	if committed {
		report("commit", attempt)
	} else {
		report("abort", attempt)
	}
}

// ignored: a record that could not be sent makes the end of its transaction an abort.
func ignored(*kgo.Record, error) {}

func report(what, attempt string) {
	fmt.Println(what, attempt)
}

func check(failure error) {
	if failure != nil {
		report("gave-up", failure.Error())
		os.Exit(gaveUp)
	}
}

func must[T any](value T, failure error) T {
	check(failure)
	return value
}
