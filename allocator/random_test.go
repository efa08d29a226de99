// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/policy"
)

// Random scenarios are small, so that trying all sets is affordable. They are also tight: claims often don't fit, and expressions
// often fail on some device.

// oneIn returns true in one of n cases.
func oneIn(t *rapid.T, n int, label string) bool {
	return rapid.IntRange(0, n-1).Draw(t, label) == n-1
}

func randomScenario(t *rapid.T) scenario {
	var features *structured.Features
	if oneIn(t, 2, "list attributes") {
		features = listsOn
	}
	s := randomNode(t)
	s.features = features
	for i := range rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "claims") {
		s.claims = append(s.claims, randomClaim(t, string(rune('a'+i))))
	}
	return s
}

// randomNode returns a scenario without claims.
func randomNode(t *rapid.T) scenario {
	s := scenario{}
	n := rapid.IntRange(2, 7).Draw(t, "devices")
	devices := make([]resourceapi.Device, n)
	for i := range devices {
		devices[i] = randomDevice(t, i)
		switch {
		case !oneIn(t, 6, "allocated"):
		case devices[i].AllowMultipleAllocations == nil:
			s.inUse = append(s.inUse, devices[i].Name)
		case oneIn(t, 3, "share without capacity"):
			s.shares = append(s.shares, share{device: devices[i].Name})
		default:
			s.shares = append(s.shares, share{device: devices[i].Name, consumed: map[string]string{"memory": "1"}})
		}
	}
	s.slices = []*sliceBuilder{
		slice("devices", devices...).pool("pool-1", 1, 2),
		providing("counters", map[string]amounts{
			"gpu":  {"memory": rapid.SampledFrom([]string{"2", "4", "6"}).Draw(t, "memory"), "cores": "3"},
			"link": {"lanes": rapid.SampledFrom([]string{"1", "4", "4"}).Draw(t, "lanes")},
		}),
	}
	return s
}

func randomDevice(t *rapid.T, i int) resourceapi.Device {
	d := newDevice(fmt.Sprintf("mla-%d", i), attrs{"index": i})
	switch rapid.IntRange(0, 5).Draw(t, "color") {
	case 0: // no color
	case 1:
		d.Attributes["color"] = resourceapi.DeviceAttribute{StringValues: []string{"red", "blue"}}
	case 2:
		d.Attributes["color"] = resourceapi.DeviceAttribute{StringValue: ptr.To("blue")}
	default:
		d.Attributes["color"] = resourceapi.DeviceAttribute{StringValue: ptr.To("red")}
	}
	if oneIn(t, 2, "consumes counters") {
		groups := rapid.SampledFrom([][]string{nil, nil, nil, nil, {"g"}, {"g", "h"}, {"h"}}).Draw(t, "groups")
		consumed := rapid.SampledFrom([]amounts{{"memory": "1"}, {"memory": "2"}, {"memory": "1", "cores": "2"}}).Draw(t, "consumed")
		consuming("gpu", consumed, groups...)(&d)
		if oneIn(t, 3, "consumes lanes") {
			consuming("link", amounts{"lanes": "1"}, groups...)(&d)
		}
	}
	if oneIn(t, 3, "shared") {
		shared(&d)
		policy.Having("memory", "3", rapid.SampledFrom([]*resourceapi.CapacityRequestPolicy{nil, policy.Default("1"), policy.Range("1", "", "1")}).Draw(t, "policy"))(&d)
	}
	if oneIn(t, 8, "tainted") {
		d.Taints = []resourceapi.DeviceTaint{{Key: "sick", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
	}
	return d
}

// randomClaim returns a claim whose requests and constraints often conflict and sometimes fail.
func randomClaim(t *rapid.T, name string) *claimBuilder {
	c := claim(name)
	for i := range rapid.SampledFrom([]int{1, 1, 2, 2, 3, 4}).Draw(t, "requests") {
		randomRequest(t, c, fmt.Sprintf("%s-%d", name, i))
	}
	read, variables := indices, []v1alpha1.Variable(nil)
	if oneIn(t, 2, "variables") {
		read, variables = "devices.map(d, d.variables.index)", []v1alpha1.Variable{{Name: "index", Expression: index}}
	}
	c.define("row", strings.ReplaceAll(inARow, indices, read), variables...).define("even", read+".sum() % 2 == 0", variables...).define("never", "false")
	// A failure may concern one node or all nodes.
	failurePolicy := []v1alpha1.FailurePolicy{"", v1alpha1.FailurePolicyNodeDoesNotFit}
	c.define("broken", "1 / ("+read+"[0] - 1) < 2", variables...).failurePolicy(rapid.SampledFrom(failurePolicy).Draw(t, "broken"))
	c.define("fails", "1 / (devices.size() - 3) < 2").failurePolicy(rapid.SampledFrom(failurePolicy).Draw(t, "fails"))
	for range rapid.SampledFrom([]int{0, 0, 1, 1, 2, 3}).Draw(t, "constraints") {
		var covered []string
		if oneIn(t, 2, "covers some") {
			covered = []string{randomReference(t, c), randomReference(t, c)}
		}
		add := rapid.SampledFrom([]func(string, ...string) *claimBuilder{c.match, c.distinct}).Draw(t, "attribute constraint")
		switch kind := rapid.SampledFrom([]string{"color", "color", "color", "index", "row", "even", "even", "never", "broken", "fails"}).Draw(t, "constraint"); kind {
		case "color", "index":
			add(driver+"/"+kind, covered...)
		default:
			c.cel(kind, covered...)
		}
	}
	return c
}

// randomReference returns the name of a request or of one of its alternatives.
func randomReference(t *rapid.T, c *claimBuilder) string {
	r := rapid.SampledFrom(c.Spec.Devices.Requests).Draw(t, "covered")
	if len(r.FirstAvailable) == 0 || oneIn(t, 2, "all alternatives") {
		return r.Name
	}
	return r.Name + "/" + rapid.SampledFrom(r.FirstAvailable).Draw(t, "covered alternative").Name
}

// failurePolicy sets the failure policy of the last constraint.
func (b *claimBuilder) failurePolicy(value v1alpha1.FailurePolicy) *claimBuilder {
	raw := &b.Spec.Devices.Config[len(b.Spec.Devices.Config)-1].Opaque.Parameters.Raw
	*raw = []byte(strings.TrimSuffix(string(*raw), "}") + `,"failurePolicy":"` + string(value) + `"}`)
	return b
}

func randomRequest(t *rapid.T, c *claimBuilder, name string) {
	// There are few kinds of requests, so that several compete for the same devices.
	selectors := rapid.SampledFrom([][]string{
		nil, nil, nil, nil, {index + " % 2 == 0"}, {index + " % 2 == 0"}, {"1 / (" + index + " - 4) < 2"}, {index + " < 0"},
	}).Draw(t, "selectors")
	if oneIn(t, 4, "alternatives") {
		var alternatives []resourceapi.DeviceSubRequest
		for i := range rapid.IntRange(1, 3).Draw(t, "number of alternatives") {
			alternative := sub(fmt.Sprint("sub-", i), rapid.SampledFrom([]int64{1, 1, 2, 3, 31}).Draw(t, "count"), selectors...)
			if oneIn(t, 6, "all") {
				alternative = subAll(fmt.Sprint("sub-", i), selectors...)
			}
			if oneIn(t, 6, "derived") {
				alternative.DerivedAttributes = []resourceapi.DeviceDerivedAttribute{{Name: color, Expression: randomDerived(t)}}
			}
			alternatives = append(alternatives, alternative)
		}
		c.firstAvailable(name, alternatives...)
		return
	}
	if oneIn(t, 6, "all") {
		c.wantAll(name, selectors...)
	} else {
		c.want(name, rapid.SampledFrom([]int64{1, 1, 1, 2, 2, 3, 4}).Draw(t, "count"), selectors...)
	}
	c.edit(func(r *resourceapi.ExactDeviceRequest) {
		if oneIn(t, 5, "admin") {
			r.AdminAccess = ptr.To(true)
		}
		if oneIn(t, 8, "tolerates") {
			r.Tolerations = []resourceapi.DeviceToleration{{Operator: resourceapi.DeviceTolerationOpExists}}
		}
		if oneIn(t, 6, "derived") {
			r.DerivedAttributes = []resourceapi.DeviceDerivedAttribute{{Name: color, Expression: randomDerived(t)}}
		}
		if oneIn(t, 5, "capacity") {
			r.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{
				"memory": resource.MustParse(rapid.SampledFrom([]string{"1", "2", "1e19"}).Draw(t, "requested memory")),
			}}
		}
	})
}

// randomDerived returns an expression that fails on some devices or on none.
func randomDerived(t *rapid.T) string {
	return rapid.SampledFrom([]string{"'red'", index + " % 2 == 0 ? 'red' : 'blue'", "string(1 / (" + index + " - 2))"}).Draw(t, "derived attribute")
}

// randomPod returns claims that must satisfy the expressions.
func randomPod(t *rapid.T, plain bool, expressions []string) []*claimBuilder {
	claims := []*claimBuilder{plainClaim(t)}
	if !plain {
		claims = nil
		for i := range rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "claims") {
			claims = append(claims, randomClaim(t, string(rune('a'+i))))
		}
	}
	for _, c := range claims {
		for _, name := range []string{"first", "second"}[:rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "constraints")] {
			var covered []string
			if oneIn(t, 4, "covers some") {
				covered = []string{randomReference(t, c), randomReference(t, c)}
			}
			c.define(name, rapid.SampledFrom(expressions).Draw(t, "expression")).cel(name, covered...)
		}
	}
	return claims
}

// alteredPod returns copies of the claims with other names. One of them may have another change.
func alteredPod(t *rapid.T, pod []*claimBuilder) []*claimBuilder {
	var result []*claimBuilder
	for _, original := range pod {
		c := &claimBuilder{original.DeepCopy()}
		c.Name += "-copy"
		result = append(result, c)
	}
	d := &rapid.SampledFrom(result).Draw(t, "altered claim").Spec.Devices
	first := d.Requests[0].Exactly
	switch rapid.IntRange(0, 6).Draw(t, "alteration of the claim") {
	case 0:
		slices.Reverse(d.Constraints)
	case 1:
		d.Constraints = d.Constraints[:max(1, len(d.Constraints)-1)]
	case 2:
		d.Constraints[0].Requests = []string{d.Requests[0].Name}
	case 3:
		if first != nil && first.Count > 0 {
			first.Count++
		}
	case 4:
		if first != nil {
			first.Selectors = append(first.Selectors, celSelectors([]string{index + " != 1"})...)
		}
	case 5:
		if first != nil {
			first.AdminAccess = ptr.To(true)
		}
	case 6: // only the names differ
	}
	return result
}

// plainClaim returns a claim that restricts little besides the expressions.
func plainClaim(t *rapid.T) *claimBuilder {
	c := claim("c")
	counts := rapid.SampledFrom([][]int64{{3}, {3}, {4}, {2}, {2, 2}, {1, 2}, {2, 1, 1}, {3}}).Draw(t, "counts")
	for i, count := range counts {
		c.want(fmt.Sprint("c-", i), count, rapid.SampledFrom([][]string{
			nil, nil, nil, nil, nil, nil,
			{"1 / (" + index + " - 5) < 2"},
			{index + " != 2"},
			{"device.attributes['" + driver + "'].rank != 2"},
		}).Draw(t, "selectors")...)
	}
	for range rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "attribute constraints") {
		add := rapid.SampledFrom([]func(string, ...string) *claimBuilder{c.match, c.distinct}).Draw(t, "attribute constraint")
		add(driver+"/"+rapid.SampledFrom([]string{"letter", "rank", "weight", "healthy"}).Draw(t, "attribute"), randomReference(t, c), randomReference(t, c))
	}
	if oneIn(t, 8, "derived") {
		c.derive(color, randomDerived(t)).match(color)
	}
	return c
}
