package cmd

import (
	"bufio"
	"fmt"
	"strings"
)

// Prompt reads commands from standard input and runs them until exit, quit or the end of input. !! repeats the last
// one. It returns what the last command that failed left with.
func (w *World) Prompt(run func(words []string) int) (code int) {
	in := bufio.NewScanner(w.In)
	var last []string
	for {
		fmt.Fprintf(w.Out, "%s: ", w.Name)
		if !in.Scan() {
			fmt.Fprintln(w.Out)
			return code
		}
		words := strings.Fields(in.Text())
		if len(words) == 0 {
			continue
		}
		if strings.EqualFold(words[0], "exit") || strings.EqualFold(words[0], "quit") {
			return code
		}
		if words[0] == "!!" {
			words = last
		}
		if last = words; len(words) == 0 {
			continue
		}
		if c := run(words); c != 0 {
			code = c
		}
	}
}
