package secretarg

import (
	"slices"
	"testing"
)

func TestSecretName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"HF_TOKEN", "TOKEN", "token", "AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY", "PGPASSWORD", "DB_PASSWORD",
		"SSH_PRIVATE_KEY", "BIREME_REGISTRY_AUTH",
		"GITHUB_TOKEN_RO", "MYSQL_PWD", "SMTP_PASS", "OPENAI_APIKEY", "GOOGLE_CREDENTIALS", "GPG_PASSPHRASE", "hftoken",
	} {
		if !IsName(name) {
			t.Errorf("%s passes for harmless", name)
		}
	}
	for _, name := range []string{
		"PATH", "PWD", "OLDPWD", "TOKENIZERS_PARALLELISM", "KEY", "KEYBOARD",
		"OMP_NUM_THREADS", "SSH_AUTH_SOCK", "", "COMPASS", "HTTP_AUTHOR",
	} {
		if IsName(name) {
			t.Errorf("%s passes for a secret", name)
		}
	}
}

func TestMaskSecrets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want []string }{
		{[]string{"--export=ALL,HF_TOKEN=abc,N=1", "job.sh"}, []string{"--export=ALL,HF_TOKEN=***,N=***", "job.sh"}},
		{[]string{"--export", "HF_TOKEN=a,b=c,d"}, []string{"--export", "HF_TOKEN=***,b=***,d"}},
		{[]string{"--export=DB_PASSWORD=a,b,,c/d!,ALL"}, []string{"--export=DB_PASSWORD=***,b,,c/d!,ALL"}},
		{[]string{"-e", "API_KEY=x=y"}, []string{"-e", "API_KEY=***"}},
		{[]string{"-eAPI_KEY=x"}, []string{"-eAPI_KEY=***"}},
		{[]string{"-e", "A_TOKEN=1,B,C=3"}, []string{"-e", "A_TOKEN=***"}},
		{[]string{"--export=A_TOKEN=1,B_SECRET=2,C=3"}, []string{"--export=A_TOKEN=***,B_SECRET=***,C=***"}},
		{
			[]string{"--token", "abc", "--token=def", "--token", "-", "--token=-", "--token="},
			[]string{"--token", "***", "--token=***", "--token", "-", "--token=-", "--token="},
		},
		{
			[]string{"--set", "server.store=postgres://u:p@ss@h/db?x=y"},
			[]string{"--set", "server.store=postgres://u:***@h/db?x=y"},
		},
		{[]string{"postgres://u@h/db", "http://h:1/x@y:z"}, []string{"postgres://u@h/db", "http://h:1/x@y:z"}},
		{
			[]string{"-N4", "--mem=4G", "--comment=TOKENIZERS_PARALLELISM=no"},
			[]string{"-N4", "--mem=4G", "--comment=TOKENIZERS_PARALLELISM=no"},
		},
		{
			[]string{"--export=FOO=secret,export=x", "--expor=BAR=y"},
			[]string{"--export=FOO=***,export=***", "--expor=BAR=***"},
		},
		{
			[]string{"--export=ALL", "--export=FOO,BAR", "--export=NONE"},
			[]string{"--export=ALL", "--export=FOO,BAR", "--export=NONE"},
		},
		{nil, nil},
	} {
		if got := Mask(c.in); !slices.Equal(got, c.want) {
			t.Errorf("%q is masked as %q, want %q", c.in, got, c.want)
		}
	}
}
