// Reads offset and the header "amount" of all records of a topic into two slices, with franz-go.
//
//	franz ADDRESS TOPIC PARTITIONS RECORDS      prints: seconds records sum-of-offsets sum-of-amounts
//
// The time includes connecting, as that of the other sides does. Slices of records and of decompressed bytes are taken
// from pools and given back, and garbage is collected seldom: both make it faster.
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	if len(os.Args) != 5 {
		fail("ADDRESS TOPIC PARTITIONS RECORDS")
	}
	topic := os.Args[2]
	partitions, err := strconv.Atoi(os.Args[3])
	check(err)
	records, err := strconv.Atoi(os.Args[4])
	check(err)

	debug.SetGCPercent(400)
	started := time.Now()
	assigned := map[int32]kgo.Offset{}
	for partition := range partitions {
		assigned[int32(partition)] = kgo.NewOffset().AtStart()
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(os.Args[1]),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: assigned}),
		kgo.FetchMaxBytes(64<<20),
		kgo.FetchMaxPartitionBytes(16<<20),
		kgo.FetchMaxWait(100*time.Millisecond),
		kgo.WithPools(&pool{}),
	)
	check(err)
	deadline, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	offsets, amounts := make([]int64, 0, records), make([]int64, 0, records)
	for len(offsets) < records {
		fetches := client.PollFetches(deadline)
		check(fetches.Err0())
		fetches.EachError(func(_ string, _ int32, err error) { check(err) })
		fetches.EachRecord(func(record *kgo.Record) {
			var amount []byte
			// The last of its name, as elsewhere.
			for i := range record.Headers {
				if record.Headers[i].Key == "amount" {
					amount = record.Headers[i].Value
				}
			}
			if len(amount) != 8 {
				fail("an amount of %d bytes", len(amount))
			}
			offsets = append(offsets, record.Offset)
			amounts = append(amounts, int64(binary.BigEndian.Uint64(amount)))
			record.Recycle()
		})
	}
	seconds := time.Since(started).Seconds()
	var offsetSum, amountSum int64
	for i := range offsets {
		offsetSum += offsets[i]
		amountSum += amounts[i]
	}
	fmt.Println(seconds, len(offsets), offsetSum, amountSum)
}

// pool keeps slices for the client.
type pool struct {
	records sync.Pool
	bytes   sync.Pool
}

func (p *pool) GetRecords(n int) []kgo.Record {
	if kept, ok := p.records.Get().(*[]kgo.Record); ok && cap(*kept) >= n {
		return (*kept)[:0]
	}
	return make([]kgo.Record, 0, n)
}

func (p *pool) PutRecords(records []kgo.Record) { p.records.Put(&records) }

func (p *pool) GetDecompressBytes(compressed []byte, _ kgo.CompressionCodecType) []byte {
	if kept, ok := p.bytes.Get().(*[]byte); ok {
		return (*kept)[:0]
	}
	return make([]byte, 0, 4*len(compressed))
}

func (p *pool) PutDecompressBytes(bytes []byte) { p.bytes.Put(&bytes) }

func check(err error) {
	if err != nil {
		fail("%v", err)
	}
}

func fail(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "franz: "+format+"\n", values...)
	os.Exit(1)
}
