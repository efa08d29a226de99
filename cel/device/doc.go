// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package device evaluates CEL expressions over a set of devices: the variable
// "devices" of a CEL device constraint (KEP-5254).
//
//	environment, err := device.NewEnvironment(cel.Config{})
//	ring4, err := environment.Compile(ctx, "devices.map(d, d.attributes['mla.example.com'].index).max() - " +
//		"devices.map(d, d.attributes['mla.example.com'].index).min() == 3")
//	ok, err := ring4.Satisfied(ctx, []*device.Device{a, b, c, d}, budget)
//
// An element of "devices" has the fields of "device" in a device selector of resource.k8s.io: driver, attributes, capacity and
// allowMultipleAllocations. Attributes and capacities are grouped by domain, then by name. An attribute without a domain belongs
// to the domain of its device's driver. A domain without entries is an empty map. A missing name is CEL's "no such key".
//
// Two elements are equal only if they are the same device. Equal attributes don't make them equal.
//
// [NewNodeEnvironment] does the same for "nodes", the variable of a node set constraint. An element has labels, attributes,
// capacity, and the devices that a pod gets on the node.
//
// A [Device] is created once and used in many evaluations, also concurrently. An evaluation does not copy its devices, except
// the quantities that it reads.
package device
