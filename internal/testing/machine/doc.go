// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package machine has models of machines that people run: for each, what the DRA drivers of
// its vendors publish on a node of it, with the names, types, order and gaps that real
// ResourceSlices have. Demos, tests and the topology driver use it where a ring or a mesh
// would be too tidy.
//
//	m, err := machine.ByName("hgx-h100")
//	slices, err := m.ResourceSlices("node-1")   // publish these
//	classes := m.DeviceClasses()                // and these, once for the cluster
//	...
//	err = draw.Text(os.Stdout, m.Topology("node-1"), nil)
//
// A model is a [topology.Topology] of kind [topology.Machine] for each name of a node, so
// whatever takes a topology takes a machine. Nodes of one machine differ in what differs in
// reality: identifiers, and addresses of network interfaces. These are made up, but always
// the same for the same name of a node.
//
// What makes these pools harder than generated ones, and what tests should therefore try:
//
//   - Two drivers may have no attribute in common, or one of the same name whose values
//     never meet: oci-gb200.
//   - An attribute that one device has, another of the same pool has not: hgx-h100.
//   - What is one value for one driver is a list for another: hgx-h100-cpu.
//   - Half of a pool may be interfaces that nobody wants: hgx-h100.
//   - Devices come in no order: aws-trn1, hgx-h100.
//   - A device may be given to several claims, in parts of its capacity: cpu-numa.
//
// The models are ResourceSlices and DeviceClasses in YAML files, named like the machines; the first line
// of each is the title. [FromFile] reads such files of anybody.
package machine
