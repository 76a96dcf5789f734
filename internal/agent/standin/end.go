package standin

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"bireme.dev/bireme/internal/wire"
)

// End is how a container's step ended, beyond its stand-in's exit status.
type End struct {
	wire.RunEnded
	Image   string `json:"image,omitempty"`    // its digest
	ImageID string `json:"image_id,omitempty"` // as the engine calls it
}

// Directory is where a stand-in keeps its things.
func Folder(dir string, k wire.Key) string { return filepath.Join(dir, k.String()) }

// Name is what the engine calls the container.
func Name(node, key string) string { return "bireme-" + node + "-" + key }

func (e *End) write(folder string) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	tmp := filepath.Join(folder, "end.new")
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(folder, "end"))
}

// ReadEnd returns what a stand-in left, nil if it was killed before it could.
func ReadEnd(folder string) (*End, error) {
	b, err := os.ReadFile(filepath.Join(folder, "end"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	e := new(End)
	if err := json.Unmarshal(b, e); err != nil {
		return nil, fmt.Errorf("%s/end: %w", folder, err)
	}
	return e, nil
}

// Amend puts into the end that the keeper tells what it could not know.
func (e *End) Amend(x *wire.Exited) {
	x.ExitCode, x.Signal, x.CoreDump = e.ExitCode, e.Signal, false
	x.Usage, x.Image, x.Ranks = e.Used, e.Image, e.Ranks
	if x.Cause == wire.CauseNone {
		x.Cause, x.Message = e.Cause, e.Message
	}
}
