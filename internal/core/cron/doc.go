// Package cron reads five-field schedules and tells when they are due next.
//
// Both tongues have them, with different habits: scrontab speaks Crontab (Sunday is 0 and 7, @daily and
// its like, a day is due when day of month or weekday fits if both are given), dstack configurations
// speak Monday (weekday 0 is Monday, "last" for the last day of a month, both must fit).
//
// Next walks real time, minute by minute in the schedule's zone, so the hours of a clock change come
// out as cron users expect: a schedule with a set hour runs once even if that hour comes twice, and at
// the end of the gap if it does not come at all; one with an open hour (*) just follows the clock.
package cron
