// Package client is what every command is written against: Bireme's services over HTTP, by unix socket or TLS.
//
// The types here are the API's: what they say in JSON is what the server says. Records of core are served as they are;
// the types below add what only a live server knows (why a job waits, when it is expected to start, a node's load).
package client
