package direct

import (
	"net"
	"slices"
	"testing"
)

// TestInOrder: a machine with many bridges is still reached by its own address first.
func TestInOrder(t *testing.T) {
	t.Parallel()
	var list []net.Addr
	for _, text := range []string{
		"127.0.0.1/8", "::1/128", "192.0.2.2/24", "fd00::2/64", "fe80::1/64", "172.17.0.1/16", "172.18.0.1/16",
		"172.19.0.1/16", "172.20.0.1/16",
	} {
		ip, network, err := net.ParseCIDR(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, &net.IPNet{IP: ip, Mask: network.Mask})
	}
	want := []string{"192.0.2.2", "172.17.0.1", "172.18.0.1", "172.19.0.1", "127.0.0.1"}
	if got := inOrder(list); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := inOrder(list[:5]); !slices.Equal(got, []string{"192.0.2.2", "fd00::2", "127.0.0.1"}) {
		t.Errorf("without bridges: %v", got)
	}
}
