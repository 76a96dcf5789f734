package config

import (
	"strings"
	"testing"
)

func TestChanges(t *testing.T) {
	t.Parallel()
	const task = "type: task\ncommands: [a]\n"
	const dev = "type: dev-environment\nide: vscode\n"
	const service = "type: service\nport: 80\ncommands: [a]\n"
	const ssh = "type: fleet\nssh_config:\n  user: u\n  hosts:\n    - {hostname: a, blocks: 2}\n"
	for name, c := range map[string]struct {
		old, now string
		fields   string
		inPlace  bool
	}{
		"the same":          {task, task, "", true},
		"priority":          {task, task + "priority: 5\n", "priority", true},
		"commands":          {task, "type: task\ncommands: [b]\n", "commands", false},
		"nodes left out":    {task + "nodes: 1\n", task, "nodes", false},
		"arch dropped":      {task + "resources: {cpu: \"x86:2..\"}\n", task, "resources", true},
		"arch added":        {task, task + "resources: {cpu: \"x86:2..\"}\n", "resources", false},
		"two":               {task, "type: task\ncommands: [b]\npriority: 3\n", "commands priority", false},
		"kind":              {task, dev, "type", false},
		"inactivity":        {dev, dev + "inactivity_duration: 1h\n", "inactivity_duration", true},
		"ide":               {dev, "type: dev-environment\nide: zed\n", "ide", false},
		"service commands":  {service, "type: service\nport: 80\ncommands: [b]\n", "commands", true},
		"service auth":      {service, service + "auth: false\n", "auth", false},
		"https by default":  {service, service + "https: true\n", "https", true},
		"https off":         {service, service + "https: false\n", "https", false},
		"a host added":      {ssh, ssh + "    - b\n", "ssh_config", true},
		"a host changed":    {ssh, strings.Replace(ssh, "blocks: 2", "blocks: 3", 1), "ssh_config", false},
		"the user changed":  {ssh, strings.Replace(ssh, "user: u", "user: v", 1), "ssh_config", false},
		"nodes of a fleet":  {"type: fleet\nnodes: 2\n", "type: fleet\nnodes: 3\n", "nodes", true},
		"blocks of a fleet": {"type: fleet\nnodes: 2\n", "type: fleet\nnodes: 2\nblocks: 2\n", "blocks", false},
		"router": {
			"type: service\nport: 80\ngroups: [{replicas: 1, commands: [a], router: {}}]\n",
			"type: service\nport: 80\ngroups: [{replicas: 1, commands: [a], router: {type: dynamo}}]\n", "groups", false,
		},
		"addition": {task, task + "partition: gpu\n", "tags", false},
	} {
		old, err := Read([]byte(c.old))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		now, err := Read([]byte(c.now))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		fields, inPlace := Changes(old, now)
		if got := strings.Join(fields, " "); got != c.fields || inPlace != c.inPlace {
			t.Errorf("%s: %q, %v; want %q, %v", name, got, inPlace, c.fields, c.inPlace)
		}
	}
}
