// Package sqldump reads the SQL text that mysqldump and mariadb-dump write: the columns of CREATE TABLE and the rows of
// INSERT, one row at a time. It knows nothing of what the tables mean, runs no SQL, and keeps no more in memory than
// one row. Every error names the line and the byte where the text went wrong.
package sqldump
