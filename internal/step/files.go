package step

import (
	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/step/files"
)

// asOwner runs f on a launcher thread, with the rights of a user to files.
func (k *Keeper) asOwner(o files.Owner, f func() error) (err error) {
	spoilt := k.threads.do(func(th *thread) {
		unix.Umask(defaultUmask)
		err = k.asUser(th, o.Identity, o.Groups, f)
	})
	if spoilt != nil {
		k.log.Error("a launcher thread was given up", "err", spoilt)
	}
	return err
}
