package sqldump

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

const head = "CREATE TABLE `t` (\n  `id` int(11) NOT NULL DEFAULT -1 COMMENT 'a, (b;',\n  `name` text DEFAULT '',\n" +
	"  `x` blob,\n  PRIMARY KEY (`id`),\n  KEY `k` (`name`(40),`x`)\n) ENGINE=InnoDB AUTO_INCREMENT=5;\n"

// rows reads a text and shows each row as "id|name|x@line".
func rows(text io.Reader) ([]string, error) {
	var out []string
	err := Read(text, Handler{
		Wants: func(table string) bool { return table == "t" },
		Row: func(r *Row) error {
			id, err := r.Int("id", -7)
			if err != nil {
				return err
			}
			x := r.Text("x")
			if r.Null("x") {
				x = "NULL"
			}
			out = append(out, fmt.Sprintf("%d|%s|%s@%d", id, r.Text("name"), x, r.Line))
			return nil
		},
	})
	return out, err
}

func TestRead(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"plain", head + "INSERT INTO `t` VALUES (1,'a',NULL),(2,'b','c');", "1|a|NULL@8 2|b|c@8"},
		{"rows on lines", head + "INSERT INTO `t` VALUES\n(1,'a',NULL),\n(-2,'b','c');\n", "1|a|NULL@9 -2|b|c@10"},
		{
			"escapes", head + `INSERT INTO t VALUES (1,'it''s \'a\' "b"\\',''),(2,'x\n\ty\0','\Z');`,
			"1|it's 'a' \"b\"\\|@8 2|x\n\ty\x00|\x1a@8",
		},
		{"punctuation in texts", head + "INSERT INTO t VALUES (1,'),(;--/*',NULL);", "1|),(;--/*|NULL@8"},
		{"columns named", head + "INSERT INTO `t` (`x`, `id`) VALUES ('q',3);", "3||q@8"},
		{"hex", head + "INSERT INTO t VALUES (1,0x6162,_binary 'z'),(2,x'6364',X'');", "1|ab|z@8 2|cd|@8"},
		{
			"other tables", head +
				"INSERT INTO `u` VALUES (1,'a;''b'),(2);\nINSERT IGNORE INTO `db`.`t` VALUES (1,'','');",
			"1||@9",
		},
		{"comments", "-- x; 'y\n# z'\n/*!40101 SET NAMES utf8 */;\n" + head +
			"LOCK TABLES `t` WRITE;\nINSERT INTO t VALUES (1,/* in */'a',NULL) -- end\n;\nUNLOCK TABLES;\n", "1|a|NULL@12"},
		{"delimiter", head + "DELIMITER ;;\nCREATE PROCEDURE p() BEGIN SELECT 1; SELECT ';;'; END ;;\nDELIMITER ;\n" +
			"INSERT INTO t VALUES (1,'a',NULL);", "1|a|NULL@11"},
		{"on duplicate", head + "INSERT INTO t VALUES (1,'a',NULL) ON DUPLICATE KEY UPDATE id=1;", "1|a|NULL@8"},
		{"unsigned marks", head + "INSERT INTO t VALUES (18446744073709551614,'a',NULL);", "-2|a|NULL@8"},
		{"crlf", strings.ReplaceAll(head+"INSERT INTO t VALUES (1,'a',NULL);\n", "\n", "\r\n"), "1|a|NULL@8"},
		{"not UTF-8", head + "INSERT INTO t VALUES (1,'a\xff',NULL);", "1|a\uFFFD|NULL@8"},
		{"whole", "-- MySQL dump 10\n" + head + "-- Dump completed on 2026\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := rows(iotest.OneByteReader(strings.NewReader(c.text)))
			if err != nil {
				t.Fatal(err)
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("%q, want %q", s, c.want)
			}
		})
	}
}

func TestPacked(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	fmt.Fprint(z, head+"INSERT INTO t VALUES (1,'a',NULL);")
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := rows(bytes.NewReader(b.Bytes()))
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	if _, err := rows(bytes.NewReader(b.Bytes()[:b.Len()-12])); err == nil {
		t.Error("a file of gzip that was cut off is read")
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "line 1, byte 0: the file is empty"},
		{"no SQL", "{\"a\": 1}", "line 1, byte 1: expected a statement of SQL"},
		{"no tables", "SET NAMES utf8;", "there is no CREATE TABLE"},
		{"cut in a text", head + "INSERT INTO t VALUES (1,'abc", "line 8, byte 221: the text ends in the midst"},
		{"cut between statements", "-- MySQL dump 10\n" + head, "cut off: it does not end with"},
		{"unknown table", "INSERT INTO t VALUES (1);", "rows of table t come without its CREATE TABLE"},
		{"few values", head + "INSERT INTO t VALUES (1,'a');", "has not the 3 values"},
		{"many values", head + "INSERT INTO t VALUES (1,'a',NULL,4);", "has not the 3 values"},
		{"bad column", head + "INSERT INTO t (`y`) VALUES (1);", "table t has no column \"y\""},
		{"column twice", "CREATE TABLE t (a int, a int);", "two columns \"a\""},
		{
			"bad number", head +
				"INSERT INTO t VALUES\n('x1','a',NULL);",
			"line 9, byte 214: table t: column id: \"x1\" is no whole number",
		},
		{"bad hex", head + "INSERT INTO t VALUES (0xzz,'a',NULL);", "no hexadecimal value"},
		{"bad value", head + "INSERT INTO t VALUES (now(),'a',NULL);", "expected a value, found \"now\""},
		{"long name", "CREATE TABLE `" + strings.Repeat("x", 300) + "` (a int);", "longer than 256 bytes"},
		{"xz", "\xfd7zXZ\x00", "packed by xz"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := rows(strings.NewReader(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestReaderFails(t *testing.T) {
	_, err := rows(io.MultiReader(strings.NewReader(head+"INSERT INTO t VALUES (1,"), iotest.ErrReader(io.ErrNoProgress)))
	if err == nil || !strings.Contains(err.Error(), io.ErrNoProgress.Error()) {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(head + "INSERT INTO `t` VALUES (1,'a',NULL),(2,'b\\'',0x61);")
	f.Add("-- MySQL dump\n/*!1 x */;DELIMITER ;;\nCREATE VIEW v;;\n")
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = rows(strings.NewReader(text))
	})
}
