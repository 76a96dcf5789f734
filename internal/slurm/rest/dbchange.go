package rest

import (
	"net/http"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/errno"
	"bireme.dev/bireme/internal/slurm/schema"
)

// putting makes a handler that puts all records of one list of the body.
func putting(list string, put func(*draft, schema.Input) error) func(accounting) (*schema.Record, error) {
	return func(c accounting) (*schema.Record, error) {
		in, err := c.read()
		if err != nil {
			return nil, err
		}
		d, err := c.draft()
		if err != nil {
			return nil, err
		}
		records := in.Records(list)
		if len(records) == 0 {
			return nil, fail(http.StatusBadRequest, errno.Parsing, "Failure during parsing", list+": there are none")
		}
		for _, r := range records {
			if err := put(d, r); err != nil {
				return nil, err
			}
		}
		return schema.New("openapi_resp"), d.commit()
	}
}

// putConfig puts records of all kinds, in the order in which they need each other.
func putConfig(c accounting) (*schema.Record, error) {
	in, err := c.read()
	if err != nil {
		return nil, err
	}
	d, err := c.draft()
	if err != nil {
		return nil, err
	}
	for _, part := range []struct {
		list string
		put  func(*draft, schema.Input) error
	}{
		{"qos", (*draft).putQOS},
		{"accounts", (*draft).putAccount},
		{"users", (*draft).putUser},
		{"associations", (*draft).putAssoc},
		{"wckeys", (*draft).putKey},
	} {
		for _, r := range in.Records(part.list) {
			if err := part.put(d, r); err != nil {
				return nil, err
			}
		}
	}
	return schema.New("openapi_resp"), d.commit()
}

// addedAssoc is what the conditions of accounts_association and users_association set.
func addedAssoc(in schema.Input, account, user string) schema.Input {
	out := schema.Input{"account": account}
	if user != "" {
		out["user"] = user
	}
	for from, to := range map[string]string{"fairshare": "shares_raw", "priority": "priority"} {
		if n := in.Number("association." + from); n.IsSet() {
			out[to] = n
		}
	}
	if up := in.Text("association.parent"); up != "" && user == "" {
		out["parent_account"] = up
	}
	if q := in.Text("association.defaultqos"); q != "" {
		out["default"] = schema.Input{"qos": q}
	}
	if list := in.List("association.qoslevel"); len(list) > 0 {
		out["qos"] = list
	}
	jobs, per := schema.Input{}, schema.Input{}
	for from, to := range map[string]string{
		"grpjobs": "active", "grpsubmitjobs": "total", "grpjobsaccrue": "accruing",
	} {
		if n := in.Number("association." + from); n.IsSet() {
			jobs[to] = n
		}
	}
	for from, to := range map[string]string{
		"maxjobs": "count", "maxsubmitjobs": "submitted", "maxwalldurationperjob": "wall_clock",
		"maxjobsaccrue": "accruing",
	} {
		if n := in.Number("association." + from); n.IsSet() {
			per[to] = n
		}
	}
	jobs["per"] = per
	tres, group, perTRES, minutes := schema.Input{}, schema.Input{}, schema.Input{}, schema.Input{}
	for from, to := range map[string]struct {
		in   schema.Input
		name string
	}{
		"grptres": {tres, "total"}, "grptresmins": {group, "minutes"}, "grptresrunmins": {group, "active"},
		"maxtresperjob": {perTRES, "job"}, "maxtrespernode": {perTRES, "node"}, "maxtresminsperjob": {minutes, "job"},
	} {
		if list := in.Records("association." + from); len(list) > 0 {
			to.in[to.name] = list
		}
	}
	tres["group"], tres["per"], tres["minutes"] = group, perTRES, schema.Input{"per": minutes}
	out["max"] = schema.Input{"jobs": jobs, "tres": tres}
	if n := in.Number("association.grpwall"); n.IsSet() {
		out["max"].(schema.Input)["per"] = schema.Input{"account": schema.Input{"wall_clock": n}}
	}
	if n := in.Number("association.minpriothresh"); n.IsSet() {
		out["min"] = schema.Input{"priority_threshold": n}
	}
	return out
}

// addition is a request for new accounts or users: the condition says which, and what associations they get.
type addition struct {
	draft       *draft
	cond, texts schema.Input
	names       []string
}

func (c *accounting) addition(kind string) (*addition, error) {
	in, err := c.read()
	if err != nil {
		return nil, err
	}
	add := &addition{}
	if add.draft, err = c.draft(); err != nil {
		return nil, err
	}
	add.cond, _ = in["association_condition"].(schema.Input)
	add.texts, _ = in[kind].(schema.Input)
	if add.names = add.cond.List(kind + "s"); len(add.names) == 0 {
		return nil, missing("association_condition." + kind + "s")
	}
	return add, nil
}

func addAccounts(c accounting) (*schema.Record, error) {
	add, err := c.addition("account")
	if err != nil {
		return nil, err
	}
	d, cond := add.draft, add.cond
	for _, name := range add.names {
		account := schema.Input{"name": name}
		for key, value := range add.texts {
			account[key] = value
		}
		if err := d.putAccount(account); err != nil {
			return nil, err
		}
		if err := d.putAssoc(addedAssoc(cond, name, "")); err != nil {
			return nil, err
		}
	}
	return schema.New("openapi_accounts_add_cond_resp_str").Set("added_accounts", strings.Join(add.names, ",")), d.commit()
}

func addUsers(c accounting) (*schema.Record, error) {
	add, err := c.addition("user")
	if err != nil {
		return nil, err
	}
	d, cond := add.draft, add.cond
	for _, name := range add.names {
		user := schema.Input{"name": name}
		if list := add.texts.List("adminlevel"); len(list) > 0 {
			user["administrator_level"] = list
		}
		if a := add.texts.Text("defaultaccount"); a != "" {
			user["default"] = schema.Input{"account": a}
		}
		if err := d.putUser(user); err != nil {
			return nil, err
		}
		for _, account := range cond.List("accounts") {
			if err := d.putAssoc(addedAssoc(cond, account, name)); err != nil {
				return nil, err
			}
		}
		for _, key := range cond.List("wckeys") {
			if err := d.putKey(schema.Input{"user": name, "name": key}); err != nil {
				return nil, err
			}
		}
	}
	return schema.New("openapi_users_add_cond_resp_str").Set("added_users", strings.Join(add.names, ",")), d.commit()
}

// dropping makes a handler that deletes the record that the path names.
func dropping(kind, what, param, field string, find func(*books, string) bool,
) func(accounting) (*schema.Record, error) {
	return func(c accounting) (*schema.Record, error) {
		b, err := c.books()
		if err != nil {
			return nil, err
		}
		name := c.Path(param)
		if !find(b, name) {
			return nil, nothingFound(what, name)
		}
		if err := c.api.Client.Drop(c.Context, kind, name); err != nil {
			return nil, err
		}
		out := schema.New(c.Endpoint.Reply)
		if field != "" {
			out.Set(field, []string{name})
		}
		return out, nil
	}
}

func dropAccount() func(accounting) (*schema.Record, error) {
	return dropping(client.DropProject, "account", "account_name", "removed_accounts",
		func(b *books, name string) bool { return b.account(name) != nil })
}

func dropUser() func(accounting) (*schema.Record, error) {
	return dropping(client.DropUser, "user", "name", "",
		func(b *books, name string) bool { return b.user(name) != nil })
}

func dropQOS() func(accounting) (*schema.Record, error) {
	return dropping(client.DropQOS, "QOS", "qos", "removed_qos",
		func(b *books, name string) bool { return b.qos(name) != nil })
}

// dropAssocs takes users out of accounts. Without a condition nothing is taken out.
func dropAssocs(c accounting) (*schema.Record, error) {
	accounts, users := words(c.Query, "account"), words(c.Query, "user")
	if len(accounts)+len(users) == 0 {
		return nil, missing("account or user")
	}
	b, err := c.books()
	if err != nil {
		return nil, err
	}
	if list := words(c.Query, "cluster"); len(list) > 0 && !has(list, b.cluster) {
		return nil, nothingFound("cluster", strings.Join(list, ","))
	}
	gone := []string{}
	for i := range b.policy.Projects {
		p := &b.policy.Projects[i]
		if len(accounts) > 0 && !has(accounts, string(p.Name)) {
			continue
		}
		if len(users) == 0 { // the account itself
			if err := c.api.Client.Drop(c.Context, client.DropProject, string(p.Name)); err != nil {
				return nil, err
			}
			gone = append(gone, "C = "+b.cluster+" A = "+string(p.Name))
			continue
		}
		for k := range p.Members {
			m := &p.Members[k]
			if !has(users, string(m.User)) {
				continue
			}
			if err := c.api.Client.PutMember(c.Context, p.Name, m.User, core.RoleNone); err != nil {
				return nil, err
			}
			gone = append(gone, "C = "+b.cluster+" A = "+string(p.Name)+" U = "+string(m.User))
		}
	}
	if len(gone) == 0 {
		return nil, nothingFound("association of", strings.Join(append(accounts, users...), " "))
	}
	return schema.New("openapi_assocs_removed_resp").Set("removed_associations", gone), nil
}

// dropKey takes a wckey from all users who have it.
func dropKey(c accounting) (*schema.Record, error) {
	b, err := c.books()
	if err != nil {
		return nil, err
	}
	key, found := c.Path("id"), false
	for i := range b.users {
		u := &b.users[i]
		if !slices.Contains(u.WCKeys, key) {
			continue
		}
		found = true
		rest := slices.DeleteFunc(slices.Clone(u.WCKeys), func(k string) bool { return k == key })
		change := &client.UpdateUser{WCKeys: &rest}
		if none := ""; u.DefaultWCKey == key {
			change.DefaultWCKey = &none
		}
		if err := c.api.Client.UpdateUser(c.Context, u.Name, change); err != nil {
			return nil, err
		}
	}
	if !found {
		return nil, nothingFound("wckey", key)
	}
	return schema.New("openapi_wckey_removed_resp").Set("deleted_wckeys", []string{key}), nil
}
