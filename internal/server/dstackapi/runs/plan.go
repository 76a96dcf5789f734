package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/convert"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/server/dstackapi/front"
)

type planBody struct {
	RunSpec              wire.RunSpec `json:"run_spec" in:"required"`
	MaxOffers            *int         `json:"max_offers" in:"ge=1,le=10000"`
	FullOffers           bool         `json:"full_offers"`
	UnallocatedResources bool         `json:"unallocated_resources"`
	ForOffersOnly        bool         `json:"for_offers_only"`
	ReverseOffers        bool         `json:"reverse_offers"`
}

// defaultOffers is how many offers a plan has where the client does not say.
const defaultOffers = 50

// maxOffers bounds the offers of all jobs of a plan together.
const maxOffers = 50_000

// maxSpec bounds the JSON of a description: it is stored for as long as the run is.
const maxSpec = 1 << 20

// readSpec reads and checks what a client sent, and completes it.
func (l *look) readSubmitted(in *wire.RunSpec, offersOnly bool) (sent, effective *convert.Spec, err error) {
	if n := len(in.Configuration) + len(in.Profile); n > maxSpec {
		return nil, nil, core.Errorf(core.TooLarge, "the run's configuration has %d bytes; the limit is %d", n, maxSpec)
	}
	sent, faults := convert.Read(in, "body", "run_spec")
	if len(faults) > 0 {
		return nil, nil, front.ErrInvalid(faults)
	}
	if sent.RunName != nil && *sent.RunName == "" {
		sent.RunName = nil
	}
	key := ""
	if sent.SSHKeyPub == nil && !offersOnly && l.a.UserKey != nil {
		if key, err = l.a.UserKey(l.c); err != nil {
			return nil, nil, err
		}
	}
	effective, err = sent.Effective(convert.Defaults{SSHKeyPub: key})
	return sent, effective, err
}

func (a *Runs) plan(c *front.Call, in *planBody) (any, error) {
	l := a.look(c)
	sent, eff, err := l.readSubmitted(&in.RunSpec, in.ForOffersOnly)
	if err != nil {
		return nil, err
	}
	offersOnly := in.ForOffersOnly || c.Version.Before(0, 21, 0) && isOffersOnly(sent)
	name := eff.Name()
	out := &wire.RunPlan{
		ProjectName: string(c.Project.Name), User: string(c.User), Action: wire.ActionCreate, JobPlans: []wire.JobPlan{},
	}
	if name == "" && !offersOnly {
		sent.WorkingDir = newNonce()
	}
	if out.RunSpec, err = sent.Completed().JSON(); err != nil {
		return nil, err
	}
	if out.EffectiveRunSpec, err = eff.JSON(); err != nil {
		return nil, err
	}
	if name != "" && !offersOnly {
		if err := l.current(c.Context(), out, eff); err != nil {
			return nil, err
		}
	}
	if name == "" {
		name = "dry-run"
	}
	offers := eff.Offers(l.places(), convert.OfferForm{Full: in.FullOffers, Unallocated: in.UnallocatedResources})
	if in.ReverseOffers {
		slices.Reverse(offers)
	}
	most := defaultOffers
	if in.MaxOffers != nil {
		most = *in.MaxOffers
	}
	specs := eff.JobSpecs(name, l.runtime(), l.Images)
	most = min(most, max(1, maxOffers/max(1, len(specs))))
	for _, spec := range specs {
		p := wire.JobPlan{JobSpec: spec, Offers: []wire.Offer{}, TotalOffers: len(offers)}
		for i := range offers[:min(len(offers), most)] {
			p.Offers = append(p.Offers, offers[i].Offer)
		}
		if len(offers) > 0 {
			p.MaxPrice = new(wire.Dollars)
		}
		out.JobPlans = append(out.JobPlans, p)
	}
	return out, nil
}

// isOffersOnly reports whether a client of before for_offers_only only wants to know what there is.
func isOffersOnly(s *convert.Spec) bool {
	t := s.Configuration.Task
	return t != nil && len(t.Commands) == 1 && t.Commands[0] == ":"
}

// current says what there is under the plan's name, and whether applying changes it in place.
func (l *look) current(ctx context.Context, out *wire.RunPlan, eff *convert.Spec) error {
	r, err := l.find(ctx, l.c.Project.Name, eff.Name())
	if core.CodeOf(err) == core.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if out.CurrentResource, err = l.show(ctx, r); err != nil {
		return err
	}
	if r.Ended != 0 {
		return nil
	}
	old, err := l.readSpec(ctx, r, nil) // all of it, also for a manager, who is shown less: as applying compares it
	if err != nil {
		return err
	}
	if changesInPlace(old.spec, eff) {
		out.Action = wire.ActionUpdate
	}
	return nil
}

// changesInPlace reports whether a live run can become another without being started again.
func changesInPlace(old, now *convert.Spec) bool {
	_, ok := config.Changes(&old.Configuration, &now.Configuration)
	return ok && sameExcept(old, now)
}

// sameExcept reports whether two descriptions differ at most in the configuration and in the path of its file.
func sameExcept(a, b *convert.Spec) bool {
	strip := func(s *convert.Spec) []byte {
		x := *s
		x.ConfigurationPath, x.Configuration, x.WorkingDir = nil, config.Configuration{}, nil
		if x.Profile.IsEmpty() {
			x.Profile = nil
		}
		parts := []any{x.RunName, x.RepoID, x.RepoData, x.RepoCodeHash, x.RepoDir, x.FileArchives, x.Profile, x.SSHKeyPub}
		data, err := json.Marshal(parts)
		if err != nil {
			return nil
		}
		return data
	}
	one, two := strip(a), strip(b)
	return one != nil && bytes.Equal(compact(one), compact(two))
}

func compact(data []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return data
	}
	return b.Bytes()
}
