package input

import (
	"strconv"
	"strings"
)

// rules are what a field's tag asks for.
type rules struct {
	required, uuid, time bool
	ge, le               *int64
	min, max             int
	enum                 []string
}

func parseRules(tag string) (out rules) {
	for part := range strings.SplitSeq(tag, ",") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "":
		case "required":
			out.required = true
		case "uuid":
			out.uuid = true
		case "time":
			out.time = true
		case "ge":
			n := number(value)
			out.ge = &n
		case "le":
			n := number(value)
			out.le = &n
		case "min":
			out.min = int(number(value))
		case "max":
			out.max = int(number(value))
		case "enum":
			out.enum = strings.Split(value, "|")
		default:
			panic("input: a tag with " + part)
		}
	}
	return out
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic("input: a tag with " + text)
	}
	return n
}
