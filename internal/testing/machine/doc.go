// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package machine models real machines. For each machine it has the devices that the vendors' DRA drivers publish on a node, with
// the names, types, order and gaps of real ResourceSlices. Demos, tests and the topology driver use it where a ring or a mesh
// would be too regular.
//
//	m, err := machine.ByName("hgx-h100")
//	slices, err := m.ResourceSlices("node-1")   // publish these
//	classes := m.DeviceClasses()                // and these, once for the cluster
//	...
//	err = draw.Text(os.Stdout, m.Topology("node-1"), nil)
//
// A machine gives each node a [topology.Topology] of kind [topology.Machine], so functions for topologies accept machines. Nodes
// of a machine differ as in reality: in identifiers and addresses of network interfaces. These are made up, but depend only on
// the node's name.
//
// Real pools are harder than generated ones, and tests should cover these difficulties:
//
//   - Two drivers may have no attribute in common, or an attribute of the same name whose
//     values never match: oci-gb200.
//   - Some devices of a pool lack an attribute that others have: hgx-h100.
//   - An attribute may be a single value for one driver and a list for another: hgx-h100-cpu.
//   - Half of a pool may be interfaces that no workload needs: hgx-h100.
//   - The order of devices may be arbitrary: aws-trn1, hgx-h100.
//   - Several claims may share a device, in parts of its capacity: cpu-numa.
//
// The models are YAML files with ResourceSlices and DeviceClasses. The file name is the machine's name, and the first line is its
// title. [FromFile] reads such files of other authors.
package machine
