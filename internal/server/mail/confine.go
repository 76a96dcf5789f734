package mail

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"bireme.dev/bireme/internal/account"
)

// confine has a program run without the server's rights: where the server is root, as another user with that user's own
// group and no others. A server that is not root has none to give away; then it runs as the server does. What the
// program starts ends with it when its time is over.
func confine(c *exec.Cmd, user string) error {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := account.ByName(user)
	if err != nil {
		return fmt.Errorf("mail.user: %w", err)
	}
	if u.UID == 0 || u.GID == 0 {
		return fmt.Errorf("mail.user: %s has uid or gid 0; name an unprivileged user", user)
	}
	c.SysProcAttr.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: []uint32{}}
	c.Env = append(c.Env, "USER="+u.Name, "LOGNAME="+u.Name, "HOME=/")
	return nil
}
