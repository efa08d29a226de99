// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package corpus has expressions over sets of devices as people write them, and the
// nodes that they are written for. Property tests search with them, so that what
// reads expressions meets real ones and not only random ones.
//
//	for _, e := range corpus.Expressions() {
//		node := e.Hardware.Devices() // what e.Text reads
//		...                          // e.Requests: how many of which driver
//	}
//
// They come from KEP-5254, from this project's documentation and from the
// attributes that drivers for GPUs, TPUs, network interfaces and CPUs publish. The
// same relation often stands here in several ways of writing. Every expression is
// satisfied by some set of the devices and refused by another, and fails for none.
package corpus

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
)

// Expression is one constraint.
type Expression struct {
	// Name says what is asked for. It is unique.
	Name     string
	Hardware Hardware
	// Requests are those that the set is made of, in order.
	Requests []Request
	// Text in CEL.
	Text string
}

// Request asks for devices of one driver.
type Request struct {
	Driver string
	Count  int
}

// Hardware is a kind of node.
type Hardware struct {
	Name string
	// Devices makes the devices of a node, at most nine, in the order in which they are
	// published. Those of one driver stand together.
	Devices func() []Device
}

// Device of a driver. Attributes without a domain are in that of the driver.
type Device struct {
	Driver string
	resourceapi.Device
}

// Drivers lists the drivers of the devices, each once, in order.
func (h Hardware) Drivers() []string {
	var drivers []string
	for _, d := range h.Devices() {
		if !slices.Contains(drivers, d.Driver) {
			drivers = append(drivers, d.Driver)
		}
	}
	return drivers
}

// Expressions returns all of them, in a fixed order.
func Expressions() []Expression {
	return slices.Concat(
		rings(), meshes(), toruses(), boards(), bridges(), cubes(), couples(),
		gpus(), partitions(), chips(), interfaces(), cores(), functions(),
	)
}

// written is an expression before it is known what for: its name, how many devices
// of each driver, its text.
type written struct {
	name   string
	counts []int
	text   string
}

// of makes the expressions of a kind of node.
func (h Hardware) of(all []written) []Expression {
	drivers := h.Drivers()
	result := make([]Expression, len(all))
	for i, w := range all {
		result[i] = Expression{Name: h.Name + ": " + w.name, Hardware: h, Text: w.text}
		for j, count := range w.counts {
			result[i].Requests = append(result[i].Requests, Request{Driver: drivers[j%len(drivers)], Count: count})
		}
	}
	return result
}
