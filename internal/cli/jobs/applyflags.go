package jobs

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/dstack/config"
)

// RunFlags are the options that say what a run may have, in place of what its configuration says. Each is a key of a
// configuration by another name, and read as one.
type RunFlags struct {
	text map[string]*string   // by key; "" is not given
	list map[string]*[]string // likewise

	spot, onDemand, spotAuto bool
	retry, noRetry           bool
	reuse, dontDestroy       bool
}

// resourceKeys and policyKeys are the keys that options set, with their option and what it says of them.
var (
	resourceKeys = [][3]string{
		{"cpu", "cpu", "CPUs of a node, `SPEC`: 4, 4.., 2..8"},
		{"gpu", "gpu", "GPUs of a node, `SPEC`: 1, A100:80GB:2"},
		{"memory", "memory", "memory of a node, `SIZE`: 16GB, 16GB.."},
		{"disk", "disk", "disk of a node, `SIZE`: 100GB.."},
	}
	policyKeys = [][3]string{
		{"max_price", "max-price", "at most `DOLLARS` an hour"},
		{"max_duration", "max-duration", "end it after `DURATION`, such as 2h; off: never"},
		{"idle_duration", "idle-duration", "how long instances stay idle, `DURATION`"},
		{"spot_policy", "spot-policy", "`POLICY`: spot, on-demand or auto"},
		{"retry", "retry-duration", "try again for `DURATION`"},
	}
	listKeys = [][4]string{
		{"backends", "backend", "b", "only on this `BACKEND`; remote is the only one"},
		{"regions", "region", "r", "only in this `REGION`; remote is the only one"},
		{"instance_types", "instance-type", "", "only on instances of this `TYPE`"},
		{"fleets", "fleet", "", "only on the fleet or partition `NAME`"},
	}
)

// Register makes the options of a command.
func (r *RunFlags) Register(c *cobra.Command) {
	f := c.Flags()
	r.text, r.list = map[string]*string{}, map[string]*[]string{}
	for _, k := range append(append([][3]string{}, resourceKeys...), policyKeys...) {
		r.text[k[0]] = f.String(k[1], "", k[2])
	}
	for _, k := range listKeys {
		r.list[k[0]] = f.StringArrayP(k[1], k[2], nil, k[3])
	}
	f.BoolVar(&r.spot, "spot", false, "only on spot instances")
	f.BoolVar(&r.onDemand, "on-demand", false, "only on instances that are not spot ones")
	f.BoolVar(&r.spotAuto, "spot-auto", false, "on either")
	f.BoolVar(&r.retry, "retry", false, "start again after every failure, for an hour")
	f.BoolVar(&r.noRetry, "no-retry", false, "never start again")
	f.BoolVarP(&r.reuse, "reuse", "R", false, "only on instances that are there")
	f.BoolVar(&r.dontDestroy, "dont-destroy", false, "let instances stay")
	c.MarkFlagsMutuallyExclusive("spot", "on-demand", "spot-auto", "spot-policy")
	c.MarkFlagsMutuallyExclusive("retry", "no-retry", "retry-duration")
	c.MarkFlagsMutuallyExclusive("reuse", "dont-destroy", "idle-duration")
}

// document is a configuration of what the options say, and which option each key is.
func (r *RunFlags) document() (doc map[string]any, options map[string]string) {
	doc, options = map[string]any{"type": "task", "commands": []string{":"}}, map[string]string{}
	res := map[string]any{}
	for _, k := range resourceKeys {
		if v := *r.text[k[0]]; v != "" {
			res[k[0]], options["resources."+k[0]] = v, k[1]
		}
	}
	if len(res) > 0 {
		doc["resources"] = res
	}
	for _, k := range policyKeys {
		if v := *r.text[k[0]]; v != "" {
			doc[k[0]], options[k[0]] = v, k[1]
		}
	}
	for _, k := range listKeys {
		if v := *r.list[k[0]]; len(v) > 0 {
			doc[k[0]], options[k[0]] = v, k[1]
		}
	}
	if v, ok := doc["max_price"].(string); ok {
		if n, err := strconv.ParseFloat(v, 64); err == nil {
			doc["max_price"] = n
		}
	}
	if v, ok := doc["retry"]; ok {
		doc["retry"] = map[string]any{"duration": v}
	}
	for _, x := range []struct {
		given bool
		key   string
		value any
	}{
		{r.spot, "spot_policy", "spot"},
		{r.onDemand, "spot_policy", "on-demand"},
		{r.spotAuto, "spot_policy", "auto"},
		{r.retry, "retry", true},
		{r.noRetry, "retry", false},
		{r.reuse, "creation_policy", "reuse"},
		{r.dontDestroy, "idle_duration", "off"},
	} {
		if x.given {
			doc[x.key] = x.value
		}
	}
	return doc, options
}

// Override puts what options say into a configuration.
func (r *RunFlags) Override(c *config.Configuration) error {
	doc, options := r.document()
	if len(doc) == 2 {
		return nil
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	said, err := config.ReadJSON(text)
	var faults config.Faults
	if errors.As(err, &faults) {
		path := strings.TrimPrefix(faults[0].Path, "task.")
		for key, option := range options {
			if path == key || strings.HasPrefix(path, key+".") {
				return app.Usagef("--%s: %s", option, faults[0].Message)
			}
		}
		return app.Usagef("%s", faults[0].Message)
	}
	if err != nil {
		return err
	}
	run, from := c.Run(), said.Run()
	for key, set := range map[string]func(){
		"resources.cpu":    func() { run.Resources.CPU = from.Resources.CPU },
		"resources.gpu":    func() { run.Resources.GPU = from.Resources.GPU },
		"resources.memory": func() { run.Resources.Memory = from.Resources.Memory },
		"resources.disk":   func() { run.Resources.Disk = from.Resources.Disk },
	} {
		if options[key] != "" {
			set()
		}
	}
	to, of := reflect.ValueOf(c.Policy()).Elem(), reflect.ValueOf(said.Policy()).Elem()
	for i := range to.NumField() {
		if v := of.Field(i); !v.IsNil() {
			to.Field(i).Set(v)
		}
	}
	return nil
}

// offerFlags are the options that say which offers a plan shows.
func (o *applyOptions) offerFlags(f *pflag.FlagSet) {
	f.IntVar(&o.maxOffers, "max-offers", maxOffers, "show at most `N` offers")
	f.BoolVar(&o.fullOffers, "full-offers", false, "show whole instances")
	f.BoolVar(&o.unallocated, "unallocated", false, "show what is not allocated of them")
}

// checkOffers refuses a number of offers that no plan has.
func (o *applyOptions) checkOffers() error {
	if o.maxOffers < 1 || o.maxOffers > 10_000 {
		return app.Usagef("--max-offers %d: must be from 1 to 10000", o.maxOffers)
	}
	return nil
}
