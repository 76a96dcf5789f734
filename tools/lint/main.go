// Lint checks the sources of Bireme for what `go vet` and staticcheck leave: shadowed variables, errors compared or
// wrapped by hand, switches over states that miss one, errors that are dropped, log lines that break the house style,
// and words that the project has given up. It is a tool of `go vet`:
//
//	go vet -vettool=bin/lint ./...
//
// A line, or the line above it, may say why a finding is none:
//
//	//nolint:nilerr // the file is gone: there is nothing to remove
//
// The reason is required, and so is a finding. Which packages may import which, and which functions they may call, is
// tested by internal/arch.
package main

import (
	"fmt"
	"os"

	"github.com/gostaticanalysis/nilerr"
	"github.com/nishanths/exhaustive/passes/exhaustive"
	"github.com/polyfloyd/go-errorlint/errorlint"
	"go-simpler.org/sloglint"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/shadow"
	"golang.org/x/tools/go/analysis/unitchecker"
)

// partial are types whose values are handled a few at a time: kinds of messages, signals and kinds of foreign trees.
const partial = `^(reflect\.Kind|syscall\.Signal|go\.yaml\.in/yaml/v3\.Kind|bireme\.dev/bireme/internal/wire\.Type)$`

func main() {
	set(exhaustive.Analyzer, "d", "true") // a default case covers the rest
	set(exhaustive.Analyzer, "typeignore", partial)
	logs := sloglint.New(&sloglint.Options{
		NoGlobalLogger: "all", StaticMessage: true, NoMixedArguments: true, KeyNamingCase: "snake",
	})
	all := []*analysis.Analyzer{
		filter(shadow.Analyzer, plain),
		filter(errorlint.NewAnalyzer(), nil),
		filter(exhaustive.Analyzer, nil),
		filter(nilerr.Analyzer, ended),
		filter(logs, nil),
		filter(words, nil),
	}
	unitchecker.Main(append(all, nolint(all...))...)
}

func set(a *analysis.Analyzer, name, value string) {
	if err := a.Flags.Set(name, value); err != nil {
		fmt.Fprintf(os.Stderr, "lint: %s: %v\n", a.Name, err)
		os.Exit(1)
	}
}
