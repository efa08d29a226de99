// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"regexp"
	"slices"
)

// Asked returns expressions for machines of the size that people have: what [Expressions] has
// can be tried with every set, these can't. They were collected before the search could read
// them, and belong to no class that it is good at: sorted values, sums, texts, unions, counts of
// counts, ways from device to device. Every expression compiles, and fails for no set.
func Asked() []Expression {
	return slices.Concat(askedOfRacks(), askedOfToruses(), askedOfNeurons(), askedOfAccelerators(), askedOfRails(), askedOfFunctions())
}

// asked makes the expressions of a machine. In their texts d@name is the attribute of the
// device d in the domain of the machine's first driver, d#name in that of its second, and
// d~name one in resource.kubernetes.io.
func (h Hardware) asked(all []written) []Expression {
	drivers := append(h.Drivers(), "")
	for i := range all {
		text := attributeOf.ReplaceAllStringFunc(all[i].text, func(short string) string {
			parts := attributeOf.FindStringSubmatch(short)
			domain := map[string]string{"@": drivers[0], "#": drivers[1], "~": "resource.kubernetes.io"}[parts[2]]
			return parts[1] + ".attributes['" + domain + "']." + parts[3]
		})
		all[i].text = text
	}
	return h.of(all)
}

var attributeOf = regexp.MustCompile(`([a-z]+(?:\[[^]]*\])?)([@#~])([a-zA-Z_0-9]+)`)
