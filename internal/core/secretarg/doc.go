// Package secretarg finds secrets in command lines, so that they are not shown to others: values of variables whose
// name says so, passwords of URLs, tokens.
package secretarg
