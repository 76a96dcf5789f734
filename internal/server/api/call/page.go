package call

import (
	"net/url"
	"strconv"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// Page is which part of a listing is asked for.
type Page struct {
	After string // what the listing continues after, as the answer before said; "": from its beginning
	Limit int
}

// PageQuery are the parameters that ParsePage reads.
var PageQuery = []string{"limit", "after"}

// ParsePage reads which part of a listing is asked for. Without a limit, and above it, it is MaxPage.
func ParsePage(q url.Values) (Page, error) {
	n, err := Number(q.Get("limit"), 0)
	if err != nil {
		return Page{}, core.Errorf(core.Invalid, "limit: %q is not a number", q.Get("limit"))
	}
	if n == 0 || n > MaxPage {
		n = MaxPage
	}
	return Page{After: q.Get("after"), Limit: int(n)}, nil
}

// AfterNumber is where a listing that goes by numbers continues.
func (p Page) AfterNumber() (int64, error) {
	if p.After == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(p.After, 10, 64)
	if err != nil || n < 0 {
		return 0, core.Errorf(core.Invalid, "after: %q is not what an answer had as next", p.After)
	}
	return n, nil
}

// Cut shortens a list, which begins beyond After, to the page and says whether there is more. key is what a listing
// continues after.
func Cut[T any](p Page, list []T, key func(*T) string) ([]T, client.Page) {
	if len(list) <= p.Limit {
		return list, client.Page{}
	}
	list = list[:p.Limit:p.Limit]
	return list, client.Page{More: true, Next: key(&list[p.Limit-1])}
}
