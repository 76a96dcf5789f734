package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

func newCACommand() *cobra.Command {
	c := &cobra.Command{Use: "ca", Short: "the cluster's certificate authority", Args: noSuchCommand, RunE: showHelp}
	var show, rotate configFlags
	var force bool
	showCmd := &cobra.Command{
		Use: "show [--config FILE]", Short: "show the authority, how far its replacement is, and the nodes' " +
			"certificates", Args: noOperands,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := show.client()
			if err != nil {
				return err
			}
			ca, err := cl.CA(c.Context())
			if err != nil {
				return err
			}
			return showCA(c.OutOrStdout(), ca)
		},
	}
	rotateCmd := &cobra.Command{
		Use: "rotate [--config FILE] [--force]", Short: "replace the authority, one step at each call", Args: noOperands,
		Long: `Replace the cluster's certificate authority while everything goes on. The first call makes a new one:
nodes get certificates of it over their sessions and trust both, as do clients that read the server's
ca.pem or have logged in. A second call, when every node trusts the new one, drops the old one: what was
signed with it is good for nothing from then on. 'biremed ca show' tells who is behind. Between the two
calls the server may be stopped, upgraded or die.`,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := rotate.client()
			if err != nil {
				return err
			}
			ca, err := cl.RotateCA(c.Context(), &client.RotateCA{Force: force})
			if err != nil {
				return err
			}
			if ca.Rotating {
				fmt.Fprintln(c.OutOrStdout(), "a new authority was made and is sent to the nodes. When 'biremed ca "+
					"show' lists none as behind, run 'biremed ca rotate' again")
			} else {
				fmt.Fprintln(c.OutOrStdout(), "the old authority is no longer trusted")
			}
			return nil
		},
	}
	rotateCmd.Flags().BoolVar(&force, "force", false, "go on without nodes that are behind: they have to join again")
	show.add(showCmd)
	rotate.add(rotateCmd)
	c.AddCommand(showCmd, rotateCmd)
	return c
}

// client calls the server of the settings over its socket.
func (f *configFlags) client() (*client.Client, error) {
	cfg, err := f.load()
	if err != nil {
		return nil, err
	}
	return client.New(client.Settings{Servers: []string{"unix:" + cfg.Socket()}, Timeout: client.DefaultTimeout})
}

func showCA(w io.Writer, ca *client.CA) error {
	day := func(t core.Time) string {
		if t == 0 {
			return "-"
		}
		return t.Go().UTC().Format(time.RFC3339)
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "AUTHORITY\tMADE\tENDS\tSIGNS")
	for _, i := range ca.Issuers {
		signs := ""
		switch {
		case i.Nodes && i.Server:
			signs = "nodes, server"
		case i.Nodes:
			signs = "nodes (new)"
		case i.Server:
			signs = "server (until the next step)"
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\n", i.Num, day(i.Made), day(i.Ends), signs)
	}
	fmt.Fprintln(t, "\nNODE\tCERTIFICATE ENDS\tTRUST\tCONNECTED")
	for _, n := range ca.Nodes {
		trust := "current"
		if !n.Current {
			trust = "behind"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%t\n", n.Name, day(n.Ends), trust, n.Connected)
	}
	return t.Flush()
}
