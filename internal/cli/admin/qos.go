package admin

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/cli/policyfile"
)

func qosCommand(a *app.App) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "qos", Short: "list qualities of service; `bireme policy` changes them", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := a.Connect()
			if err != nil {
				return err
			}
			list, err := cl.QOS(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(list)
			}
			t := app.Table{{"QOS", "PRIORITY", "PREEMPTS", "FLAGS", "LIMITS"}}
			for i := range list.QOS {
				q := &list.QOS[i]
				t.Row(string(q.Name), fmt.Sprint(q.Priority), strings.Join(textsOf(q.Preempt), ","), q.Flags.String(),
					strings.Join(policyfile.Limits(q), " "))
			}
			return t.Write(a.Out)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
