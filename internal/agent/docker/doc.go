// Package docker speaks with a container engine: Docker, or Podman's compatible socket.
//
// It knows the few calls that running a job needs, over the engine's unix socket and in HTTP, without the engine's own
// client: that links more than the rest of the agent. Paths carry no version, so the engine answers in its newest; the
// fields used here are those of API 1.41 (Docker 20.10), which later ones still have.
package docker
