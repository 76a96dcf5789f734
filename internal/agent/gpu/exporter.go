package gpu

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// maxExport bounds what is read of an exporter.
const maxExport = 1 << 20

// exporterTimeout is short: it is on the same machine.
const exporterTimeout = 2 * time.Second

// exporters asks without a proxy, follows nobody elsewhere, and looks each time who listens.
var exporters = &http.Client{
	Transport:     &http.Transport{DialContext: dialOwn, DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Exported asks dcgm-exporter and gives what it says of these devices: their lines, and those that describe them.
func Exported(ctx context.Context, url string, devices List) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, exporterTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := exporters.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, resp.Status)
	}
	return exportedOf(io.LimitReader(resp.Body, maxExport), devices)
}

func exportedOf(r io.Reader, devices List) ([]byte, error) {
	var out bytes.Buffer
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		name := strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE ")
		if !strings.HasPrefix(name, "DCGM_") {
			continue
		}
		if line != name || slices.ContainsFunc(devices, func(d Device) bool {
			return strings.Contains(line, `UUID="`+d.UUID+`"`)
		}) {
			out.WriteString(line + "\n")
		}
	}
	return out.Bytes(), lines.Err()
}
