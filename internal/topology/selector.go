// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Selector is an expression that selects the device. Selectors see no names, so it compares
// what the device publishes as ints and strings: it tells devices of a topology apart if
// that does.
func (d Device) Selector() string {
	terms := []string{fmt.Sprintf("device.driver == %q", d.Driver)}
	for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
		domain, id, qualified := strings.Cut(string(name), "/")
		if !qualified {
			domain, id = d.Driver, domain
		}
		switch attribute := d.Attributes[name]; {
		case attribute.IntValue != nil:
			terms = append(terms, fmt.Sprintf("device.attributes[%q].%s == %d", domain, id, *attribute.IntValue))
		case attribute.StringValue != nil:
			terms = append(terms, fmt.Sprintf("device.attributes[%q].%s == %q", domain, id, *attribute.StringValue))
		}
	}
	return strings.Join(terms, " && ")
}
