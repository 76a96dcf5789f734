package gpu

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestExported(t *testing.T) {
	t.Parallel()
	const mine = "# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).\n# TYPE DCGM_FI_DEV_GPU_TEMP gauge\n" +
		"DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-a\"} 35\n"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, mine+"DCGM_FI_DEV_GPU_TEMP{gpu=\"1\",UUID=\"GPU-z\"} 40\nother_metric{UUID=\"GPU-a\"} 1\n")
	}))
	defer s.Close()
	list := List{{UUID: "GPU-a"}}
	got, err := Exported(t.Context(), s.URL+"/metrics", list)
	if diff := cmp.Diff(mine, string(got)); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := Exported(t.Context(), s.URL+"/", list); err == nil {
		t.Error("an exporter that answers with an error gives none")
	}
}

// Any user can listen on the port of an exporter that is not there. What such a one says is not asked for, nor where it
// sends us.
func TestExporterOfAnother(t *testing.T) {
	t.Parallel()
	asked := false
	serve := func(h http.HandlerFunc) *httptest.Server {
		s := httptest.NewUnstartedServer(h)
		t.Cleanup(s.Close)
		return s
	}
	s := serve(func(http.ResponseWriter, *http.Request) { asked = true })
	if os.Geteuid() == 0 {
		s.Listener.Close()
		s.Listener = listenAs(t, 4002)
		s.Start()
		if _, err := Exported(t.Context(), s.URL, List{{UUID: "GPU-a"}}); !errors.Is(err, ErrListener) ||
			!strings.Contains(err.Error(), "user 4002 listens") {
			t.Errorf("an exporter of another user: %v", err)
		}
	} else {
		s.Start()
		if err := checkPort(netip.MustParseAddrPort(s.Listener.Addr().String()), uint32(os.Geteuid())+1); !errors.Is(
			err, ErrListener) {
			t.Errorf("an exporter of another user: %v", err)
		}
	}
	if asked {
		t.Error("another user was asked")
	}
	r := serve(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
	})
	r.Start()
	if _, err := Exported(t.Context(), r.URL, nil); err == nil || !strings.Contains(err.Error(), "302") {
		t.Errorf("an exporter that sends us elsewhere: %v", err)
	}
}

// listenAs listens as another user: the kernel notes the user of the thread that makes the socket.
func listenAs(t *testing.T, uid int) net.Listener {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if _, err := unix.SetfsuidRetUid(uid); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	_, err2 := unix.SetfsuidRetUid(0)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestListeners(t *testing.T) {
	t.Parallel()
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	const rest = " 00000000:00000000 00:00000000 00000000 "
	for name, tc := range map[string]struct {
		line, to string
		want     []uint32
	}{
		"here":             {"0: 0100007F:24B8 00000000:0000 0A" + rest + "1000 0 1", "127.0.0.1:9400", []uint32{1000}},
		"on all addresses": {"0: 00000000:24B8 00000000:0000 0A" + rest + "7 0 1", "127.0.0.1:9400", []uint32{7}},
		"on all of IPv6": {"0: " + strings.Repeat("0", 32) + ":24B8 " + strings.Repeat("0", 32) + ":0000 0A" + rest +
			"7 0 1", "127.0.0.1:9400", []uint32{7}},
		"IPv6": {"0: " + strings.Repeat("0", 24) + "01000000:24B8 " + strings.Repeat("0", 32) + ":0000 0A" +
			rest + "7 0 1", "[::1]:9400", []uint32{7}},
		"another port":    {"0: 0100007F:24B9 00000000:0000 0A" + rest + "1000 0 1", "127.0.0.1:9400", nil},
		"another address": {"0: 0200007F:24B8 00000000:0000 0A" + rest + "1000 0 1", "127.0.0.1:9400", nil},
		"a connection":    {"0: 0100007F:24B8 0100007F:1234 01" + rest + "1000 0 1", "127.0.0.1:9400", nil},
	} {
		got, err := listeners(strings.NewReader(head+tc.line+"\n"), netip.MustParseAddrPort(tc.to))
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Error(name, diff, err)
		}
	}
}
