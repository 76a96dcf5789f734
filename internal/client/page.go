package client

import "net/url"

// Page ends a listing that comes in pages.
type Page struct {
	More bool   `json:"more,omitempty"` // ask again with after= Next
	Next string `json:"next,omitempty"`
}

func (p *Page) page() *Page { return p }

// paged is a listing that comes in pages.
type paged[T any] interface {
	*T
	page() *Page
}

// everyPage puts the pages of a listing together; read asks for one, and add appends its records.
func everyPage[T any, L paged[T]](read func(url.Values) (L, error), add func(to, from L)) (L, error) {
	out, err := read(nil)
	if err != nil {
		return nil, err
	}
	for at := out.page(); at.More && at.Next != ""; {
		next, err := read(url.Values{"after": {at.Next}})
		if err != nil {
			return nil, err
		}
		add(out, next)
		if *at == *next.page() { // it does not continue
			break
		}
		*at = *next.page()
	}
	return out, nil
}
