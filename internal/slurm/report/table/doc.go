// Package table writes tables as the accounting commands do (sstat, sshare, sreport): columns under a line of dashes,
// or fields between bars.
package table
