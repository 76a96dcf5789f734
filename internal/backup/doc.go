// Package backup writes and reads the files of `biremed backup`: a compressed archive with what a cluster cannot be
// made again from.
//
//	manifest.json   first: the form's version, when and of what it is, and the size and SHA-256 of every member
//	store           the database: a SQLite file, or what pg_dump wrote
//	seal.key        the sealing keys, unless they are kept apart
//	config.yml      the settings
//	logs/…          output of jobs that the server keeps, if asked for
//	end             last: an archive without it was cut off
//
// A reader trusts nothing before all of it has been read once: sizes and sums must be those of the manifest, names
// are known ones or below logs/, and the end is there. Only then is anything put in place.
package backup
