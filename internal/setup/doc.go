// Package setup asks the five questions that a new server cannot answer by itself, writes its settings from the
// answers, and prints how nodes join. It touches nothing of the machine: cmd/biremed does, with what it returns.
package setup
