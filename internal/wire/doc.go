// Package wire is the contract between Bireme's processes: agent ↔ server and agent ↔ keeper.
//
// All of them speak frames (frame.go): a type, a JSON header and a raw payload. Headers carry what is small and may
// grow fields; scripts, environments, logs and stdio travel as payload, byte for byte, so 8 KiB of a job are never
// escaped or encoded. Each side opens with a hello that tells its version; a reader ignores header fields it does not
// know.
//
// keeper.go holds the messages between an agent and its step keeper.
package wire
