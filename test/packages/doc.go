// Package packages tests what `make packages` builds, as an administrator meets it: on a root of its own, laid over
// this machine's, the package is installed, set up, upgraded, removed and purged.
package packages
