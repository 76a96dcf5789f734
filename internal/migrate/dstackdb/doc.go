// Package dstackdb reads the database of a dstack server, SQLite or PostgreSQL, and the keys of its config.yml. It only
// reads, all of it in one transaction, and asks for columns that are there: databases of older servers have fewer.
//
// What it knows of tables and of sealed values was seen in databases that servers of version 0.22.5 made.
package dstackdb
