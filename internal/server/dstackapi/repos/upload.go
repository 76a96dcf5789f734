package repos

import (
	"errors"
	"io"
	"mime/multipart"
	"net/http"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/dstackapi/front"
	"bireme.dev/bireme/internal/server/uploads"
)

type hashBody struct {
	Hash string `json:"hash" in:"required"`
}

// ArchiveID is the id of a user's upload.
func ArchiveID(user core.UserName, hash string) string {
	return wire.UUID(wire.KindArchive, string(user)+"/"+hash)
}

// archiveByHash finds an upload of the caller's own, so that it need not be sent again.
func (a *Repos) archiveByHash(c *front.Call, in *hashBody) (any, error) {
	if !a.uploads.Has(c.User, in.Hash) {
		return nil, front.ErrNotExists()
	}
	return wire.FileArchive{ID: ArchiveID(c.User, in.Hash), Hash: in.Hash}, nil
}

func (a *Repos) uploadArchive(c *front.Call) (any, error) {
	hash, err := a.receive(c)
	if err != nil {
		return nil, err
	}
	return wire.FileArchive{ID: ArchiveID(c.User, hash), Hash: hash}, nil
}

// uploadCode takes the changes of a working copy that its repository does not have. Runs name them by their hash.
func (a *Repos) uploadCode(c *front.Call) (any, error) {
	id := c.R.URL.Query().Get("repo_id")
	if _, ok := c.Snap.Credential(core.RepoCredential, string(c.Project.Name), id); !ok && id != virtualID {
		return nil, core.Errorf(core.NotFound, "Repo %.100s does not exist", id)
	}
	_, err := a.receive(c)
	return nil, err
}

// receive reads the one file of a multipart body, which is named by its hash.
func (a *Repos) receive(c *front.Call) (hash string, err error) {
	const envelope = 64 << 10 // of a body beside its file
	set := a.Settings()
	most := int64(set.Dstack.Upload)
	if c.R.ContentLength > most+envelope {
		return "", core.Errorf(core.TooLarge, "the upload has more than %s (dstack.upload in the server's settings)",
			set.Dstack.Upload).Because("upload_too_large")
	}
	call.AwaitBody(c.W, c.R, most+envelope)
	c.R.Body = http.MaxBytesReader(c.W, c.R.Body, most+envelope)
	parts, err := c.R.MultipartReader()
	if err != nil {
		return "", errNoFile()
	}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return "", errNoFile()
		}
		if err != nil {
			return "", &core.Error{Code: core.Invalid, Message: "the upload broke off", Err: err}
		}
		if part.FormName() == "file" {
			return a.keep(c, part, uploads.Bounds{
				Size: most, PerUser: int64(set.Dstack.UploadPerUser), MinFree: int64(set.Limits.MinFreeDisk),
			})
		}
	}
}

func (a *Repos) keep(c *front.Call, part *multipart.Part, b uploads.Bounds) (hash string, err error) {
	hash = part.FileName()
	return hash, a.uploads.Put(c.User, hash, part, b)
}

func errNoFile() error {
	return front.ErrInvalid(wire.Invalid{{
		Type: "missing", Loc: []any{"body", "file"}, Msg: "Field required", Input: []byte("null"),
	}})
}
