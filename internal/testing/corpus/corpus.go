// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package corpus has realistic expressions over sets of devices, and the hardware that each expression is written for. Property
// tests use these expressions in addition to random ones.
//
//	for _, e := range corpus.Expressions() {
//		node := e.Hardware.Devices() // what e.Text reads
//		...                          // e.Requests: how many of which driver
//	}
//
// The expressions come from KEP-5254, from this project's documentation, and from the attributes that drivers for GPUs, TPUs,
// network interfaces and CPUs publish. Many conditions occur in several spellings. Every expression is true for some set of the
// devices, false for another set, and never an error.
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
	// Name describes the requested set of devices. It is unique.
	Name     string
	Hardware Hardware
	// Requests are the requests of the claim. The set has the devices of all requests, in this order.
	Requests []Request
	// Text is the expression in CEL.
	Text string
}

// Request asks for a number of devices of one driver.
type Request struct {
	Driver string
	Count  int
}

// Hardware is a kind of node with certain devices.
type Hardware struct {
	Name string
	// Devices returns the devices of a node, at most nine, in the order of publication. Devices of the same driver are
	// consecutive.
	Devices func() []Device
}

// Device is a device of a driver. Attributes without a domain belong to the driver's domain.
type Device struct {
	Driver string
	resourceapi.Device
}

// Drivers returns the drivers of the devices without repetition, in order.
func (h Hardware) Drivers() []string {
	var drivers []string
	for _, d := range h.Devices() {
		if !slices.Contains(drivers, d.Driver) {
			drivers = append(drivers, d.Driver)
		}
	}
	return drivers
}

// Expressions returns all expressions in a fixed order.
func Expressions() []Expression { return slices.Clone(expressions()) }

// Asked returns expressions for machines of realistic size, with too many sets to try all. They were collected before the
// search could analyze them, and cover hard cases: sorted values, sums, texts, unions, counts of counts, and paths between
// devices. Every expression compiles and never fails.
func Asked() []Expression { return slices.Clone(asked()) }

//go:embed expressions.yaml
var expressionsFile []byte

//go:embed asked.yaml
var askedFile []byte

var (
	expressions = sync.OnceValue(func() []Expression { return read(expressionsFile) })
	asked       = sync.OnceValue(func() []Expression { return read(askedFile) })
)

// read parses a file of expressions. It panics on mistakes, because the tests of this package read both files.
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

// spelled expands the abbreviated attributes in the text of an expression.
func spelled(text string, drivers []string) string {
	return attributeOf.ReplaceAllStringFunc(text, func(short string) string {
		parts := attributeOf.FindStringSubmatch(short)
		domain := map[string]string{"@": drivers[0], "#": drivers[1], "~": "resource.kubernetes.io"}[parts[2]]
		return parts[1] + ".attributes['" + domain + "']." + parts[3]
	})
}
