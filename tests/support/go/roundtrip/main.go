// One record there and back by franz-go, over TLS: `roundtrip SETTINGS`, which is JSON. Prints the record's value, or
// ends with 1 and why it could not be.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const timeout = 20 * time.Second

type settings struct {
	Bootstrap, CA, Topic, Value      string
	Certificate                      string // a file with a key as well; or:
	Mechanism, User, Password, Token string
}

func main() {
	value, err := roundTrip([]byte(os.Args[1]))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(value)
}

func roundTrip(arguments []byte) (string, error) {
	var given settings
	if err := json.Unmarshal(arguments, &given); err != nil {
		return "", err
	}
	tlsConfig, err := given.tls()
	if err != nil {
		return "", err
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(given.Bootstrap), kgo.DialTLSConfig(tlsConfig), kgo.ConsumeTopics(given.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.RecordRetries(2),
	}
	if given.Mechanism != "" {
		options = append(options, kgo.SASL(given.mechanism()))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return "", err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		return "", err
	}
	record := &kgo.Record{Topic: given.Topic, Value: []byte(given.Value)}
	if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
		return "", err
	}
	fetches := client.PollFetches(ctx)
	if err := fetches.Err(); err != nil {
		return "", err
	}
	return string(fetches.Records()[0].Value), nil
}

func (given settings) tls() (*tls.Config, error) {
	authority, err := os.ReadFile(given.CA)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(authority)
	if given.Certificate != "" {
		own, err := tls.LoadX509KeyPair(given.Certificate, given.Certificate)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}

func (given settings) mechanism() sasl.Mechanism {
	switch given.Mechanism {
	case "PLAIN":
		return plain.Auth{User: given.User, Pass: given.Password}.AsMechanism()
	case "SCRAM-SHA-256":
		return scram.Auth{User: given.User, Pass: given.Password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: given.User, Pass: given.Password}.AsSha512Mechanism()
	default:
		return oauth.Auth{Token: given.Token}.AsMechanism()
	}
}
