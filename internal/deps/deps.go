package deps
import (
 _ "modernc.org/sqlite"
 _ "github.com/jackc/pgx/v5/stdlib"
 _ "github.com/danielgtaylor/huma/v2"
 _ "github.com/spf13/cobra"
 _ "github.com/google/go-cmp/cmp"
 _ "golang.org/x/sync/errgroup"
 _ "golang.org/x/sys/unix"
 _ "go.yaml.in/yaml/v3"
 _ "github.com/creack/pty"
 _ "github.com/rogpeppe/go-internal/testscript"
 _ "go.uber.org/goleak"
 _ "pgregory.net/rapid"
 _ "github.com/prometheus/client_golang/prometheus"
)
