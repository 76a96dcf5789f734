package client

import (
	"context"
	"fmt"
	mrand "math/rand/v2"
	"net/http"
	"time"
)

// Client calls one cluster. It is safe for use by several goroutines. Its services are grouped by what they are about.
type Client struct {
	*transport
	JobClient
	NodeClient
	FleetClient
	PeopleClient
	PolicyClient
	TokenClient
	ReservationClient
	TriggerClient
	ClusterClient
	StandingClient
	StreamClient
}

type (
	// JobClient submits, lists, changes and ends jobs, their steps and runs.
	JobClient struct{ *transport }
	// NodeClient lists and changes nodes, partitions and licenses.
	NodeClient struct{ *transport }
	// FleetClient lists and changes fleets.
	FleetClient struct{ *transport }
	// PeopleClient lists and changes users and projects.
	PeopleClient struct{ *transport }
	// PolicyClient reads and applies the policy, and changes QOS.
	PolicyClient struct{ *transport }
	// TokenClient lists, creates, rotates and revokes tokens.
	TokenClient struct{ *transport }
	// ReservationClient lists and changes advance reservations.
	ReservationClient struct{ *transport }
	// TriggerClient lists, sets and clears triggers.
	TriggerClient struct{ *transport }
	// ClusterClient is about the cluster as a whole: its settings, certificate authority, sealing keys and audit log.
	ClusterClient struct{ *transport }
	// StandingClient tells how jobs, projects and users stand in the queue, and how the server fares.
	StandingClient struct{ *transport }
	// StreamClient watches events, reads logs and connects to steps.
	StreamClient struct{ *transport }
)

// Option changes a Client while it is made.
type Option func(*Client)

// WithTimeout bounds how long a call is tried again while the server is away or busy.
func WithTimeout(d time.Duration) Option { return func(c *Client) { c.set.Timeout = d } }

// WithSleep replaces the wait between two tries; tests use it to stay fast.
func WithSleep(f func(ctx context.Context, d time.Duration) error) Option {
	return func(c *Client) { c.sleep = f }
}

// WithTransport has requests sent by t, for callers in the server's own process.
func WithTransport(t http.RoundTripper) Option { return func(c *Client) { c.trip = t } }

// noticeDelay is how long a call is tried again before anybody is told.
const noticeDelay = time.Second

// WithNotice has f called, once, when a call is not answered at first and will be tried again for some time yet.
func WithNotice(f func(err error, left time.Duration)) Option {
	return func(c *Client) { c.notice = f }
}

// New makes a client for the given settings. It opens no connection.
func New(s Settings, opts ...Option) (*Client, error) {
	t := &transport{set: s, sleep: sleep}
	c := &Client{
		transport: t, JobClient: JobClient{t}, NodeClient: NodeClient{t}, FleetClient: FleetClient{t},
		PeopleClient: PeopleClient{t}, PolicyClient: PolicyClient{t}, TokenClient: TokenClient{t},
		ReservationClient: ReservationClient{t}, ClusterClient: ClusterClient{t}, StandingClient: StandingClient{t},
		StreamClient: StreamClient{t}, TriggerClient: TriggerClient{t},
	}
	for _, o := range opts {
		o(c)
	}
	if len(s.Servers) == 0 {
		c.set.Servers = []string{defaultServer()}
	}
	for _, text := range c.set.Servers {
		e, err := newEndpoint(text, s.CA)
		if err != nil {
			return nil, err
		}
		if c.trip != nil {
			e.http.Transport, e.once = c.trip, c.trip
		}
		c.ends = append(c.ends, e)
	}
	return c, nil
}

// FromEnv makes a client from the environment and the user's config file.
func FromEnv(opts ...Option) (*Client, error) {
	s, err := SettingsFromEnv()
	if err != nil {
		return nil, err
	}
	return New(s, opts...)
}

// NewKey makes a key under which a submission may be sent again.
func NewKey() string {
	return fmt.Sprintf("%016x%016x", mrand.Uint64(), mrand.Uint64()) // seeded by the system, and need not be a secret
}
