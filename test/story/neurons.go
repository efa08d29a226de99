// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/internal/testing/machine"
	"github.com/celset/celset/internal/topology"
)

// Neurons is the story of a machine that exists: four neighbours in the torus of a
// trn1.32xlarge, and the two network interfaces that belong to them.
func Neurons() *Story {
	m, err := machine.ByName("aws-trn1")
	if err != nil {
		panic(err) // the name is a constant, and a test asks for the story
	}
	return &Story{
		Manifest: "trn1-2x2.yaml", Template: "2x2-neurons", Pod: "neurons",
		Wants:       "a 2x2 block with its EFAs",
		Topology:    m.Topology("trn1"),
		DriverFlags: []string{"--machine=" + m.Name},
		// One of a pair in every second column: no two columns have whole pairs side by side.
		Fragmented: []string{"neuron-device-4", "neuron-device-6", "neuron-device-12", "neuron-device-14"},
		holds:      isBlockWithInterfaces,
	}
}

const pairAttribute = "resource.aws.com/devicegroup1_id"

// isBlockWithInterfaces compares the links between the devices, and the pairs that they are of.
func isBlockWithInterfaces(t topology.Topology, names []string) bool {
	devices, err := t.Select(names)
	if err != nil || len(devices) != 6 {
		return false
	}
	var neurons []topology.Device
	interfaces := map[string]bool{}
	for _, d := range devices {
		if d.Driver == t.Devices[0].Driver {
			neurons = append(neurons, d)
		} else if pair := text(d, pairAttribute); pair != "" {
			interfaces[pair] = true
		}
	}
	if len(neurons) != 4 || len(interfaces) != 2 {
		return false
	}
	columns := map[int]bool{}
	for _, d := range neurons {
		columns[d.Coordinates.Col] = true
		linked := 0
		for _, o := range neurons {
			if slices.Contains(d.Neighbors, o.Name) {
				linked++
			}
		}
		if linked != 2 || !interfaces[text(d, pairAttribute)] {
			return false
		}
	}
	// A whole column is a ring, too.
	return len(columns) == 2
}

// text is a string attribute, empty if there is none.
func text(d topology.Device, name resourceapi.QualifiedName) string {
	if value := d.Attributes[name].StringValue; value != nil {
		return *value
	}
	return ""
}
