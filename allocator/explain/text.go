// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Texts are shortened, because expressions may have 10 KiB and any number of claims may be in the way.
const (
	maxText    = 160
	maxFailure = 400
	maxOwned   = 3
	maxListed  = 4
)

// String returns the explanation in one line of a few hundred characters at most.
func (e *Explanation) String() string {
	if e.Fits {
		return "the claims fit"
	}
	parts := []string{e.problem()}
	for _, cause := range e.Causes {
		parts = append(parts, cause.Message)
	}
	if e.Never {
		parts = append(parts, "the claims would not fit even if all devices of the node were free")
	}
	if len(e.InTheWay) > 0 || e.OthersInTheWay != nil {
		parts = append(parts, "in the way: "+e.owners())
	}
	return strings.Join(parts, "; ")
}

// problem returns the text for the most important obstacle.
func (e *Explanation) problem() string {
	if e.Failed {
		return shortened(e.Reason, maxFailure)
	}
	if e.Unmet == nil {
		if short := e.shortage(); short != "" {
			return short
		}
		return shortened(e.Reason, maxText)
	}
	return fmt.Sprintf("%s free, but no set satisfies %s", e.free(), e.Unmet)
}

// shortage returns a text about the first request that has too few free devices even if no other request existed, or "".
func (e *Explanation) shortage() string {
	for _, r := range e.Requests {
		if r.Free < r.Wanted && !strings.Contains(r.Name, "/") {
			return fmt.Sprintf("request %s: too few matching devices are free (%d requested, %d match, %d free)", e.named(r), r.Wanted, r.Matching, r.Free)
		}
	}
	return ""
}

// named returns the name of a request, with the name of its claim if the explanation has several claims.
func (e *Explanation) named(r Request) string {
	if r.Claim != e.Requests[0].Claim || r.Claim != e.Requests[len(e.Requests)-1].Claim {
		return r.Name + " of claim " + r.Claim
	}
	return r.Name
}

// free returns a text with the number of free devices for each of the first requests.
func (e *Explanation) free() string {
	var counts []string
	for _, r := range e.Requests {
		if len(counts) == maxListed {
			counts = append(counts, "...")
			break
		}
		counts = append(counts, fmt.Sprintf("%d of %d devices for request %s", r.Free, r.Matching, e.named(r)))
	}
	if len(counts) == 1 {
		return counts[0] + " are"
	}
	return strings.Join(counts, ", ") + " are"
}

// String returns the name of the constraint, and the conjunct with its position in the expression.
func (c *Condition) String() string {
	if c.Text == "" {
		return c.Constraint
	}
	return fmt.Sprintf("constraint %s, line %d, column %d: %s", c.Constraint, c.Line, c.Column, shortened(c.Text, maxText))
}

func (e *Explanation) owners() string {
	var all []string
	for i, owner := range e.InTheWay {
		if i == maxListed {
			all = append(all, fmt.Sprintf("and %d more", len(e.InTheWay)-i))
			break
		}
		all = append(all, fmt.Sprintf("claim %s with %s", owner.Claim, strings.Join(namesOf(owner.Devices), ", ")))
	}
	if e.OthersInTheWay != nil {
		all = append(all, fmt.Sprintf("%s with %s", e.OthersInTheWay, strings.Join(namesOf(e.OthersInTheWay.Devices), ", ")))
	}
	return strings.Join(all, ", ")
}

// String returns a text with the number of claims.
func (o *Others) String() string {
	if o.Claims == 1 {
		return "a claim of another namespace"
	}
	return fmt.Sprintf("%d claims of other namespaces", o.Claims)
}

// namesOf returns a text with the names of the first devices, without driver and pool.
func namesOf(devices []string) []string {
	names := sets.List(sets.New(devices...))
	for i, name := range names {
		names[i] = name[strings.LastIndex(name, "/")+1:]
	}
	if len(names) > maxOwned {
		names = append(names[:maxOwned:maxOwned], "...")
	}
	return names
}

// shortened returns the first most characters of a text.
func shortened(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-3]) + "..."
}
