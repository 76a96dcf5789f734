// Package doctor judges what was found out about a cluster: each finding says what is so, whether it is well, and what
// to do where it is not. It looks at nothing itself; `biremed doctor` gathers the facts.
package doctor
