package cgroup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseLayout(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		mounts, own string
		want        Layout
	}{
		"v2 only": {
			mounts: "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
			own:    "0::/system.slice/bireme.service\n",
			want:   Layout{V2: &Mount{"/sys/fs/cgroup", "/sys/fs/cgroup/system.slice/bireme.service"}, V1: map[string]*Mount{}},
		},
		"hybrid, memory nested": {
			mounts: "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n" +
				"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
			own: "4:memory:/a/b\n0::/\n",
			want: Layout{
				V2: &Mount{"/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified"},
				V1: map[string]*Mount{"memory": {"/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/a/b"}},
			},
		},
		"v1, two controllers in one mount": {
			mounts: "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
				"40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n",
			own: "2:cpu,cpuacct:/x\n1:name=systemd:/user\n",
			want: Layout{V1: map[string]*Mount{
				"cpu":          {"/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct/x"},
				"cpuacct":      {"/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct/x"},
				"name=systemd": {"/sys/fs/cgroup/systemd", "/sys/fs/cgroup/systemd/user"},
			}},
		},
		"container that sees its own part": {
			mounts: "35 31 0:32 /docker/12ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n" +
				"36 31 0:33 /docker/12ab /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n",
			own: "4:memory:/docker/12ab/sub\n5:pids:/elsewhere\n",
			want: Layout{V1: map[string]*Mount{
				"memory": {"/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/sub"},
				"pids":   {"/sys/fs/cgroup/pids", "/sys/fs/cgroup/pids"},
			}},
		},
		"nothing": {mounts: "1 0 8:1 / / rw - ext4 /dev/sda rw\nshort\n", own: "\n", want: Layout{V1: map[string]*Mount{}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, parseLayout([]byte(tc.mounts), []byte(tc.own))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestField(t *testing.T) {
	t.Parallel()
	text := []byte("usage_usec 12\nuser_usec 7\nsystem_usec 5\noom_kill 3\noom 9\nbad x\n")
	for key, want := range map[string]int64{"user_usec": 7, "oom_kill": 3, "oom": 9, "bad": 0, "missing": 0} {
		if got := field(text, key); got != want {
			t.Errorf("field %s = %d, want %d", key, got, want)
		}
	}
}
