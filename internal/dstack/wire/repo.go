package wire

import "encoding/json"

// RepoHead is a repository that a project knows.
type RepoHead struct {
	RepoID   string          `json:"repo_id"`
	RepoInfo json.RawMessage `json:"repo_info"`
}

// RepoHeadWithCreds is a repository with the caller's access to it.
type RepoHeadWithCreds struct {
	RepoHead
	RepoCreds *RepoCreds `json:"repo_creds"`
}

// RepoCreds is how to clone a repository.
type RepoCreds struct {
	CloneURL   string  `json:"clone_url" in:"required"`
	PrivateKey *string `json:"private_key"`
	OAuthToken *string `json:"oauth_token"`
}

// FileArchive is files that were uploaded.
type FileArchive struct {
	ID   string `json:"id"`
	Hash string `json:"hash"`
}
