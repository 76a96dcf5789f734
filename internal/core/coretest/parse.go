package coretest

import "bireme.dev/bireme/internal/core"

// Constraint parses a constraint. Like a record from the store it keeps a text that does not parse, as the others do.
func Constraint(text string) core.Constraint { c, _ := core.ParseConstraint(text); return c }

// Licenses parses a request for licenses.
func Licenses(text string) core.Licenses { l, _ := core.ParseLicenses(text); return l }

// Switches parses a limit of switches.
func Switches(text string) core.SwitchLimit { l, _ := core.ParseSwitchLimit(text); return l }

// Dependency parses a dependency.
func Dependency(text string) core.Dependency { d, _ := core.ParseDependency(text); return d }
