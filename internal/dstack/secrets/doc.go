// Package secrets puts secrets of a project in the place of ${{ secrets.NAME }} in the environment of a run. It is done
// when the run is launched: what is stored has the reference, never the value.
package secrets
