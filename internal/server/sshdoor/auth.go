package sshdoor

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
	"net"
	"slices"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/attach"
)

// algorithms are those of both kinds of connections. AES-GCM comes before ChaCha20, which Go computes several times
// more slowly, and a client's choice among what is offered wins: so ChaCha20 is not offered.
var algorithms = ssh.Config{
	KeyExchanges: []string{
		ssh.KeyExchangeMLKEM768X25519, ssh.KeyExchangeCurve25519, ssh.KeyExchangeECDHP256, ssh.KeyExchangeECDHP384,
		ssh.KeyExchangeECDHP521,
	},
	Ciphers: []string{ssh.CipherAES128GCM, ssh.CipherAES256GCM, ssh.CipherAES256CTR, ssh.CipherAES128CTR},
	MACs:    []string{ssh.HMACSHA256ETM, ssh.HMACSHA512ETM},
}

// userKeys are the signatures that are taken: no SHA-1.
var userKeys = []string{
	ssh.KeyAlgoED25519, ssh.KeyAlgoSKED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
	ssh.KeyAlgoSKECDSA256, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512,
}

// version is what the door calls itself.
const version = "SSH-2.0-bireme"

// errRefused is the one answer to a key that does not open the job, whether there is such a job or not.
var errRefused = errors.New("this key does not open a job of that name")

// guest is who came in, and where to.
type guest struct {
	user   core.UserName
	target attach.Target
	job    *core.Job
	addr   net.Addr
	finger string // of the key
	key    []byte // in the wire's form
}

// handshake finds out who calls and which job they want.
func (d *Door) handshake(c net.Conn) (*ssh.ServerConn, <-chan ssh.NewChannel, <-chan *ssh.Request, *guest, error) {
	var found *guest
	tried := ""
	cfg := &ssh.ServerConfig{
		Config: algorithms, ServerVersion: version, MaxAuthTries: maxAuthTries, PublicKeyAuthAlgorithms: userKeys,
		PublicKeyCallback: func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			tried = meta.User()
			g, err := d.check(meta.User(), key)
			if err != nil {
				return nil, err
			}
			g.addr = c.RemoteAddr()
			// The one whose signature is checked is the last that was found.
			return &ssh.Permissions{ExtraData: map[any]any{guestKey{}: g}}, nil
		},
	}
	cfg.AddHostKey(d.HostKey)
	if err := c.SetDeadline(time.Now().Add(handshakeTime)); err != nil {
		return nil, nil, nil, nil, err
	}
	conn, channels, requests, err := ssh.NewServerConn(c, cfg)
	if err != nil {
		if tried != "" {
			d.audit(&guest{addr: c.RemoteAddr()}, tried, core.Errorf(core.Denied, "%v", errRefused).Because("bad_key"))
		}
		return nil, nil, nil, nil, err
	}
	found, _ = conn.Permissions.ExtraData[guestKey{}].(*guest)
	if err := c.SetDeadline(time.Time{}); err != nil || found == nil {
		return nil, nil, nil, nil, errors.Join(err, conn.Close())
	}
	return conn, channels, requests, found, nil
}

// guestKey is where a handshake leaves who was found.
type guestKey struct{}

// check finds the job that a name stands for and who has the key, among those who may use the job.
func (d *Door) check(name string, key ssh.PublicKey) (*guest, error) {
	target, ok := attach.Parse(name)
	if !ok {
		return nil, errRefused
	}
	ctx, cancel := context.WithTimeout(d.ctx, lookupTime)
	defer cancel()
	j, err := d.Job(ctx, target.Job)
	if err != nil || j == nil {
		return nil, errRefused
	}
	keys, err := d.Keys(ctx, j)
	if err != nil {
		d.Log.Warn("keys of a job", "job", j.ID, "err", err)
		return nil, errRefused
	}
	offered := key.Marshal()
	for _, k := range keys {
		if subtle.ConstantTimeCompare(k.Key.Marshal(), offered) == 1 {
			return &guest{user: k.User, target: target, job: j, finger: ssh.FingerprintSHA256(key), key: offered}, nil
		}
	}
	return nil, errRefused
}

// mayStay reports whether the key of a connection still opens its job for the same user. What cannot be looked up now
// is no reason to end it: that is tried again.
func (k *caller) mayStay() bool {
	ctx, cancel := context.WithTimeout(k.ctx, lookupTime)
	defer cancel()
	j, err := k.d.Job(ctx, k.target.Job)
	if err != nil || j == nil {
		return core.CodeOf(err) != core.NotFound
	}
	keys, err := k.d.Keys(ctx, j)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(keys, func(x Key) bool { return x.User == k.user && bytes.Equal(x.Key.Marshal(), k.key) })
}

// audit tells the audit log who came, or tried to.
func (d *Door) audit(g *guest, name string, err error) {
	e := &core.AuditEntry{
		UID: -1, User: g.user, Addr: hostOf(g.addr), Action: "job.ssh", Object: "ssh " + name, Answer: core.AuditOK,
		Count: 1, Detail: g.finger,
	}
	if g.job != nil {
		e.Object = "job " + strconv.FormatInt(int64(g.job.ID), 10)
		if g.job.Spec.User != g.user {
			e.Owner = g.job.Spec.User
		}
	}
	if err != nil {
		e.Answer, e.Reason, e.Message = string(core.CodeOf(err)), core.ReasonOf(err), err.Error()
	}
	if d.Audit != nil {
		d.Audit(e)
	}
}
