// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

import "slices"

// Entry is what there is to know about a message.
type Entry struct {
	// ID is stable: a link can lead to it.
	ID string
	// Texts are those in the code, formatting directives included. Several say the same
	// in different places.
	Texts []string
	// Elsewhere is for texts that Kubernetes or CEL make.
	Elsewhere bool
	// Cause and Cure are sentences. Cure says who has to do what.
	Cause, Cure string
}

// Group is the entries about one thing.
type Group struct {
	Title, Introduction string
	Entries             []Entry
}

// Catalogue lists all entries.
func Catalogue() []Group {
	return []Group{waiting(), definitions(), references(), warnings(), expressions(), evaluations(), budgets(), requests(), hardware(), scheduler()}
}

// Places are texts that only say where: what follows them has an entry.
func Places() []string { return slices.Clone(places) }

var places = []string{
	"%s of the %s",
	"spec.config of DeviceClass …",
	"claim %s, ",
	"claim %s, constraint %s (%s): %w",
	"claim %s, constraint %s, node %s, devices [%s]: %w",
	"claim %s, request %s: %w",
	"claim %s, request %s: selector #%d: %w",
	"claim %s, request %s: derived attribute %s: %w",
	"evaluate on device %s: %w",
	"checking capacity for device %s: %w",
	"computing consumed capacity for device %s: %w",
	"capacity %q: %w",
	"gather pool information: %w",
	"ResourceSlice %s: node selection: %w",
	"ResourceSlice %s: device %s: node selection: %w",
	"create NodeSelector for claim %s: %w",
	"invalid %s: %w",
	"%s: %w",
	"%s%w",
	"%w: %w",
	"compile: %w",
	" (at byte %d)",
	"of type …",
	"… of claim …",
	"%d of %d devices for request %s",
	"constraint %s, line %d, column %d: %s",
	"claim %s with %s",
	"%s with %s",
	"a claim of another namespace",
	"%d claims of other namespaces",
	"and %d more",
	"line %d, column %d: %s",
	"%s: %s: %v",
	"was wrong before: …",
	"there are %d more mistakes",
	"admission of CEL device constraints: %w",
}

// notMessages are texts that no user gets to read: log lines of high verbosity, units
// and the like, and pieces of the messages that stand beside them.
var notMessages = []string{
	"Done with allocation", "Allocation result found", "Device given back", "No explanation for the pod",
	"claim for extended resources of the pod got deleted", "unavailable device class", "%v",
	"pod of claim %s got deleted", "pod that could not be bound may have freed devices",
	"%s %s %v %s", "up to %d", "any number of",
	"CEL cost units", " && ", "the claims fit", "%s %s %s",
	" write a cheaper expression,", " split the expression into simple conditions joined by &&,",
	"the evaluations together exceed the cost budget", "the search exceeds the step budget",
	"no such overload: %s %d", "no such overload: %s", "internal error: %v",
	"evaluation needs more than %d %s", "evaluation needs more than %d %s with this call of %s",
	"the evaluations on all nodes together exceed the cost budget", "the searches on all nodes together exceed the step budget",
	"A scheduling cycle makes no progress, /livez fails", "Can't write down which pod is being tried",
	"ask for fewer devices or write a cheaper expression",
	"narrow the candidates with selectors or matchAttribute, or write a cheaper expression",
}
