package record

import (
	"slices"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/schema"
)

// Shares lists fair shares; users and accounts may restrict it.
func Shares(list *client.ShareList, cluster string, users, accounts []string) *schema.Record {
	records, total := []*schema.Record{}, int64(0)
	for i := range list.Shares {
		s := &list.Shares[i]
		if s.User == "" && s.Parent == "" && s.Shares != core.SharesParent {
			total += s.Shares
		}
		if len(accounts) > 0 && !slices.Contains(accounts, string(s.Project)) ||
			len(users) > 0 && !slices.Contains(users, string(s.User)) {
			continue
		}
		name, parent, kind := string(s.Project), string(s.Parent), "ASSOCIATION"
		if s.User != "" {
			name, parent, kind = string(s.User), string(s.Project), "USER"
		} else if parent == "" && name != "root" {
			parent = "root"
		}
		shares := schema.Int(s.Shares)
		if s.Shares == core.SharesParent {
			shares = schema.Infinite
		}
		level := schema.Float(s.Level)
		if s.Level < 0 {
			level = schema.Infinite
		}
		records = append(records, schema.New("assoc_shares_obj_wrap").Set("id", i+1).Set("cluster", cluster).
			Set("name", name).Set("parent", parent).Set("shares", shares).Set("shares_normalized", schema.Float(s.Norm)).
			Set("effective_usage", schema.Float(s.Effective)).Set("usage_normalized", schema.Float(s.NormUsage)).
			Set("usage", int64(s.Usage)).Set("type", []string{kind}).
			Set("fairshare", schema.New("assoc_shares_fairshare").Set("factor", schema.Float(s.Factor)).
				Set("level", level)).
			Set("tres", schema.New("assoc_shares_tres").Set("run_seconds", shareTRES(s.RunTRES, 60)).
				Set("group_minutes", shareTRES(s.GrpTRESMins, 1)).Set("usage", usageTRES(s.UsageTRES))))
	}
	return schema.New("openapi_shares_resp").Set("shares", schema.New("shares_resp_msg").Set("shares", records).
		Set("total_shares", total))
}

func shareTRES(t core.TRES, times int64) []*schema.Record {
	list := []*schema.Record{}
	for _, a := range t {
		list = append(list, schema.New("shares_uint64_tres").Set("name", a.Name).Set("value", schema.Int(a.Count*times)))
	}
	return list
}

func usageTRES(t core.TRES) []*schema.Record {
	list := []*schema.Record{}
	for _, a := range t {
		list = append(list, schema.New("shares_float128_tres").Set("name", a.Name).
			Set("value", schema.Float(float64(a.Count)*60)))
	}
	return list
}
