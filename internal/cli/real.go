package cli

import (
	"fmt"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
)

// Real is the App of this process.
func Real(version string, links []string, pages func() map[string]string) *App {
	notice := client.WithNotice(func(err error, left time.Duration) {
		fmt.Fprintf(os.Stderr, "bireme: %v; trying again for %v\n", err, left)
	})
	return &App{
		App: app.App{
			In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Terminal: isTerminal(os.Stdin),
			Connect: func() (*client.Client, error) {
				c, err := client.FromEnv(notice)
				if err != nil {
					return nil, app.Usagef("%s", err.Error()) // a setting is wrong: BIREME_SERVER, the config file, …
				}
				return c, nil
			},
			Now: time.Now, Lookup: os.LookupEnv,
			Interrupts: func() (<-chan os.Signal, func()) {
				c := make(chan os.Signal, 1)
				signal.Notify(c, os.Interrupt)
				return c, func() { signal.Stop(c) }
			},
		},
		Version: version, Links: links, Pages: pages, Exe: os.Executable, Notice: notice,
	}
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), termios)
	return err == nil
}
