package people

import (
	"slices"

	"bireme.dev/bireme/internal/core"
)

// ErrRevokedKey is the refusal of a node's revoked key.
func ErrRevokedKey(name core.NodeName) error {
	return core.Errorf(core.Denied,
		"the key of node %s was revoked: it joins again with a new key and a token made for it "+
			"(bireme token join --node %s)", name, name).Because("revoked_node")
}

// maxRevokedKeys bounds how many revoked keys of a node are stored. Older ones are refused as well: only the pinned key
// is accepted.
const maxRevokedKeys = 8

// RevokePin returns a pin whose keys are revoked.
func RevokePin(pin core.NodePin) core.NodePin {
	gone := slices.Clone(pin.Gone)
	for _, k := range []string{pin.Key, pin.Next} {
		if k != "" && !slices.Contains(gone, k) {
			gone = append(gone, k)
		}
	}
	if n := len(gone) - maxRevokedKeys; n > 0 {
		gone = gone[n:]
	}
	pin.Revoked, pin.Next, pin.Before, pin.Gone = true, "", 0, gone
	return pin
}

// PinsFromTokens derives pins, by node, from the join tokens of a server that pinned no keys: which token, when, and
// whether it was revoked since.
func PinsFromTokens(tokens []*core.Token) map[core.NodeName]*core.NodePin {
	out := map[core.NodeName]*core.NodePin{}
	for _, t := range tokens {
		if p := out[t.Node]; t.Kind == "join" && t.Used != 0 && (p == nil || p.Before < t.Used) {
			out[t.Node] = &core.NodePin{Roles: t.Roles, TrustRoot: t.TrustRoot, Token: t.ID, Before: t.Used, Revoked: t.Revoked}
		}
	}
	return out
}
