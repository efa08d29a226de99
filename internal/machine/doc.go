// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package machine has models of real machines. A model has the devices that the vendors' DRA drivers publish on a node, with
// the names, types, order and gaps of real ResourceSlices. Users test claims on a model without the hardware. Demos, tests and the
// topology driver use a model if a ring or a mesh would be too regular.
//
//	m, err := machine.ByName("hgx-h100")
//	slices, err := m.ResourceSlices("node-1")   // publish these
//	classes := m.DeviceClasses()                // and these, once for the cluster
//	...
//	err = draw.Text(os.Stdout, m.Topology("node-1"), nil)
//
// A machine gives each node a [topology.Topology] of kind [topology.Machine], so functions for topologies also work for
// machines. As in reality, the nodes of a machine differ in identifiers and addresses of network interfaces. These values are
// invented, but depend only on the name of the node.
//
// Real pools have the following difficulties, which generated pools lack. Tests should cover them:
//
//   - Two drivers may have no attribute in common, or an attribute of the same name whose
//     values never match: oci-gb200.
//   - Some devices of a pool lack an attribute that others have: hgx-h100.
//   - An attribute may be a single value for one driver and a list for another: hgx-h100-cpu.
//   - Half of a pool may be interfaces that no workload needs: hgx-h100.
//   - The order of devices may be arbitrary: aws-trn1, hgx-h100.
//   - Several claims may share a device, in parts of its capacity: cpu-numa.
//
// The models are YAML files with ResourceSlices and DeviceClasses. The name of the file is the name of the machine, and the
// first line is its title. [FromFile] reads such a file from other authors.
package machine
