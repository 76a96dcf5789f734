// Package jsontext reads and writes JSON text directly, without building a tree and without preparing types.
//
// It accepts and means exactly what encoding/json does: the same grammar, the same nesting limit, U+FFFD for invalid
// UTF-8 and lone surrogates. What it writes is what encoding/json writes, byte for byte. Fuzz tests hold it to both.
//
// It exists for the few places where encoding/json costs too much: the store's documents (a restart decodes hundreds
// of thousands), the listing behind squeue (50,000 jobs), scripts and environments of submissions (most of their
// bytes), and a command's one request (Marshal). Everything else uses encoding/json.
package jsontext
