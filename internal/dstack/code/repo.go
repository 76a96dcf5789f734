package code

import (
	"strings"

	"bireme.dev/bireme/internal/dstack/config"
)

// Repo is a repository that a run begins with.
type Repo struct {
	URL    string // of a public one; Access has its own
	Branch string // empty: its default one
	Hash   string // commit; empty: the newest of the branch
	// Dir is where it goes: absolute, below "~", or relative to the working directory.
	Dir          string
	Skip         bool // a folder that has something in it already is left as it is; otherwise that is an error
	SingleBranch bool
	Patch        string // file with changes to apply, removed after that; empty: none
	// Files: `files` may have put something into Dir, which stays as it is.
	Files bool
	// What commits in it are made as; empty: as git finds out.
	Name, Email string
}

// The variables of Access.
const (
	urlVar   = "BIREME_REPO_URL"
	keyVar   = "BIREME_REPO_KEY"
	tokenVar = "BIREME_REPO_TOKEN"
)

// Access is how to clone a repository, as dstack's clients say it.
type Access struct {
	URL   string  `json:"clone_url"`
	Key   *string `json:"private_key"` // of SSH
	Token *string `json:"oauth_token"` // of HTTPS
}

// String keeps secrets out of whatever prints an Access.
func (a Access) String() string { return "access to " + a.URL }

// GoString is String for %#v.
func (a Access) GoString() string { return a.String() }

// Env gives the variables, each with a NUL byte after it, that Script takes.
func (a *Access) Env() []byte {
	var b []byte
	add := func(name string, value *string) {
		if value != nil && *value != "" && !strings.ContainsRune(*value, 0) {
			b = append(append(append(append(b, name...), '='), *value...), 0)
		}
	}
	add(urlVar, &a.URL)
	add(keyVar, a.Key)
	add(tokenVar, a.Token)
	return b
}

// Script gives the lines that bring the repository, for any shell that knows POSIX. They end the run with a message
// when that fails, leave the current directory as it is and export DSTACK_REPO_DIR.
func (r *Repo) Script() string {
	var b strings.Builder
	set := func(name, value string) { b.WriteString(name + "=" + config.QuoteWord(value) + "\n") }
	b.WriteString("bireme_repo() (\n")
	set("url", r.URL)
	set("branch", r.Branch)
	set("hash", r.Hash)
	if r.Patch == "" {
		set("patch", "")
	} else {
		b.WriteString("patch=" + QuoteDir(r.Patch) + "\n")
	}
	b.WriteString("dir=" + QuoteDir(r.Dir) + "\n")
	b.WriteString("url=${" + urlVar + ":-$url}\n")
	b.WriteString(prepare)
	if r.Files {
		b.WriteString(around)
	} else {
		b.WriteString(exists(r.Skip) + clone(r.SingleBranch) + checkout)
	}
	b.WriteString(patch)
	for _, c := range [][2]string{{"user.name", r.Name}, {"user.email", r.Email}} {
		if c[1] != "" {
			b.WriteString("git -C \"$dir\" config " + c[0] + " " + config.QuoteWord(c[1]) + " || exit\n")
		}
	}
	b.WriteString("rm -rf \"$tmp\"\n)\n")
	b.WriteString("bireme_repo || { echo 'repos: the repository could not be brought; see above' >&2; exit 1; }\n")
	b.WriteString("unset -f bireme_repo; unset " + urlVar + " " + keyVar + " " + tokenVar + "\n")
	b.WriteString("export DSTACK_REPO_DIR=\"$(cd " + QuoteDir(r.Dir) + " && pwd)\"\n")
	return b.String()
}

// QuoteDir quotes a path for a shell, with a home that the shell knows.
func QuoteDir(dir string) string {
	switch rest, home := strings.CutPrefix(dir, "~/"); {
	case dir == "" || dir == ".":
		return "."
	case dir == "~":
		return `"$HOME"`
	case home:
		return `"$HOME"/` + config.QuoteWord(rest)
	}
	return config.QuoteWord(dir)
}

// prepare makes git use the access that there is, and asks nobody. A key is in a file as long as it takes.
const prepare = `command -v git >/dev/null 2>&1 || {
echo 'repos: there is no git, which repos need: use an image with git' >&2; exit 1; }
tmp=$(umask 077; mktemp -d) || exit
trap 'rm -rf "$tmp"' EXIT
export GIT_TERMINAL_PROMPT=0
if [ -n "$` + keyVar + `" ]; then
(umask 077; printf '%s\n' "$` + keyVar + `" >"$tmp/key") || exit
export GIT_SSH_COMMAND="ssh -i '$tmp/key' -o IdentitiesOnly=yes -o BatchMode=yes"
GIT_SSH_COMMAND="$GIT_SSH_COMMAND -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile='$tmp/known_hosts'"
fi
if [ -n "$` + tokenVar + `" ]; then
ask='case $1 in Username*) echo oauth2;; *) printf "%s\n" "$` + tokenVar + `";; esac'
printf '%s\n' '#!/bin/sh' "$ask" >"$tmp/ask" && chmod 700 "$tmp/ask" && export GIT_ASKPASS="$tmp/ask" || exit
fi
`

// exists looks at what is in the way.
func exists(skip bool) string {
	then := `echo "repos: $dir is not empty; if_exists: skip leaves it as it is" >&2; exit 1`
	if skip {
		then = "exit 0"
	}
	return `if [ -e "$dir" ] && [ -n "$(ls -A "$dir" 2>/dev/null)" ]; then ` + then + "; fi\n"
}

// clone brings the repository into an empty folder.
func clone(single bool) string {
	all := ""
	if single {
		all = " --single-branch"
	}
	return `git clone -q` + all + ` ${branch:+--branch "$branch"} -- "$url" "$dir" || exit
`
}

// around brings the repository into a folder that has something in it: what is there stays.
const around = `git init -q "$dir" && git -C "$dir" remote add origin "$url" || exit
git -C "$dir" fetch -q origin "${branch:-HEAD}" || exit
commit=${hash:-FETCH_HEAD}
git -C "$dir" cat-file -e "$commit^{commit}" 2>/dev/null || git -C "$dir" fetch -q origin "$hash" || exit
git -C "$dir" update-ref "refs/heads/${branch:-main}" "$commit" || exit
git -C "$dir" symbolic-ref HEAD "refs/heads/${branch:-main}" && git -C "$dir" reset -q || exit
git -C "$dir" checkout-index -q -a
`

// checkout goes to a commit.
const checkout = `if [ -n "$hash" ]; then
git -C "$dir" cat-file -e "$hash^{commit}" 2>/dev/null || git -C "$dir" fetch -q origin "$hash" || exit
if [ -n "$branch" ]; then git -C "$dir" checkout -q -B "$branch" "$hash" || exit
else git -C "$dir" checkout -q --detach "$hash" || exit; fi
fi
`

// patch applies changes.
const patch = `if [ -n "$patch" ]; then
git -C "$dir" apply --whitespace=nowarn "$patch" || { echo 'repos: the local changes do not apply' >&2; exit 1; }
rm -f "$patch"
fi
`
