package server

import (
	"encoding/json"
	"errors"
	"fmt"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/code"
	"bireme.dev/bireme/internal/dstack/secrets"
	"bireme.dev/bireme/internal/engine"
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
			c, ok := snap.Credential(core.SecretCredential, string(j.Spec.Project), name)
			if !ok || snap.Role(j.Spec.User, j.Spec.Project) == core.RoleNone {
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
