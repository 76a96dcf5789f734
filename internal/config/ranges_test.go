package config

import (
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
)

// TestRangesAndPaths: what no node or job could have is refused with its line, not taken.
func TestRangesAndPaths(t *testing.T) {
	t.Parallel()
	for _, tc := range [][2]string{
		{"nodes:\n  - names: n1\n    weight: -5\n", "line 3: nodes[0].weight: -5: must not be less than 0"},
		{"nodes:\n  - names: n1\n    sockets: -1\n", "line 3: nodes[0].sockets: -1: must not be less than 0"},
		{"nodes:\n  - names: n1\n    gres: [\"gpu:\"]\n", "line 3: nodes[0].gres[0]: \"gpu:\" is not name[:type]:count"},
		{"nodes:\n  - names: n1\n    gres: [\"gpu:2,mps:8\"]\n", "\"gpu:2,mps:8\" is not name[:type]:count"},
		{"nodes:\n  - names: n1\n    gres: [\"a b:2\"]\n", "\"a b:2\" is not name[:type]:count"},
		{
			"partitions:\n  - name: p\n    nodes: ALL\n    priority_tier: -1\n",
			"line 4: partitions[0].priority_tier: -1 is not between 0 and 65533",
		},
		{
			"partitions:\n  - name: p\n    nodes: ALL\n    max_nodes: -1\n",
			"line 4: partitions[0].max_nodes: -1: must not be less than 0",
		},
		{"step:\n  prolog: [prolog.sh]\n", "line 2: step.prolog[0]: \"prolog.sh\" is not an absolute path"},
		{"step:\n  prolog: [/bin/true, \"\"]\n", "step.prolog[1]: expected the path of a program"},
		{"step: {tmpdir: tmp}\n", "line 1: step.tmpdir: \"tmp\" is not an absolute path"},
		{"step: {srun_epilog: ./x}\n", "step.srun_epilog: \"./x\" is not an absolute path"},
		{"server: {socket: run/b.sock}\n", "server.socket: \"run/b.sock\" is not an absolute path"},
		{"mail: {program: mail}\n", "mail.program: \"mail\" is not an absolute path"},
		{"\tcluster: x\n", "line 1: found character that cannot start any token"},
		{"cluster: x\ndir: /a\n# \x01\n", "line 3: control characters are not allowed"},
		{"cluster: x\ndir: \"/a\xff\"\n", "line 2: invalid leading UTF-8 octet"},
	} {
		text, want := tc[0], tc[1]
		_, err := Parse("f", []byte(text))
		var got []string
		for _, f := range core.FaultsOf(err) {
			got = append(got, f.Path+": "+f.Message)
		}
		if !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%q gave %q, want %q", text, got, want)
		}
	}
	good := "nodes:\n  - names: n1\n    gres: [\"gpu:nvidia_a100-sxm4:2\", \"gpu:1g.10gb+me:3\", gpu, \"gpu:tesla\"]\n"
	if _, err := Parse("f", []byte(good)); err != nil {
		t.Errorf("%v: %v", err, core.FaultsOf(err))
	}
}
