// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package deviceattributes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/apis/wellknown"
)

// A memory holds what Enrich computed from slices. Slices are identified by their addresses, because a watch replaces an object
// that has changed. The memory is bounded by the slices of the last call of Enrich.
type memory struct {
	// current has the slices of the running call, previous the slices of the call before.
	current, previous map[*resourceapi.ResourceSlice]*entry
}

// An entry is the part of the memory for one slice.
type entry struct {
	// domains are the domains of the slice in lower case (see [domainsOf]).
	domains []string
	// inputs and result are empty if no object applies to the slice.
	inputs []input
	result *result
}

// begin starts a call of Enrich.
func (m *memory) begin(slices int) {
	m.previous, m.current = m.current, make(map[*resourceapi.ResourceSlice]*entry, slices)
}

// end forgets the slices that the call did not have.
func (m *memory) end() { m.previous = nil }

// abandon ends a call that failed. The next call uses the results of this one and of the call before.
func (m *memory) abandon() {
	for slice, known := range m.previous {
		if m.current[slice] == nil || m.current[slice].result == nil {
			m.current[slice] = known
		}
	}
	m.previous = nil
}

// domains returns the domains that drivers use, in lower case. The value is the name of a driver that uses the domain.
func (m *memory) domains(all []*resourceapi.ResourceSlice) map[string]string {
	used := make(map[string]string)
	for _, slice := range all {
		known := m.previous[slice]
		if known == nil {
			known = &entry{domains: domainsOf(slice)}
		}
		m.current[slice] = &entry{domains: known.domains}
		for _, domain := range known.domains {
			if by, ok := used[domain]; !ok || slice.Spec.Driver < by {
				used[domain] = slice.Spec.Driver
			}
		}
	}
	return used
}

// domainsOf returns the domains that a slice uses: the driver, and the domains of the attributes.
func domainsOf(slice *resourceapi.ResourceSlice) []string {
	found := map[string]bool{strings.ToLower(slice.Spec.Driver): true}
	for i := range slice.Spec.Devices {
		for name := range slice.Spec.Devices[i].Attributes {
			if domain, _, isQualified := strings.Cut(string(name), "/"); isQualified {
				found[strings.ToLower(domain)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// find returns the result that was computed from the same inputs, or nil.
func (m *memory) find(slice *resourceapi.ResourceSlice, inputs []input) *result {
	known := m.previous[slice]
	if known == nil || known.result == nil || !slices.EqualFunc(known.inputs, inputs, input.same) {
		return nil
	}
	m.keep(slice, inputs, known.result)
	return known.result
}

func (m *memory) keep(slice *resourceapi.ResourceSlice, inputs []input, of *result) {
	m.current[slice].inputs, m.current[slice].result = inputs, of
}

// A standing is an object in one call of Enrich. Its rejection includes the domains that drivers use.
type standing struct {
	source    *v1alpha1.DeviceAttributes
	rejection *Rejection
	*compiled
}

// inEffect rejects the objects whose domain a driver uses.
func inEffect(objects []*object, used map[string]string) []standing {
	all := make([]standing, len(objects))
	for i, o := range objects {
		all[i] = standing{o.source, o.rejection, o.compiled}
		if by, isUsed := used[strings.ToLower(o.domain)]; isUsed && o.rejection == nil {
			all[i].rejection = &Rejection{wellknown.ReasonDomainInUse, fmt.Sprintf(
				"spec.domain %q: driver %s publishes in this domain: choose another domain", o.domain, by)}
		}
	}
	return all
}
