// Package dstack drives a real cluster with the stock dstack CLI, as a dstack team would: the same commands, the same
// files, another server behind them.
package dstack
