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
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"
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
func Expressions() []Expression { return slices.Clone(expressions()) }

// Asked returns expressions for machines of the size that people have: what [Expressions] has
// can be tried with every set, these can't. They were collected before the search could read
// them, and belong to no class that it is good at: sorted values, sums, texts, unions, counts of
// counts, ways from device to device. Every expression compiles, and fails for no set.
func Asked() []Expression { return slices.Clone(asked()) }

//go:embed expressions.yaml
var expressionsFile []byte

//go:embed asked.yaml
var askedFile []byte

var (
	expressions = sync.OnceValue(func() []Expression { return read(expressionsFile) })
	asked       = sync.OnceValue(func() []Expression { return read(askedFile) })
)

// read reads the expressions of a file. It panics over mistakes, because tests read both files.
func read(file []byte) []Expression {
	var blocks []struct {
		Node        string
		Let         map[string]string
		Expressions []struct {
			Name    string
			Devices []int
			Text    string
		}
	}
	if err := yaml.UnmarshalStrict(file, &blocks); err != nil {
		panic(err)
	}
	var result []Expression
	for _, block := range blocks {
		node, known := nodes()[block.Node]
		if !known {
			panic(fmt.Sprintf("there is no node %q", block.Node))
		}
		drivers := node.Drivers()
		for _, written := range block.Expressions {
			for name, text := range block.Let {
				written.Text = strings.ReplaceAll(written.Text, "$"+name, text)
			}
			e := Expression{Name: node.Name + ": " + written.Name, Hardware: node, Text: spelled(written.Text, append(drivers, ""))}
			for j, count := range written.Devices {
				e.Requests = append(e.Requests, Request{Driver: drivers[j%len(drivers)], Count: count})
			}
			result = append(result, e)
		}
	}
	return result
}

var attributeOf = regexp.MustCompile(`([a-z]+(?:\[[^]]*\])?)([@#~])([a-zA-Z_0-9]+)`)

// spelled writes attributes as they are read.
func spelled(text string, drivers []string) string {
	return attributeOf.ReplaceAllStringFunc(text, func(short string) string {
		parts := attributeOf.FindStringSubmatch(short)
		domain := map[string]string{"@": drivers[0], "#": drivers[1], "~": "resource.kubernetes.io"}[parts[2]]
		return parts[1] + ".attributes['" + domain + "']." + parts[3]
	})
}
