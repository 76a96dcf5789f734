package repos

import (
	"encoding/json"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/dstackapi/front"
	"bireme.dev/bireme/internal/server/uploads"
	"bireme.dev/bireme/internal/server/vault"
)

// Repos answers calls on repositories and uploads.
type Repos struct {
	*call.Base
	vault   *vault.Vault
	uploads *uploads.Store
}

// New makes the handlers.
func New(b *call.Base, v *vault.Vault, u *uploads.Store) *Repos {
	return &Repos{Base: b, vault: v, uploads: u}
}

// Rows lists the routes.
func (a *Repos) Rows() []front.Row {
	const base = "/api/project/{project}/repos"
	const object = "repos of {project}"
	return []front.Row{
		{Path: base + "/list", Level: front.Member, Handle: front.NoBody(a.list)},
		{Path: base + "/get", Level: front.Member, Handle: front.Body(a.get)},
		{
			Path: base + "/init", Level: front.Member, Scope: core.ScopeSubmit, Action: "repo.init", Object: object,
			Quiet: true, Handle: front.Body(a.init),
		},
		{
			Path: base + "/delete", Level: front.Member, Scope: core.ScopeSubmit, Action: "repo.delete", Object: object,
			Handle: front.Body(a.remove),
		},
		{
			Path: base + "/upload_code", Level: front.Member, Scope: core.ScopeSubmit, Action: "repo.upload", Object: object,
			Quiet: true, Handle: front.NoBody(a.uploadCode),
		},
		{
			Path: "/api/files/get_archive_by_hash", Level: front.Auth, Everywhere: true,
			Handle: front.Body(a.archiveByHash),
		},
		{
			Path: "/api/files/upload_archive", Level: front.Auth, Everywhere: true, Scope: core.ScopeSubmit,
			Action: "file.upload", Object: "file", Quiet: true, Handle: front.NoBody(a.uploadArchive),
		},
	}
}

// The virtual repository is what runs without one have. Every project has it.
const (
	virtualID   = "none"
	virtualInfo = `{"repo_type":"virtual"}`
)

func head(c *core.Credential) wire.RepoHead {
	return wire.RepoHead{RepoID: c.Name, RepoInfo: json.RawMessage(c.Info)}
}

func (a *Repos) list(c *front.Call) (any, error) {
	out := []wire.RepoHead{{RepoID: virtualID, RepoInfo: json.RawMessage(virtualInfo)}}
	for _, r := range c.Snap.CredentialsOf(core.RepoCredential, string(c.Project.Name)) {
		out = append(out, head(r))
	}
	return out, nil
}

type getBody struct {
	RepoID       string `json:"repo_id" in:"required"`
	IncludeCreds bool   `json:"include_creds"`
}

// get is a repository, and on demand the caller's own access to it, which a token that only reads does not give.
func (a *Repos) get(c *front.Call, in *getBody) (any, error) {
	if in.RepoID == virtualID {
		return wire.RepoHeadWithCreds{RepoHead: wire.RepoHead{RepoID: virtualID, RepoInfo: json.RawMessage(virtualInfo)}}, nil
	}
	r, ok := c.Snap.Credential(core.RepoCredential, string(c.Project.Name), in.RepoID)
	if !ok {
		return nil, front.ErrNotExists()
	}
	out := wire.RepoHeadWithCreds{RepoHead: head(r)}
	access, ok := c.Snap.Credential(core.RepoAccessCredential, string(c.User), accessName(c.Project.Name, in.RepoID))
	if !ok || !in.IncludeCreds || c.TokenRecord != nil && !c.TokenRecord.Has(core.ScopeSubmit) {
		return out, nil
	}
	plain, err := a.vault.Open(access)
	if err != nil {
		return nil, err
	}
	out.RepoCreds = &wire.RepoCreds{}
	return out, json.Unmarshal(plain, out.RepoCreds)
}

// accessName is the name of a user's access to a repository.
func accessName(p core.ProjectName, repo string) string { return string(p) + "/" + repo }

type initBody struct {
	RepoID    string          `json:"repo_id" in:"required"`
	RepoInfo  repoInfo        `json:"repo_info" in:"required"`
	RepoCreds *wire.RepoCreds `json:"repo_creds"`
}

type repoInfo struct {
	RepoType string  `json:"repo_type" in:"required,enum=remote|local|virtual"`
	RepoName *string `json:"repo_name"`
	RepoDir  *string `json:"repo_dir"`
}

// text is the description as clients take it: with the keys of its type only.
func (i *repoInfo) text() string {
	m := map[string]any{"repo_type": i.RepoType}
	switch i.RepoType {
	case "remote":
		m["repo_name"] = i.RepoName
	case "local":
		m["repo_dir"] = i.RepoDir
	}
	data, err := json.Marshal(m)
	core.Assert(err == nil, "a map of texts: %v", err)
	return string(data)
}

// init makes a repository known to the project, and the caller's access to it known to the server.
func (a *Repos) init(c *front.Call, in *initBody) (any, error) {
	c.About("repo", string(c.Project.Name)+"/"+in.RepoID)
	if in.RepoID == virtualID || in.RepoInfo.RepoType == "virtual" {
		return nil, nil
	}
	if in.RepoInfo.RepoType == "remote" && in.RepoInfo.RepoName == nil {
		return nil, front.ErrInvalid(wire.Invalid{{
			Type: "missing", Loc: []any{"body", "repo_info", "remote", "repo_name"}, Msg: "Field required",
			Input: json.RawMessage(in.RepoInfo.text()),
		}})
	}
	info := in.RepoInfo.text()
	r := &core.Credential{Kind: core.RepoCredential, Owner: string(c.Project.Name), Name: in.RepoID, Info: info}
	if old, ok := c.Snap.Credential(r.Kind, r.Owner, r.Name); !ok || old.Info != info {
		if _, err := engine.Do(c.Context(), a.Engine, &state.PutCredential{By: c.Identity, Credential: r}); err != nil {
			return nil, err
		}
	}
	if in.RepoCreds == nil {
		return nil, nil
	}
	plain, err := json.Marshal(in.RepoCreds)
	if err != nil {
		return nil, err
	}
	access := &core.Credential{
		Kind: core.RepoAccessCredential, Owner: string(c.User), Name: accessName(c.Project.Name, in.RepoID),
	}
	if err := a.vault.Seal(access, plain); err != nil {
		return nil, err
	}
	_, err = engine.Do(c.Context(), a.Engine, &state.PutCredential{By: c.Identity, Credential: access})
	return nil, err
}

type deleteBody struct {
	ReposIDs []string `json:"repos_ids" in:"required,max=1000"`
}

// remove forgets repositories and the caller's access to them.
func (a *Repos) remove(c *front.Call, in *deleteBody) (any, error) {
	for _, id := range in.ReposIDs {
		for _, key := range []core.CredentialKey{
			{Kind: core.RepoCredential, Owner: string(c.Project.Name), Name: id},
			{Kind: core.RepoAccessCredential, Owner: string(c.User), Name: accessName(c.Project.Name, id)},
		} {
			if _, ok := c.Snap.Credential(key.Kind, key.Owner, key.Name); !ok {
				continue
			}
			if _, err := engine.Do(c.Context(), a.Engine, &state.DropCredential{By: c.Identity, Key: key}); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}
