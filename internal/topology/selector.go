// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Selector returns a CEL selector that selects the device. It compares the ints and strings that the device publishes, because
// selectors can't read names. It also selects other devices with the same values.
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
