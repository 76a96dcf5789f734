//go:build e2e

package containers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
	"bireme.dev/bireme/test/engine"
)

const bob = "bireme-t2"

// TestRightsOfRoot: root in an ordinary user's container manages its own files and processes and has no other right; a
// site may give more by a setting.
func TestRightsOfRoot(t *testing.T) {
	c := start(t, cluster.Options{})
	p := c.As(alice)
	const tried = `image: box:1
commands:
  - 'grep CapBnd /proc/self/status; id -u'
  - 'touch f && chown 5:6 f && chmod 4755 f && stat -c %u:%g f'
  - 'httpd -p 80 && echo low port || true'
  - 'mknod null c 1 3 && echo device || true'
  - 'ping -c 1 -W 1 127.0.0.1 && echo raw || true'
  - 'hostname evil && echo hostname || true'
  - 'mount -t tmpfs none /mnt && echo mounted || true'
`
	r := apply(t, p, c.Work, "rights", tried)
	// CHOWN 0, DAC_OVERRIDE 1, FOWNER 3, FSETID 4, KILL 5, SETGID 6, SETUID 7, SYS_CHROOT 18, AUDIT_WRITE 29
	if wants(t, "root inside", r.Out, "CapBnd:\t00000000200400fb", "\n0\n", "5:6"); r.Code != 0 {
		t.Errorf("%v", r)
	}
	for _, gained := range []string{"low port", "device\n", "raw\n", "hostname\n", "mounted\n"} {
		if strings.Contains(r.Out, gained) {
			t.Errorf("root inside has %q", gained)
		}
	}
	// Who has seen the end of a run finds no container of it.
	if list, err := docker.Call("GET", "/containers/json?all=1"); err != nil || strings.TrimSpace(list) != "[]" {
		t.Errorf("after apply there is %s, %v", list, err)
	}
	// A user of the image is reached, and signals reach its programs.
	if r := apply(t, p, c.Work, "user", "image: box:1\nuser: \"1234:5\"\ncommands: ['id -u; grep CapEff "+
		"/proc/self/status']\n"); !strings.Contains(r.Out, "1234\n") ||
		!strings.Contains(r.Out, "CapEff:\t0000000000000000") {
		t.Errorf("%v", r)
	}
	installs(t, c)
	left(t, c)

	c = start(t, cluster.Options{Set: []string{"step.container_caps=CAP_NET_BIND_SERVICE,SETUID,SETGID,KILL"}})
	r = apply(t, c.As(alice), c.Work, "rights",
		"image: box:1\ncommands: ['grep CapBnd /proc/self/status; httpd -p 80 && echo low port']\n")
	wants(t, "with a site's own list", r.Out, "CapBnd:\t00000000000004e0", "low port")
	left(t, c)
}

// TestPrivateImage: an image that a registry gave for one user's credentials is run for others only if the registry
// gives it to them, whatever they call it and whichever other registry claims to have it; while the registry is away,
// for those whom it gave it before.
func TestPrivateImage(t *testing.T) {
	fake := engine.NewFakeRegistry("me", "sesame")
	defer fake.Close()
	files, err := engine.BusyBox()
	if err != nil {
		t.Fatal(err)
	}
	ref, err := fake.Add("secret:1", append(files, engine.File{Path: "secret", Mode: 0o644, Data: []byte("the secret\n")}))
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, cluster.Options{})
	task := func(image, password string) string {
		text := "image: \"" + image + "\"\ncommands: [cat /secret]\n"
		if password != "" {
			text += "env: [PW=" + password + "]\nregistry_auth: {username: me, password: \"${{ env.PW }}\"}\n"
		}
		return text
	}
	if r := apply(t, c.As(alice), c.Work, "mine", task(ref, "sesame")); r.Out != "the secret\n" {
		t.Fatalf("with the right password: %v", r)
	}
	one, err := docker.Call("GET", "/images/"+ref+"/json")
	if err != nil {
		t.Fatal(err)
	}
	_, id, _ := strings.Cut(one, `"Id":"`)
	id, _, _ = strings.Cut(id, `"`)
	refused := func(what string, r cluster.Result, run string) {
		t.Helper()
		j := c.WaitEnd(jobOf(t, c, run))
		if r.Code == 0 || strings.Contains(r.Out, "the secret") || j.State != core.Failed ||
			!strings.Contains(j.Message, "is private") {
			t.Errorf("%s: %v: %s", what, r, j.Message)
		}
	}
	for what, x := range map[string][2]string{
		"bare": {ref, ""}, "wrong": {ref, "guess"}, "by-id": {id, ""},
		"by-short-id": {strings.TrimPrefix(id, "sha256:")[:12], ""},
	} {
		refused(what, apply(t, c.As(bob), c.Work, what, task(x[0], x[1])), what)
	}
	j := c.WaitEnd(c.As(bob).Sbatch("-o", filepath.Join(c.Work, "stolen"), "--container-image="+ref, "--wrap",
		"cat /secret"))
	if b, _ := os.ReadFile(filepath.Join(c.Work, "stolen")); j.State == core.Completed ||
		strings.Contains(string(b), "the secret") {
		t.Errorf("sbatch --container-image: %s %s %q", j.State, j.Message, b)
	}
	if r := apply(t, c.As(bob), c.Work, "shared", task(ref, "sesame")); r.Out != "the secret\n" {
		t.Errorf("another user with the right password: %v", r)
	}
	// An attacker's own registries name the image without having it: one gives it to anybody, one for credentials.
	for what, x := range map[string][3]string{"claimed": {"", "", ""}, "claimed-with-auth": {"me", "guess", "guess"}} {
		evil := engine.NewFakeRegistry(x[0], x[1])
		defer evil.Close()
		claim, err := evil.Claim("secret:1", fake, "secret:1")
		if err != nil {
			t.Fatal(err)
		}
		refused(what, apply(t, c.As(bob), c.Work, what, task(claim, x[2])), what)
		refused(what+"-by-id", apply(t, c.As(bob), c.Work, what+"-by-id", task(id, x[2])), what+"-by-id")
	}
	fake.Close()
	if r := apply(t, c.As(alice), c.Work, "again", task(ref, "sesame")); r.Out != "the secret\n" {
		t.Errorf("with the registry away: %v", r)
	}
	refused("a guess with the registry away", apply(t, c.As(bob), c.Work, "away", task(ref, "guess")), "away")
	left(t, c)
}

// TestPublicImageClaimed: nobody takes an image that everybody may run from others by fetching it from a registry of
// their own with credentials.
func TestPublicImageClaimed(t *testing.T) {
	open := engine.NewFakeRegistry("", "")
	defer open.Close()
	files, err := engine.BusyBox()
	if err != nil {
		t.Fatal(err)
	}
	ref, err := open.Add("public:1", append(files, engine.File{Path: "public", Mode: 0o644, Data: []byte("for all\n")}))
	if err != nil {
		t.Fatal(err)
	}
	own := engine.NewFakeRegistry("me", "sesame")
	defer own.Close()
	claim, err := own.Claim("public:1", open, "public:1")
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, cluster.Options{})
	for i, x := range []struct{ user, image, auth string }{
		{alice, ref, ""},
		{bob, claim, "env: [PW=sesame]\nregistry_auth: {username: me, password: \"${{ env.PW }}\"}\n"},
		{alice, ref, ""},
		{alice, claim, ""},
	} {
		r := apply(t, c.As(x.user), c.Work, fmt.Sprint("public", i),
			"image: \""+x.image+"\"\ncommands: [cat /public]\n"+x.auth)
		if r.Out != "for all\n" {
			t.Errorf("%s runs %s: %v", x.user, x.image, r)
		}
	}
	left(t, c)
}
