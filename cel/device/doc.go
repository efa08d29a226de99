// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package device evaluates CEL expressions over a set of devices: the variable
// "devices" of a CEL device constraint (KEP-5254).
//
//	environment, err := device.NewEnvironment(cel.Config{})
//	ring4, err := environment.Compile("devices.map(d, d.attributes['mla.example.com'].index).max() - " +
//		"devices.map(d, d.attributes['mla.example.com'].index).min() == 3")
//	ok, err := ring4.Satisfied(ctx, []*device.Device{a, b, c, d}, budget)
//
// An element of "devices" looks like the "device" of a device selector in
// resource.k8s.io: driver, attributes and capacity (both first by domain, then
// by name) and allowMultipleAllocations. An attribute without domain belongs to
// the domain of its own device's driver. A domain without entries is an empty
// map, a name that a domain does not have is CEL's "no such key".
//
// Two elements are equal if they are the same device, not if they look alike.
//
// The same is so of "nodes" ([NewNodeEnvironment]), the variable of a node set constraint: an element has labels, attributes,
// capacity, and the devices that a pod gets there.
//
// A [Device] is prepared once and then takes part in any number of evaluations,
// concurrent ones too: evaluating a set copies nothing of its devices but the
// quantities that it reads.
package device
