package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/manpage"
)

func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man", Short: "print this program's manual page, for man(1)", Args: noOperands,
		Long: "Print this program's manual page in the form that man(1) reads:\n\n" +
			"  biremed man | man -l -\n  biremed man > /usr/local/share/man/man8/biremed.8",
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(c.OutOrStdout(), manpage.Page(c.Root(), 8,
				"Exit status: 0 done, 1 failed, 2 a wrong command line or wrong settings.\n\nSee bireme(1) for the user's tool."))
			return err
		},
	}
}
