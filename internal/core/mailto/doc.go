// Package mailto checks what mail is sent about and to whom, before either reaches a mail program.
package mailto
