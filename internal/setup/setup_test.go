package setup

import (
	"strings"
	"testing"

	"bireme.dev/bireme/internal/config"
)

func TestAsk(t *testing.T) {
	t.Parallel()
	start := Answers{Cluster: "lab", Address: "here:7441", Node: true}
	tests := map[string]struct {
		input string
		given []bool
		want  Answers
		says  string // part of what it prints
	}{
		"defaults": {input: "\n\n\n\n\n", want: start, says: "1/5 Name of the cluster [lab]: "},
		"no input": {want: start},
		"all": {
			input: "atlas\npostgres://b:secret@db/x\nlogin1\n0.0.0.0:7440\nno\n",
			want: Answers{
				Cluster: "atlas", Store: "postgres://b:secret@db/x", Address: "login1:7441", Listen: "0.0.0.0:7440",
			},
		},
		"asked again": {
			input: "My Lab\nlab2\nmysql://x\nsqlite\n0.0.0.0\nhost:99999\n10.0.0.7:8000\n7440\nnone\nperhaps\nyes\n",
			want:  Answers{Cluster: "lab2", Address: "10.0.0.7:8000", Node: true},
			says:  `"perhaps": expected yes or no`,
		},
		"address of IPv6": {
			input: "\n\nfd00::7\n\n\n", want: Answers{Cluster: "lab", Address: "[fd00::7]:7441", Node: true},
		},
		"given": {
			input: "n\n", given: []bool{true, true, true, true, false},
			want: Answers{Cluster: "lab", Address: "here:7441"}, says: "5/5 Shall",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := start
			var out strings.Builder
			if err := Ask(strings.NewReader(tc.input), &out, &got, tc.given); err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("answers %+v, want %+v", got, tc.want)
			}
			if !strings.Contains(out.String(), tc.says) || strings.Contains(out.String(), "mysql://x") {
				t.Errorf("it printed %q", out.String())
			}
		})
	}
}

// What is written are settings that the server takes, and they say what was answered.
func TestSettings(t *testing.T) {
	t.Parallel()
	for _, a := range []Answers{
		{Cluster: "lab", Address: "here:7441"},
		{Cluster: "atlas", Store: "postgres://b:pa%22ss@db/x", Address: "[fd00::7]:8000", Listen: "0.0.0.0:7440"},
	} {
		if err := a.Check(); err != nil {
			t.Fatal(err)
		}
		text, err := a.Settings("/var/lib/bireme")
		if err != nil {
			t.Fatal(err)
		}
		c, err := config.Parse("config.yml", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if c.Cluster != a.Cluster || c.Server.Store != a.Store || c.Server.Listen != a.Listen ||
			c.Server.Advertise[0] != a.Address || c.Dir != "/var/lib/bireme" {
			t.Errorf("%+v became %+v", a, c.Server)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	a := Answers{Cluster: "UPPER", Store: "mysql://u:secret@h/x", Address: "", Listen: "7440"}
	err := a.Check()
	if err == nil {
		t.Fatal("wrong answers were taken")
	}
	for _, want := range []string{"--cluster", "--store", "--address", "--listen"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("a password is printed: %v", err)
	}
}

func TestJoinLines(t *testing.T) {
	t.Parallel()
	a := Answers{Address: "here:7441"}
	got := a.JoinLines([]byte("PEM"), "bm_1")
	for _, want := range []string{
		"PEM\nX\n",
		"--server here:7441 --ca /etc/bireme/ca.pem\n",
		"BIREME_JOIN_TOKEN=bm_1\nX\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}
