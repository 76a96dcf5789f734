package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack"
	"bireme.dev/bireme/internal/dstack/code"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/secrets"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/server/hub"
	"bireme.dev/bireme/internal/server/vault"
)

// openEnv completes the environment of a run by what is kept sealed: its project's secrets, and its user's access to
// its repository. It is done at each launch, so that what is stored of a run never has them. Without enforcement a user
// may name any project, but finds secrets only in those the user is in.
func openEnv(e *engine.Engine, v *vault.Vault) func(j *core.Job, env []byte) ([]byte, error) {
	return func(j *core.Job, env []byte) ([]byte, error) {
		if j.Spec.Rules() == nil {
			return env, nil
		}
		snap := e.Snapshot()
		var fault error
		env, err := secrets.Resolve(env, func(name string) (string, bool) {
			if snap.Role(j.Spec.User, j.Spec.Project) == core.RoleNone {
				fault = core.Errorf(core.Denied, "secret %q: %s is not a member of project %s", name, j.Spec.User, j.Spec.Project)
				return "", true
			}
			c, ok := snap.Credential(core.SecretCredential, string(j.Spec.Project), name)
			if !ok {
				return "", false
			}
			plain, err := v.Open(c)
			fault = errors.Join(fault, err)
			return string(plain), true
		})
		if err = errors.Join(err, fault); err != nil {
			return nil, err
		}
		repo := j.Spec.More().Repo
		if repo == "" {
			return env, nil
		}
		c, ok := snap.Credential(core.RepoAccessCredential, string(j.Spec.User), string(j.Spec.Project)+"/"+repo)
		if !ok { // it is everybody's, or git finds its own way
			return env, nil
		}
		plain, err := v.Open(c)
		if err != nil {
			return nil, err
		}
		var access code.Access
		if err := json.Unmarshal(plain, &access); err != nil {
			return nil, fmt.Errorf("access to repository %s: not as it should be", repo) // its text is a secret
		}
		return append(append([]byte{}, env...), access.Env()...), nil
	}
}

// groupRef is a reference to a node of a group, as commands have it.
var groupRef = regexp.MustCompile(`\$\{\{\s*(groups\[[0-9]+\]\.nodes\[[0-9]+\]\.IP_ADDRESS)\s*\}\}`)

// openScript puts the addresses of a run's nodes in the place of references to them: only a started run has them.
func openScript(e *engine.Engine) func(j *core.Job, script []byte) []byte {
	return func(j *core.Job, script []byte) []byte {
		if j.Spec.Run == "" || j.Spec.More().Het == nil || !groupRef.Match(script) {
			return script
		}
		snap := e.Snapshot()
		all, addr := hub.Together(snap, j), addressIn(snap)
		return groupRef.ReplaceAllFunc(script, func(ref []byte) []byte {
			g, ok := config.ParseGroupRef(string(groupRef.FindSubmatch(ref)[1]))
			if !ok || g.Group >= len(all) {
				return ref
			}
			nodes := dstack.Nodes(all[g.Group : g.Group+1])
			if g.Member >= len(nodes) {
				return ref
			}
			return []byte(addr(nodes[g.Member].Node))
		})
	}
}
