// Package uploads holds the files that clients send ahead of the runs that use them: archives by the SHA-256 of their
// content, each user's apart. They lie in a folder of the server that nobody else reads.
package uploads
