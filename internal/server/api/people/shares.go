package people

import (
	"net/http"
	"slices"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/server/api/call"
)

// Shares lists how projects and users stand.
func (a *People) Shares(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	page, err := call.ParsePage(r.URL.Query())
	if err != nil {
		return nil, err
	}
	done, err := a.Heavy(r.Context(), who)
	if err != nil {
		return nil, err
	}
	defer done()
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(v.Shares(a.Now(v.Snap)), func(s client.Share) bool { return s.Key() <= page.After })
	out := &client.ShareList{}
	out.Shares, out.Page = call.Cut(page, list, (*client.Share).Key)
	return out, nil
}
