// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"

	celgo "github.com/google/cel-go/cel"
	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"
)

// Spelling is one of several expressions for the same requested set, on a large machine.
type Spelling struct {
	// Shape names the requested set. Text is one expression for it.
	Shape, Text string
	// Machine is the number of devices of the machine. Size is the number of devices of a set.
	Machine, Size int
	// Gone selects devices to remove by index, so that no set satisfies the expression. It is nil if there is always such a
	// set.
	Gone func(index int) bool
	// Steps is the maximum number of steps that a search may need.
	Steps int64
}

// SpellingDriver is the driver of the devices that [SpellingDevices] returns.
const SpellingDriver = "mla.example.com"

//go:embed spellings.yaml
var spellingsFile []byte

// Spellings returns conditions as in [Asked], for machines of 64 and 128 devices. Each condition occurs in many spellings.
var Spellings = sync.OnceValue(func() (all []Spelling) {
	var shapes []struct {
		Shape, Gone string
		Size        map[int]int
		Let         map[string]string
		Steps       int64
		Spellings   []string
	}
	if err := yaml.UnmarshalStrict(spellingsFile, &shapes); err != nil {
		panic(err)
	}
	for _, shape := range shapes {
		for _, machine := range []int{64, 128} {
			size := shape.Size[machine]
			numbers := strings.NewReplacer("$machine", fmt.Sprint(machine), "$size", fmt.Sprint(size), "$less", fmt.Sprint(size-1), "$tall", fmt.Sprint(size/4), "$rows", fmt.Sprint(machine/8))
			var gone func(int) bool
			if shape.Gone != "" {
				gone = isGone(numbers.Replace(shape.Gone))
			}
			for _, text := range shape.Spellings {
				for name, let := range shape.Let {
					text = strings.ReplaceAll(text, "$"+name, let)
				}
				text = spelled(numbers.Replace(text), []string{SpellingDriver, ""})
				all = append(all, Spelling{shape.Shape, text, machine, size, gone, int64(size) + 2 + shape.Steps})
			}
		}
	}
	return all
})

// isGone returns a function that evaluates a CEL condition on the index of a device.
func isGone(condition string) func(int) bool {
	env := must(celgo.NewEnv(celgo.Variable("i", celgo.IntType)))
	ast, issues := env.Compile(condition)
	if issues.Err() != nil {
		panic(issues.Err())
	}
	program := must(env.Program(ast))
	return func(i int) bool {
		value, _, err := program.Eval(map[string]any{"i": i})
		return must(value, err).Value().(bool)
	}
}

// SpellingDevices returns the devices of a machine with the given number of devices. Their attributes describe a ring, a mesh
// of eight columns, trays of eight devices, islands of machine/8 devices, and pairs.
func SpellingDevices(machine int) []resourceapi.Device {
	p := part{Prefix: "mla", Count: machine, Attributes: map[resourceapi.QualifiedName]string{
		"index": "i", "next": fmt.Sprintf("(i + 1) %% %d", machine),
		"row": "i / 8", "col": "i % 8", "tray": "i / 8", "zone": "printf('z%02d', [i / 8])", "island": "i % 8",
		"pair": "i / 2", "peer": "i % 2 == 0 ? i + 1 : i - 1", "even": "i / 2 * 2", "memory": "1 + i % 4",
	}}
	var result []resourceapi.Device
	for _, d := range p.devices() {
		result = append(result, d.Device)
	}
	return result
}
