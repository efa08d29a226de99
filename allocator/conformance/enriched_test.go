// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator/conformance/scenario"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/deviceattributes"
	"github.com/celset/celset/internal/testing/cases"
)

const (
	// enrichedDomain is the domain of all attributes that claims read. The drivers of the cases publish some attributes in it.
	enrichedDomain = "example.com"
	// sourceDomain has copies of attributes, which expressions read.
	sourceDomain = "source.example.com"
	// serialKey is unique for each device.
	serialKey = "serial.example.com/id"
)

// TestSameAsPublished compares slices with the attributes of DeviceAttributes objects with slices that have these attributes from
// the driver. The slices must be equal, and each allocator must give the same answer.
func TestSameAsPublished(t *testing.T) {
	t.Parallel()
	counts := map[string]int{}
	cases.CheckN(t, cases.Of(300, 10_000), func(t *rapid.T) {
		profile := rapid.SampledFrom([]scenario.Profile{scenario.Alpha, scenario.CEL, scenario.Sound}).Draw(t, "profile")
		published := inOneDomain(t, scenario.Cases(profile).Draw(t, "case"))
		bare, objects := withoutAttributes(t, published)
		enriched := bare.Clone()
		before := bare.Clone()
		var report *deviceattributes.Report
		var err error
		enriched.Slices, report, err = deviceattributes.Apply(context.Background(), objects, bare.Slices, nil)
		require.NoError(t, err)
		for _, o := range report.Objects {
			require.Nil(t, o.Rejection)
			require.Zero(t, o.Conflicts.Count)
			require.Zero(t, o.FailedExpressions.Count, o.FailedExpressions.First)
			require.Zero(t, o.OverLimit.Count)
			counts["attributes"] += o.Attributes
		}
		require.Empty(t, cmp.Diff(published.Slices, enriched.Slices, byFormat), "case:\n%s", published)

		want := ours(published)
		requireEqual(t, published, want, ours(enriched), "ours with enriched slices")
		requireEqual(t, published, upstream(experimental, published), upstream(experimental, enriched), "upstream's with enriched slices")
		requireUnmodified(t, before, bare)
		counts[string(want.kind)]++
		if want.kind != ours(bare).kind {
			counts["attributes matter"]++
		}
	})
	t.Log(counts)
	for _, of := range []string{"attributes", string(found), string(none), "attributes matter"} {
		require.Positive(t, counts[of], of)
	}
}

var (
	ownDomain  = regexp.MustCompile(`attributes\[(\w+\.driver|'(gpu|nic)\.example\.com')\]`)
	ownName    = regexp.MustCompile(`("(?:matchAttribute|distinctAttribute|name)":")(?:gpu|nic)\.example\.com/`)
	ownDomains = func(text []byte) []byte {
		return ownName.ReplaceAll(ownDomain.ReplaceAll(text, []byte("attributes['"+enrichedDomain+"']")), []byte("${1}"+enrichedDomain+"/"))
	}
)

// inOneDomain moves all attributes of the drivers, and the claims that read them, into one domain. It adds a serial number and
// copies of the attributes.
func inOneDomain(t require.TestingT, c *scenario.Case) *scenario.Case {
	result := c.Clone()
	for _, part := range []any{&result.Claims, &result.Classes} {
		text, err := json.Marshal(part)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(ownDomains(text), part))
	}
	serial := 0
	result.Devices(func(_ *resourceapi.ResourceSlice, d *resourceapi.Device) {
		serial++
		attributes := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{serialKey: {StringValue: new(fmt.Sprint("s", serial))}}
		for name, value := range d.Attributes {
			if cmp.Equal(value, resourceapi.DeviceAttribute{}) {
				continue // a mistake of the driver that no object can have
			}
			id := string(name[strings.LastIndex(string(name), "/")+1:])
			attributes[resourceapi.QualifiedName(enrichedDomain+"/"+id)] = value
			attributes[resourceapi.QualifiedName(sourceDomain+"/"+id)] = value
		}
		d.Attributes = attributes
	})
	return result
}

// withoutAttributes removes the attributes of the domain, and returns objects that define them. Each attribute is either computed
// or in the table.
func withoutAttributes(t *rapid.T, c *scenario.Case) (*scenario.Case, []*v1alpha1.DeviceAttributes) {
	bare := c.Clone()
	objects := map[string]*v1alpha1.DeviceAttributes{}
	computed := map[string]bool{}
	bare.Devices(func(slice *resourceapi.ResourceSlice, d *resourceapi.Device) {
		row := v1alpha1.AttributeRow{Key: *d.Attributes[serialKey].StringValue, Values: map[string]resourceapi.DeviceAttribute{}}
		for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
			id, isOurs := strings.CutPrefix(string(name), enrichedDomain+"/")
			if !isOurs {
				continue
			}
			object := objects[slice.Spec.Driver]
			if object == nil {
				object = &v1alpha1.DeviceAttributes{}
				object.Name = slice.Spec.Driver
				object.Spec = v1alpha1.DeviceAttributesSpec{Driver: slice.Spec.Driver, Domain: enrichedDomain}
				objects[slice.Spec.Driver] = object
			}
			key := slice.Spec.Driver + "/" + id
			if _, isDrawn := computed[key]; !isDrawn {
				if computed[key] = rapid.Bool().Draw(t, key); computed[key] {
					object.Spec.Attributes = append(object.Spec.Attributes, v1alpha1.ComputedAttribute{
						Name: id, Expression: fmt.Sprintf("device.attributes['%s'].?%s", sourceDomain, id),
					})
				}
			}
			if !computed[key] {
				row.Values[id] = d.Attributes[name]
			}
			delete(d.Attributes, name)
		}
		if len(row.Values) == 0 {
			return
		}
		object := objects[slice.Spec.Driver]
		if object.Spec.Table == nil {
			object.Spec.Table = &v1alpha1.AttributeTable{Key: serialKey}
		}
		object.Spec.Table.Rows = append(object.Spec.Table.Rows, row)
	})
	return bare, slices.Collect(maps.Values(objects))
}
