// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Reason is the reason of a refusal, as one word for metrics.
type Reason string

const (
	// Overlaps means that other claims have the devices, or too much of their capacity.
	Overlaps Reason = "overlap"
	// Unconfirmed means that the devices seem to overlap, but the API server could not be read to confirm it.
	Unconfirmed Reason = "unconfirmed"
	// Overloaded means that too many admitted writes are not settled.
	Overloaded Reason = "overload"
	// Invalid means that the write is not a valid allocation.
	Invalid Reason = "invalid"
)

// Refusal explains why a write is not admitted.
type Refusal struct {
	Reason Reason
	// Message is for the author of the write, who may show it to users in the claim's namespace. It has the names of claims in
	// this namespace. For claims in other namespaces it has only UIDs.
	Message string
	// InTheWay has the conflicting claims of all namespaces. Only administrators may see these claims.
	InTheWay []Claim
}

func (o *obstacle) refuse() *Refusal {
	if o == nil {
		return nil
	}
	return &o.refusal
}

func (o *obstacle) unconfirmed(err error) *Refusal {
	return &Refusal{
		Reason: Unconfirmed, InTheWay: o.refusal.InTheWay,
		Message: fmt.Sprintf("%s; the guard could not read the current state: %v; try again", o.refusal.Message, err),
	}
}

// maxNamedClaims is the maximum number of claims that a message lists.
const maxNamedClaims = 3

// conflictingClaims lists the conflicting claims for a message to users of a namespace. It hides names of other namespaces.
func conflictingClaims(inTheWay []holder, namespace string) string {
	if len(inTheWay) == 0 {
		return ""
	}
	var parts []string
	for _, h := range inTheWay[:min(maxNamedClaims, len(inTheWay))] {
		name := fmt.Sprintf("claim %s/%s", h.Namespace, h.Name)
		if h.Namespace != namespace {
			name = fmt.Sprintf("a claim of another namespace (UID %s)", h.UID)
		}
		if !h.stored {
			name += ", whose allocation was admitted but is not stored yet"
		}
		parts = append(parts, name)
	}
	if more := len(inTheWay) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return ": " + strings.Join(parts, "; ")
}

func sorted(holders map[types.UID]holder) []holder {
	return slices.SortedFunc(maps.Values(holders), func(a, b holder) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
}
