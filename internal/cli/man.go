package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/manpage"
)

// manNotes end the manual page of bireme.
const manNotes = `Exit status: 0 done, 1 failed, 2 usage, 3 not found, 4 denied, 5 unavailable, 6 conflict,
130 interrupted. An attached apply ends with the exit status of its run.

BIREME_SERVER names the cluster (URLs or unix:PATH, separated by commas), BIREME_TOKEN and BIREME_CA go with it;
without it the file that bireme login writes (~/.config/bireme/config.yml, or BIREME_CONFIG), then
/run/bireme/bireme.sock.
BIREME_TIMEOUT is how long commands try again while the server is away (30s).

See biremed(8) for the server and its nodes.`

func (a *App) manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man", Short: "print this tool's manual page, for man(1)", Args: cobra.NoArgs,
		Long: "Print this tool's manual page in the form that man(1) reads:\n\n" +
			"  bireme man | man -l -\n  bireme man > /usr/local/share/man/man1/bireme.1",
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(a.Out, manpage.Page(c.Root(), 1, manNotes))
			return err
		},
	}
}
