// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// preferenceOf is a preference as a configuration for requests, all if none are named.
func preferenceOf(name, expression string, requests ...string) resourceapi.DeviceConfiguration {
	raw, err := json.Marshal(v1alpha1.CELDevicePreference{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.PreferenceKind},
		Name:       name,
		Expression: expression,
		Requests:   requests,
	})
	if err != nil {
		panic(err)
	}
	return parameters(v1alpha1.DriverName, string(raw))
}

// prefer adds a preference.
func (b *claimBuilder) prefer(name, expression string, requests ...string) *claimBuilder {
	return b.configure(preferenceOf(name, expression, requests...))
}

func classPreferring(name, preference, expression string) *resourceapi.DeviceClass {
	class := classOf(name)
	class.Spec.Config = []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: preferenceOf(preference, expression)}}
	return class
}

// eight are devices mla-0 to mla-7 with their index.
func eight() []*sliceBuilder {
	devices := make([]resourceapi.Device, 8)
	for i := range devices {
		devices[i] = newDevice(fmt.Sprintf("mla-%d", i), attrs{"index": i, "row": i / 4})
	}
	return []*sliceBuilder{slice("devices", devices...)}
}

const (
	maximum = indices + ".max()"
	sum     = indices + ".sum()"
	// indexOfD is the index of a device d.
	indexOfD = "d.attributes['" + driver + "'].index"
)

func TestPreferences(t *testing.T) {
	for name, test := range map[string]struct {
		claims  []*claimBuilder
		classes []*resourceapi.DeviceClass
		inUse   []string
		want    []string
	}{
		"greatest": {
			claims: []*claimBuilder{claim("c").want("r", 2).prefer("p", sum)},
			want:   []string{"r=mla-6", "r=mla-7"},
		},
		"of those that do": {
			claims: []*claimBuilder{claim("c").want("r", 2).cel("even").define("even", indices+".all(i, i % 2 == 0)").prefer("p", sum)},
			want:   []string{"r=mla-4", "r=mla-6"},
		},
		"of those that are free": {
			claims: []*claimBuilder{claim("c").want("r", 1).prefer("p", sum)},
			inUse:  []string{"mla-7", "mla-5"},
			want:   []string{"r=mla-6"},
		},
		"the first of equal ones": {
			claims: []*claimBuilder{claim("c").want("r", 2).prefer("p", "devices.all(d, "+indexOfD+" >= 2) ? 1 : 0")},
			want:   []string{"r=mla-2", "r=mla-3"},
		},
		"a constant changes nothing": {
			claims: []*claimBuilder{claim("c").want("r", 2).prefer("p", "7")},
			want:   []string{"r=mla-0", "r=mla-1"},
		},
		"the least": {
			claims: []*claimBuilder{claim("c").want("r", 2).cel("row").define("row", indices+".min() > 3").prefer("p", "-"+maximum)},
			want:   []string{"r=mla-4", "r=mla-5"},
		},
		"one after the other": {
			claims: []*claimBuilder{claim("c").want("r", 2).prefer("p", maximum).prefer("q", "-"+sum)},
			want:   []string{"r=mla-0", "r=mla-7"},
		},
		"some requests": {
			claims: []*claimBuilder{claim("c").want("r", 1).want("s", 1).want("t", 1).prefer("p", sum, "s")},
			want:   []string{"r=mla-0", "s=mla-7", "t=mla-1"},
		},
		"requests that compete": {
			claims: []*claimBuilder{claim("c").want("r", 1).want("s", 1).prefer("p", sum, "s").prefer("q", sum, "r")},
			want:   []string{"r=mla-6", "s=mla-7"},
		},
		"two claims, the first comes first": {
			claims: []*claimBuilder{claim("c").want("r", 1).prefer("p", sum), claim("d").want("s", 1).prefer("p", sum)},
			want:   []string{"r=mla-7", "s=mla-6"},
		},
		"of the class, for each request": {
			classes: []*resourceapi.DeviceClass{classPreferring("high", "p", sum)},
			claims:  []*claimBuilder{claim("c").want("r", 1).class("high").want("s", 1).want("t", 1).class("high")},
			want:    []string{"r=mla-7", "s=mla-0", "t=mla-6"},
		},
		"the claim's wins": {
			classes: []*resourceapi.DeviceClass{classPreferring("high", "p", sum)},
			claims:  []*claimBuilder{claim("c").want("r", 1).class("high").want("s", 1).class("high").prefer("p", "-"+sum, "r")},
			want:    []string{"r=mla-0", "s=mla-7"},
		},
		"alternatives come first": {
			claims: []*claimBuilder{claim("c").firstAvailable("r", sub("one", 9), sub("two", 2), sub("three", 3)).prefer("p", sum)},
			want:   []string{"r/two=mla-6", "r/two=mla-7"},
		},
		"about an alternative that was not taken": {
			claims: []*claimBuilder{claim("c").firstAvailable("r", sub("two", 2), sub("three", 3)).prefer("p", sum, "r/three")},
			want:   []string{"r/two=mla-0", "r/two=mla-1"},
		},
		"all": {
			claims: []*claimBuilder{claim("c").wantAll("r", index+" < 2").prefer("p", sum)},
			want:   []string{"r=mla-0", "r=mla-1"},
		},
		"nothing fits": {
			claims: []*claimBuilder{claim("c").want("r", 9).prefer("p", sum)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{slices: eight(), classes: test.classes, claims: test.claims, inUse: test.inUse}
			s.requireDevices(t, test.want...)
			s.opts = []Option{WithExhaustiveSearch()}
			s.requireDevices(t, test.want...)
			// What is known by heart is the same.
			s.opts = []Option{WithCache(NewCache())}
			s.requireDevices(t, test.want...)
			s.requireDevices(t, test.want...)
			// Without the feature it is configuration for a driver that nobody knows.
			_, err := scenario{slices: eight(), classes: test.classes, claims: test.claims, inUse: test.inUse, opts: []Option{WithoutCELConstraints()}}.allocate(t)
			require.NoError(t, err)
		})
	}
}

func TestPreferencesFail(t *testing.T) {
	for name, test := range map[string]struct{ expression, message string }{
		"bool":           {"true", "preference p (ResourceClaim default/c spec.devices.config[0]): ERROR: <input>:1:1: the expression must return int, it returns bool"},
		"failing":        {"1 / (" + sum + " - 1)", "claim default/c, preference p, node node-1, devices [mla.example.com/pool-1/mla-0, mla.example.com/pool-1/mla-1]"},
		"later":          {"1 / (" + sum + " - 4)", "claim default/c, preference p, node node-1, devices [mla.example.com/pool-1/mla-0, mla.example.com/pool-1/mla-4]"},
		"of no int":      {"dyn(" + sum + " > 1 ? dyn(1.5) : dyn(1))", "the expression must return int, it returned double"},
		"malformed":      {"", "spec.devices.config[0].opaque.parameters.expression: Required value"},
		"does not parse": {"devices.", "preference p"},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{slices: eight(), claims: []*claimBuilder{claim("c").want("r", 2).prefer("p", test.expression)}}
			s.requireError(t, test.message)
			s.opts = []Option{WithExhaustiveSearch()}
			s.requireError(t, test.message)
		})
	}
}

// A preference never keeps claims from being allocated because it takes long.
func TestPreferencesHaveABudget(t *testing.T) {
	// Nothing can be read from it, so that all sets have to be tried.
	unreadable := "devices.slice(0, 4).map(d, " + indexOfD + ").max()"
	claims := []*claimBuilder{claim("c").want("r", 4).prefer("p", unreadable)}
	for name, test := range map[string]struct {
		opts    []Option
		want    []string
		outcome Stats
	}{
		"enough":     {nil, []string{"r=mla-0", "r=mla-1", "r=mla-2", "r=mla-7"}, Stats{PreferencesBest: 1}},
		"few steps":  {[]Option{WithPreferenceBudget(1_000_000, 20)}, []string{"r=mla-0", "r=mla-1", "r=mla-2", "r=mla-7"}, Stats{PreferencesBestFound: 1}},
		"fewer":      {[]Option{WithPreferenceBudget(1_000_000, 5)}, []string{"r=mla-0", "r=mla-1", "r=mla-2", "r=mla-3"}, Stats{PreferencesBestFound: 1}},
		"no steps":   {[]Option{WithPreferenceBudget(1_000_000, 0)}, []string{"r=mla-0", "r=mla-1", "r=mla-2", "r=mla-3"}, Stats{PreferencesBestFound: 1}},
		"no cost":    {[]Option{WithPreferenceBudget(0, 1000)}, []string{"r=mla-0", "r=mla-1", "r=mla-2", "r=mla-3"}, Stats{PreferencesBestFound: 1}},
		"of attempt": {[]Option{WithAttemptBudget(NewAttemptBudget(1_000_000, 0))}, []string{"r=mla-0", "r=mla-1", "r=mla-2", "r=mla-3"}, Stats{PreferencesBestFound: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{slices: eight(), claims: claims, opts: test.opts}
			a := s.allocator(t)
			results, err := a.Allocate(t.Context(), s.onNode(), s.apiClaims())
			require.NoError(t, err)
			require.Equal(t, test.want, devicesOf(results))
			stats := a.Stats()
			require.Equal(t, test.outcome, Stats{PreferencesBest: stats.PreferencesBest, PreferencesBestFound: stats.PreferencesBestFound})
		})
	}
}

// Once a set was found, the requests after it are tried no further: a selector that fails for one of
// them ends the search for a better set, and need not be met.
func TestPreferencesDoNotMeetWhatIsNoBetter(t *testing.T) {
	c, d := claim("c").want("r", 1).prefer("p", maximum), claim("d").want("s", 1, "1 / (device.attributes['"+driver+"'].index - 4) < 2")
	s := scenario{slices: eight(), claims: []*claimBuilder{c, d}, inUse: []string{"mla-4"}}
	s.requireDevices(t, "r=mla-7", "s=mla-0")
	s.inUse = nil
	s.requireDevices(t, "r=mla-7", "s=mla-0")
	s.opts = []Option{WithExhaustiveSearch()}
	s.requireDevices(t, "r=mla-7", "s=mla-0")
}
